"""Whole turns of variables without limits, nearest to a reference."""

import numpy as np

from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.kernels.layout import LOWER, PERIOD, UPPER
from kinopt_ros.solvers.kernels.tuning import FARTHEST_TURN


@njit(**FAST_INLINE)
def nearest_turn(value, reference, lower, upper, period):
    """Return the value of a joint of that period that is nearest to the reference among those inside the limits."""
    if period > 0.0:
        turns = np.rint((reference - value) / period)
        if value + period * turns > upper:
            turns = np.floor((upper - value) / period)
        if value + period * turns < lower:
            turns = np.ceil((lower - value) / period)
        turned = value + period * turns
        if lower <= turned <= upper and abs(turned) < FARTHEST_TURN:
            return turned
    return value


@njit(**FAST_INNER)
def _choose_turn(variables, reference, q):
    """Apply ``nearest_turn`` to every variable."""
    for j in range(q.shape[0]):
        q[j] = nearest_turn(
            q[j], reference[j], variables[LOWER, j], variables[UPPER, j], variables[PERIOD, j]
        )
