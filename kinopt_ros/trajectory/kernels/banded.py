"""Factorization of symmetric banded matrices, compiled."""

import numpy as np

from kinopt_ros.compiler_options import OUTER
from kinopt_ros.numba_cache import njit


@njit(**OUTER)
def factorize(band):
    """Compute the Cholesky factor of a symmetric matrix with three diagonals below the main one.

    band[i, k] is entry (i, i - k).
    """
    for i in range(band.shape[0]):
        for k in range(min(3, i), -1, -1):
            value = band[i, k]
            for m in range(k + 1, min(3, i) + 1):
                if m - k <= 3 and i - m >= 0 and m - k <= i - k:
                    value -= band[i, m] * band[i - k, m - k]
            band[i, k] = value / band[i - k, 0] if k > 0 else np.sqrt(max(value, 1e-300))


@njit(**OUTER)
def solve_factorized(band, x):
    for i in range(band.shape[0]):
        for k in range(1, min(3, i) + 1):
            x[i] -= band[i, k] * x[i - k]
        x[i] /= band[i, 0]
    for i in range(band.shape[0] - 1, -1, -1):
        x[i] /= band[i, 0]
        for k in range(1, min(3, i) + 1):
            x[i - k] -= band[i, k] * x[i]
