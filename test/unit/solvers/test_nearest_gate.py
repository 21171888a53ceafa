"""What a plugin claims to be as near as possible is checked, compared and explained by the gate: never a success."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.geometry.shapes import PlacedShape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.robot.collision_elements import CollisionElement
from kinopt_ros.robot.collision_shapes import CollisionModel
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.solvers.base import Capabilities, Feature, Solver
from kinopt_ros.solvers.hjcd.plugin import HjcdSolver
from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver
from kinopt_ros.solvers.nearest import ERRORS, NEARER
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.solvers.result import IkCandidates, IkResult
from kinopt_ros.status import Status

ROBOT = seven_revolute()
Q = random_configurations(ROBOT, 3, 0)
T = forward_kinematics(ROBOT, Q, links=("l7",))[:, 0]
PROBLEM = ik_problem(ROBOT, T, tip_link="l7", nearest=PoseWeights(1.0, 0.1))


class Claiming(Solver):
    """Returns whatever it is told to."""

    name = "claiming"
    version = "0"
    capabilities = Capabilities(frozenset({JointType.REVOLUTE}), frozenset({Feature.NEAREST}))
    answer: Callable[[IkProblem], IkCandidates]

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        pass

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        return self.answer(problem)


class Unable(Claiming):
    """Knows tolerances only."""

    name = "unable"
    capabilities = Capabilities(frozenset({JointType.REVOLUTE}), frozenset({Feature.AXIS_TOLERANCES}))


def solve(claimed: Float64, problem: IkProblem = PROBLEM, **changes: Any) -> IkResult:
    candidates = IkCandidates(claimed, Q.copy(), np.ones(3, dtype=np.int64), np.zeros(3, dtype=bool))
    solver = Claiming()
    solver.configure(ROBOT)
    solver.answer = lambda _: replace(candidates, **changes)
    return solver.solve_ik(problem)


def test_what_reaches_its_target_is_no_success() -> None:
    result = solve(Q[:, None])
    assert (result.status == Status.NEAREST).all()
    assert not result.success.any()
    assert np.isnan(result.q).all()
    assert (result.num_found == 0).all()
    np.testing.assert_array_equal(result.attempt, Q)
    np.testing.assert_allclose(result.attempt_pose[:, 0], T, atol=1e-12)
    assert all(said.startswith("position met (off by ") for said in result.messages)
    assert "target pose" not in result.checks
    assert ERRORS in result.checks
    assert NEARER in result.not_checked


def test_errors_are_those_of_the_gate_and_the_sentence_says_what_is_met() -> None:
    """The last joint turns the tip about the axis that it lies on, next to which it moves but little."""
    q = Q[:, None].copy()
    q[1, 0, 6] -= 0.25 * np.sign(q[1, 0, 6])
    result = solve(q)
    there = forward_kinematics(ROBOT, q[1, 0], links=("l7",))[0]
    relative = np.linalg.inv(T[1]) @ there
    assert result.attempt_position_error[1] == pytest.approx(np.linalg.norm(relative[:3, 3]), abs=1e-12)
    assert result.attempt_orientation_error[1] == pytest.approx(0.25, abs=1e-9)
    assert ", orientation off by 0.25 rad" in result.messages[1]
    wide = replace(PROBLEM, targets=(replace(PROBLEM.targets[0], orientation_tolerance=0.3),))
    assert ", orientation met (off by 0.25 rad)" in solve(q, wide).messages[1]
    loose = PoseWeights(1.0, 0.0)
    free = replace(PROBLEM, targets=(replace(PROBLEM.targets[0], weights=loose),))
    with pytest.raises(UnsupportedFeatureError, match="free axes"):
        solve(q, free)


def test_the_nearest_of_several_claims_counts_whatever_their_order() -> None:
    claims = np.repeat(Q[:, None], 4, axis=1)
    claims[:, 0] += 0.3 * (0.5 * (ROBOT.limits.lower + ROBOT.limits.upper) - Q)
    claims[:, 1] = np.nan
    claims[:, 3] += 0.01 * (0.5 * (ROBOT.limits.lower + ROBOT.limits.upper) - Q)
    claims[0, 2] = np.nan
    result = solve(claims)
    assert (result.status == Status.NEAREST).all()
    np.testing.assert_array_equal(result.attempt[1:], Q[1:])
    np.testing.assert_array_equal(result.attempt[0], claims[0, 3])


def test_claims_outside_the_limits_fail_the_check() -> None:
    q = Q[:, None].copy()
    q[1, 0, 1] = ROBOT.limits.upper[1] + 1e-9
    result = solve(q)
    assert result.status.tolist() == [Status.NEAREST, Status.VERIFICATION_FAILED, Status.NEAREST]
    assert "float64" in result.messages[1]
    np.testing.assert_array_equal(result.attempt[1], Q[1])  # the plugin's attempt, which is inside
    attempt = Q.copy()
    attempt[1, 1] = np.nan
    result = solve(q, attempt=attempt)
    assert result.status[1] == Status.VERIFICATION_FAILED
    assert np.isnan(result.attempt[1]).all()
    assert np.isnan(result.attempt_position_error[1])


def test_nothing_claimed() -> None:
    nothing = np.full((3, 1, 7), np.nan)
    assert (solve(nothing).status == Status.NO_IK_SOLUTION).all()
    late = solve(nothing, timed_out=np.array([True, False, True]))
    assert late.status.tolist() == [Status.TIMED_OUT, Status.NO_IK_SOLUTION, Status.TIMED_OUT]
    assert "deadline" in late.messages[0]
    assert late.cut_short.tolist() == [True, False, True]
    found = solve(Q[:, None], timed_out=np.array([True, False, True]))
    assert (found.status == Status.NEAREST).all()
    assert ["deadline" in said for said in found.messages] == [True, False, True]


@pytest.mark.parametrize("plugin", [Unable, JaxLmSolver, HjcdSolver])
def test_solvers_that_cannot_refuse_by_name(plugin: type[Solver]) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"{plugin.name} does not support weights"):
        plugin().check_supported(PROBLEM)


def test_joints_at_limits_are_named() -> None:
    q = Q[:, None].copy()
    q[2, 0, 3] = ROBOT.limits.lower[3]
    assert solve(q).messages[2].endswith(", with j4 at the lower limit")


def test_the_nearest_that_is_free_of_collisions() -> None:
    """An obstacle is put where the nearest has its elbow; the answer is another one, or says what is in the way."""
    pytest.importorskip("coal")
    shapes = {n: (CollisionElement(Sphere(0.03), np.eye(4)),) for n in ("l0", "l3", "l4", "l5", "l7")}
    robot = replace(ROBOT, collision=CollisionModel(shapes))
    prepare_collisions(robot)
    solver = create_solver("cpu", robot)
    solver.warm_up()
    beyond = T.copy()
    beyond[:, :3, :3] = beyond[:, :3, :3] @ np.diag([1.0, -1.0, -1.0])
    free = 0
    for pose in beyond:
        problem = ik_problem(robot, pose, tip_link="l7", nearest=PoseWeights())
        unaware = solver.solve_ik(problem)
        assert unaware.nearest[0]
        elbow = forward_kinematics(robot, unaware.attempt[0], links=("l4",))[0, :3, 3]
        place = np.eye(4)
        place[:3, 3] = elbow
        obstacle = SceneObject("obstacle", (PlacedShape(Sphere(0.05), np.eye(4)),), place)
        result = solver.solve_ik(replace(problem, scene=Scene(objects={"obstacle": obstacle})))
        if not result.nearest[0]:
            assert result.status[0] == Status.GOAL_IN_COLLISION
            assert "'obstacle'" in result.messages[0]
            continue
        free += 1
        assert "world collision" in result.checks
        centers = forward_kinematics(robot, result.attempt[0], links=tuple(shapes))[:, :3, 3]
        assert (np.linalg.norm(centers - elbow, axis=1) > 0.08 - 1e-9).all()
    solver.close()
    assert free >= 1
