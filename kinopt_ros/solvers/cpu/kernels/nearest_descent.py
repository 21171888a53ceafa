"""Downhill to a configuration as near as possible to targets, inside the limits, compiled.

Newton's method with damping (K. Levenberg 1944; D. Marquardt 1963), with exact second derivatives
(``nearest_cost.py``), inside the limits by projection (D. Bertsekas, "Projected Newton methods for optimization
problems with simple constraints", SIAM J. Control 20, 1982): variables at a limit that the cost pushes outwards stay
there; those that a step would carry beyond a limit go to it, and the others are solved for again.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.compiler_options import FAST_ALLOCATING, FAST_INLINE
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.kernels.nearest_cost import Tips, differentiate, place_tips
from kinopt_ros.solvers.kernels.layout import LOWER, STEP_LIMIT, UPPER
from kinopt_ros.solvers.kernels.memory import _copy

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-2, 1e-12, 1e6
"""Damping, for a largest weight of 1."""
LEAST_REFUSED = 1e-5
"""Least damping after a step that was not downhill."""
EASE = 0.1
"""Least factor of the damping after a step that was."""
LEAST_INDEFINITE = 1e-3
"""Least damping where the matrix is not positive definite."""
ROUNDING = 1e-14
"""Share of a diagonal entry below which a pivot counts as not positive."""
REACHED = 1e-22
"""Cost, for a largest weight of 1, that counts as none."""
DAMPED = 0.1
"""Share of a step's curvature up to which the damping has no say in the step."""
LAST_GAIN = 1e-8
"""Relative decrease to be expected of a step that is the last: the next would gain the square of that."""
NO_GAIN = 1e-15
"""Relative decrease to be expected of a step that is not worth making."""
LIMIT_ROUNDS = 4
"""Most times that variables which reach a limit are taken out of a step, and the rest solved again."""
HOPE = 5.0
"""An attempt is given up that would have to gain so many times what is to be expected to become the best."""
SAME = 0.05
"""Largest difference of variables, rad or m, of an attempt that leads to where the best one has led."""


class Room(NamedTuple):
    """Memory of a descent."""

    tips: Tips
    gradient: Annotated[Float64, "n"]
    hessian: Annotated[Float64, "n n"]
    factor: Annotated[Float64, "n n"]
    inverse: Annotated[Float64, "n"]
    """Inverse of the diagonal of the factor."""
    change: Annotated[Float64, "n"]
    trial: Annotated[Float64, "n"]
    held: Annotated[Int64, "n"]
    """Variables that are not solved for: 1."""


@njit(**FAST_ALLOCATING)
def new_room(T, M, n):
    """Return memory for T targets, M motions and n variables."""
    tips = Tips(
        np.empty((M, 6)), np.empty((T, 3)), np.empty((T, 4)), np.empty((T, 3)), np.empty((T, 3)), np.empty((M, 6)),
        np.empty((3, 3)),
    )  # fmt: skip
    return Room(
        tips, np.empty(n), np.empty((n, n)), np.empty((n, n)), np.empty(n), np.empty(n), np.empty(n),
        np.empty(n, dtype=np.int64),
    )  # fmt: skip


@njit(**FAST_INLINE)
def _factorize(a, inverse, size):
    """Replace the lower triangle of a matrix by its Cholesky factor; return whether it is positive definite.

    The diagonal of the factor is written as its ``inverse``.
    """
    for i in range(size):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] * a[j, k]
            if j < i:
                a[i, j] = s * inverse[j]
            elif s > ROUNDING * abs(a[i, i]):
                inverse[i] = 1.0 / np.sqrt(s)
            else:
                return False
    return True


@njit(**FAST_INLINE)
def _solve(room, damping):
    """Solve for the change of variables that are not held, with the others' as it is.

    Returns whether the damped matrix is positive definite.
    """
    gradient, hessian, factor, change, held = room.gradient, room.hessian, room.factor, room.change, room.held
    inverse = room.inverse
    n = gradient.shape[0]
    size = 0
    for i in range(n):
        if held[i] != 0:
            continue
        column = 0
        for j in range(i + 1):
            if held[j] == 0:
                factor[size, column] = hessian[i, j]
                column += 1
        factor[size, size] += damping
        size += 1
    if not _factorize(factor, inverse, size):
        return False
    row = 0
    for i in range(n):
        if held[i] != 0:
            continue
        s = -gradient[i]
        column = 0
        for j in range(n):
            if held[j] != 0:
                s -= hessian[i, j] * change[j]
            elif j < i:
                s -= factor[row, column] * change[j]
                column += 1
        change[i] = s * inverse[row]
        row += 1
    for i in range(n - 1, -1, -1):
        if held[i] != 0:
            continue
        row -= 1
        s = change[i]
        column = size - 1
        for j in range(n - 1, i, -1):
            if held[j] == 0:
                s -= factor[column, row] * change[j]
                column -= 1
        change[i] = s * inverse[row]
    return True


