"""Compiled loops of the sphere field (``field.py``): costs of spheres near to obstacles and to one another."""

import numpy as np

from kinopt_ros.collision.kernels.ball_distances import ball_distance
from kinopt_ros.compiler_options import INLINE, OUTER
from kinopt_ros.numba_cache import njit


@njit(**OUTER)
def world_closeness(numbers, integers, skipped, spheres, radii, margin, p, distance, cost, force):
    """Add the cost of spheres that are near to obstacles (``activation`` of collision/activation.py).

    Args: arrays of the obstacles, and which of them do not count; indices of spheres and their radii, paddings added;
    margin (m); centres of all spheres (M, S, 3). Changed: least distance (M,), cost (M,), force (M, S, 3).
    """
    for m in range(p.shape[0]):
        for k in range(spheres.shape[0]):
            s = spheres[k]
            d, gx, gy, gz, obstacle = ball_distance(
                numbers, integers, skipped, p[m, s, 0], p[m, s, 1], p[m, s, 2], radii[k], max(margin, 1e-3)
            )
            if obstacle < 0:
                continue
            distance[m] = min(distance[m], d)
            value, slope = _activation(d, margin)
            cost[m] += value
            force[m, s, 0] += slope * gx
            force[m, s, 1] += slope * gy
            force[m, s, 2] += slope * gz


@njit(**OUTER)
def self_closeness(first, last, other_first, other_last, radii, margin, p, distance, cost, force):
    """Add the cost of spheres that are near to one another, for P pairs of bodies.

    The spheres of pair i are the ranges ``first[i]:last[i]`` and ``other_first[i]:other_last[i]``. The other arguments
    are those of ``world_closeness``.
    """
    for m in range(p.shape[0]):
        for i in range(first.shape[0]):
            for a in range(first[i], last[i]):
                for b in range(other_first[i], other_last[i]):
                    x, y, z = p[m, a, 0] - p[m, b, 0], p[m, a, 1] - p[m, b, 1], p[m, a, 2] - p[m, b, 2]
                    touching = radii[a] + radii[b]
                    square = x * x + y * y + z * z
                    far = touching + margin
                    if square >= far * far:
                        continue
                    length = np.sqrt(square)
                    d = length - touching
                    distance[m] = min(distance[m], d)
                    value, slope = _activation(d, margin)
                    cost[m] += value
                    push = slope / max(length, 1e-12)
                    force[m, a, 0] += push * x
                    force[m, a, 1] += push * y
                    force[m, a, 2] += push * z
                    force[m, b, 0] -= push * x
                    force[m, b, 1] -= push * y
                    force[m, b, 2] -= push * z


@njit(**INLINE)
def _activation(d, margin):
    if d < 0.0:
        return 0.5 * margin - d, -1.0
    if d < margin:
        return 0.5 * (margin - d) ** 2 / margin, (d - margin) / margin
    return 0.0, 0.0
