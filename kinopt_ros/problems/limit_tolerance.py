"""Tolerance for values a little beyond a limit: files and programs round, and 3.14159265 is beyond 3.14159."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.model import RobotModel

LIMIT_TOLERANCE = 1e-4
"""Largest distance beyond a limit at which values are moved back to it, rad or m; answers say so."""
MOST_TOLERANCE = 0.01
_NAMED = 3
"""Most joints that a sentence names."""


def check_limit_tolerance(tolerance: float) -> float:
    """Raise unless ``tolerance`` is in the allowed range."""
    if not 0.0 <= tolerance <= MOST_TOLERANCE:
        raise InvalidRequestError(
            f"limit_tolerance is {tolerance}; allowed is 0 to {MOST_TOLERANCE:g} (rad or m)"
        )
    return tolerance


def moved_to_limits(
    robot: RobotModel,
    variables: Annotated[Int64, "n"],
    q: Annotated[Float64, "... n"],
    tolerance: float,
    what: str,
) -> tuple[Annotated[Float64, "... n"], tuple[str, ...]]:
    """Move values that are beyond a limit by no more than the tolerance to it.

    Returns the values, and a sentence about what was moved; empty if nothing was.

    Args:
        robot: the robot.
        variables: indices in the robot's q: the columns.
        q: rad or m.
        tolerance: rad or m.
        what: what the values are, as the sentence begins.
    """
    if not q.size:
        return q, ()
    lower, upper = robot.limits.lower[variables], robot.limits.upper[variables]
    inside = np.clip(q, lower, upper)
    with np.errstate(
        invalid="ignore"
    ):  # infinite values of joints without limits; who checks problems refuses them
        moved = (inside != q) & (np.abs(inside - q) <= tolerance)
    if not moved.any():
        return q, ()
    named = []
    for index in np.argwhere(moved)[:_NAMED]:
        place = tuple(index.tolist())
        name = robot.variable_names[int(variables[place[-1]])]
        named.append(f"{name!r} from {q[place]:.9g} to its limit {inside[place]:.9g}")
    return np.where(moved, inside, q), (f"{what} moves {_listed(named, int(moved.sum()))}",)


def _listed(named: Sequence[str], count: int) -> str:
    return ", ".join(named) + (f" and {count - len(named)} more" if count > len(named) else "")
