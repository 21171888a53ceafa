"""Requests with the same held values, one after the other: claims of the closed form become candidates."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.se3 import so3_exp
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.analytic.kernels.branches import solve_branches
from kinopt_ros.solvers.locked_joints import standing
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.solvers.whole_turns import with_whole_turns

if TYPE_CHECKING:
    from kinopt_ros.solvers.analytic.closed_form import ClosedForm
    from kinopt_ros.solvers.locked_joints import Prepared

_NUDGE = 2e-3
"""Size of the motions (m, rad) that targets without a solution are moved by.

At a singular pose a closed form gives one of infinitely many solutions, which may be outside the limits, or only nearly
one where rounding makes the pose unreachable. Claims for poses around lead to others."""


def _motions(count: int) -> Annotated[Float64, "count 4 4"]:
    rng = np.random.default_rng(0)
    T = np.tile(np.eye(4), (count, 1, 1))
    T[:, :3, :3] = so3_exp(_NUDGE * rng.normal(size=(count, 3)))
    T[:, :3, 3] = _NUDGE * rng.normal(size=(count, 3))
    return T


_NUDGES = _motions(8)
AIM = 1e-9
"""Error (m and rad) to which claims are polished: it costs one more step, as convergence is quadratic."""


def solve(
    problem: IkProblem, form: "ClosedForm", prepared: "Prepared[Any]", robot: RobotModel, every: bool
) -> IkCandidates:
    """Return candidates for requests with the same held values: all solutions if ``every``, else the best ones."""
    columns = prepared.columns
    most = problem.num_solutions
    B, n = problem.batch_size, len(columns)
    state = problem.state.take(form.variables, axis=1)
    posture = problem.posture
    reference = state if posture is None else posture.reference.take(columns, axis=1)
    weight = np.ones(n) if posture is None else posture.weight.take(columns)
    seeds = problem.seeds.take(columns, axis=2)
    T = np.array(problem.targets[0].T_base_target, dtype=np.float64, order="C")
    effort = _effort(problem)
    attempt = np.empty((B, n))
    steps, timed_out = np.zeros(B, np.int64), np.zeros(B, np.bool_)
    found: list[Float64] = []
    for b in range(B):
        if problem.late:
            timed_out[b:] = True
            attempt[b:] = standing(problem, robot)[b:, columns]
            break
        starts = np.concatenate([state[b : b + 1], seeds[b]])
        asked = (
            starts, form.numbers, form.shape, effort, reference[b], weight, problem.min_separation
        )  # fmt: skip
        q, steps[b] = _solutions(T[b], form.claims(T[b]), *asked, attempt[b])
        if not len(q):
            for T_nudge in _NUDGES:
                q, more = _solutions(T[b], form.claims(T[b] @ T_nudge), *asked, np.empty(n))
                steps[b] += more
                if len(q):
                    break
        found.append(q if every else q[:most])
    candidates = IkCandidates(np.empty((B, 0, 0)), attempt, steps, timed_out, form.name)
    candidates = _widened(problem, prepared, robot, found, candidates)
    return _turned(problem, candidates, robot) if problem.turns and most > 1 else candidates


def _solutions(
    T: Annotated[Float64, "4 4"],
    claims: Annotated[Float64, "n N"],
    starts: Annotated[Float64, "S n"],
    numbers: Annotated[Float64, "len"],
    shape: Annotated[Int64, "len"],
    effort: Annotated[Float64, "4"],
    reference: Annotated[Float64, "n"],
    weight: Annotated[Float64, "n"],
    separation: float,
    attempt: Annotated[Float64, "n"],
) -> tuple[Annotated[Float64, "K n"], int]:
    """Return distinct solutions, the best first, and steps made; see ``solve_branches``."""
    most = len(starts) + claims.shape[1]
    q = np.empty((most, len(reference)))
    count, steps = solve_branches(
        T, claims, starts, numbers, shape, effort, reference, weight, separation, q, np.empty(most), attempt
    )
    return q[:count], steps


def _effort(problem: IkProblem) -> Annotated[Float64, "4"]:
    """Return errors that claims are polished to, and accepted with; of orientation 2 sin(half the angle)."""
    tolerances = problem.targets[0].plain
    assert tolerances is not None
    position, angle = tolerances
    orientation = 2.0 * float(np.sin(0.5 * angle)) if angle < np.pi else 2.01
    return np.array(
        [min(AIM, 0.5 * position), min(AIM, 0.5 * orientation), 0.999 * position, 0.999 * orientation]
    )


def _widened(
    problem: IkProblem,
    prepared: "Prepared[Any]",
    robot: RobotModel,
    found: list[Float64],
    others: IkCandidates,
) -> IkCandidates:
    """Return candidates in the problem's variables; those that do not move the tip stay where they are.

    Args:
        problem: what is asked.
        prepared: where the chain's variables stand among the problem's.
        robot: the robot.
        found: solutions of each request that there was time for, in the chain's variables.
        others: all else, the attempt in the chain's variables, too.
    """
    if len(found) == 1 and problem.batch_size == 1 and prepared.in_order and len(found[0]):
        return replace(others, q=found[0][None])
    still = standing(problem, robot)
    q = np.repeat(still[:, None], max([1, *map(len, found)]), axis=1)
    for b, solutions in enumerate(found):
        q[b][: len(solutions), prepared.columns] = solutions
        q[b, len(solutions) :] = np.nan
    q[len(found) :] = np.nan
    still[:, prepared.columns] = others.attempt
    return replace(others, q=q, attempt=still)


def _turned(problem: IkProblem, found: IkCandidates, robot: RobotModel) -> IkCandidates:
    """Return candidates and, before them, as many of the best that differ by whole turns as are wanted."""
    B, K, n = found.q.shape
    wide = np.full((B, max(K, problem.num_solutions), n), np.nan)
    wide[:, :K] = found.q
    best = with_whole_turns(problem, wide, robot)[:, : problem.num_solutions]
    return replace(found, q=np.concatenate([best, found.q], axis=1))
