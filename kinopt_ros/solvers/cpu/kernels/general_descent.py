"""Damped least squares for several targets at once, and towards a posture along the self-motion, compiled.

A step minimises the distance from a wish d inside the linearised targets,

    change = d + W^-1 J^T (J W^-1 J^T + damping)^-1 (error - J d),

where d is 0 and W the identity for a plain search, and d leads to the preferred posture and W is its weight when a
solution is brought nearer to it along the self-motion (Gauss-Newton for equality constraints: J. Nocedal, S. Wright,
"Numerical Optimization", 2nd ed. 2006, 18.1). Damping as in ``descent.py``.
"""

import numpy as np

from kinopt_ros.compiler_options import FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.kernels.pose_rows import residuals
from kinopt_ros.solvers.kernels.layout import LOWER, STEP_LIMIT, UPPER
from kinopt_ros.solvers.kernels.tuning import DAMPING, FAR, MIN_DAMPING, STALL_RATIO

LIMIT_ROUNDS = 3
"""Most times that variables pushed out of their limits are taken out of a step, and the rest solved again."""
POSTURE_REACH = 0.4
"""Largest wish of a posture step, rad or m: the targets are linear only so far."""
POSTURE_DONE = 2e-4
"""Largest change of a variable, rad or m, at which a posture step is the last."""
LEAST_WEIGHT = 1e-3
"""Share of the heaviest weight that variables without weight count."""


@njit(**FAST_INNER)
def _cholesky_solve(a, x):
    """Replace x by a^-1 x for a symmetric positive definite a, of which the lower triangle is used and overwritten."""
    size = x.shape[0]
    for i in range(size):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] * a[j, k]
            if i == j:
                a[i, i] = np.sqrt(max(s, 1e-300))
            else:
                a[i, j] = s / a[j, j]
    for i in range(size):
        s = x[i]
        for k in range(i):
            s -= a[i, k] * x[k]
        x[i] = s / a[i, i]
    for i in range(size - 1, -1, -1):
        s = x[i]
        for k in range(i + 1, size):
            s -= a[k, i] * x[k]
        x[i] = s / a[i, i]


@njit(**FAST_INNER)
def _move(variables, rows, jacobian, wish, ease, normal, y, frozen, change, q, squared):
    """Make one step inside the limits (see the module); return the largest change of a variable."""
    n, size = jacobian.shape
    damping = DAMPING * min(squared, FAR) + MIN_DAMPING
    for j in range(n):
        frozen[j] = 0.0
    for _ in range(LIMIT_ROUNDS):
        for r in range(size):
            y[r] = rows[r]
            for c in range(r + 1):
                normal[r, c] = 0.0
            normal[r, r] = damping
        for j in range(n):
            if frozen[j] == 0.0:
                for r in range(size):
                    value = jacobian[j, r]
                    if value != 0.0:
                        y[r] -= value * wish[j]
                        value *= ease[j]
                        for c in range(r + 1):
                            normal[r, c] += value * jacobian[j, c]
        _cholesky_solve(normal, y)
        blocked = False
        for j in range(n):
            change[j] = 0.0
            if frozen[j] == 0.0:
                s = 0.0
                for r in range(size):
                    s += jacobian[j, r] * y[r]
                s = wish[j] + ease[j] * s
                if (s < 0.0 and q[j] <= variables[LOWER, j]) or (s > 0.0 and q[j] >= variables[UPPER, j]):
                    frozen[j] = 1.0
                    blocked = True
                else:
                    change[j] = s
        if not blocked:
            break
    largest = 0.0
    for j in range(n):
        most = variables[STEP_LIMIT, j]
        moved = q[j] + min(max(change[j], -most), most)
        moved = min(max(moved, variables[LOWER, j]), variables[UPPER, j])
        largest = max(largest, abs(moved - q[j]))
        q[j] = moved
    return largest


@njit(**FAST_INNER)
def descend_to_poses(
    tree, goals, tolerance, scalar, work, posture, weight, ease, plain, wish, q, draws, max_steps, max_stalls
):
    """Make steps from q, in place, until all aims are met or progress ends; return the error and the number of steps.

    Up to ``draws`` steps before lead from a solution towards the posture, along the self-motion.
    """
    base, tip, motions, kinds, starts, variables = tree
    axes, rows, directions, jacobian, normal, y, frozen, change = work
    previous = np.inf
    reach = POSTURE_REACH
    stalls = 0
    steps = 0
    made = 0
    while True:
        worst, met = residuals(
            base, tip, motions, kinds, starts, goals, tolerance, scalar, q, axes, rows, directions, jacobian
        )
        squared = 0.0
        for r in range(rows.shape[0]):
            squared += rows[r] * rows[r]
        softness = squared
        easy = plain
        f = 0.0
        if draws > 0:
            if squared > 1e-3 and squared > previous:
                reach *= 0.5
            most = 1e-300
            for j in range(q.shape[0]):
                wish[j] = posture[j] - q[j] if weight[j] > 0.0 else 0.0
                most = max(most, abs(wish[j]))
            f = min(1.0, reach / most)
            softness = 0.01 * squared
            easy = ease
        elif met:
            return worst, made
        else:
            if not squared <= STALL_RATIO * previous:
                stalls += 1
            if steps >= max_steps or (stalls >= max_stalls and worst > 1.0):
                return worst, made
            steps += 1
        for j in range(q.shape[0]):
            wish[j] *= f
        previous = squared
        largest = _move(variables, rows, jacobian, wish, easy, normal, y, frozen, change, q, softness)
        made += 1
        if draws > 0:
            draws = 0 if largest < POSTURE_DONE else draws - 1
            if draws == 0:
                previous = np.inf
