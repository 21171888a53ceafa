"""Tests of what a plugin must do with a feature that it declares; every other plugin must refuse it by name.

Judged by forward kinematics, limits and formulas of this file alone.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import ROBOTS, on_a_base, seven_revolute, two_arms
from kinopt_ros.costs.rest import Rest
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.geometry.shapes import PlacedShape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.free_joint import with_free_joint
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import so3_exp
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import ORIENTATION_TOLERANCE, POSITION_TOLERANCE, IkProblem
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.preferences.manipulability import Manipulability
from kinopt_ros.problems.preferences.posture import Posture
from kinopt_ros.problems.rows import rows_of
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.collision_elements import CollisionElement
from kinopt_ros.robot.collision_shapes import CollisionModel
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.turns import periodic_variables
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.solvers.base import Feature, Solver
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver, solver_class
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.status import Status

_COUNT = 20
"""Number of targets per test: each takes some solvers long."""
_ROUNDING = 1e-9
_RADIUS = 0.03
"""Radius of the spheres that links are made of where collisions matter, m."""
_WEIGHTS = 1.0, 0.2
"""Weights of position (1/m) and orientation (1/rad)."""
_FREED: dict[str, tuple[str, ...]] = {
    "tool axis": ("rz",),
    "two axes": ("rx", "ry"),
    "orientation": ("rx", "ry", "rz"),
    "position along one axis": ("x",),
}


class FeatureConformance:
    """Part of IkConformance, which has the fixtures ``robot`` and ``plugin``."""

    solver: ClassVar[str]
    minimum_success: ClassVar[float]
    options: ClassVar[Mapping[str, Any]]
    patience: ClassVar[float | None]

    def _needs(self, feature: Feature) -> None:
        if feature not in solver_class(self.solver).capabilities.features:
            pytest.skip(f"{self.solver} does not declare {feature.value}")

    def _solved(self, result: IkResult) -> None:
        assert result.success.mean() >= self.minimum_success, [m for m in result.messages if m][:3]

    @pytest.mark.parametrize(
        "feature", [f for f in Feature if f not in (Feature.TRAJECTORIES, Feature.OBJECTIVES)]
    )
    def test_what_is_not_declared_is_refused_by_name(
        self, robot: RobotModel, plugin: Solver, feature: Feature
    ) -> None:
        problem = _problem(robot, 2)
        target = problem.targets[0]
        n = len(problem.variables)
        asking = {
            Feature.SEVERAL_TARGETS: replace(problem, targets=(target, target)),
            Feature.SEVERAL_SOLUTIONS: replace(problem, num_solutions=4),
            Feature.AXIS_TOLERANCES: replace(
                problem, targets=(replace(target, orientation_tolerance=(1e-3, 1e-3, np.inf)),)
            ),
            Feature.TOOL: replace(problem, targets=(replace(target, T_link_tool=np.eye(4)),)),
            Feature.POSTURE: replace(problem, preference=Posture(np.zeros((2, n)), np.ones(n))),
            Feature.TURNS: replace(problem, turns=True),
            Feature.MANIPULABILITY: replace(problem, preference=Manipulability()),
            Feature.NEAREST: replace(problem, targets=(replace(target, weights=PoseWeights()),)),
        }[feature]
        if feature in plugin.capabilities.features:
            assert not plugin.solve_ik(asking).failed.all()
        else:
            with pytest.raises(UnsupportedFeatureError, match=feature.value):
                plugin.solve_ik(asking)

    def test_objectives_are_solved_or_refused_by_name(self, robot: RobotModel, plugin: Solver) -> None:
        asked = objective_problem(robot, Objective([Rest(tolerance=1e-3)]), joints=robot.active_joints)
        if Feature.OBJECTIVES not in plugin.capabilities.features:
            with pytest.raises(UnsupportedFeatureError, match=Feature.OBJECTIVES.value):
                plugin.solve_objective(asked)
            return
        if plugin.capabilities.objective_costs is None:
            pytest.importorskip("jaxls")
        assert plugin.solve_objective(asked).success.all()

    def test_several_links_reach_their_targets_together(self) -> None:
        self._needs(Feature.SEVERAL_TARGETS)
        robot, tips = two_arms(), ("l7", "l13")
        q = random_configurations(robot, _COUNT, 8)
        T = forward_kinematics(robot, q, links=tips)
        solver = create_solver(self.solver, robot, self.options)
        problem = ik_problem(robot, T, tip_link=tips)
        assert len(problem.variables) == 13
        result = solver.solve_ik(problem)
        solver.close()
        self._solved(result)
        _check_limits(robot, problem, result)
        for number in range(2):
            for b, pose in _poses(robot, problem, result, number):
                distance, angle = _errors(T[b, number], pose)
                assert distance <= POSITION_TOLERANCE
                assert angle <= ORIENTATION_TOLERANCE
                assert distance <= result.position_error[b, 0] + _ROUNDING
                assert angle <= result.orientation_error[b, 0] + _ROUNDING

    def test_targets_that_exclude_one_another_fail(self) -> None:
        self._needs(Feature.SEVERAL_TARGETS)
        robot, tips = two_arms(), ("l7", "l13")
        T = forward_kinematics(robot, random_configurations(robot, 1, 8), links=tips)
        T[0, 1, :3, 3] += np.array([0.0, 0.0, 3.0])
        solver = create_solver(self.solver, robot, self.options)
        result = solver.solve_ik(ik_problem(robot, T, tip_link=tips))
        solver.close()
        assert not result.success.any()

    def test_several_solutions_are_distinct_sorted_and_right(self, robot: RobotModel, plugin: Solver) -> None:
        self._needs(Feature.SEVERAL_SOLUTIONS)
        problem = _problem(robot, _COUNT, num_solutions=6)
        result = plugin.solve_ik(problem)
        self._solved(result)
        assert (result.num_found > 1).any()
        _check_limits(robot, problem, result)
        _check_poses(robot, problem, result)
        _check_distinct(problem, result, periodic_variables(robot)[problem.variables])

    def test_whole_turns_count_as_solutions_where_asked_for(self) -> None:
        self._needs(Feature.SEVERAL_SOLUTIONS)
        self._needs(Feature.TURNS)
        build, joint_types = ROBOTS["continuous_and_prismatic"]
        if joint_types - solver_class(self.solver).capabilities.joint_types:
            pytest.skip(f"{self.solver} does not move continuous joints")
        robot = build()
        solver = create_solver(self.solver, robot, self.options)
        # Six joints have few solutions for one pose; only turns of the endless ones make them many.
        tip, lift = robot.link_names[-1], robot.variable_index["lift"]
        q = random_configurations(robot, 5, 12)
        q[:, lift] = robot.default_q[lift]
        T = forward_kinematics(robot, q, links=(tip,))[:, 0]
        problem = ik_problem(robot, T, tip_link=tip, locked_joints=["lift"], num_solutions=40)
        few, many = solver.solve_ik(problem), solver.solve_ik(replace(problem, turns=True))
        solver.close()
        self._solved(many)
        assert (few.num_found < 40).all()
        assert (many.num_found[many.success] == 40).all()
        _check_limits(robot, problem, many)
        _check_poses(robot, problem, many)
        _check_distinct(problem, many, np.zeros(len(problem.variables), dtype=np.bool_))

    def test_a_tool_reaches_the_target(self, robot: RobotModel, plugin: Solver) -> None:
        self._needs(Feature.TOOL)
        tool = np.eye(4)
        tool[:3, :3] = so3_exp(np.array([0.3, -0.7, 0.4]))
        tool[:3, 3] = 0.05, -0.02, 0.11
        tip = robot.link_names[-1]
        T = forward_kinematics(robot, random_configurations(robot, _COUNT, 9), links=(tip,))[:, 0] @ tool
        problem = ik_problem(robot, T, tip_link=tip, T_link_tool=tool)
        result = plugin.solve_ik(problem)
        self._solved(result)
        _check_limits(robot, problem, result)
        _check_poses(robot, problem, result)

    def test_a_posture_brings_the_answer_nearer(self, robot: RobotModel, plugin: Solver) -> None:
        self._needs(Feature.POSTURE)
        plain = _problem(robot, _COUNT)
        before = plugin.solve_ik(plain)
        rows = np.flatnonzero(before.success)
        reference = random_configurations(robot, 1, 10)[:, plain.variables].repeat(_COUNT, axis=0)
        weight = np.linspace(0.5, 2.0, len(plain.variables))
        seeds = before.q.copy()
        seeds[~before.success] = reference[0]
        problem = replace(plain, seeds=seeds, preference=Posture(reference, weight))
        result = plugin.solve_ik(problem)
        assert result.success[rows].all()  # the first seed is a solution
        _check_limits(robot, problem, result)
        _check_poses(robot, problem, result)

        def cost(answers: IkResult) -> Float64:
            return np.asarray((weight * (answers.q[rows, 0] - reference[rows]) ** 2).sum(axis=1))

        assert (cost(result) <= cost(before) + _ROUNDING).all()
        if len(plain.variables) > 6:  # free to move while the tip stays
            assert cost(result).mean() < 0.9 * cost(before).mean()

    def test_a_preference_for_manipulability_raises_the_index(
        self, robot: RobotModel, plugin: Solver
    ) -> None:
        self._needs(Feature.MANIPULABILITY)
        plain = _problem(robot, 4)
        before = plugin.solve_ik(plain)
        rows = np.flatnonzero(before.success)
        result = plugin.solve_ik(replace(plain, seeds=np.nan_to_num(before.q), preference=Manipulability()))
        assert result.success[rows].all()  # the first seed is a solution
        _check_limits(robot, plain, result)
        _check_poses(robot, plain, result)
        chain = chain_between(robot, plain.base_link, plain.targets[0].link)

        def index(answers: IkResult) -> Float64:
            full = plain.state[rows].copy()
            full[:, plain.variables] = answers.q[rows, 0]
            J = geometric_jacobian(chain, full[:, chain.variables])
            return np.asarray(np.sqrt(np.maximum(np.linalg.det(J @ np.swapaxes(J, 1, 2)), 0.0)))

        assert (index(result) >= index(before) - 1e-6).all()
        np.testing.assert_allclose(-result.distance[rows, 0], index(result), rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize("locked", [(), ("base/x",), ("base/theta",)], ids=["none", "x", "theta"])
    def test_single_axes_of_a_planar_base_are_locked(self, locked: tuple[str, ...]) -> None:
        if JointType.PLANAR not in solver_class(self.solver).capabilities.joint_types:
            pytest.skip(f"{self.solver} does not move planar joints")
        robot = on_a_base()
        solver = create_solver(self.solver, robot, self.options)
        solver.warm_up()
        q = random_configurations(robot, _COUNT, 15)
        T = forward_kinematics(robot, q, links=("l5",))[:, 0]
        held = [robot.variable_index[name] for name in locked]
        state = np.repeat(robot.default_q[None], _COUNT, axis=0)
        state[:, held] = q[:, held]
        problem = ik_problem(robot, T, base_link="l0", tip_link="l5", state=state, locked_joints=locked)
        assert not np.isin(problem.variables, held).any()
        result = solver.solve_ik(problem)
        solver.close()
        self._solved(result)
        _check_limits(robot, problem, result)
        _check_poses(robot, problem, result)

    def test_what_is_as_near_as_possible(self, robot: RobotModel, plugin: Solver) -> None:
        """Targets that are reached, out of reach, and reached in another orientation only."""
        self._needs(Feature.NEAREST)
        target = _problem(robot, _COUNT).targets[0]
        T = target.T_base_target.copy()
        T[5:12, :3, 3] *= 2.0
        T[12:, :3, :3] = T[12:, :3, :3] @ so3_exp(np.array([0.4, -0.7, 0.5]))
        weighted = replace(target, T_base_target=T, weights=PoseWeights(*_WEIGHTS))
        problem = replace(_problem(robot, _COUNT), targets=(weighted,))
        result = plugin.solve_ik(problem)
        assert (result.status == Status.NEAREST).all(), result.messages
        assert np.isnan(result.q).all()
        assert (result.num_found == 0).all()
        assert all(result.messages)
        lower, upper = robot.limits.lower[problem.variables], robot.limits.upper[problem.variables]
        assert ((result.attempt >= lower) & (result.attempt <= upper)).all()
        full = problem.state.copy()
        full[:, problem.variables] = result.attempt
        reached = result.attempt_position_error[:5] + result.attempt_orientation_error[:5] < 1e-6
        assert reached.mean() >= 0.6  # it is asked for what is near, not for a solution
        rng = np.random.default_rng(0)
        for b in range(_COUNT):
            cost, distance, angle = _nearness(robot, target.link, T[b], full[b])
            assert result.attempt_position_error[b] == pytest.approx(distance, abs=1e-9)
            assert result.attempt_orientation_error[b] == pytest.approx(angle, abs=1e-7)
            for _ in range(10):  # and nothing around is nearer
                moved = full[b].copy()
                step = rng.normal(size=len(lower)) * 1e-3
                moved[problem.variables] = np.clip(result.attempt[b] + step, lower, upper)
                around = _nearness(robot, target.link, T[b], moved)[0]
                assert around >= cost * (1.0 - 1e-6) - 1e-12

    def test_a_floating_joint_brings_the_tip_anywhere(self) -> None:
        if JointType.FLOATING not in solver_class(self.solver).capabilities.joint_types:
            pytest.skip(f"{self.solver} does not move floating joints")
        robot = with_free_joint(seven_revolute(), "l0")
        solver = create_solver(self.solver, robot, self.options)
        q = random_configurations(robot, _COUNT, 13)
        T = forward_kinematics(robot, random_configurations(robot, _COUNT, 14), links=("l7",))[:, 0]
        group = replace(robot.group("l7"), name="free", joints=("l0_free",), base_link=robot.root_link)
        robot = replace(robot, groups={**robot.groups, "free": group})
        problem = ik_problem(robot, T, group="free", state=q)
        result = solver.solve_ik(problem)
        solver.close()
        assert result.success.all()
        _check_limits(robot, problem, result)
        for b, T_base_tip in _poses(robot, problem, result, 0):
            distance, angle = _errors(T[b], T_base_tip)
            assert distance <= POSITION_TOLERANCE
            assert angle <= ORIENTATION_TOLERANCE

    @pytest.mark.parametrize("freed", _FREED.values(), ids=_FREED)
    def test_free_axes_are_free_and_the_others_are_not(
        self, robot: RobotModel, plugin: Solver, freed: tuple[str, ...]
    ) -> None:
        # Five joints reach these poses, but not once they are moved: only who leaves the axes free can solve them.
        self._needs(Feature.AXIS_TOLERANCES)
        locked = _problem(robot, 1).joints[:-5]
        tip = robot.link_names[-1]
        q = random_configurations(robot, _COUNT, 11)
        T = forward_kinematics(robot, q, links=(tip,))[:, 0]
        for b in range(_COUNT):
            T[b] = T[b] @ _motion(freed, np.random.default_rng(b))
        state = np.repeat(robot.default_q[None], _COUNT, axis=0)
        held = [i for name in locked for i in robot.variables_of(name)]
        state[:, held] = q[:, held]
        problem = ik_problem(robot, T, tip_link=tip, state=state, free_axes=freed, locked_joints=locked)
        assert len(problem.joints) == 5
        result = plugin.solve_ik(problem)
        self._solved(result)
        _check_limits(robot, problem, result)
        for b, pose in _poses(robot, problem, result):
            _check_axes(T[b], pose, freed)

    def test_every_axis_has_its_own_tolerance(self, robot: RobotModel, plugin: Solver) -> None:
        self._needs(Feature.AXIS_TOLERANCES)
        position, orientation = (2e-2, 1e-4, 1e-3), (1e-3, 0.2, 1e-2)
        problem = _problem(robot, _COUNT, position_tolerance=position, orientation_tolerance=orientation)
        result = plugin.solve_ik(problem)
        self._solved(result)
        _check_limits(robot, problem, result)
        for b, pose in _poses(robot, problem, result):
            relative = np.linalg.inv(problem.targets[0].T_base_target[b]) @ pose
            assert (np.abs(relative[:3, 3]) <= np.array(position) + _ROUNDING).all()
            assert (np.abs(_rotation_vector(relative[:3, :3])) <= np.array(orientation) + _ROUNDING).all()

    def test_solutions_are_free_of_what_is_in_the_way(self) -> None:
        """An obstacle is put where an answer has its elbow; every plugin must find another one. Judged by centres and
        radii of spheres."""
        pytest.importorskip("coal")
        links: tuple[str, ...] = ("l0", "l3", "l4", "l5", "l7")
        chosen, elbow_link = "seven_revolute", "l4"
        if solver_class(self.solver).capabilities.max_variables < 7:
            chosen, elbow_link, links = "six_revolute", "l3", ("l0", "l3", "l5", "l6")
        factory, joint_types = ROBOTS[chosen]
        if not joint_types <= solver_class(self.solver).capabilities.joint_types:
            pytest.skip(f"{self.solver} does not move these joints")
        shapes = {name: (CollisionElement(Sphere(_RADIUS), np.eye(4)),) for name in links}
        robot = replace(factory(), collision=CollisionModel(shapes))
        prepare_collisions(robot)
        plugin = create_solver(self.solver, robot, self.options)
        plugin.warm_up()
        problem = _problem(robot, 6)
        free = out_of_time = 0
        for b in range(problem.batch_size):
            lone = rows_of(problem, np.array([b]))
            unaware = plugin.solve_ik(lone)
            if not unaware.success[0]:
                continue
            elbow = _centers(robot, lone, unaware.q[0, 0], [elbow_link])[0]
            T = np.eye(4)
            T[:3, 3] = elbow
            obstacle = SceneObject("obstacle", (PlacedShape(Sphere(0.05), np.eye(4)),), T)
            end = None if self.patience is None else time.monotonic() + self.patience
            scene = Scene(objects={"obstacle": obstacle})
            result = plugin.solve_ik(replace(lone, scene=scene, deadline=end))
            if not result.success[0]:
                late = end is not None and result.status[0] == Status.TIMED_OUT
                assert late or result.status[0] == Status.GOAL_IN_COLLISION
                assert late or "'obstacle'" in result.messages[0]
                out_of_time += late
                continue
            centers = _centers(robot, lone, result.q[0, 0], list(shapes))
            assert (np.linalg.norm(centers - elbow, axis=1) > _RADIUS + 0.05 - _ROUNDING).all()
            free += 1
        plugin.close()
        assert free >= 1
        assert free + out_of_time >= 3  # on a busy machine those say nothing


def _centers(robot: RobotModel, problem: IkProblem, q: Float64, links: list[str]) -> Float64:
    """Return origins of links, (L, 3)."""
    full = problem.state[0].copy()
    full[problem.variables] = q
    return forward_kinematics(robot, full, links)[:, :3, 3]


def _problem(robot: RobotModel, count: int, **options: Any) -> IkProblem:
    """Return a problem with targets that some configuration inside the limits reaches."""
    tip = robot.link_names[-1]
    T = forward_kinematics(robot, random_configurations(robot, count, 12), links=(tip,))[:, 0]
    return ik_problem(robot, T, tip_link=tip, **options)


def _motion(axes: Collection[str], generator: np.random.Generator) -> Float64:
    """Return a motion that changes a pose along or about some axes of its own frame only."""
    T = np.eye(4)
    for k, name in enumerate(("x", "y", "z")):
        if name in axes:
            T[k, 3] = generator.uniform(0.1, 0.3)
    turns = [0.7 * generator.uniform(0.3, 1.0) * (name in axes) for name in ("rx", "ry", "rz")]
    T[:3, :3] = so3_exp(np.array(turns))
    return T


def _poses(
    robot: RobotModel, problem: IkProblem, result: IkResult, number: int = 0, k: int = 0
) -> list[tuple[int, Float64]]:
    """Return the requests that have a k-th solution, and the pose of a target's tool in it."""
    target = problem.targets[number]
    poses = []
    for b in np.flatnonzero(result.num_found > k).tolist():
        full = problem.state[b].copy()
        full[problem.variables] = result.q[b, k]
        T = forward_kinematics(robot, full, links=(problem.base_link, target.link))
        pose = np.linalg.inv(T[0]) @ T[1]
        poses.append((b, pose if target.T_link_tool is None else pose @ target.T_link_tool))
    return poses


