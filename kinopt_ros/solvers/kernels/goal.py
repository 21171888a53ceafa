"""Targets as searches take them: in the frame before the first motion, without what follows the last one."""

from kinopt_ros.compiler_options import FAST_INLINE
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.kernels.memory import get, put


@njit(**FAST_INLINE)
def set_goal(base, target, goal):
    """Compute goal = base^-1 target tip_rotation^-1.

    ``base`` holds the inverse of the first fixed transform (position, rotation rows) and then the transposed rotation
    of the last one.
    """
    for i in range(3):
        b0, b1, b2 = get(base, 3 + 3 * i), get(base, 4 + 3 * i), get(base, 5 + 3 * i)
        r0 = b0 * get(target, 0) + b1 * get(target, 4) + b2 * get(target, 8)
        r1 = b0 * get(target, 1) + b1 * get(target, 5) + b2 * get(target, 9)
        r2 = b0 * get(target, 2) + b1 * get(target, 6) + b2 * get(target, 10)
        put(goal, i, get(base, i) + b0 * get(target, 3) + b1 * get(target, 7) + b2 * get(target, 11))
        for j in range(3):
            put(goal, 3 + 3 * i + j, r0 * get(base, 12 + j) + r1 * get(base, 15 + j) + r2 * get(base, 18 + j))
