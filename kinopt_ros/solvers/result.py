"""Answers: what a plugin claims, and what the core has verified of it."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64, frozen
from kinopt_ros.status import Status


@dataclass(frozen=True, eq=False)
class IkCandidates:
    """What a plugin returns: claims, not yet an answer. Rows follow the problem's requests."""

    q: Annotated[Float64, "B K n"]
    """Claimed solutions, best first; NaN rows where there is none."""
    attempt: Annotated[Float64, "B n"]
    """The best configuration seen, inside the limits, for requests without a solution (else ignored)."""
    iterations: Annotated[Int64, "B"]
    """Solver steps spent."""
    timed_out: Annotated[Bool, "B"]
    """Whether the search was cut short by the deadline."""


@dataclass(frozen=True, eq=False)
class IkResult:
    """A verified answer. ``q`` holds nothing but configurations that passed every check in ``checks``."""

    joint_names: tuple[str, ...]
    """Names of the n variables, the columns of q."""
    q: Annotated[Float64, "B K n"]
    """Solutions, best first (rad or m); NaN rows where there is none."""
    status: Annotated[Int64, "B"]
    """A ``Status`` per request."""
    messages: tuple[str, ...]
    """Why a request failed, one sentence; empty where it succeeded."""
    position_error: Annotated[Float64, "B K"]
    """Distance from the target, m; NaN where q is."""
    orientation_error: Annotated[Float64, "B K"]
    """Geodesic angle from the target, rad; NaN where q is."""
    attempt: Annotated[Float64, "B n"]
    """Best attempt of a failed request, inside the limits; NaN rows where the request succeeded."""
    attempt_position_error: Annotated[Float64, "B"]
    """Distance of the attempt from the target, m; NaN where attempt is."""
    attempt_orientation_error: Annotated[Float64, "B"]
    """Angle of the attempt from the target, rad; NaN where attempt is."""
    iterations: Annotated[Int64, "B"]
    """Solver steps spent."""
    solver: str
    """Name of the plugin that solved it."""
    solve_time: float
    """Seconds in solver and verification."""
    checks: tuple[str, ...]
    """What was verified in float64."""
    not_checked: tuple[str, ...]
    """What was not."""

    def __post_init__(self) -> None:
        frozen(self.q)
        frozen(self.status)

    @property
    def success(self) -> Annotated[Bool, "B"]:
        """Which requests have at least one verified solution."""
        return np.asarray(self.status == Status.SUCCESS)
