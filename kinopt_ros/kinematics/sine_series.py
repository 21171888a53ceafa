"""Quotients of sines and cosines that lose their digits at small angles, as series; for numpy and JAX."""

import math
from typing import Any

LARGEST_SQUARED_ANGLE = 1.0
"""Squared angle, rad^2, below which ``series`` is exact to rounding."""
_TERMS = 9


def series(squared: Any, n: int) -> Any:
    """Return E_n(t) = sum over k of (-t^2)^k / (2 k + n)!.

    E_1 is sin(t)/t, E_2 (1 - cos t)/t^2, E_3 (t - sin t)/t^3, E_4 (cos t - 1 + t^2/2)/t^4 and
    E_5 (sin t - t + t^3/6)/t^5; E_n = 1/n! - t^2 E_(n+2).

    Args:
        squared: t^2, an array of numpy or JAX, of numbers below ``LARGEST_SQUARED_ANGLE``.
        n: which.
    """
    total = 0.0 * squared
    for k in range(_TERMS - 1, -1, -1):
        total = 1.0 / math.factorial(2 * k + n) - squared * total
    return total
