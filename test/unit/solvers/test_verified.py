"""No claim of a plugin becomes a success without the float64 check."""

import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.conformance.ik import reachable_problem
from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.solvers.base import Capabilities, Feature, Solver
from kinopt_ros.solvers.judgement import PluginError
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.status import Status

ROBOT = seven_revolute()
Q = random_configurations(ROBOT, 3, 0)
T = forward_kinematics(ROBOT, Q, links=("l7",))[:, 0]
PROBLEM = ik_problem(ROBOT, T, tip_link="l7")


class Claiming(Solver):
    """Returns whatever it is told to."""

    name = "claiming"
    version = "0"
    capabilities = Capabilities(frozenset({JointType.REVOLUTE}), frozenset({Feature.SEVERAL_SOLUTIONS}))
    answer: Callable[[IkProblem], IkCandidates]

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        pass

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        return self.answer(problem)


def claim(claimed: Float64, **changes: Any) -> Claiming:
    candidates = IkCandidates(claimed, Q.copy(), np.ones(3, dtype=np.int64), np.zeros(3, dtype=bool))
    solver = Claiming()
    solver.configure(ROBOT)
    solver.answer = lambda _: replace(candidates, **changes)
    return solver


def test_true_claims_pass() -> None:
    result = claim(Q[:, None]).solve_ik(PROBLEM)
    assert result.success.all()
    np.testing.assert_array_equal(result.q[:, 0], Q)
    assert (result.position_error < 1e-12).all()
    assert np.isnan(result.attempt).all()


