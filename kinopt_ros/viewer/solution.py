"""What the page shows of an answer to the gizmos' poses."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.status import Status


@dataclass(frozen=True, eq=False)
class Solution:
    """An answer, in terms of the whole robot."""

    status: Status
    sentence: str
    """Why there is no solution, or what is met of what is as near as possible; empty on success."""
    q: Annotated[Float64, "nq"] | None
    """The verified solution, or what is as near as possible where that was asked for; None if there is none."""
    attempt: Annotated[Float64, "nq"] | None
    """Best attempt of a request that failed."""
    all_q: Annotated[Float64, "K nq"]
    """All distinct solutions that were found, the best first."""
    position_error: float
    """m, of the solution or of the attempt; NaN if there is neither."""
    orientation_error: float
    """rad, likewise."""
    solver: str
    seconds: float
    """Time in solver and verification."""
    checks: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether there is a verified solution, or one as near as possible that was asked for."""
        return self.q is not None


def solution_of(problem: IkProblem, result: IkResult) -> Solution:
    """Return the answer to the first request of a problem."""

    def whole(values: Float64) -> Float64:
        full: Float64 = problem.state[0].copy()
        full[problem.variables] = values
        return full

    status = Status(int(result.status[0]))
    rows = [whole(row) for row in result.q[0] if np.isfinite(row).all()]
    attempt = whole(result.attempt[0]) if np.isfinite(result.attempt[0]).all() else None
    solved = bool(result.success[0])
    q = rows[0] if solved else attempt if result.nearest[0] else None
    position, orientation = (
        (result.position_error[0, 0], result.orientation_error[0, 0])
        if solved
        else (result.attempt_position_error[0], result.attempt_orientation_error[0])
    )
    return Solution(
        status,
        result.messages[0],
        q,
        attempt if q is None else None,
        np.array(rows) if rows else np.empty((0, problem.state.shape[1])),
        float(position),
        float(orientation),
        result.solver,
        result.solve_time,
        result.checks,
        result.not_checked,
        result.notes,
    )
