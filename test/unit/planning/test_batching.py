"""Requests solved together get, to the last bit, the answers that they get alone."""

import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.planning.batching import merged, structure_key, taken_apart
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.solvers.result import IkResult

ROBOT = seven_revolute()
TIP = ROBOT.link_names[-1]
OF_THE_CALL = {"solve_time", "solver", "joint_names", "checks", "not_checked"}
"""Fields that do not belong to single requests."""


@pytest.fixture(scope="module")
def solver() -> Iterator[Solver]:
    made = create_solver("cpu", ROBOT)
    made.warm_up()
    yield made
    made.close()


def problem(seed: int, targets: int = 1, reachable: bool = True, **options: Any) -> IkProblem:
    """Reachable targets from a state of its own; unreachable ones are off by some metres."""
    q = random_configurations(ROBOT, targets + 1, seed)
    T = forward_kinematics(ROBOT, q[1:], links=(TIP,))[:, 0]
    if not reachable:
        T[:, :3, 3] += 5.0
    return ik_problem(ROBOT, T, tip_link=TIP, state=q[0], **options)


def alone_and_together(solver: Solver, problems: list[IkProblem]) -> Iterator[tuple[IkResult, IkResult]]:
    assert len({structure_key(one) for one in problems}) == 1
    together = taken_apart(
        solver.solve_ik(merged(problems, time.monotonic() + 1000.0)), [one.batch_size for one in problems]
    )
    return zip([solver.solve_ik(one) for one in problems], together, strict=True)


KINDS: dict[str, Callable[[int], IkProblem]] = {
    "single targets": lambda i: problem(i),
    "different numbers of targets": lambda i: problem(i, targets=1 + i % 3),
    "some unreachable": lambda i: problem(i, reachable=i % 2 == 0),
    "seeds": lambda i: problem(i, seeds=random_configurations(ROBOT, 2, 100 + i)),
    "several solutions": lambda i: problem(i, num_solutions=3),
    "a preference": lambda i: problem(i, prefer="closest"),
    "free axes": lambda i: problem(i, free_axes=["rz"]),
    "a random seed": lambda i: problem(i, random_seed=77),
}


@pytest.mark.parametrize("kind", KINDS)
def test_together_as_alone(solver: Solver, kind: str) -> None:
    for alone, part in alone_and_together(solver, [KINDS[kind](i) for i in range(6)]):
        for field in fields(IkResult):
            if field.name in OF_THE_CALL:
                continue
            one, other = getattr(part, field.name), getattr(alone, field.name)
            if field.name.endswith("_error"):  # of single poses they are computed in another order
                np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-15, err_msg=field.name)
            else:
                np.testing.assert_array_equal(one, other, err_msg=field.name)
        assert part.joint_names == alone.joint_names
        assert part.checks == alone.checks


@pytest.mark.parametrize(
    "other",
    [
        {"random_seed": 1},
        {"num_solutions": 2},
        {"position_tolerance": 1e-3},
        {"orientation_tolerance": (1e-3, 1e-3, 1.0)},
        {"free_axes": ["x"]},
        {"locked_joints": ["j3"]},
        {"base_link": "l1"},
        {"turns": True},
        {"min_separation": 0.2},
        {"prefer": "mid_range"},
        {"prefer": "manipulability"},
        {"seeds": np.zeros(7)},
        {"T_link_tool": np.diag([-1.0, -1.0, 1.0, 1.0])},
    ],
    ids=lambda other: next(iter(other)),
)
def test_requests_of_another_kind_are_not_mixed(other: dict[str, Any]) -> None:
    same = {structure_key(problem(i)) for i in range(3)}
    assert len(same) == 1
    if "locked_joints" in other or "base_link" in other:
        q = random_configurations(ROBOT, 1, 0)
        T = forward_kinematics(ROBOT, q, links=(TIP,))[:, 0]
        changed = ik_problem(ROBOT, T, tip_link=TIP, **other)
    else:
        changed = problem(0, **({"seeds": other["seeds"][None]} if "seeds" in other else other))
    assert structure_key(changed) not in same


def test_the_earliest_deadline_counts() -> None:
    now = time.monotonic()
    problems = [problem(i, deadline=deadline) for i, deadline in enumerate((now + 9.0, None, now + 3.0))]
    assert merged(problems, now + 5.0).deadline == now + 3.0
    assert merged(problems, now + 1.0).deadline == now + 1.0
    assert merged(problems[:1], now + 20.0).deadline == now + 9.0
