"""Derivatives of a path by finite differences of fourth order, one-sided where the path ends.

In the middle these are the five-point stencils for the first and second derivative, and the seven-point one for the
third, of Kim et al., "PyRoki: A Modular Toolkit for Robot Kinematic Optimization", 2025, section IV:

    q'   = (q[-2] - 8 q[-1] + 8 q[+1] - q[+2]) / 12 h
    q''  = (-q[-2] + 16 q[-1] - 30 q[0] + 16 q[+1] - q[+2]) / 12 h^2
    q''' = (q[-3] - 8 q[-2] + 13 q[-1] - 13 q[+1] + 8 q[+2] - q[+3]) / 8 h^3

Nearer to an end than they reach, as many points as fourth order needs are taken on the other side (B. Fornberg,
"Generation of finite difference formulas on arbitrarily spaced grids", Math. Comp. 51, 1988).
"""

import math
from functools import lru_cache
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64

REACH = {1: 2, 2: 2, 3: 3}
"""Points to each side that a stencil needs, by order of the derivative."""
WIDTH = {1: 5, 2: 6, 3: 7}
"""Points of one-sided stencils."""


def stencil(order: int, offsets: tuple[int, ...]) -> Annotated[Float64, "w"]:
    """Compute weights of points at these offsets for a derivative at 0, times the spacing to the power of ``order``."""
    powers = np.arange(len(offsets))
    system = np.array(offsets, dtype=np.float64)[None] ** powers[:, None]
    wanted: Float64 = np.where(powers == order, float(math.factorial(order)), 0.0)
    return np.asarray(np.linalg.solve(system, wanted))


def window_of(order: int, num_points: int, t: int) -> tuple[int, tuple[float, ...]]:
    """Return where the stencil at point t begins, and its weights by the place on the path: that row of
    ``derivative_matrix`` without the zeros around it, of the same length for all t."""
    width = min(max(2 * REACH[order] + 1, WIDTH[order]), num_points)
    first = min(max(t - REACH[order], 0), num_points - width)
    return first, tuple(derivative_matrix(order, num_points)[t, first : first + width].tolist())


@lru_cache(maxsize=64)
def derivative_matrix(order: int, num_points: int) -> Annotated[Float64, "T T"]:
    """Return the matrix that turns T values on the path into derivatives by the place in [0, 1]. It is read-only.

    Paths with fewer points than a stencil has get the best one that their points allow; zeros if there are not more
    points than ``order``.
    """
    T, reach, width = num_points, REACH[order], min(WIDTH[order], num_points)
    matrix = np.zeros((T, T))
    if order < T:
        for t in range(T):
            if reach <= t < T - reach:
                first, count = t - reach, 2 * reach + 1
            else:
                first, count = min(max(t - reach, 0), T - width), width
            matrix[t, first : first + count] = stencil(order, tuple(range(first - t, first - t + count)))
        matrix *= float(T - 1) ** order
    matrix.setflags(write=False)
    return matrix
