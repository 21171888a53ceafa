"""Answers to objectives: what a solver claims, and what was verified of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Immutable, Int64, taken_over
from kinopt_ros.objectives.evaluation import Term
from kinopt_ros.status import Status


@dataclass(frozen=True, eq=False)
class ObjectiveCandidates:
    """Claims of a plugin, one per request, not yet an answer."""

    q: Annotated[Float64, "B T nq"]
    """The best found, whether it holds or not."""
    multipliers: tuple[Annotated[Float64, "B P m"], ...]
    """For each cost the Lagrange multipliers of its residual, where the cost has to hold; zeros elsewhere. In units of
    the objective by those of the residual."""
    iterations: Annotated[Int64, "B"]
    """Steps of the search."""
    history: Annotated[Float64, "B H"]
    """Sum of weighted squares after each step of the last search; NaN where there was none."""
    timed_out: Annotated[Bool, "B"]
    """Whether the deadline ended the search."""


@dataclass(frozen=True, eq=False)
class ObjectiveResult(Immutable):
    """A verified answer."""

    variable_names: tuple[str, ...]
    q: Annotated[Float64, "B T nq"]
    """Configurations of the whole robot that hold, rad or m; NaN where the status is not SUCCESS."""
    best: Annotated[Float64, "B T nq"]
    """The best that was found, inside the limits, whether it holds or not."""
    status: Annotated[Int64, "B"]
    """SUCCESS: all that has a tolerance holds. NEAREST: nothing has one; this is the best that was found.
    NO_IK_SOLUTION or PLANNING_FAILED: something does not hold. Others: see ``Status``."""
    messages: tuple[str, ...]
    """Why a request failed, one sentence; empty where it succeeded."""
    terms: Sequence[tuple[Term, ...]]
    """Per request all costs at ``best``: value, residual, magnitudes, tolerance."""
    multipliers: tuple[Annotated[Float64, "B P m"], ...]
    """Per cost its Lagrange multipliers at ``best``, as the solver says; zeros for what need not hold."""
    iterations: Annotated[Int64, "B"]
    """Steps of the search."""
    history: Annotated[Float64, "B H"]
    """Sum of weighted squares after each step; NaN where there was none."""
    dt: float
    """Time between points, s."""
    solver: str
    solve_time: float
    """Seconds in solver and verification."""
    checks: tuple[str, ...]
    """Names of the checks made in float64."""
    not_checked: tuple[str, ...]
    """What was not verified."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        taken_over(self, "q", "best", "status")

    @property
    def success(self) -> Annotated[Bool, "B"]:
        """Which requests hold everything that they have to."""
        return np.asarray(self.status == Status.SUCCESS)

    def value(self, request: int = 0) -> float:
        """Return what was minimized: the sum over all costs."""
        return sum(term.value for term in self.terms[request])

    def term(self, title: str, request: int = 0) -> Term:
        """Return a cost of an answer by its title; KeyError if there is none."""
        for term in self.terms[request]:
            if term.title == title:
                return term
        raise KeyError(
            f"no cost {title!r}; there are {', '.join(term.title for term in self.terms[request])}"
        )


def with_rows(
    result: ObjectiveResult, requests: Annotated[Int64, "R"], other: ObjectiveResult
) -> ObjectiveResult:
    """Return an answer in which those of some requests are replaced where another answer, of these alone, is a
    success; steps and times add up."""
    better = other.success
    rows = requests[better]
    q, best, status = np.array(result.q), np.array(result.best), np.array(result.status)
    iterations, history = np.array(result.iterations), np.array(result.history)
    q[rows], best[rows], status[rows] = other.q[better], other.best[better], other.status[better]
    history[rows] = other.history[better]
    iterations[requests] += other.iterations
    messages, terms = list(result.messages), list(result.terms)
    multipliers = tuple(np.array(part) for part in result.multipliers)
    for k in np.flatnonzero(better).tolist():
        b = int(requests[k])
        messages[b], terms[b] = other.messages[k], other.terms[k]
        for mine, theirs in zip(multipliers, other.multipliers, strict=True):
            mine[b] = theirs[k]
    return replace(
        result,
        q=q,
        best=best,
        status=status,
        messages=tuple(messages),
        terms=terms,
        multipliers=multipliers,
        iterations=iterations,
        history=history,
        solve_time=result.solve_time + other.solve_time,
    )
