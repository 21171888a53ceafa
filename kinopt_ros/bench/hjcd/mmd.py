"""Maximum mean discrepancy of two samples.

MMD^2 = mean k(x, x') + mean k(y, y') - 2 mean k(x, y), k(a, b) = exp(-|a - b|^2 / (2 h^2)), all pairs, those of
a point with itself included (A. Gretton et al., "A kernel two-sample test", JMLR 13, 2012).
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64

_FOR_BANDWIDTH = 1000
_ROWS = 500
"""Number of rows computed at a time: all pairs at once would take gigabytes."""


class Sample:
    """Points, and how like they are to one another."""

    def __init__(self, points: Annotated[Float64, "N n"], h: float) -> None:
        self.points = points
        self.own = _mean(points, points, h)
        self.h = h

    def mmd(self, other: "Sample") -> float:
        """Discrepancy of two samples with the same bandwidth, in [0, sqrt(2)]."""
        squared = self.own + other.own - 2.0 * _mean(self.points, other.points, self.h)
        return float(np.sqrt(max(squared, 0.0)))


def bandwidth(points: Annotated[Float64, "N n"]) -> float:
    """Median distance of different points, of at most some hundred thousand pairs."""
    some = points[:: max(1, len(points) // _FOR_BANDWIDTH)]
    squared = _squared(some, some)[np.triu_indices(len(some), 1)]
    return float(np.sqrt(np.median(squared)))


def _mean(a: Float64, b: Float64, h: float) -> float:
    """Return the mean of the kernel over all pairs of points."""
    total = 0.0
    for first in range(0, len(a), _ROWS):
        total += float(np.exp(_squared(a[first : first + _ROWS], b) / (-2.0 * h * h)).sum())
    return total / (len(a) * len(b))


def _squared(a: Float64, b: Float64) -> Annotated[Float64, "N M"]:
    product = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1) - 2.0 * a @ b.T
    return np.asarray(np.maximum(product, 0.0))
