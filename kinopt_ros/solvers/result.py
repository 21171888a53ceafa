"""Answers of inverse kinematics: what a plugin claims, and what the core has verified of it."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Immutable, Int64, taken_over
from kinopt_ros.status import Status

_SUCCESS, _NEAREST = int(Status.SUCCESS), int(Status.NEAREST)
"""As plain numbers, with which numpy compares in a fourth of the time."""


@dataclass(eq=False, slots=True)
class IkCandidates:
    """Claims of a plugin, not yet an answer. Rows follow the problem's requests.

    For targets with weights, q is what is as near as possible.
    """

    q: Annotated[Float64, "B K n"]
    """Claimed solutions, of any number K up to 4096; NaN rows where there is none. The gate sorts them, and drops those
    that are not distinct."""
    attempt: Annotated[Float64, "B n"]
    """The best configuration seen, inside the limits, for requests without a solution (else ignored)."""
    iterations: Annotated[Int64, "B"]
    """Number of solver steps spent."""
    timed_out: Annotated[Bool, "B"]
    """Whether the search was cut short by the deadline; solutions found before may stand beside it."""
    algorithm: str = ""
    """Algorithm of the plugin that answers, if it has several."""


@dataclass(frozen=True, eq=False)
class IkResult(Immutable):
    """A verified answer. ``q`` holds nothing but configurations that passed every check in ``checks``.

    What is as near as possible to targets with weights is no solution: it is the attempt, and its status ``NEAREST``.
    """

    joint_names: tuple[str, ...]
    """Names of the n variables, the columns of q."""
    q: Annotated[Float64, "B K n"]
    """Distinct solutions, best first (rad or m); NaN rows where there is none. K is the problem's num_solutions."""
    status: Annotated[Int64, "B"]
    """A ``Status`` per request."""
    messages: tuple[str, ...]
    """Why a request failed, one sentence; empty where it succeeded. Of what is as near as possible: what is met."""
    position_error: Annotated[Float64, "B K"]
    """Distance from the worst target along axes that are not free, m; NaN where q is."""
    orientation_error: Annotated[Float64, "B K"]
    """Angle from the worst target about axes that are not free, rad; NaN where q is."""
    distance: Annotated[Float64, "B K"]
    """Number that solutions are sorted by: the cost of the problem's preference, such as the distance from its
    posture, else the distance from its state; see ``problems.preferences.base.sorting_cost``."""
    attempt: Annotated[Float64, "B n"]
    """What is as near as possible, where that was asked for; else the best attempt of a failed request. Inside the
    limits; NaN rows where the request succeeded."""
    attempt_position_error: Annotated[Float64, "B"]
    """Distance of the attempt from the target, m; NaN where attempt is."""
    attempt_orientation_error: Annotated[Float64, "B"]
    """Angle of the attempt from the target, rad; NaN where attempt is."""
    attempt_pose: Annotated[Float64, "B T 4 4"]
    """Poses of the targets' tools in the attempt, in the base link: near to the target, and reachable."""
    cut_short: Annotated[Bool, "B"]
    """Requests whose search the deadline ended: more, or preferred, solutions may exist."""
    iterations: Annotated[Int64, "B"]
    """Number of solver steps spent."""
    solver: str
    """Name of the plugin that solved it."""
    solve_time: float
    """Seconds in solver and verification."""
    checks: tuple[str, ...]
    """Names of the checks made in float64."""
    not_checked: tuple[str, ...]
    """What was not verified."""
    algorithm: str = ""
    """Algorithm of the plugin that answered, if it has several."""
    notes: tuple[str, ...] = ()
    """Sentences that a user of successes must know: what was given and changed, what was left out by guess."""
    scene_version: int | None = None
    """Version of the scene in which solutions are collision-free; None if collisions were not asked for."""

    def __post_init__(self) -> None:
        taken_over(self, "q", "status")

    @property
    def success(self) -> Annotated[Bool, "B"]:
        """Which requests have at least one verified solution."""
        return np.asarray(self.status == _SUCCESS)

    @property
    def nearest(self) -> Annotated[Bool, "B"]:
        """Which requests, of those that asked for it, have a configuration as near as possible: their attempt."""
        return np.asarray(self.status == _NEAREST)

    @property
    def failed(self) -> Annotated[Bool, "B"]:
        """Which requests did not get what they asked for."""
        return ~(self.success | self.nearest)

    @property
    def num_found(self) -> Annotated[Int64, "B"]:
        """Number of distinct verified solutions of each request."""
        return np.asarray(np.isfinite(self.position_error).sum(axis=1), dtype=np.int64)
