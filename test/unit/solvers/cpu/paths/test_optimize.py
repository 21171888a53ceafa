"""Paths around obstacles, judged by the exact check; goals, constraints, limits, stopping."""

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.arm_scenes import READY, scene_of

from kinopt_ros.array import Float64
from kinopt_ros.collision.field import field_of
from kinopt_ros.costs.stencils import derivative_matrix
from kinopt_ros.geometry.shapes import Box
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.pose_errors import axis_errors
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.problems.constraints.pose_along import PoseAlong
from kinopt_ros.problems.constraints.straight_line import StraightLine
from kinopt_ros.problems.ik import PoseTarget
from kinopt_ros.problems.trajectory import (
    CostWeights,
    JointGoal,
    PoseGoal,
    TrajectoryProblem,
)
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.solvers.cpu.paths import optimize
from kinopt_ros.solvers.cpu.paths.kernels import levenberg_marquardt
from kinopt_ros.solvers.cpu.paths.optimize import optimize_paths, path_scores
from kinopt_ros.solvers.paths import PathRequest, Progress
from kinopt_ros.verification.collision import check_collisions

LEFT = np.array([-0.9, 0.2, 0.0, -1.9, 0.0, 2.1, 0.785])
RIGHT = LEFT + np.array([1.8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
WALL = scene_of((Box(0.5, 0.05, 0.6), (0.6, 0.0, 0.3)))
T = 64


def request(*paths: Float64, passed: tuple[int, ...] = (), margin: float = 0.01) -> PathRequest:
    S = len(paths)
    return PathRequest(
        np.stack(paths),
        np.zeros(S, dtype=np.int64),
        np.tile(np.array(passed, dtype=np.int64), (S, 1)),
        margin,
    )


def line(*corners: Float64, points: int = T) -> Float64:
    s = np.linspace(0.0, len(corners) - 1.0, points)
    table = np.array(corners)
    return np.stack([np.interp(s, np.arange(len(corners)), column) for column in table.T], axis=1)


def is_free(robot: RobotModel, problem: TrajectoryProblem, path: Float64) -> bool:
    s = np.linspace(0.0, len(path) - 1.0, 600)
    q = np.repeat(problem.start[None], len(s), axis=0)
    for k, variable in enumerate(problem.variables):
        q[:, variable] = np.interp(s, np.arange(len(path)), path[:, k])
    assert problem.scene is not None
    return bool(check_collisions(robot, problem.scene, q, contacts=False).free.all())


def tips(robot: RobotModel, problem: TrajectoryProblem, path: Float64) -> Float64:
    q = np.repeat(problem.start[None], len(path), axis=0)
    q[:, problem.variables] = path
    return forward_kinematics(robot, q, ("panda_link8",))[:, 0]


def test_around_a_wall(panda: RobotModel, problem_of: Callable) -> None:
    problem = problem_of(LEFT, RIGHT, scene=WALL)
    path = line(LEFT, RIGHT)
    assert not is_free(panda, problem, path)
    found = optimize_paths(panda, problem, request(path))
    assert is_free(panda, problem, found.paths[0])
    assert found.clearance[0] >= 0.005
    assert found.violation[0] == 0.0
    assert not found.stopped[0]
    np.testing.assert_array_equal(found.paths[0, [0, -1]], path[[0, -1]])
    assert np.abs(np.diff(found.paths[0], axis=0)).max() < 0.15  # even, no corners


def test_the_same_again_and_in_company(panda: RobotModel, problem_of: Callable) -> None:
    problem = problem_of(LEFT, RIGHT, scene=WALL)
    over = line(LEFT, READY, RIGHT)
    alone = optimize_paths(panda, problem, request(over))
    both = optimize_paths(panda, problem, request(line(LEFT, RIGHT), over))
    np.testing.assert_array_equal(both.paths[1], alone.paths[0])
    assert both.cost.shape == both.clearance.shape == (2,)


def test_without_a_scene_the_path_becomes_straight(panda: RobotModel, problem_of: Callable) -> None:
    problem = problem_of(LEFT, RIGHT)
    found = optimize_paths(panda, problem, request(line(LEFT, READY, RIGHT)))
    np.testing.assert_allclose(found.paths[0], line(LEFT, RIGHT), atol=0.02)
    assert np.isinf(found.clearance[0])


def test_a_thin_wall_is_not_jumped_over(panda: RobotModel, problem_of: Callable) -> None:
    wall = scene_of((Box(0.5, 0.001, 0.6), (0.6, 0.0, 0.3)))
    problem = problem_of(LEFT, RIGHT, scene=wall, num_points=16)
    found = optimize_paths(panda, problem, request(line(LEFT, RIGHT, points=16)))
    assert is_free(panda, problem, found.paths[0]) or found.clearance[0] < 0.0


def test_pose_goals_are_reached_and_free_axes_used(panda: RobotModel, problem_of: Callable) -> None:
    problem = problem_of(LEFT, RIGHT, scene=WALL)
    T_goal = tips(panda, problem, RIGHT[None])
    for position, orientation in ((1e-4, 1e-3), ((1e-4, math.inf, 1e-4), (1e-3, 1e-3, math.inf))):
        target = PoseTarget("panda_link8", T_goal.copy(), position, orientation)
        asked = replace(problem, goals=(PoseGoal((target,)),))
        end = RIGHT + 0.03
        found = optimize_paths(panda, asked, request(line(LEFT, end)))
        reached = tips(panda, asked, found.paths[0])[-1]
        p, r = axis_errors(T_goal[0], reached, target.free_position, target.free_orientation)
        assert np.linalg.norm(p) < 5e-5
        assert np.linalg.norm(r) < 5e-4
        assert found.violation[0] == 0.0
        assert is_free(panda, asked, found.paths[0])
        apart = pose_error(T_goal[0], reached)[0]
        assert (apart > 1e-3) == (position != 1e-4)


def test_waypoints(panda: RobotModel, problem_of: Callable) -> None:
    problem = problem_of(LEFT, RIGHT, scene=EMPTY_SCENE)
    pose = tips(panda, problem, READY[None] + 0.1)
    waypoints = (JointGoal(READY), PoseGoal((PoseTarget("panda_link8", pose),)))
    asked = replace(problem, waypoints=waypoints)
    begin = np.concatenate([line(LEFT, READY, points=21)[:-1], line(READY, READY + 0.12, RIGHT, points=44)])
    found = optimize_paths(panda, asked, request(begin, passed=(20, 42)))
    np.testing.assert_array_equal(found.paths[0, 20], READY)
    position, angle = pose_error(pose[0], tips(panda, asked, found.paths[0])[42])
    assert position < 5e-5
    assert angle < 5e-4
    assert found.violation[0] == 0.0


def test_an_upright_cup(panda: RobotModel, problem_of: Callable) -> None:
    ends = np.stack([READY, READY])
    ends[0, 0], ends[1, 0] = -1.0, 1.0
    problem = problem_of(ends[0], ends[1], scene=EMPTY_SCENE)
    upright = tips(panda, problem, ends[[0]])
    along = PoseAlong(PoseTarget("panda_link8", upright, math.inf, (0.05, 0.05, math.inf)))
    asked = replace(problem, along=(along,))
    tilted = READY + np.array([0.0, 0.4, 0.2, 0.3, 0.2, -0.2, 0.0])
    found = optimize_paths(panda, asked, request(line(ends[0], tilted, ends[1])))
    _, r = axis_errors(upright, tips(panda, asked, found.paths[0]), free_orientation=(False, False, True))
    assert np.abs(r).max() <= 0.05
    assert found.violation[0] == 0.0


def test_a_straight_line_of_the_tip(panda: RobotModel, problem_of: Callable) -> None:
    goal = READY + np.array([0.6, 0.2, 0.0, 0.2, 0.0, 0.0, 0.6])
    asked = problem_of(READY, goal, scene=EMPTY_SCENE, along=(StraightLine("panda_link8", 0.005),))
    found = optimize_paths(panda, asked, request(line(READY, goal)))
    p = tips(panda, asked, found.paths[0])[:, :3, 3]
    way = (p[-1] - p[0]) / np.linalg.norm(p[-1] - p[0])
    assert np.linalg.norm(np.cross(p - p[0], way), axis=1).max() <= 0.005
    assert found.violation[0] == 0.0
    straight = tips(panda, asked, line(READY, goal))[:, :3, 3]
    assert np.linalg.norm(np.cross(straight - p[0], way), axis=1).max() > 0.01


def test_limits_are_kept(panda: RobotModel, problem_of: Callable) -> None:
    """A path that would be shortest beyond a limit."""
    low = panda.limits.lower[:7]
    begin, end = READY.copy(), READY.copy()
    begin[3] = end[3] = low[3] + 0.004
    end[0] = 1.0
    problem = problem_of(begin, end, rest=np.full(7, -4.0), weights=CostWeights(rest=50.0))
    found = optimize_paths(panda, problem, request(line(begin, READY, end)))
    assert (found.paths[0] >= low).all()
    assert (found.paths[0, 8:-8] >= low + 0.0099).all()
    assert found.paths[0, 20, 3] < low[3] + 0.02
    assert found.violation[0] == 0.0


def test_it_starts_where_the_robot_is_heading(panda: RobotModel, problem_of: Callable) -> None:
    velocity = np.zeros(panda.nq)
    velocity[:7] = 0.2, -0.1, 0.0, 0.1, 0.0, 0.3, 0.0
    problem = problem_of(READY, RIGHT, start_velocity=velocity)
    found = optimize_paths(panda, problem, request(line(READY, RIGHT)))
    heading = derivative_matrix(1, T)[0] @ found.paths[0]
    cosine = heading @ velocity[:7] / np.linalg.norm(heading) / np.linalg.norm(velocity)
    assert cosine > 0.99


def test_velocities_that_a_duration_does_not_allow_cost(panda: RobotModel, problem_of: Callable) -> None:
    begin = np.array([0.0] * 6 + [-2.0]) + READY
    uneven = line(begin, READY)
    uneven = begin + (uneven - begin) * (np.arange(T)[:, None] / (T - 1)) ** 3
    rest = CostWeights(smoothness=0.0, acceleration=0.0, jerk=1e-6)
    peaks = []
    for weight in (0.0, 1000.0):
        problem = problem_of(begin, READY, duration=8.0, weights=replace(rest, velocity=weight))
        found = optimize_paths(panda, problem, request(uneven))
        peaks.append(np.abs(derivative_matrix(1, T) @ found.paths[0] / 8.0)[:, 6].max())
    assert panda.limits.velocity[6] * 0.1 >= 2.0 / 8.0  # it is possible
    assert peaks[1] <= panda.limits.velocity[6] * 0.1 + 1e-3 < peaks[0]


def test_tight_ends_do_not_stop_a_path(panda: RobotModel, problem_of: Callable) -> None:
    """Spheres of the hand are inside a table that the hand itself does not touch."""
    problem = problem_of(LEFT, RIGHT)
    places = tips(panda, problem, np.stack([LEFT, RIGHT]))[:, :3, 3] - (0.0, 0.0, 0.125)
    table = scene_of(*((Box(0.2, 0.2, 0.02), tuple(place)) for place in places))
    ends = replace(problem, scene=table)
    q = np.repeat(problem.start[None], 2, axis=0)
    q[:, :7] = LEFT, RIGHT
    assert check_collisions(panda, table, q).free.all()
    assert (field_of(panda, table).costs(q, 0.0)[0] < -0.005).all()
    found = optimize_paths(panda, ends, request(line(LEFT, RIGHT)))
    assert is_free(panda, ends, found.paths[0])
    assert found.clearance[0] >= 0.005


def test_the_report_is_told_and_can_stop(panda: RobotModel, problem_of: Callable) -> None:
    problem = problem_of(LEFT, RIGHT, scene=WALL)
    told: list[Progress] = []

    def stop(progress: Progress) -> bool:
        told.append(progress)
        return False

    paths = line(LEFT, RIGHT), line(LEFT, READY, RIGHT)
    found = optimize_paths(panda, problem, request(*paths), stop)
    assert len(told) == 1
    assert told[0].iteration == 1
    assert {name for name, _ in told[0].costs} == {"smoothness", "constraints"}
    assert found.stopped.all()
    assert found.clearance[0] < 0.0
    np.testing.assert_array_equal(found.paths[1], paths[1])
    assert found.iterations[1] == 0


def test_a_path_that_is_cut_short_as_it_pauses_says_so(
    panda: RobotModel, problem_of: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever goes on with it pauses no more."""
    paused: list[bool] = []
    told = optimize._Path.progress

    def progress(self: optimize._Path, stage: str) -> Progress:
        paused.append(bool(self._state[levenberg_marquardt.STATUS] == levenberg_marquardt.PAUSED))
        return told(self, stage)

    monkeypatch.setattr(optimize._Path, "progress", progress)
    rng, pauses = np.random.default_rng(0), 0
    for _ in range(20):
        places = rng.uniform((0.3, -0.6, 0.1), (0.8, 0.6, 0.7), (5, 3)).tolist()
        scene = scene_of(*((Box(0.12, 0.12, 0.12), (x, y, z)) for x, y, z in places))
        problem, asked = problem_of(LEFT, RIGHT, scene=scene), request(line(LEFT, RIGHT))
        cut = optimize_paths(panda, problem, asked, lambda progress: not paused[-1])
        assert cut.stopped.tolist() == [paused[-1]]
        pauses += paused[-1]
        assert not optimize_paths(panda, problem, asked, lambda progress: True).stopped.any()
    assert pauses


def test_the_deadline_is_kept(panda: RobotModel, problem_of: Callable) -> None:
    paths = [line(LEFT, READY + 0.1 * k, RIGHT) for k in range(10)]
    problem = problem_of(LEFT, RIGHT, scene=WALL, deadline=time.monotonic() - 1.0)
    found = optimize_paths(panda, problem, request(*paths))
    assert found.stopped.all()
    assert (found.iterations <= 1).all()


@pytest.mark.parametrize("points", [20, 128])
def test_few_and_many_points(panda: RobotModel, problem_of: Callable, points: int) -> None:
    problem = problem_of(LEFT, RIGHT, scene=WALL, num_points=points)
    found = optimize_paths(panda, problem, request(line(LEFT, RIGHT, points=points)))
    assert found.clearance[0] >= 0.005
    assert is_free(panda, problem, found.paths[0])


def test_scores_put_free_and_short_paths_first(panda: RobotModel, problem_of: Callable) -> None:
    problem = problem_of(LEFT, RIGHT, scene=WALL)
    over = np.array([0.0, -0.8, 0.0, -2.0, 0.0, 1.6, 0.785])
    aside = over + np.array([1.2, -0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    paths = np.stack([line(LEFT, RIGHT), line(LEFT, aside, RIGHT), line(LEFT, over, RIGHT)])
    scores = path_scores(panda, problem, paths, 0.01)
    assert scores[2] < scores[1]
    assert scores[2] < scores[0]
    np.testing.assert_array_equal(scores[1:], path_scores(panda, problem, paths[1:], 0.01))
