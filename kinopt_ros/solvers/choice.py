"""Choice among verified solutions: distinct ones, the preferred first."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences.base import sorting_cost
from kinopt_ros.problems.rows import rows_of
from kinopt_ros.robot.turns import periodic_variables, shortest
from kinopt_ros.solvers.judgement import Case, Judgement

_FEW = 5_000
"""Numbers in all pairs of solutions up to which one look at all of them is quicker than one for each solution."""


@dataclass(eq=False, slots=True)
class Choice:
    """Solutions that become the answer, K of each request; NaN stands where there are no more."""

    q: Annotated[Float64, "B K n"]
    position_error: Annotated[Float64, "B K"]
    orientation_error: Annotated[Float64, "B K"]
    cost: Annotated[Float64, "B K"]
    """What they are sorted by."""


def choose(case: Case, judgement: Judgement) -> Choice:
    """Return distinct solutions of each request, the preferred first."""
    problem = case.problem
    if judgement.q.shape[1] > 1 or problem.num_solutions > 1:
        return _best(case, judgement)
    q, position, orientation = judgement.q, judgement.position_error, judgement.orientation_error
    if not judgement.all_solved:
        solved = judgement.solved
        q = np.where(solved[..., None], q, np.nan)
        position, orientation = np.where(solved, position, np.nan), np.where(solved, orientation, np.nan)
    cost = judgement.from_state
    if cost is None or problem.preference is not None:
        cost = sorting_cost(problem, case.chains, q)
    return Choice(q, position, orientation, cost)


def _best(case: Case, judgement: Judgement) -> Choice:
    """Choose among several. Requests without solutions cost no time: there may be thousands that a deadline cut
    short."""
    problem, solved = case.problem, judgement.solved
    shape = len(solved), problem.num_solutions
    found = (
        np.full((*shape, judgement.q.shape[2]), np.nan),
        np.full(shape, np.nan),
        np.full(shape, np.nan),
        np.full(shape, np.nan),
    )
    some = np.flatnonzero(solved.any(axis=1))
    if not some.size:
        return Choice(*found)
    part = problem if len(some) == len(solved) else rows_of(problem, some)
    q = np.where(solved[some, :, None], judgement.q[some], np.nan)
    cost = sorting_cost(part, case.chains, q)
    chosen = _distinct(q, cost, part, periodic_variables(case.robot)[problem.variables])
    row, place = np.nonzero(chosen >= 0)
    which = chosen[row, place]
    values = q, judgement.position_error[some], judgement.orientation_error[some], cost
    for kept, given in zip(found, values, strict=True):
        kept[some[row], place] = given[row, which]
    return Choice(*found)


def _distinct(
    q: Annotated[Float64, "B K n"],
    cost: Annotated[Float64, "B K"],
    problem: IkProblem,
    periodic: Annotated[Bool, "n"],
) -> Annotated[np.ndarray, "B num_solutions"]:
    """Return per request the indices of distinct solutions, best first; -1 where there are no more.

    Of two that are not distinct the better one stays.
    """
    B = len(q)
    order = np.argsort(cost, axis=1, kind="stable")  # NaN goes last
    ordered = np.take_along_axis(q, order[..., None], axis=1)
    keep: Bool = np.asarray(np.isfinite(ordered[..., 0]) if q.shape[2] else np.isfinite(cost))
    if ordered.size * q.shape[1] > _FEW or _some_near(ordered, problem, periodic):
        for k in range(1, q.shape[1]):
            # Most requests of a batch that a deadline cut short have few solutions.
            rows = np.flatnonzero(keep[:, k])
            if not rows.size:
                continue
            near = _near(ordered[rows, :k] - ordered[rows, k : k + 1], problem, periodic)
            keep[rows, k] = ~(near & keep[rows, :k]).any(axis=1)
    chosen = np.full((B, problem.num_solutions), -1, dtype=np.int64)
    place = np.cumsum(keep, axis=1) - 1
    kept = np.nonzero(keep & (place < problem.num_solutions))
    chosen[kept[0], place[kept]] = order[kept]
    return chosen


def _some_near(q: Annotated[Float64, "B K n"], problem: IkProblem, periodic: Annotated[Bool, "n"]) -> bool:
    """Check whether any two solutions of a request are not distinct, by one look at all pairs."""
    first, second = _pairs(q.shape[1])
    return bool(_near(q[:, first] - q[:, second], problem, periodic).any())


@lru_cache(maxsize=16)
def _pairs(count: int) -> tuple[Int64, Int64]:
    """Return numbers of all pairs of so many."""
    first, second = np.triu_indices(count, 1)
    return first, second


def _near(
    difference: Annotated[Float64, "B M n"], problem: IkProblem, periodic: Annotated[Bool, "n"]
) -> Annotated[Bool, "B M"]:
    """Return which differences of two solutions are too small for distinct ones."""
    if not problem.turns:
        difference = shortest(difference, periodic)
    return np.asarray((np.abs(difference) <= problem.min_separation).all(axis=2))