@njit(**FAST_INLINE)
def _step(variables, q, room, damping):
    """Write the change of a step that stays inside the limits; return whether the matrix is positive definite."""
    gradient, change, held = room.gradient, room.change, room.held
    n = q.shape[0]
    for j in range(n):
        change[j] = 0.0
        outwards = (q[j] <= variables[LOWER, j] and gradient[j] >= 0.0) or (
            q[j] >= variables[UPPER, j] and gradient[j] <= 0.0
        )
        held[j] = 1 if outwards else 0
    for _ in range(LIMIT_ROUNDS):
        if not _solve(room, damping):
            return False
        inside = True
        for j in range(n):
            if held[j] != 0:
                continue
            if q[j] + change[j] < variables[LOWER, j]:
                change[j] = variables[LOWER, j] - q[j]
            elif q[j] + change[j] > variables[UPPER, j]:
                change[j] = variables[UPPER, j] - q[j]
            else:
                continue
            held[j] = 1
            inside = False
        if inside:
            break
    return True


@njit(**FAST_INLINE)
def _try(variables, q, room, damping):
    """Write where the step leads, shortened so that no variable changes too much.

    Returns the decrease of the cost that is to be expected, that by the slope alone, whether the step was shortened,
    and whether it was damped. Where some weights are much smaller than others, their errors decrease by undamped ones
    only.
    """
    gradient, hessian, change, trial = room.gradient, room.hessian, room.change, room.trial
    n = q.shape[0]
    share = 1.0
    for j in range(n):
        if abs(change[j]) > variables[STEP_LIMIT, j]:
            share = min(share, variables[STEP_LIMIT, j] / abs(change[j]))
    for j in range(n):
        trial[j] = min(max(q[j] + share * change[j], variables[LOWER, j]), variables[UPPER, j])
        change[j] = trial[j] - q[j]
    slope = bend = length = 0.0
    for i in range(n):
        s = 0.0
        for j in range(n):
            s += hessian[i, j] * change[j]
        bend += change[i] * s
        slope -= gradient[i] * change[i]
        length += change[i] * change[i]
    return slope - 0.5 * bend, slope, share < 1.0, damping * length > DAMPED * bend


@njit(**FAST_INLINE)
def descend(tree, wanted, variables, room, q, most, best, known):
    """Go downhill from q, in place, until nothing is gained; return the cost and the number of steps.

    Args:
        tree: see ``nearest_cost.Tree``.
        wanted: see ``nearest_cost.Wanted``; the largest weight is 1.
        variables: limits and the like, see ``layout.py``.
        room: see ``Room``.
        q: configuration inside the limits.
        most: most steps.
        best: cost of the best attempt, which this one is given up for if it cannot become better; -1: there is none.
        known: that attempt.
    """
    damping, growth = FIRST_DAMPING, 2.0
    cost = place_tips(tree, wanted, q, room.tips)
    differentiate(tree, wanted, room.tips, room.gradient, room.hessian)
    steps = 0
    while steps < most and cost > REACHED:
        steps += 1
        if not _step(variables, q, room, damping):
            damping = max(4.0 * damping, LEAST_INDEFINITE)
            continue
        gain, slope, shortened, damped = _try(variables, q, room, damping)
        if not slope > NO_GAIN * cost:
            if not damped or damping <= LEAST_DAMPING:
                break
            damping = max(0.01 * damping, LEAST_DAMPING)
            continue
        if 0.0 <= best < cost:
            if damping < FIRST_DAMPING and not shortened and cost - HOPE * gain > best:
                break
            apart = 0.0
            for j in range(q.shape[0]):
                apart = max(apart, abs(q[j] - known[j]))
            if apart < SAME:
                break
        new = place_tips(tree, wanted, room.trial, room.tips)
        if new < cost:
            ratio = (cost - new) / gain if gain > 0.0 else 1.0
            last = not shortened and not damped and slope < LAST_GAIN * cost
            cost = new
            _copy(room.trial, q)
            if last or steps == most:
                break
            differentiate(tree, wanted, room.tips, room.gradient, room.hessian)
            damping = max(damping * max(EASE, 1.0 - (2.0 * ratio - 1.0) ** 3), LEAST_DAMPING)
            growth = 2.0
        else:
            damping = max(growth * damping, LEAST_REFUSED)
            growth *= 2.0
            if damping > MOST_DAMPING:
                break
    return cost, steps
