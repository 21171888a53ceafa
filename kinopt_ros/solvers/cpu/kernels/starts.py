"""Configurations to begin from: random ones, and those of a table whose tips are near."""

import numpy as np

from kinopt_ros.compiler_options import FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.kernels.forward import quaternion
from kinopt_ros.solvers.kernels.lanes import LANES, choose, lane_numbers, lanes_at, put_lanes
from kinopt_ros.solvers.kernels.layout import SAMPLE_LOWER, SAMPLE_UPPER
from kinopt_ros.solvers.kernels.memory import after, get, put
from kinopt_ros.solvers.kernels.tuning import ORIENTATION_WEIGHT

_U30, _U27, _U31, _U11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_MIX_0 = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@njit(**FAST_INNER)
def random_value(random_seed, number, n, j, low, high):
    """Return variable j of the number-th random configuration: a pure function of its arguments.

    It is splitmix64 (Steele et al. 2014), so there is no generator state to keep between calls or to share between
    threads.
    """
    start = np.uint64(random_seed) * _MIX_1 + np.uint64(number) * np.uint64(n)
    x = (start + np.uint64(j) + np.uint64(1)) * _MIX_0
    x = (x ^ (x >> _U30)) * _MIX_1
    x = (x ^ (x >> _U27)) * _MIX_2
    x = x ^ (x >> _U31)
    u = float(x >> _U11) * (1.0 / 9007199254740992.0)
    return min(max(low + u * (high - low), low), high)


@njit(**FAST_INNER)
def _random_configuration(random_seed, number, variables, q):
    """Write the number-th random configuration."""
    n = q.shape[0]
    for j in range(n):
        q[j] = random_value(random_seed, number, n, j, variables[SAMPLE_LOWER, j], variables[SAMPLE_UPPER, j])


@njit(**FAST_INNER)
def score_table(poses, size, goal, scores):
    """Compute the squared distance of every table pose from the goal: |dp|^2 + (w 2 sin(angle / 2))^2."""
    gx, gy, gz = get(goal, 0), get(goal, 1), get(goal, 2)
    w, x, y, z = quaternion(
        get(goal, 3), get(goal, 6), get(goal, 9), get(goal, 4), get(goal, 7), get(goal, 10),
        get(goal, 5), get(goal, 8), get(goal, 11),
    )  # fmt: skip
    f = 4.0 * ORIENTATION_WEIGHT * ORIENTATION_WEIGHT
    px, py, pz, qw = poses, after(poses, size), after(poses, 2 * size), after(poses, 3 * size)
    qx, qy, qz = after(poses, 4 * size), after(poses, 5 * size), after(poses, 6 * size)
    for i in range((size + LANES - 1) // LANES):
        dx, dy, dz = lanes_at(px, i) - gx, lanes_at(py, i) - gy, lanes_at(pz, i) - gz
        dot = lanes_at(qw, i) * w + lanes_at(qx, i) * x + lanes_at(qy, i) * y + lanes_at(qz, i) * z
        put_lanes(scores, i, (dx * dx + dy * dy + dz * dz) + f * (1.0 - dot * dot))
    for i in range(size, (size + LANES - 1) // LANES * LANES):
        put(scores, i, np.inf)


@njit(**FAST_INNER)
def nearest_of_each_lane(scores, size, nearest):
    """Write the index of the smallest score of every lane: so some good seeds are found in one pass, if not quite the
    best."""
    index = lane_numbers()
    best, smallest = 0.0 * index, np.inf + index
    for i in range((size + LANES - 1) // LANES):
        score = lanes_at(scores, i)
        best = choose(smallest, score, index, best)
        smallest = choose(smallest, score, score, smallest)
        index += float(LANES)
    put_lanes(nearest, 0, best)
