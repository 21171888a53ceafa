"""One step of Levenberg-Marquardt over all points of a path, compiled: a matrix of few blocks beside the diagonal."""

import numpy as np

from kinopt_ros.compiler_options import FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.paths.kernels.banded import factorize, solve

# Entries of ``numbers``.
WANTED, ACCEPTED, REST, VELOCITY, START, ENOUGH = range(6)
ROUNDS = 3
"""Times that one step is solved for, with more and more values at their limits."""


@njit(**FAST_INNER)
def _assemble(cost, last, mu, damping, D, E, bend, A):
    numbers, step, start_row, start_block = cost[0], cost[2], cost[7], cost[8]
    T, n = D.shape[0], D.shape[1]
    diagonal = damping + numbers[REST] / T
    for t in range(T):
        blocks = last[t] - t + 1
        for i in range(n):
            row = A[t, i]
            for c in range(i, blocks * n):
                row[c] = 0.0
            for j in range(i, n):
                row[j] = mu * D[t, i, j]
            row[i] += diagonal
            for k in range(min(blocks, step.shape[1])):
                row[k * n + i] += step[t, k]
            if blocks > 1:
                for j in range(n):
                    row[n + j] += mu * E[t, i, j]
        if numbers[VELOCITY] > 0.0:
            for k in range(min(blocks, bend.shape[1])):
                for i in range(n):
                    A[t, i, k * n + i] += bend[t, k, i]
    if numbers[START] > 0.0:
        width = start_row.shape[0]
        for k in range(width):
            for m in range(k, width):
                f = numbers[START] * start_row[k] * start_row[m]
                for i in range(n):
                    for j in range(i if m == k else 0, n):
                        A[k, i, (m - k) * n + j] += f * start_block[i, j]


@njit(**FAST_INNER)
def _hold(A, last, t, j, value, b):
    """Take a value out of the step, since its change is given. Changes the right-hand side ``b`` of the others."""
    n = A.shape[1]
    place = t * n
    for i in range(j):
        b[place + i] -= A[t, i, j] * value
        A[t, i, j] = 0.0
    for c in range(j + 1, (last[t] - t + 1) * n):
        b[place + c] -= A[t, j, c] * value
        A[t, j, c] = 0.0
    A[t, j, j] = 1.0
    for s in range(max(0, t - A.shape[2] // n + 1), t):
        if last[s] >= t:
            c = (t - s) * n + j
            for i in range(n):
                b[s * n + i] -= A[s, i, c] * value
                A[s, i, c] = 0.0


@njit(**FAST_INNER)
def damped_step(cost, last, given, low, high, x, mu, damping, g, gradient, D, E, bend, A, held, dx):
    """Solve for a step. ``held`` (T, n): values that are taken out of it and what they change by, NaN elsewhere.

    Values that the step would take beyond their limits are put on them, and the others solved for anew.
    """
    T, n = x.shape
    for t in range(T):
        for j in range(n):
            slope = gradient[t, j] + mu * g[t, j]
            held[t, j] = np.nan
            if given[t] or (x[t, j] <= low[t, j] and slope > 0.0) or (x[t, j] >= high[t, j] and slope < 0.0):
                held[t, j] = 0.0
    for _ in range(ROUNDS):
        _assemble(cost, last, mu, mu * damping, D, E, bend, A)
        for t in range(T):
            for j in range(n):
                dx[t * n + j] = -gradient[t, j] - mu * g[t, j]
        for t in range(T):
            for j in range(n):
                if not np.isnan(held[t, j]):
                    _hold(A, last, t, j, held[t, j], dx)
        for t in range(T):
            for j in range(n):
                if not np.isnan(held[t, j]):
                    dx[t * n + j] = held[t, j]
        if not factorize(A, last):
            return False
        solve(A, last, dx)
        beyond = False
        for t in range(T):
            for j in range(n):
                if np.isnan(held[t, j]):
                    y = x[t, j] + dx[t * n + j]
                    if y < low[t, j]:
                        held[t, j] = low[t, j] - x[t, j]
                        beyond = True
                    elif y > high[t, j]:
                        held[t, j] = high[t, j] - x[t, j]
                        beyond = True
        if not beyond:
            break
    return True
