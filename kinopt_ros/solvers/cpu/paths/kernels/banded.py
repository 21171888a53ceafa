"""Compiled Cholesky factorization of matrices of blocks near the diagonal.

``A[t, i, c]`` is the entry of row t n + i and column t n + c, for c >= i: every row of blocks begins at its diagonal.
``last[t]`` is the last block of row t that is not zero, and does not decrease with t; the factor has the same shape.

Loops go on in whole chunks: rows have at least ``CHUNK`` entries more than their blocks, zeros, and what is before the
diagonal of a row is overwritten.
"""

import numpy as np

from kinopt_ros.compiler_options import OUTER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.paths.kernels.vectors import CHUNK, dot, subtract_rows, subtract_scaled


@njit(**OUTER)
def factorize(A, last):
    """Factorize A = U^T U in place, U upper, with the reciprocals of its diagonal; return whether A was positive
    definite."""
    T, n, W = A.shape
    address, stride = A.ctypes.data, 8 * W
    for t in range(T):
        width = (last[t] - t + 1) * n
        U = address + t * n * stride
        for i in range(n):
            begin = i - i % CHUNK
            row = U + i * stride
            for c in range(begin, width, CHUNK):
                subtract_rows(row + 8 * c, U + 8 * i, U + 8 * c, stride, i)
            if not A[t, i, i] > 0.0:
                return False
            f = 1.0 / np.sqrt(A[t, i, i])
            for c in range(i):
                A[t, i, c] = 0.0
            for c in range(i + 1, width):
                A[t, i, c] *= f
            A[t, i, i] = f
        for m in range(1, last[t] - t + 1):
            B, shift = U + m * n * stride, m * n
            count = width - shift
            for i in range(n):
                row, factors, rows = B + i * stride, U + 8 * (shift + i), U + 8 * shift
                for c in range(i - i % CHUNK, count, CHUNK):
                    subtract_rows(row + 8 * c, factors, rows + 8 * c, stride, n)
    return True


@njit(**OUTER)
def solve(U, last, x):
    """Solve U^T U x = b; ``x``, of T n + CHUNK entries, holds b and becomes the solution."""
    T, n, W = U.shape
    rows, place = U.ctypes.data, x.ctypes.data
    x[T * n :] = 0.0
    for t in range(T):
        begin = t * n
        chunks = ((last[t] - t + 1) * n + CHUNK - 1) // CHUNK
        for i in range(n):
            f = x[begin + i] * U[t, i, i]
            subtract_scaled(place + 8 * begin, rows + 8 * W * (begin + i), f, chunks)
            x[begin + i] = f
    for t in range(T - 1, -1, -1):
        begin = t * n
        chunks = ((last[t] - t + 1) * n + CHUNK - 1) // CHUNK
        for i in range(n - 1, -1, -1):
            value = x[begin + i]
            x[begin + i] = 0.0
            x[begin + i] = (value - dot(place + 8 * begin, rows + 8 * W * (begin + i), chunks)) * U[t, i, i]
