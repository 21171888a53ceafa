"""The gate sorts solutions, drops those that are not distinct, and never passes one that is wrong."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import continuous_and_prismatic
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.solvers import choice
from kinopt_ros.solvers.base import Capabilities, Feature, Solver
from kinopt_ros.solvers.result import IkCandidates, IkResult

ROBOT = continuous_and_prismatic()
TIP = ROBOT.link_names[-1]


class Claiming(Solver):
    """Claims what it is told to, for one request."""

    name = "claiming"
    version = "0"
    capabilities = Capabilities(frozenset(JointType), frozenset(Feature))
    claims: Float64

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        pass

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        one = np.ones(1, dtype=np.int64)
        return IkCandidates(self.claims[None], self.claims[:1].copy(), one, np.zeros(1, dtype=bool))


def solve(claims: list[Float64], **options: Any) -> IkResult:
    """All claims are judged against the pose of the first."""
    T = forward_kinematics(ROBOT, claims[0], links=(TIP,))[0]
    solver = Claiming()
    solver.configure(ROBOT)
    solver.claims = np.array(claims)
    return solver.solve_ik(ik_problem(ROBOT, T, tip_link=TIP, **options))


def continuous() -> int:
    return next(
        joint.first_variable
        for joint in ROBOT.joints
        if joint.is_active and joint.type is JointType.CONTINUOUS
    )


def turned(q: Float64, turns: int) -> Float64:
    q = q.copy()
    q[continuous()] += 2.0 * np.pi * turns
    return q


Q = ROBOT.default_q + 0.05


def test_whole_turns_are_the_same_solution_unless_asked_for() -> None:
    claims = [Q, turned(Q, 1), turned(Q, -1)]
    same = solve(claims, num_solutions=3, state=Q)
    assert same.num_found.tolist() == [1]
    np.testing.assert_array_equal(same.q[0, 0], Q)
    assert np.isnan(same.q[0, 1:]).all()
    assert np.isnan(same.distance[0, 1:]).all()
    distinct = solve(claims, num_solutions=3, state=Q, turns=True)
    assert distinct.num_found.tolist() == [3]


def test_solutions_are_sorted_by_their_distance_from_the_state() -> None:
    claims = [turned(Q, 2), Q, turned(Q, -1)]
    result = solve(claims, num_solutions=3, state=turned(Q, -1), turns=True)
    np.testing.assert_array_equal(result.q[0], [turned(Q, -1), Q, turned(Q, 2)])
    np.testing.assert_allclose(result.distance[0], 2 * np.pi * np.array([0, 1, 3]), atol=1e-12)


def test_solutions_are_sorted_by_the_posture() -> None:
    rest = turned(Q, 2)
    result = solve([Q, turned(Q, 1)], num_solutions=2, turns=True, prefer="rest", rest=rest)
    np.testing.assert_array_equal(result.q[0], [turned(Q, 1), Q])


def test_no_more_than_asked_for_and_the_best_stay() -> None:
    result = solve([turned(Q, 3), Q, turned(Q, 1)], num_solutions=2, state=Q, turns=True)
    np.testing.assert_array_equal(result.q[0], [Q, turned(Q, 1)])
    one = solve([turned(Q, 3), Q], num_solutions=1, state=Q)
    np.testing.assert_array_equal(one.q[0], [Q])


def test_wrong_claims_are_dropped_before_anything_is_compared() -> None:
    wrong = Q + 1e-2
    result = solve([Q, wrong, wrong], num_solutions=3, state=wrong)
    assert result.num_found.tolist() == [1]
    np.testing.assert_array_equal(result.q[0, 0], Q)


@pytest.mark.parametrize("separation", [1e-5, 0.1])
def test_the_separation_is_the_largest_joint_difference(separation: float) -> None:
    near = Q.copy()
    near[continuous()] += 1e-3
    result = solve(
        [Q, near], num_solutions=2, state=Q, min_separation=separation, position_tolerance=0.1,
        orientation_tolerance=0.1,
    )  # fmt: skip
    assert result.num_found.tolist() == [2 if separation < 1e-3 else 1]


def test_a_request_without_solutions_among_others() -> None:
    T = forward_kinematics(ROBOT, np.stack([Q, Q]), links=(TIP,))[:, 0]
    T[1, :3, 3] += 0.1

    class Two(Claiming):
        def _solve_ik(self, problem: IkProblem) -> IkCandidates:
            claims = np.repeat(np.stack([Q, turned(Q, 1)])[None], 2, axis=0)
            return IkCandidates(claims, claims[:, 0], np.ones(2, dtype=np.int64), np.zeros(2, dtype=bool))

    two = Two()
    two.configure(ROBOT)
    result = two.solve_ik(replace(ik_problem(ROBOT, T, tip_link=TIP), num_solutions=4, turns=True))
    assert result.num_found.tolist() == [2, 0]
    assert result.q.shape == (2, 4, ROBOT.nq)
    assert np.isfinite(result.attempt_pose[1]).all()
    assert np.isnan(result.attempt_pose[0]).all()


def test_all_pairs_at_once_and_one_after_the_other_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    joint = continuous()
    claims = [Q]
    for k in range(12):  # some equal, some at another turn, some distinct in the joint that turns endlessly
        near = Q.copy()
        near[joint] += 0.004 * rng.integers(-3, 4) + 2.0 * np.pi * (k % 3)
        claims.append(near)
    loose = {"position_tolerance": 0.5, "orientation_tolerance": 0.5, "min_separation": 0.003, "state": Q}
    for turns in (False, True):
        options = {**loose, "num_solutions": 13, "turns": turns}
        at_once = solve(claims, **options)
        monkeypatch.setattr(choice, "_FEW", 0)
        np.testing.assert_array_equal(solve(claims, **options).q, at_once.q)
        monkeypatch.undo()
        assert 3 < at_once.num_found[0] < 13
