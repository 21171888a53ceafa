"""IK problem: B independent requests of the same structure, as a solver gets them."""

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, TypeAlias

import numpy as np

from kinopt_ros.array import Float64, Immutable, taken_over, with_arrays
from kinopt_ros.errors import InvalidGoalError
from kinopt_ros.kinematics.pose_errors import Free
from kinopt_ros.pauses import OutOfTime
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.preferences.base import Preference
from kinopt_ros.problems.preferences.posture import Posture
from kinopt_ros.scene.scene import Scene

POSITION_TOLERANCE = 1e-4
"""Default position tolerance, m."""
ORIENTATION_TOLERANCE = 1e-3
"""Default orientation tolerance, rad (geodesic angle)."""
MIN_SEPARATION = 0.05
"""Default least difference of two distinct solutions, rad or m."""
GRACE = 0.05
"""Time after the deadline for the last look at what was found in time, s."""

Tolerance: TypeAlias = float | tuple[float, float, float]
"""Tolerance: one number bounds the length of the error; three bound it along or about x, y, z of the target's frame,
and ``math.inf`` frees an axis (see kinematics.pose_errors)."""


def axes_left_free(tolerance: Tolerance) -> Free:
    """Return which axes of the target's frame a tolerance leaves free."""
    x, y, z = tolerance if isinstance(tolerance, tuple) else (tolerance,) * 3
    return math.isinf(x), math.isinf(y), math.isinf(z)


def _either(one: Free, other: Free) -> Free:
    return one[0] or other[0], one[1] or other[1], one[2] or other[2]


@dataclass(frozen=True, eq=False)
class PoseTarget(Immutable):
    """Poses that one link, or a tool fixed to it, shall reach, or be as near to as possible, one per request."""

    link: str
    T_base_target: Annotated[Float64, "B 4 4"]
    """Target pose of the link's tool in the problem's base link. The array is taken over: it becomes read-only."""
    position_tolerance: Tolerance = POSITION_TOLERANCE
    """Largest accepted distance, or three of them, m."""
    orientation_tolerance: Tolerance = ORIENTATION_TOLERANCE
    """Largest accepted geodesic angle, or three angles, rad."""
    T_link_tool: Annotated[Float64, "4 4"] | None = None
    """Pose of the tool in the link; None: the link itself."""
    weights: PoseWeights | None = None
    """Weights, if the pose shall be come as near to as possible: the tolerances then only say what is called met. An
    axis is free whose weight is 0 or whose tolerance is infinite. None: it shall be reached."""

    def __post_init__(self) -> None:
        with_arrays(self, InvalidGoalError, "T_base_target", "T_link_tool")
        position, orientation = self.position_tolerance, self.orientation_tolerance
        if (
            type(position) is float
            and type(orientation) is float
            and 0.0 < position < math.inf
            and 0.0 < orientation < math.inf
            and self.weights is None
        ):  # most targets; functools would take a microsecond to keep it
            self.__dict__["plain"] = position, orientation

    @cached_property
    def free_position(self) -> Free:
        """Which axes of the target's frame the position may differ along."""
        free = axes_left_free(self.position_tolerance)
        return free if self.weights is None else _either(free, self.weights.free_position)

    @cached_property
    def free_orientation(self) -> Free:
        """Which axes of the target's frame the orientation may differ about."""
        free = axes_left_free(self.orientation_tolerance)
        return free if self.weights is None else _either(free, self.weights.free_orientation)

    @cached_property
    def plain(self) -> tuple[float, float] | None:
        """Both tolerances (m, rad) if they are single finite numbers; None if there are several, or free axes."""
        position, orientation = self.position_tolerance, self.orientation_tolerance
        if isinstance(position, tuple) or isinstance(orientation, tuple):
            return None
        if self.weights is not None and 0.0 in self.weights.all:
            return None
        return None if math.isinf(position) or math.isinf(orientation) else (position, orientation)


@dataclass(frozen=True, eq=False)
class IkProblem(Immutable):
    """B independent requests: bring one or more links to poses by moving some joints.

    Build it with ``ik_problem``, which fills in what follows from the robot and checks everything.
    """

    targets: tuple[PoseTarget, ...]
    """Targets, all of which shall be met at the same time; or all come as near to as possible, which is said by their
    weights: the sum of the squares of all weighted errors is made small."""
    base_link: str
    """Link in whose frame the targets are given. It may itself move."""
    joints: tuple[str, ...]
    """Names of the joints to solve for, or of single variables of planar and floating ones (``base/theta``); everything
    else is held at ``state``."""
    variables: Annotated[np.ndarray, "n"]
    """Indices in the robot's q of the variables of ``joints``, in that order: the columns of an answer."""
    state: Annotated[Float64, "B nq"]
    """Per request a configuration of the whole robot: values of the held joints, and the first seed."""
    seeds: Annotated[Float64, "B S n"]
    """More start values, tried after ``state`` and before the solver's own; S may be 0."""
    num_solutions: int = 1
    """K, how many distinct solutions are wanted per request; fewer are an answer, too."""
    min_separation: float = MIN_SEPARATION
    """Solutions are distinct if one joint differs by more than this, rad or m."""
    turns: bool = False
    """Whether configurations that differ by whole turns of a joint are distinct solutions."""
    preference: Preference | None = None
    """What solutions are preferred, and sorted, by (see problems.preferences); None: any, sorted by their distance from
    ``state``."""
    scene: Scene | None = None
    """Scene that solutions shall be free of collisions with, besides the robot itself; None: collisions are not
    checked."""
    clearance: float = 0.0
    """Least distance, m, of bodies that must not touch, besides the scene's padding; counts with a scene only."""
    deadline: float | None = None
    """Value of time.monotonic() after which no new attempt is started; None: the solver's own effort."""
    random_seed: int = 0
    """Seed of random numbers; equal problems with equal seeds get equal answers from a solver."""
    notes: tuple[str, ...] = ()
    """What was given and changed, a sentence each; answers repeat it."""

    def __post_init__(self) -> None:
        taken_over(self, "variables", "state", "seeds")

    @property
    def batch_size(self) -> int:
        """B, the number of independent requests."""
        return len(self.targets[0].T_base_target)

    @property
    def is_plain(self) -> bool:
        """Whether any solution will do that brings one link to a pose, within a tolerance of position and one of
        orientation."""
        targets = self.targets
        return (
            len(targets) == 1
            and self.num_solutions == 1
            and self.preference is None
            and not self.turns
            and targets[0].weights is None
            and targets[0].plain is not None
        )

    @property
    def nearest(self) -> bool:
        """Whether a configuration is wanted that is as near to the targets as possible, not one that reaches them."""
        return self.targets[0].weights is not None

    @property
    def posture(self) -> Posture | None:
        """Posture that preferred solutions are near to; None if there is none."""
        return None if self.preference is None else self.preference.posture

    def pause(self) -> None:
        """Raise ``OutOfTime`` if the deadline has passed. Long work calls this now and then."""
        if self.late:
            raise OutOfTime("the deadline came")

    def hurry(self) -> None:
        """Raise ``OutOfTime`` if the deadline passed more than ``GRACE`` ago. Work that is worth this time calls it."""
        if self.deadline is not None and time.monotonic() >= self.deadline + GRACE:
            raise OutOfTime("the deadline came")

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline
