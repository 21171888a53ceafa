"""Collision cost of signed distances: zero at a margin, quadratic up to contact, linear in depth.

C. M. Kim et al., "PyRoki: A Modular Toolkit for Robot Kinematic Optimization", 2025, III-C, which leaves d = 0 open.
"""

import math
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError


def activation(
    distance: Annotated[Float64, "..."] | float, margin: float
) -> tuple[Annotated[Float64, "..."], Annotated[Float64, "..."]]:
    """Compute the cost of signed distances and its derivative by distance.

    With margin η the cost of d is -d + η/2 for d < 0, (η - d)²/(2η) for 0 <= d < η, and 0 beyond: once continuously
    differentiable, with slopes -1 and 0 at the ends. A margin of 0 leaves max(0, -d).

    Args:
        distance: m, of any shape; negative in penetration.
        margin: m, 0 or more.

    Raises:
        InvalidRequestError: the margin is negative or not finite, or a distance is not a number.
    """
    if not math.isfinite(margin) or margin < 0.0:
        raise InvalidRequestError(f"the margin of the activation is {margin}; allowed is 0 or more")
    d = np.asarray(distance, dtype=np.float64)
    if np.isnan(d).any():
        raise InvalidRequestError("a distance is nan; allowed are numbers, infinite ones too")
    # Up to contact the gap is d, beyond it grows no more.
    gap = np.clip(d, 0.0, margin)
    slope = (gap - margin) / margin if margin > 0.0 else np.zeros_like(d)
    slope = np.where(d < 0.0, -1.0, slope)
    near = (margin - gap) * -slope / 2.0
    return np.maximum(-d, 0.0) + near, slope
