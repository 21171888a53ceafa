"""How exact a path along straight lines is to be."""

import math
from dataclasses import dataclass

from kinopt_ros.errors import InvalidRequestError

ACCURACY = 1e-6
"""Accuracy of the points of a path, m and rad. What is not smooth cannot be followed quickly."""
ANGLE_TOLERANCE = 0.01
"""Largest error of the orientation between points, rad."""
MOST_POINTS = 5000
"""Largest number of points of a path."""


@dataclass(frozen=True)
class CartesianSteps:
    """Accuracy and jump limits of a path."""

    max_step: float = 0.01
    """Largest distance between points, m."""
    max_angle: float = 0.05
    """Largest rotation between points, rad."""
    tolerance: float = 1e-3
    """Largest distance of the link from the line anywhere, m."""
    max_revolute_jump: float = 0.5
    """Largest movement of a revolute joint between two points, rad."""
    max_prismatic_jump: float = 0.1
    """Largest movement of a prismatic joint between two points, m."""
    jump_factor: float | None = None
    """Largest distance of neighbouring points in joint space relative to the mean distance; None for no such bound."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0.0 < value < math.inf:
                raise InvalidRequestError(f"{name} is {value}; allowed is a finite number above 0")
        if self.jump_factor is not None and self.jump_factor <= 1.0:
            raise InvalidRequestError(f"jump_factor is {self.jump_factor}; allowed is a number above 1")
