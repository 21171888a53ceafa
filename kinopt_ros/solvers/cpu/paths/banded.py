"""Compiled Cholesky factorization of matrices of blocks near the diagonal.

``A[t, i, c]`` is the entry of row t n + i and column t n + c, for c >= i: every row of blocks begins at its diagonal.
``last[t]`` is the last block of row t that is not zero, and does not decrease with t; the factor has the same shape.
"""

import numpy as np
from numba import njit

_OUTER = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "nsz", "arcp", "reassoc"},
}


@njit(**_OUTER)
def factorize(A, last):
    """A = U^T U in place, U upper. Whether A was positive definite."""
    T, n = A.shape[0], A.shape[1]
    for t in range(T):
        width = (last[t] - t + 1) * n
        U = A[t]
        for i in range(n):
            for p in range(i):
                f = U[p, i]
                for c in range(i, width):
                    U[i, c] -= f * U[p, c]
            if not U[i, i] > 0.0:
                return False
            f = 1.0 / np.sqrt(U[i, i])
            for c in range(i, width):
                U[i, c] *= f
        for m in range(1, last[t] - t + 1):
            B, shift = A[t + m], m * n
            count = width - shift
            for i in range(n):
                row = B[i]
                k = shift + i
                p = 0
                while p + 4 <= n:
                    f0, f1, f2, f3 = U[p, k], U[p + 1, k], U[p + 2, k], U[p + 3, k]
                    u0, u1, u2, u3 = U[p, shift:], U[p + 1, shift:], U[p + 2, shift:], U[p + 3, shift:]
                    for c in range(i, count):
                        row[c] -= f0 * u0[c] + f1 * u1[c] + f2 * u2[c] + f3 * u3[c]
                    p += 4
                if p + 2 <= n:
                    f0, f1 = U[p, k], U[p + 1, k]
                    u0, u1 = U[p, shift:], U[p + 1, shift:]
                    for c in range(i, count):
                        row[c] -= f0 * u0[c] + f1 * u1[c]
                    p += 2
                if p < n:
                    f0 = U[p, k]
                    u0 = U[p, shift:]
                    for c in range(i, count):
                        row[c] -= f0 * u0[c]
    return True


@njit(**_OUTER)
def solve(U, last, b):
    """Solve U^T U x = b; b (T, n) becomes x."""
    T, n = U.shape[0], U.shape[1]
    flat = b.reshape(-1)
    for t in range(T):
        begin, width = t * n, (last[t] - t + 1) * n
        for i in range(n):
            row = U[t, i]
            flat[begin + i] /= row[i]
            f = flat[begin + i]
            for c in range(i + 1, width):
                flat[begin + c] -= f * row[c]
    for t in range(T - 1, -1, -1):
        begin, width = t * n, (last[t] - t + 1) * n
        for i in range(n - 1, -1, -1):
            row = U[t, i]
            total = flat[begin + i]
            for c in range(i + 1, width):
                total -= row[c] * flat[begin + c]
            flat[begin + i] = total / row[i]
