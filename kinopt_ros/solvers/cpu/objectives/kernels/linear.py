"""Small dense linear algebra, compiled."""

import numpy as np

from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER
from kinopt_ros.numba_cache import njit


@njit(**FAST_INNER)
def add_gram(J, scale, A):
    """Add J^T diag(scale) J to the lower triangle of A (d, d)."""
    for i in range(J.shape[0]):
        if scale[i] == 0.0:
            continue
        for a in range(J.shape[1]):
            x = scale[i] * J[i, a]
            if x != 0.0:
                for b in range(a + 1):
                    A[a, b] += x * J[i, b]


@njit(**FAST_INNER)
def pulled(J, force, out):
    """Write J^T force to ``out`` (d,)."""
    for a in range(out.shape[0]):
        out[a] = 0.0
    for i in range(J.shape[0]):
        x = force[i]
        if x != 0.0:
            for a in range(out.shape[0]):
                out[a] += x * J[i, a]


@njit(**FAST_INLINE)
def row_times(J, i, step):
    """Return row i of J times a step."""
    total = 0.0
    for a in range(step.shape[0]):
        total += J[i, a] * step[a]
    return total


@njit(**FAST_INNER)
def factorize(A):
    """Replace the lower triangle of a matrix by its Cholesky factor; return whether it is positive definite."""
    for i in range(A.shape[0]):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= A[i, k] * A[j, k]
            if j < i:
                A[i, j] = s * A[j, j]
            elif s > 0.0:
                A[i, i] = 1.0 / np.sqrt(s)  # the inverse of the factor's diagonal: products, not quotients
            else:
                return False
    return True


@njit(**FAST_INNER)
def solve_downhill(factor, held, gradient, step):
    """Write the step against a gradient, 0 along what is held; ``factor`` is of ``factorize``."""
    n = step.shape[0]
    for i in range(n):
        s = 0.0 if held[i] else -gradient[i]
        for k in range(i):
            s -= factor[i, k] * step[k]
        step[i] = s * factor[i, i]
    for i in range(n - 1, -1, -1):
        s = step[i]
        for k in range(i + 1, n):
            s -= factor[k, i] * step[k]
        step[i] = s * factor[i, i]


@njit(**FAST_INNER)
def learn(H, step, change, Hs):
    """Update H (d, d) by a step and how the gradient changed along it: damped BFGS, so that it stays positive definite
    (J. Nocedal, S. Wright, "Numerical Optimization", 2006, procedure 18.2)."""
    n = step.shape[0]
    sHs = sv = 0.0
    for i in range(n):
        total = 0.0
        for k in range(n):
            total += H[i, k] * step[k]
        Hs[i] = total
        sHs += step[i] * total
        sv += step[i] * change[i]
    theta = 1.0
    if sv < 0.2 * sHs:
        theta = 0.8 * sHs / (sHs - sv)
    product = 0.0
    for i in range(n):
        change[i] = theta * change[i] + (1.0 - theta) * Hs[i]
        product += step[i] * change[i]
    if not (sHs > 1e-300 and product > 1e-300 and product < np.inf):
        return
    a, b = 1.0 / product, 1.0 / sHs
    for i in range(n):
        for k in range(i + 1):
            H[i, k] += a * change[i] * change[k] - b * Hs[i] * Hs[k]
            H[k, i] = H[i, k]
