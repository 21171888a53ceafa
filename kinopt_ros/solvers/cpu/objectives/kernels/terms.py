"""What is minimised, and what has to hold, of residuals r with weights w, compiled."""

from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.objectives.kernels.linear import add_gram


@njit(**FAST_INLINE)
def square(costs, weights, r, i):
    """Return the squared weight with which row i is minimized; 0 where it has to hold, or is content."""
    if costs.holds[i] or (costs.one_sided[i] and r[i] <= 0.0):
        return 0.0
    return weights[i] * weights[i]


@njit(**FAST_INLINE)
def shifted(costs, weights, value, i):
    """Return what of a constraint's c + y counts; 0 where row i need not hold."""
    if not costs.holds[i] or weights[i] == 0.0:
        return 0.0
    if costs.one_sided[i]:
        return max(value, 0.0)
    return value


@njit(**FAST_INNER)
def value_of(costs, weights, r):
    """Return half the sum of weighted squares of what need not hold."""
    total = 0.0
    for i in range(r.shape[0]):
        total += square(costs, weights, r, i) * r[i] * r[i]
    return 0.5 * total


@njit(**FAST_INNER)
def violation_of(costs, weights, r):
    """Return the largest violation of what has to hold."""
    worst = 0.0
    for i in range(r.shape[0]):
        here = abs(shifted(costs, weights, r[i], i))
        if not here <= worst:  # so that NaN is the worst
            worst = here
    return worst


@njit(**FAST_INNER)
def price(costs, weights, r, y):
    """Return the product of constraints and multipliers by rho: by how much f, divided by rho, were higher where all of
    them held exactly."""
    total = 0.0
    for i in range(r.shape[0]):
        if costs.holds[i] and weights[i] != 0.0:
            total += y[i] * r[i]
    return total


@njit(**FAST_INNER)
def merit(costs, weights, r, y, rho):
    """Return what a step has to lower: f + rho |c + y|^2 / 2."""
    total = 0.0
    for i in range(r.shape[0]):
        pull = shifted(costs, weights, r[i] + y[i], i)
        total += pull * pull
    return value_of(costs, weights, r) + 0.5 * rho * total


@njit(**FAST_INNER)
def gauss_newton(costs, weights, point, scale, H):
    """Write Gauss's and Newton's approximation of the curvature of f, with a little on the diagonal."""
    d = H.shape[0]
    for a in range(d):
        for b in range(d):
            H[a, b] = 0.0
        H[a, a] = 1e-9
    for i in range(scale.shape[0]):
        scale[i] = square(costs, weights, point.r, i)
    add_gram(point.J, scale, H)
    for a in range(d):
        for b in range(a):
            H[b, a] = H[a, b]
