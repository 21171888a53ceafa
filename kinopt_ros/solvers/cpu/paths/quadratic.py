"""Quadratic part of a path's cost: length, acceleration and jerk, which are the same for all variables."""

from functools import lru_cache
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.costs.stencils import REACH, derivative_matrix

BAND = 6
"""Most blocks between two points that one stencil touches."""
INNER = 3
"""Most blocks between two points that one stencil of a step's matrix touches, away from the ends."""


@lru_cache(maxsize=64)
def quadratic_cost(
    num_points: int, smoothness: float, acceleration: float, jerk: float
) -> tuple[Annotated[Float64, "T 7"], Annotated[Float64, "T 7"], Annotated[Int64, "T"]]:
    """Upper bands K[t, k], of points t and t + k, so that sum(x[t] K x[t']) is the cost; those for steps; and how many
    points the last entry of each row of these is away.

    The second matrix takes the place of the first in steps: it is a little larger and, away from the ends, narrower,
    which halves the work. With s = 2 - 2 cos w, w the wave number, the central stencil of the second derivative squared
    is s^2 (1 + s / 12)^2 <= s^2 + 0.1945 s^3 for 0 <= s <= 4, that of the third s^3 (1 - s / 4) (1 + s / 4)^2
    <= 32 / 27 s^3; s^2 and s^3 are those of plain differences of three and four points.
    """
    T = num_points
    exact, step = np.zeros((T, T)), np.zeros((T, T))
    h = 1.0 / max(T - 1, 1)
    first = _differences(1, T) / h
    exact += smoothness * first.T @ first / max(T - 1, 1)
    step += exact
    for order, weight in ((2, acceleration), (3, jerk)):
        if weight == 0.0:
            continue
        rows = derivative_matrix(order, T)
        exact += weight * rows.T @ rows / T
        ends = np.ones(T, dtype=np.bool_)
        ends[REACH[order] : T - REACH[order]] = False
        step += weight * rows[ends].T @ rows[ends] / T
        if 2 * REACH[order] >= T:
            continue
        plain, third = _differences(order, T), _differences(3, T)
        scale = weight / T / h ** (2 * order)
        if order == 2:
            step += scale * (plain.T @ plain + 0.1945 * third.T @ third)
        else:
            step += scale * 32.0 / 27.0 * plain.T @ plain
    bands = _bands(step)
    return _bands(exact), bands, np.array([max(np.flatnonzero(row), default=0) for row in bands])


def _differences(order: int, T: int) -> Float64:
    return np.diff(np.eye(T), n=order, axis=0) if order < T else np.zeros((0, T))


def _bands(matrix: Float64) -> Float64:
    T = len(matrix)
    bands = np.zeros((T, BAND + 1))
    for k in range(min(BAND + 1, T)):
        bands[: T - k, k] = np.diagonal(matrix, k)
    return bands