def _check_limits(robot: RobotModel, problem: IkProblem, result: IkResult) -> None:
    q = result.q[np.arange(result.q.shape[1]) < result.num_found[:, None]]
    assert np.isfinite(q).all()
    assert (q >= robot.limits.lower[problem.variables]).all()
    assert (q <= robot.limits.upper[problem.variables]).all()


def _check_poses(robot: RobotModel, problem: IkProblem, result: IkResult) -> None:
    """Check all solutions, for one target with the default tolerances."""
    for k in range(result.q.shape[1]):
        for b, pose in _poses(robot, problem, result, k=k):
            distance, angle = _errors(problem.targets[0].T_base_target[b], pose)
            assert distance <= POSITION_TOLERANCE
            assert angle <= ORIENTATION_TOLERANCE


def _check_distinct(problem: IkProblem, result: IkResult, periodic: np.ndarray) -> None:
    """Check that no two solutions are equal, whole turns of periodic variables aside, and that the nearest to the state
    is first."""
    for b in range(len(result.q)):
        q = result.q[b, : result.num_found[b]]
        lengths = np.linalg.norm(q - problem.state[b, problem.variables], axis=1)
        assert (np.diff(lengths) >= -_ROUNDING).all()
        for k in range(1, len(q)):
            difference = np.abs(q[:k] - q[k])
            turned = np.minimum(difference % (2.0 * np.pi), -difference % (2.0 * np.pi))
            difference = np.where(periodic, turned, difference)
            assert (difference.max(axis=1) > problem.min_separation - _ROUNDING).all()