def test_what_answers_to_single_requests_share_nobody_can_write_to() -> None:
    solver = claim(Q[:1, None], attempt=Q[:1], iterations=np.ones(1, np.int64), timed_out=np.zeros(1, bool))
    asked = ik_problem(ROBOT, T[0], tip_link="l7")
    one, other = solver.solve_ik(asked), solver.solve_ik(asked)
    assert one.success.all()
    for name in ("status", "attempt", "attempt_position_error", "attempt_orientation_error", "attempt_pose"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert not np.shares_memory(mine, theirs) or not mine.flags.writeable
    for name in ("q", "cut_short", "iterations", "position_error", "distance"):
        assert not np.shares_memory(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("offset", [2e-3, 1.0])
def test_a_claim_beyond_the_tolerance_is_rejected(offset: float) -> None:
    q = Q[:, None].copy()
    q[1, 0, 2] += offset
    result = claim(q).solve_ik(PROBLEM)
    assert result.status.tolist() == [Status.SUCCESS, Status.VERIFICATION_FAILED, Status.SUCCESS]
    assert np.isnan(result.q[1]).all()
    assert "float64" in result.messages[1]


def test_a_claim_that_is_only_turned_is_rejected() -> None:
    """The last joint turns the tip about its own origin."""
    q = Q[:, None].copy()
    q[1, 0, 6] += 2e-3
    q[2, 0, 6] += 5e-4
    result = claim(q).solve_ik(PROBLEM)
    assert result.status.tolist() == [Status.SUCCESS, Status.VERIFICATION_FAILED, Status.SUCCESS]
    assert result.orientation_error[2, 0] == pytest.approx(5e-4, rel=1e-6)


def test_a_claim_outside_the_limits_is_rejected_however_little() -> None:
    upper = ROBOT.limits.upper
    q = Q.copy()
    q[0, 0] = np.nextafter(upper[0], np.inf)
    T_outside = forward_kinematics(ROBOT, q, links=("l7",))[:, 0]
    result = claim(q[:, None]).solve_ik(ik_problem(ROBOT, T_outside, tip_link="l7"))
    assert result.status[0] == Status.VERIFICATION_FAILED
    q[0, 0] = upper[0]
    T_inside = forward_kinematics(ROBOT, q, links=("l7",))[:, 0]
    assert claim(q[:, None]).solve_ik(ik_problem(ROBOT, T_inside, tip_link="l7")).success.all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_claim_with_a_number_that_is_not_finite_is_rejected(value: float) -> None:
    q = Q[:, None].copy()
    q[2, 0, 3] = value
    result = claim(q).solve_ik(PROBLEM)
    assert result.status.tolist() == [Status.SUCCESS, Status.SUCCESS, Status.VERIFICATION_FAILED]


def test_a_bad_claim_among_several_gives_way_to_a_good_one() -> None:
    q = np.stack([Q + 0.3, Q], axis=1)
    result = claim(q).solve_ik(replace(PROBLEM, num_solutions=2))
    assert result.success.all()
    np.testing.assert_array_equal(result.q[:, 0], Q)
    assert np.isnan(result.q[:, 1]).all()


def test_no_claim_is_no_solution_with_the_attempt_and_its_errors() -> None:
    attempt = Q + 0.01
    result = claim(np.full((3, 1, 7), np.nan), attempt=attempt).solve_ik(PROBLEM)
    assert set(result.status.tolist()) == {Status.NO_IK_SOLUTION}
    np.testing.assert_array_equal(result.attempt, attempt)
    assert (result.attempt_position_error > 1e-4).all()


def test_an_attempt_outside_the_limits_is_not_passed_on() -> None:
    result = claim(np.full((3, 1, 7), np.nan), attempt=Q + 100.0).solve_ik(PROBLEM)
    assert np.isnan(result.attempt).all()
    assert np.isnan(result.attempt_position_error).all()


def test_a_deadline_is_told_from_a_failure() -> None:
    solver = claim(np.full((3, 1, 7), np.nan), timed_out=np.array([True, False, True]))
    result = solver.solve_ik(PROBLEM)
    assert result.status.tolist() == [Status.TIMED_OUT, Status.NO_IK_SOLUTION, Status.TIMED_OUT]


@pytest.mark.parametrize(
    "changes",
    [
        {"q": np.zeros((3, 7))},
        {"q": np.zeros((2, 1, 7))},
        {"q": np.zeros((3, 0, 7))},
        {"q": np.zeros((3, 4097, 7))},
        {"attempt": np.zeros((3, 6))},
        {"iterations": np.zeros(2, dtype=np.int64)},
        {"timed_out": np.zeros(0, dtype=bool)},
        {"q": Q[:, None] + 1j},
        {"q": Q[:, None].astype(object)},
        {"q": Q[:, None].tolist()},
        {"q": None},
        {"attempt": Q.tolist()},
        {"timed_out": np.zeros(3)},
    ],
)
def test_a_plugin_that_breaks_the_form_is_named(changes: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match="claiming"):
        claim(Q[:, None], **changes).solve_ik(PROBLEM)


@pytest.mark.parametrize("answer", [None, Q, (Q[:, None], Q)])
def test_a_plugin_that_returns_something_else_is_named(answer: Any) -> None:
    silent = type("Silent", (Claiming,), {"_solve_ik": lambda self, problem: answer})
    solver = silent()
    solver.configure(ROBOT)
    with pytest.raises(PluginError, match="agreed is IkCandidates"):
        solver.solve_ik(PROBLEM)


def test_a_plugin_cannot_replace_the_check() -> None:
    cheat = {"solve_ik": lambda self, problem: None}
    with pytest.raises(TypeError, match="solve_ik"):
        type("Cheat", (Claiming,), cheat)
    with pytest.raises(TypeError, match="solve_ik"):
        type("Cheat", (type("Mixin", (), cheat), Claiming), {})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("solved", [2, 3])
def test_what_was_verified_is_what_is_answered(dtype: type, order: Any, solved: int) -> None:
    """Neither a plugin's precision and layout nor its later writing reaches the answer."""
    q = np.array(Q[:, None], dtype=dtype, order=order)
    q[solved:] = np.nan
    given = {"attempt": Q + 0.01, "iterations": np.arange(3), "timed_out": np.array([False, False, True])}
    result = claim(q, **given).solve_ik(PROBLEM)
    assert result.q.dtype == np.float64
    assert result.q.flags.c_contiguous
    known = ("q", "attempt", "iterations", "cut_short")
    before = {name: getattr(result, name).copy() for name in known}
    q[:] = 0.0
    for array in given.values():
        array[:] = 1
    for name in known:
        np.testing.assert_array_equal(getattr(result, name), before[name], err_msg=name)


def test_capabilities_may_be_a_plain_set() -> None:
    solver = claim(Q[:, None])
    types: Any = {JointType.REVOLUTE}
    solver.capabilities = replace(Claiming.capabilities, joint_types=types)  # type: ignore[misc]
    assert solver.solve_ik(PROBLEM).success.all()


def test_thousands_of_failures_are_explained_quickly() -> None:
    count = 5000
    T_far = np.repeat(T[:1], count, axis=0)
    T_far[:, :3, 3] += 10.0
    candidates = IkCandidates(
        np.full((count, 1, 7), np.nan),
        np.repeat(Q[:1], count, axis=0),
        np.ones(count, dtype=np.int64),
        np.zeros(count, dtype=bool),
    )
    solver = Claiming()
    solver.configure(ROBOT)
    solver.answer = lambda _: candidates
    start = time.process_time()
    result = solver.solve_ik(ik_problem(ROBOT, T_far, tip_link="l7"))
    assert time.process_time() - start < 0.5
    assert all("out of reach" in message for message in result.messages)


def test_the_check_does_not_take_the_solvers_word_for_mimic_limits() -> None:
    from kinopt_ros.conformance.robots import with_mimic

    robot = with_mimic()
    problem = reachable_problem(robot, 1)
    assert robot.limits.upper[2] < 2.5  # narrowed by the mimic joint: 0.2 - 0.5 q <= 1 and >= -1
    q = problem.state[0, problem.variables].copy()
    q[2] = 2.45
    T_wrong = forward_kinematics(robot, q, links=("l7",))[0]
    candidates = IkCandidates(q[None, None], q[None], np.ones(1, dtype=np.int64), np.zeros(1, dtype=bool))
    solver = Claiming()
    solver.configure(robot)
    solver.answer = lambda _: candidates
    assert not solver.solve_ik(ik_problem(robot, T_wrong, tip_link="l7")).success[0]
    # A driver whose limits were not narrowed: the mimic joint's own limit is what is left.
    limits = replace(robot.limits, upper=np.where(np.arange(robot.nq) == 2, 3.0, robot.limits.upper))
    solver.configure(replace(robot, limits=limits))
    wide = ik_problem(solver.robot, T_wrong, tip_link="l7")
    assert solver.solve_ik(wide).status[0] == Status.VERIFICATION_FAILED
    driver = robot.variable_names[2]
    free = tuple(replace(j, lower=-9.0, upper=9.0) if j.mimics == driver else j for j in robot.joints)
    solver.configure(replace(robot, limits=limits, joints=free))
    assert solver.solve_ik(ik_problem(solver.robot, T_wrong, tip_link="l7")).success[0]


def test_requests_without_solutions_cost_next_to_nothing() -> None:
    """A deadline cut a batch short. Allocated memory stands for the time, which tests cannot measure."""
    B, K = 1000, 64
    many = ik_problem(ROBOT, np.repeat(T[:1], B, axis=0), tip_link="l7", num_solutions=K)
    claimed = np.full((B, K, ROBOT.nq), np.nan)
    claimed[5, 3], claimed[5, 9], claimed[700, 0] = Q[0], Q[0] + 1e-9, Q[0]
    solver = claim(Q[:, None])
    solver.answer = lambda _: IkCandidates(
        claimed, np.repeat(Q[:1], B, axis=0), np.ones(B, dtype=np.int64), np.ones(B, dtype=bool)
    )
    solver.solve_ik(many)
    tracemalloc.start()
    result = solver.solve_ik(many)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The plugin's candidates are copied once, and the answer has the same size.
    assert most < 3.5 * claimed.nbytes
    assert np.flatnonzero(result.success).tolist() == [5, 700]
    for row in (5, 700):
        np.testing.assert_allclose(result.q[row, 0], Q[0], rtol=0.0, atol=2e-9)
        assert np.isnan(result.q[row, 1:]).all()
        assert np.isfinite(result.position_error[row]).sum() == 1
        assert np.isfinite(result.distance[row]).sum() == 1


def test_after_the_deadline_few_joints_at_limits_are_named() -> None:
    B = 1200
    far = np.repeat(T[:1], B, axis=0)
    at_limit = np.repeat(ROBOT.limits.upper[None], B, axis=0)
    solver = claim(Q[:, None])
    solver.answer = lambda _: IkCandidates(
        np.full((B, 1, ROBOT.nq), np.nan), at_limit, np.ones(B, dtype=np.int64), np.ones(B, dtype=bool)
    )
    for deadline, named in ((None, B), (time.monotonic() - 1.0, 1000)):
        result = solver.solve_ik(replace(ik_problem(ROBOT, far, tip_link="l7"), deadline=deadline))
        assert all(message.startswith("the deadline came before a solution") for message in result.messages)
        assert ["upper limit" in message for message in result.messages] == [True] * named + [False] * (
            B - named
        )
