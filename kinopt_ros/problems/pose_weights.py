"""Weights of a pose that is to be come as near to as possible, in place of tolerances."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, shown
from kinopt_ros.kinematics.pose_errors import Free

Weight: TypeAlias = float | tuple[float, float, float]
"""Weight: one number, or three along or about x, y, z of the target's frame; 0 frees an axis."""
LEAST, MOST = 1e-6, 1e6
"""Least and largest weight, besides 0."""
LARGEST_RATIO = 1e4
"""Largest ratio of two weights of a problem, besides 0: squared, a smaller one would be lost in rounding."""


@dataclass(frozen=True)
class PoseWeights:
    """How much errors of a pose count: the sum of (weight x error)^2 over its axes is made small.

    Errors are m along and rad about the axes of the target's frame (``kinematics.pose_errors``). The default brings the
    position near before the orientation: 0.1 rad counts as much as 1 cm.
    """

    position: Weight = 1.0
    """Weight of position errors, 1/m: a number, or three."""
    orientation: Weight = 0.1
    """Weight of orientation errors, 1/rad: a number, or three."""

    def __post_init__(self) -> None:
        """Take lists and arrays of three numbers, too.

        Raises:
            InvalidGoalError: a weight is something else, or not allowed; or all are 0.
        """
        for what in ("position", "orientation"):
            object.__setattr__(self, what, _weight(getattr(self, what), what))
        if not any(self.all):
            raise InvalidGoalError("weights are all 0: nothing is asked")

    @cached_property
    def all(self) -> tuple[float, float, float, float, float, float]:
        """Weights of x, y, z, rx, ry, rz."""
        return (*_three(self.position), *_three(self.orientation))

    @property
    def free_position(self) -> Free:
        """Which axes of the target's frame the position may differ along."""
        x, y, z, *_ = self.all
        return x == 0.0, y == 0.0, z == 0.0

    @property
    def free_orientation(self) -> Free:
        """Which axes of the target's frame the orientation may differ about."""
        *_, x, y, z = self.all
        return x == 0.0, y == 0.0, z == 0.0


def _three(weight: Weight) -> tuple[float, float, float]:
    return weight if isinstance(weight, tuple) else (weight, weight, weight)


def _weight(given: Any, what: str) -> Weight:
    """Return a weight as Python's numbers."""
    try:
        numbers: Float64 = np.array(given, dtype=np.float64) if _is_real(given) else np.empty(0)
    except (TypeError, ValueError, OverflowError):
        numbers = np.empty(0)
    if numbers.shape not in ((), (3,)) or not all(map(_is_allowed, numbers.reshape(-1).tolist())):
        raise InvalidGoalError(
            f"the weight of {what} is {shown(given)}; allowed is a number, 0 or {LEAST:g} to {MOST:g}, or three of "
            "them for the axes of the target's frame"
        )
    if numbers.ndim == 0:
        return float(numbers)
    x, y, z = numbers.tolist()
    return x, y, z


def _is_real(given: Any) -> bool:
    return np.array(given).dtype.kind in "fiu"


def _is_allowed(weight: float) -> bool:
    return math.isfinite(weight) and (weight == 0.0 or LEAST <= weight <= MOST)
