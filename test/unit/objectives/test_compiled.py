"""Verdicts in one compiled call are those of the costs' own code by numpy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from support.cost_cases import ROBOTS, cost_cases

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.look_at import LookAt
from kinopt_ros.costs.rest import Rest
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.objectives import compiled
from kinopt_ros.objectives.evaluation import evaluate
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem
from kinopt_ros.objectives.result import ObjectiveCandidates
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers import objective_gate
from kinopt_ros.solvers.objective_gate import HELD, verified

N = 12  # even, so that a median is no value itself


@pytest.fixture(scope="module", autouse=True)
def ready() -> None:
    assert compiled.load_or_compile(may_compile=True)


@cache
def robot_of(name: str) -> RobotModel:
    return ROBOTS[name][0]()


def costs_of(name: str) -> list[Cost]:
    """One of every kind that is compiled, and variants."""
    robot = robot_of(name)
    known = cost_cases(name, robot).values()
    costs = [cost.replace(tolerance=None) for cost in known if type(cost) in compiled._KINDS]
    assert {type(cost) for cost in costs} == set(compiled._KINDS)
    by_kind = {cost.name: cost for cost in costs}
    return [
        *costs,
        by_kind["link_pose"].replace(frame="base", base_link="", T_link_tool=None),
        by_kind["link_pose"].replace(base_link=robot.root_link),
        by_kind["manipulability"].replace(part="full"),
        by_kind["manipulability"].replace(part="rotation"),
        Rest(q=random_configurations(robot, 1, 3)[0]),
    ]


def claimed(name: str, costs: list[Cost], q: Float64) -> ObjectiveProblem:
    robot = robot_of(name)
    return objective_problem(robot, [Objective(costs)] * len(q), joints=robot.active_joints, state=q)


@pytest.mark.parametrize("name", ROBOTS)
def test_residuals_and_values_are_those_of_the_costs(name: str) -> None:
    robot, costs = robot_of(name), costs_of(name)
    q = random_configurations(robot, N, 5)
    problem = claimed(name, costs, q)
    judged = compiled.judged_at_once(robot, problem, q[:, None], HELD)
    assert judged is not None
    assert judged.met.all()
    for b in range(N):
        wanted = evaluate(robot, problem.objective, q[b, None], problem.dt)
        for found, term in zip(judged.terms[b], wanted, strict=True):
            assert found.title == term.title
            np.testing.assert_allclose(
                found.residual, term.residual, rtol=1e-9, atol=1e-12, err_msg=term.title
            )
            np.testing.assert_allclose(found.magnitude, term.magnitude, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found.value, term.value, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", ROBOTS)
def test_what_holds_is_what_holds_by_numpy(name: str) -> None:
    """With tolerances that some configurations keep, one or several; weights of 0 leave components out."""
    robot = robot_of(name)
    q = random_configurations(robot, N, 7)
    rng = np.random.default_rng(1)
    seen = set()
    for cost in costs_of(name):
        size = evaluate(robot, Objective([cost.replace(weight=1.0)]), q[:1], 0.1)[0].residual.shape[1]
        partial = np.where(rng.random(size) < 0.4, 0.0, rng.uniform(0.5, 2.0, size))
        partial[-1] = 1.0
        for weight in (2.0, tuple(partial.tolist())):
            plain = cost.replace(weight=weight)
            sizes = np.array([evaluate(robot, Objective([plain]), row[None], 0.1)[0].magnitude for row in q])
            several = tuple(np.quantile(sizes, 0.8, axis=0).tolist())
            for tolerance in (float(np.median(sizes.max(axis=1))), several):
                held = [plain.replace(tolerance=tolerance)]
                judged = compiled.judged_at_once(robot, claimed(name, held, q), q[:, None], HELD)
                assert judged is not None
                wanted = [evaluate(robot, Objective(held), row[None], 0.1)[0].met for row in q]
                assert judged.met.tolist() == wanted
                assert [terms[0].met for terms in judged.terms] == wanted
                seen |= {(cost.name, met) for met in wanted}
    # Of position limits of this robot no half keeps anything else than the other.
    assert len(seen) >= 2 * len({cost.name for cost in costs_of(name)}) - 2


def test_numbers_of_a_batch_are_each_requests_own() -> None:
    robot = robot_of("panda")
    q = random_configurations(robot, N, 9)
    T = forward_kinematics(robot, q, ["panda_hand"])[:, 0]
    objectives = [
        Objective(
            [
                LinkPose(
                    link="panda_hand",
                    T_base_target=T[b],
                    tolerance=1e-9 * (b + 1) if b % 2 else (1e-9, 1e-9),
                    weight=b + 1.0,
                ),
                Rest(weight=0.1 * b, q=q[b]),
            ]
        )
        for b in range(N)
    ]
    problem = objective_problem(robot, objectives, joints=robot.active_joints)
    judged = compiled.judged_at_once(robot, problem, q[:, None], HELD)
    assert judged is not None
    assert judged.met.all()
    assert max(term.value for terms in judged.terms for term in terms) < 1e-12
    off = compiled.judged_at_once(robot, problem, np.roll(q, 1, axis=0)[:, None], HELD)
    assert off is not None
    assert not off.met.any()


@pytest.mark.parametrize("case", ["not a number", "beyond a limit", "held", "a cost that is not finite"])
def test_what_is_not_right_goes_the_other_way(case: str) -> None:
    robot = robot_of("panda")
    q = random_configurations(robot, 3, 11)
    problem = objective_problem(robot, [Objective([Rest()])] * 3, joints=robot.active_joints[:5], state=q)
    claims = q.copy()
    assert compiled.judged_at_once(robot, problem, claims[:, None], HELD) is not None
    if case == "not a number":
        claims[1, 0] = np.nan
    elif case == "beyond a limit":
        claims[1, 0] = robot.limits.upper[0] + 1e-9
    elif case == "held":
        claims[1, 6] += 1e-8
    else:
        costs = [Rest(q=np.full(robot.nq, 1e200))]
        problem = objective_problem(robot, [Objective(costs)] * 3, joints=robot.active_joints[:5], state=q)
    assert compiled.judged_at_once(robot, problem, claims[:, None], HELD) is None


@dataclass(frozen=True, eq=False, kw_only=True)
class Doubled(Rest):
    """Anybody's cost: of a subclass of a known kind."""

    def residual(self, point: object) -> Float64:
        return 2.0 * super().residual(point)  # type: ignore[arg-type, no-any-return]


