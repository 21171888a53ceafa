"""Rows: the terms in which constraints tell optimizers what has to be met at the points of a path.

Few kinds serve many constraints. A solver names those that it can honour (``Capabilities.rows``).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from kinopt_ros.array import Float64, Immutable, taken_over
from kinopt_ros.problems.ik import PoseTarget


class ConstraintRow:
    """Base of all kinds."""

    words: ClassVar[str]
    """What it is, as refusals name it."""


@dataclass(frozen=True, eq=False)
class PoseRow(ConstraintRow):
    """A link, or a tool fixed to it, is within the tolerances of one pose (B = 1)."""

    words: ClassVar[str] = "poses along the way"
    target: PoseTarget


@dataclass(frozen=True, eq=False)
class LineRow(ConstraintRow, Immutable):
    """A point of a link is near to a line in the base link."""

    words: ClassVar[str] = "straight lines"
    link: str
    p_link: Annotated[Float64, "3"]
    """The point, in the link's frame, m."""
    origin: Annotated[Float64, "3"]
    """A point of the line, m."""
    direction: Annotated[Float64, "3"]
    """Unit vector; zeros where the line is no more than its point."""
    tolerance: float
    """Largest distance, m."""

    def __post_init__(self) -> None:
        taken_over(self, "p_link", "origin", "direction")
