"""Inverse kinematics and trajectories with costs: what is read, and what is refused by name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.clock import late_after

from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.velocity_limits import VelocityLimits
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.result import ObjectiveCandidates, ObjectiveResult
from kinopt_ros.planning.ik_objective import PORTION, ik_objective, solve_in_portions, with_targets_met
from kinopt_ros.planning.objective_trajectories import OBJECTIVE, plan_with_costs
from kinopt_ros.planning.objectives import with_starts
from kinopt_ros.planning.solver_pool import Pooled, SolverPool
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.objective_gate import verified
from kinopt_ros.solvers.paths import Progress
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status
from kinopt_ros.wanted import check_wanted

ROBOT = load_robot("panda")
T = np.diag([1.0, -1.0, -1.0, 1.0])
T[:3, 3] = 0.4, 0.1, 0.5


def test_targets_become_link_poses_that_hold() -> None:
    problem = ik_problem(ROBOT, T, free_axes=("rz",), position_tolerance=1e-3)
    asked = ik_objective(ROBOT, problem, [Rest(weight=0.1)])
    pose, rest = asked.objective.costs
    assert pose.holds
    assert not rest.holds
    assert pose.weight == (1.0, 1.0, 1.0, 1.0, 1.0, 0.0)
    assert pose.tolerance == (1e-3, 1e-3)
    assert asked.free.sum() == len(problem.variables)


def test_what_is_only_to_be_near_is_weighed_and_nothing_beside_it_has_to_hold() -> None:
    near = ik_problem(ROBOT, T, nearest=PoseWeights(10.0, 0.1))
    assert not ik_objective(ROBOT, near, [Rest()]).objective.has_to_hold
    with pytest.raises(UnsupportedFeatureError, match="nothing is a success"):
        ik_objective(ROBOT, near, [Rest(tolerance=1.0)])


def test_a_success_meets_targets_as_inverse_kinematics_judges_them() -> None:
    q = ROBOT.default_q
    [there] = forward_kinematics(ROBOT, q, ["panda_link8"])
    off = there.copy()
    off[0, 3] += 0.01
    problem = ik_problem(ROBOT, np.stack([there, off]), base_link="panda_link0", tip_link="panda_link8")
    asked = ik_objective(ROBOT, problem, [Rest(weight=0.1)])
    best = np.repeat(q[None, None], 2, axis=0)
    multipliers = tuple(np.zeros((2, 1, 1)) for _ in asked.objective)
    claims = ObjectiveCandidates(best, multipliers, np.zeros(2, int), np.zeros((2, 0)), np.zeros(2, bool))
    judged = verified(ROBOT, asked, claims, "nobody", 0.0)
    assert judged.success.tolist() == [True, False]
    lying = replace(judged, status=np.full(2, int(Status.SUCCESS)), q=best.copy())
    result = with_targets_met(ROBOT, problem, lying)
    assert result.success.tolist() == [True, False]
    assert np.isnan(result.q[1]).all()
    assert result.messages[1]
    assert with_targets_met(ROBOT, problem, judged) is judged


def test_what_is_near_says_what_of_the_targets_is_met() -> None:
    q = ROBOT.default_q
    [there] = forward_kinematics(ROBOT, q, ["panda_link8"])
    off = there.copy()
    off[0, 3] += 0.01
    problem = ik_problem(
        ROBOT,
        np.stack([there, off]),
        base_link="panda_link0",
        tip_link="panda_link8",
        nearest=PoseWeights(10.0, 0.1),
    )
    asked = ik_objective(ROBOT, problem, [Rest(weight=0.1)])
    best = np.repeat(q[None, None], 2, axis=0)
    multipliers = tuple(np.zeros((2, 1, 1)) for _ in asked.objective)
    claims = ObjectiveCandidates(best, multipliers, np.zeros(2, int), np.zeros((2, 0)), np.zeros(2, bool))
    result = with_targets_met(ROBOT, problem, verified(ROBOT, asked, claims, "nobody", 0.0))
    assert result.status.tolist() == [Status.NEAREST] * 2
    assert re.fullmatch(
        r"position met \(off by \S+ m\), orientation met \(off by \S+ rad\)", result.messages[0]
    )
    assert re.fullmatch(r"position off by 0.01 m, orientation met \(off by \S+ rad\)", result.messages[1])


@pytest.mark.parametrize(
    "options", [{"num_solutions": 3}, {"prefer": "mid_range"}, {"position_tolerance": (1e-3, 1e-3, 1e-2)}]
)
def test_what_costs_cannot_have_is_refused_by_name(options: dict[str, object]) -> None:
    with pytest.raises(UnsupportedFeatureError, match="with costs"):
        ik_objective(ROBOT, ik_problem(ROBOT, T, **options), [Rest()])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ("several goals", {"goals": [T, T]}),
        ("waypoints", {"waypoints": [T]}),
        ("a duration", {"duration": 5.0}),
        ("a number of points", {"num_points": 30}),
    ],
)
def test_motions_with_costs_refuse_what_objectives_cannot(said: str, options: dict[str, object]) -> None:
    solver = create_solver("cpu", ROBOT)
    problem = trajectory_problem(ROBOT, **{"goals": T, **options})  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeatureError, match=said):
        plan_with_costs(solver, problem, [Rest()])


def test_times_of_the_points_are_nothing_to_bound_derivatives_by() -> None:
    """The motion is timed afterwards: a limit that held at the points would say nothing of it."""
    solver = create_solver("cpu", ROBOT)
    with pytest.raises(UnsupportedFeatureError, match="velocities"):
        plan_with_costs(solver, trajectory_problem(ROBOT, T), [VelocityLimits(tolerance=1e-6)])


class Stages:
    """Cancels a search at its n-th stage, by the name that is told."""

    def __init__(self, last: str) -> None:
        self.told: list[str] = []
        self.last = last

    def __call__(self, progress: Progress) -> bool:
        self.told.append(progress.stage)
        return progress.stage != self.last


class Objectives:
    """Answers nothing, and counts how often it is asked."""

    name = "stub"
    robot = ROBOT
    asked = 0

    def solve_objective(self, problem: ObjectiveProblem) -> Any:
        self.asked += 1
        raise AssertionError(problem)


def test_a_search_with_costs_tells_its_stages_and_ends_when_it_is_cancelled() -> None:
    """It told nothing, and went on for as long as the request had time."""
    helper = create_solver("cpu", ROBOT)
    problem = trajectory_problem(ROBOT, T)
    first = Stages("")
    solver: Any = Objectives()
    with pytest.raises(AssertionError):
        plan_with_costs(solver, problem, [Rest()], helper, first)
    assert solver.asked == 1
    assert first.told[-1] == OBJECTIVE
    assert len(first.told) > 1  # those of the path that it begins from
    for stage in dict.fromkeys(first.told):
        report = Stages(stage)
        solver.asked = 0
        result = plan_with_costs(solver, problem, [Rest()], helper, report)
        assert result.status is Status.PREEMPTED
        assert (report.told[-1], solver.asked) == (stage, 0)


class Asking:
    """Works in parts, and asks after each whether anybody wants the rest."""

    name = "stub"
    robot = ROBOT

    def solve_objective(self, problem: ObjectiveProblem) -> Any:
        for _ in range(100):
            check_wanted()
        raise AssertionError(problem)


def test_a_search_with_costs_is_cancelled_in_the_middle_of_the_solvers_work() -> None:
    told: list[str] = []

    def report(progress: Progress) -> bool:
        told.append(progress.stage)
        return len(told) < 5

    solver: Any = Asking()
    result = plan_with_costs(solver, trajectory_problem(ROBOT, T), [Rest()], None, report)
    assert result.status is Status.PREEMPTED
    assert told == [OBJECTIVE] * 5


def test_the_pool_hands_the_report_on() -> None:
    pool = SolverPool(ROBOT, chain=("cpu",))
    report = Stages("")
    solver: Any = Objectives()
    monkey: Any = pool
    monkey._first_able = lambda ask, name, fallback: Pooled(ask(solver), "")
    with pytest.raises(AssertionError):
        pool.plan_trajectory(trajectory_problem(ROBOT, T), report=report, costs=[Rest()])
    assert report.told == [OBJECTIVE]


def test_no_program_is_run_after_the_deadline() -> None:
    solver: Any = Objectives()
    result = plan_with_costs(solver, trajectory_problem(ROBOT, T, deadline=0.0), [Rest()])
    assert result.status is Status.TIMED_OUT
    assert solver.asked == 0


def of_many(B: int, **options: Any) -> IkProblem:
    """B targets, each a little further than the one before."""
    many = np.repeat(T[None], B, axis=0)
    many[:, 0, 3] += 0.001 * np.arange(B)
    return ik_problem(ROBOT, many, **options)


def answered(asked: list[ObjectiveProblem]) -> Any:
    """A solver of objectives whose claims are inverse kinematics alone, and the problems that it got."""
    cpu = create_solver("cpu", ROBOT)

    def solve(problem: ObjectiveProblem) -> ObjectiveResult:
        asked.append(problem)
        q = with_starts(problem, cpu).seeds[:, 0]
        B = len(q)
        claims = ObjectiveCandidates(
            q,
            tuple(np.zeros((B, 1, 1)) for _ in problem.objective),
            np.ones(B, dtype=np.int64),
            np.full((B, 4), np.nan),
            np.zeros(B, dtype=np.bool_),
        )
        return verified(ROBOT, problem, claims, "stub", 0.0)

    return solve


def test_many_targets_with_costs_are_solved_in_portions() -> None:
    asked: list[ObjectiveProblem] = []
    problem = of_many(PORTION + 1)
    result = solve_in_portions(ROBOT, problem, [Rest(weight=0.1)], answered(asked))
    assert [part.batch_size for part in asked] == [9, 8]
    assert result.success.all()
    assert len(result.messages) == len(result.terms) == len(result.history) == PORTION + 1
    assert [own.shape for own in result.multipliers] == [(PORTION + 1, 1, 1)] * 2
    poses = [forward_kinematics(ROBOT, q[0], ["panda_link8"])[0] for q in result.q]
    np.testing.assert_allclose(np.array(poses)[:, 0, 3], problem.targets[0].T_base_target[:, 0, 3], atol=1e-4)


def test_the_clock_is_looked_at_between_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 targets with four costs were answered 11 s after their deadline."""
    late_after(1, monkeypatch)
    asked: list[ObjectiveProblem] = []
    problem = of_many(3 * PORTION)
    result = solve_in_portions(ROBOT, problem, [Rest(weight=0.1)], answered(asked))
    assert [part.batch_size for part in asked] == [PORTION, PORTION]
    assert result.success.tolist() == [True] * (2 * PORTION) + [False] * PORTION
    assert (result.status[2 * PORTION :] == Status.TIMED_OUT).all()
    assert np.isnan(result.q[2 * PORTION :]).all()
    np.testing.assert_array_equal(result.best[2 * PORTION :, 0], problem.state[2 * PORTION :])
    pose, rest = result.terms[-1]
    assert np.isnan([pose.value, rest.value]).all()
    assert not pose.met
    assert pose.title == result.terms[0][0].title