def test_kinds_of_others_and_trajectories_go_the_other_way() -> None:
    robot = robot_of("panda")
    q = random_configurations(robot, 2, 13)
    for costs, points in (([Doubled()], 1), ([Rest()], 2)):
        problem = objective_problem(robot, Objective(costs), joints=robot.active_joints, num_points=points)
        assert compiled.judged_at_once(robot, problem, q[None, :points], HELD) is None


def test_the_gate_says_the_same_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = robot_of("panda")
    q = random_configurations(robot, 6, 15)
    T = forward_kinematics(robot, q, ["panda_hand"])[:, 0]
    objectives = [
        Objective([LinkPose(link="panda_hand", T_base_target=pose, tolerance=1e-6), Rest()]) for pose in T
    ]
    problem = objective_problem(robot, objectives, joints=robot.active_joints)
    best = q.copy()
    best[2] += 0.1 * (robot.default_q - q[2])
    none = tuple(np.zeros((6, 1, 1)) for _ in range(2))
    claims = ObjectiveCandidates(best[:, None], none, np.zeros(6, int), np.zeros((6, 0)), np.zeros(6, bool))
    beyond = best.copy()
    beyond[4, 1] = 9.0
    for claim in (claims, replace(claims, q=beyond[:, None])):
        answers = []
        for at_once in (compiled.judged_at_once, lambda *_: None):
            monkeypatch.setattr(objective_gate, "judged_at_once", at_once)
            answers.append(verified(robot, problem, claim, "somebody", 0.0))
        one, other = answers
        assert one.messages == other.messages
        np.testing.assert_array_equal(one.status, other.status)
        np.testing.assert_array_equal(one.q, other.q)
        np.testing.assert_allclose(
            [one.value(b) for b in range(6)], [other.value(b) for b in range(6)], rtol=1e-12
        )


def test_nothing_looks_at_its_own_origin() -> None:
    """Neither by numpy nor compiled: there is no line to look along."""
    robot = robot_of("panda")
    q = random_configurations(robot, 1, 17)
    place = tuple(forward_kinematics(robot, q[0], ["panda_hand"])[0, :3, 3].tolist())
    looking = Objective([LookAt(link="panda_hand", place=place, tolerance=0.1)])
    [term] = evaluate(robot, looking, q, 0.1)
    assert term.magnitude.max() > 1.0
    assert not term.met
    problem = objective_problem(robot, looking, joints=robot.active_joints)
    judged = compiled.judged_at_once(robot, problem, q[:, None], HELD)
    assert judged is not None
    assert not judged.met[0]
