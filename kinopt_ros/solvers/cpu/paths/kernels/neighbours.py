"""Compiled: which obstacles a body of the robot may be near to, remembered while it has moved but little.

A ball around the body is compared with every obstacle once; as distances change by no more than the ball moves, what is
far away then is far away for all of the body's spheres for a while (neighbour lists: L. Verlet, "Computer
'experiments' on classical fluids", Physical Review 159, 1967).
"""

import numpy as np

from kinopt_ros.collision.kernels.ball_distances import obstacle_distance
from kinopt_ros.collision.kernels.layout import CENTER, REACH
from kinopt_ros.compiler_options import FAST_INNER
from kinopt_ros.numba_cache import njit

STALE = 0.05
"""Movement of a ball after which its distances are computed anew, m."""


@njit(**FAST_INNER)
def pass_over(around, body, balls, most, neighbours, renew, skip):
    """Write to ``skip`` (N,) which obstacles do not count for a body, or cannot be nearer to its spheres than ``most``;
    return whether any is left.

    ``balls`` (B, 3) are the places of the balls; ``neighbours``: where they were (B, 3), NaN at first, and their
    distances from the obstacles there (B, N). With ``renew`` these are computed anew if the ball has moved by much.
    """
    were, gaps = neighbours
    skipped, mask, padded = around.skipped, around.body_mask, around.body_padded
    x, y, z = balls[body, 0], balls[body, 1], balls[body, 2]
    dx, dy, dz = x - were[body, 0], y - were[body, 1], z - were[body, 2]
    moved = np.sqrt(dx * dx + dy * dy + dz * dz)
    if renew and not moved <= STALE:
        _measure(around, padded[body], x, y, z, most + STALE, gaps[body])
        were[body, 0], were[body, 1], were[body, 2] = x, y, z
        moved = 0.0
    row, some = mask[body], False
    for i in range(skip.shape[0]):
        skip[i] = skipped[row, i] or gaps[body, i] - moved >= most
        some |= not skip[i]
    return some


@njit(**FAST_INNER)
def _measure(around, radius, x, y, z, most, gaps):
    """Compute lower bounds of the distances of a ball from all obstacles, exact below ``most``."""
    numbers, integers = around.numbers, around.integers
    for i in range(gaps.shape[0]):
        dx, dy, dz = x - numbers[i, CENTER], y - numbers[i, CENTER + 1], z - numbers[i, CENTER + 2]
        gaps[i] = np.sqrt(dx * dx + dy * dy + dz * dz) - numbers[i, REACH] - radius
        if gaps[i] < most:
            gaps[i] = obstacle_distance(numbers, integers, i, x, y, z, most + radius)[0] - radius