def _errors(T_target: Float64, T_tip: Float64) -> tuple[float, float]:
    """Return distance and angle between two poses."""
    relative = np.linalg.inv(T_target) @ T_tip
    return float(np.linalg.norm(relative[:3, 3])), float(np.linalg.norm(_rotation_vector(relative[:3, :3])))


def _nearness(robot: RobotModel, link: str, T: Float64, q: Float64) -> tuple[float, float, float]:
    """Return the cost of a configuration of the robot by ``_WEIGHTS``, and a link's distance and angle from a pose."""
    relative = np.linalg.inv(T) @ forward_kinematics(robot, q, links=(link,))[0]
    R = relative[:3, :3]
    sine = np.linalg.norm([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    distance, angle = float(np.linalg.norm(relative[:3, 3])), float(np.arctan2(sine, np.trace(R) - 1.0))
    return (_WEIGHTS[0] * distance) ** 2 + (_WEIGHTS[1] * angle) ** 2, distance, angle


def _rotation_vector(R: Float64) -> Float64:
    """Return axis times angle, for less than a quarter turn."""
    axis = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    sine = float(np.linalg.norm(axis))
    assert np.trace(R) > 1.0
    return axis * (np.arcsin(min(sine, 1.0)) / sine if sine > 0.0 else 1.0)


def _check_axes(T_target: Float64, T_tip: Float64, freed: Collection[str]) -> None:
    """Check that what is not free is within the tolerances."""
    relative = np.linalg.inv(T_target) @ T_tip
    kept = [k for k, name in enumerate(("x", "y", "z")) if name not in freed]
    assert np.linalg.norm(relative[kept, 3]) <= POSITION_TOLERANCE + _ROUNDING
    R = relative[:3, :3]
    turns = [name for name in ("rx", "ry", "rz") if name in freed]
    if not turns:
        assert np.linalg.norm(_rotation_vector(R)) <= ORIENTATION_TOLERANCE + _ROUNDING
    elif turns == ["rz"]:  # the z axes agree
        assert np.arctan2(np.hypot(R[0, 2], R[1, 2]), R[2, 2]) <= ORIENTATION_TOLERANCE + _ROUNDING
    elif turns == ["rx", "ry"]:  # turned back to z the shortest way, no turn about z is left
        x, y, z = R[:, 2]
        assert z > -1.0 + 1e-6
        shortest = np.array(
            [
                [1 - x * x / (1 + z), -x * y / (1 + z), x],
                [-x * y / (1 + z), 1 - y * y / (1 + z), y],
                [-x, -y, z],
            ]
        )
        left = shortest.T @ R
        assert abs(np.arctan2(left[1, 0], left[0, 0])) <= ORIENTATION_TOLERANCE + _ROUNDING
    else:
        assert len(turns) == 3
