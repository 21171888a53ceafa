"""Tests of what a plugin that optimizes trajectories must do with its paths; every other plugin must refuse them.

Judged by forward kinematics, limits and distances of this file alone.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.geometry.shapes import PlacedShape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.collision_elements import CollisionElement
from kinopt_ros.robot.collision_shapes import CollisionModel
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.solvers.base import Feature, Solver
from kinopt_ros.solvers.paths import PathRequest, Progress
from kinopt_ros.solvers.registry import create_solver, solver_class
from kinopt_ros.solvers.trajectory_result import TrajectoryResult

_LINKS = ("l3", "l4", "l5", "l7")
_RADIUS = 0.03
"""Radius of the spheres that links are made of, m."""
_BALL = 0.08
"""Radius of the obstacle, m."""
_MARGIN = 0.01
_SOON = 10.0
"""Time to end a search, s, on a slow and busy machine; the whole search takes longer there."""
START = np.array([-0.9, 0.6, 0.0, -1.2, 0.0, 1.5, 0.0])
GOAL = np.array([0.9, 0.6, 0.0, -1.2, 0.0, 1.5, 0.0])


class TrajectoryConformance:
    """Tests of trajectories, a part of IkConformance; alone, all that a plugin without inverse kinematics needs."""

    solver: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}

    @pytest.fixture(scope="class")
    def mover(self) -> Any:
        """The plugin, configured for an arm of spheres."""
        solver = create_solver(self.solver, arm(), self.options)
        solver.warm_up()
        yield solver
        solver.close()

    def test_inverse_kinematics_is_solved_or_refused_by_name(self) -> None:
        if solver_class(self.solver).solves_ik():
            pytest.skip(f"{self.solver} solves inverse kinematics")
        solver = create_solver(self.solver, arm(), self.options)
        with pytest.raises(UnsupportedFeatureError, match="optimizes trajectories alone"):
            solver.solve_ik(ik_problem(solver.robot, np.eye(4), tip_link="l7"))
        solver.close()

    def test_trajectories_are_optimized_or_refused_by_name(self) -> None:
        if self._optimizes:
            pytest.skip(f"{self.solver} optimizes trajectories")
        solver = create_solver(self.solver, arm(), self.options)
        problem = asked(solver.robot)
        with pytest.raises(UnsupportedFeatureError, match="does not optimize"):
            solver.optimize_trajectory(problem, lines(problem))
        solver.close()

    def test_a_path_is_bent_around_an_obstacle(self, mover: Solver) -> None:
        self._needs_trajectories()
        problem = asked(mover.robot)
        result = mover.optimize_trajectory(problem, lines(problem))
        assert result.success, result.message
        check_motion(mover.robot, problem, result)
        straight = mover.optimize_trajectory(replace(problem, scene=None), lines(problem))
        assert straight.success, straight.message
        assert straight.length < result.length

    def test_nothing_in_the_way_leaves_a_line(self, mover: Solver) -> None:
        self._needs_trajectories()
        problem = replace(asked(mover.robot), scene=Scene())
        result = mover.optimize_trajectory(problem, lines(problem))
        assert result.success, result.message
        assert result.length == pytest.approx(np.linalg.norm(GOAL - START), rel=0.02)

    def test_same_paths_same_answer(self, mover: Solver) -> None:
        self._needs_trajectories()
        problem = asked(mover.robot)
        first, second = (mover.optimize_trajectory(problem, lines(problem)) for _ in range(2))
        assert first.trajectory is not None
        assert second.trajectory is not None
        np.testing.assert_array_equal(first.trajectory.position, second.trajectory.position)

    def test_it_stops_when_told(self, mover: Solver) -> None:
        self._needs_trajectories()
        told: list[Progress] = []

        def report(progress: Progress) -> bool:
            told.append(progress)
            return False

        problem = asked(mover.robot)
        mover.optimize_trajectory(problem, many(problem, 1), report)  # what is compiled first does not count
        told.clear()
        begin = time.monotonic()
        mover.optimize_trajectory(problem, many(problem, 64), report)
        assert told
        assert time.monotonic() - begin < _SOON
        assert all(progress.stage and progress.iteration >= 0 for progress in told)

    def test_the_deadline_ends_it(self, mover: Solver) -> None:
        self._needs_trajectories()
        from kinopt_ros.solvers.readiness import prepare_collisions

        prepare_collisions(mover.robot)
        problem = asked(mover.robot)
        many_paths = many(problem, 64)
        begin = time.monotonic()
        mover.optimize_trajectory(replace(problem, deadline=begin + 0.1), many_paths)
        assert time.monotonic() - begin < _SOON

    @property
    def _optimizes(self) -> bool:
        return Feature.TRAJECTORIES in solver_class(self.solver).capabilities.features

    def _needs_trajectories(self) -> None:
        if not self._optimizes:
            pytest.skip(f"{self.solver} does not declare {Feature.TRAJECTORIES.value}")


def arm() -> RobotModel:
    """Seven revolute joints; some links are balls."""
    balls = {name: (CollisionElement(Sphere(_RADIUS), np.eye(4)),) for name in _LINKS}
    return replace(seven_revolute(), collision=CollisionModel(balls))


def asked(robot: RobotModel) -> TrajectoryProblem:
    """Return a problem that leads past a ball that the hand would go through."""
    middle = forward_kinematics(robot, 0.5 * (START + GOAL), links=("l7",))[0]
    ball = SceneObject("ball", (PlacedShape(Sphere(_BALL), np.eye(4)),), middle)
    return trajectory_problem(
        robot,
        GOAL,
        joints=robot.active_joints,
        start=START,
        scene=Scene(objects={"ball": ball}),
        velocity_scaling=0.5,
        acceleration_scaling=0.5,
    )


def lines(problem: TrajectoryProblem) -> PathRequest:
    """Return the straight line as a request."""
    return many(problem, 1)


def many(problem: TrajectoryProblem, count: int) -> PathRequest:
    """Return the straight line several times as a request."""
    path = START + np.linspace(0.0, 1.0, problem.num_points)[:, None] * (GOAL - START)
    path[-1] = GOAL
    return PathRequest(
        np.repeat(path[None], count, axis=0),
        np.zeros(count, dtype=np.int64),
        np.zeros((count, 0), dtype=np.int64),
        _MARGIN,
    )


def check_motion(robot: RobotModel, problem: TrajectoryProblem, result: TrajectoryResult) -> None:
    """Check ends, limits and distances of balls, at samples of quintics that are computed here."""
    trajectory = result.trajectory
    assert trajectory is not None
    np.testing.assert_array_equal(trajectory.position[0], START)
    np.testing.assert_allclose(trajectory.position[-1], GOAL, atol=1e-6, rtol=0.0)
    q = _samples(trajectory.time, trajectory.position, trajectory.velocity, trajectory.acceleration)
    assert (q >= robot.limits.lower - 1e-6).all()
    assert (q <= robot.limits.upper + 1e-6).all()
    assert problem.scene is not None
    ball = problem.scene.objects["ball"].T_root_object[:3, 3]
    centers = forward_kinematics(robot, q, links=_LINKS)[:, :, :3, 3]
    assert (np.linalg.norm(centers - ball, axis=-1) >= _RADIUS + _BALL - 1e-9).all()


def _samples(time: Float64, p: Float64, v: Float64, a: Float64, count: int = 20) -> Float64:
    """Sample the quintic Hermite interpolation, by solving for the coefficients of every segment."""
    rows = []
    for k in range(len(time) - 1):
        h = time[k + 1] - time[k]
        powers = np.array(
            [
                [1, 0, 0, 0, 0, 0],
                [0, 1, 0, 0, 0, 0],
                [0, 0, 2, 0, 0, 0],
                [1, 1, 1, 1, 1, 1],
                [0, 1, 2, 3, 4, 5],
                [0, 0, 2, 6, 12, 20],
            ],
            dtype=np.float64,
        )
        ends = np.stack([p[k], v[k] * h, a[k] * h * h, p[k + 1], v[k + 1] * h, a[k + 1] * h * h])
        coefficients = np.linalg.solve(powers, ends)
        s = np.linspace(0.0, 1.0, count)
        rows.append(np.vander(s, 6, increasing=True) @ coefficients)
    return np.concatenate(rows)
