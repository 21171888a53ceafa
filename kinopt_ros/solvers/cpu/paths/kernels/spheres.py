"""Spheres of the robot along a path: where they are, and which distance is wanted of each, compiled."""

import numpy as np

from kinopt_ros.collision.kernels.ball_distances import ball_distance
from kinopt_ros.compiler_options import FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.paths.kernels.frames import set_frames

RAMP = 0.3
TIGHT = 0.002
"""Distance that may be missing where what is wanted is less than elsewhere, m."""
# Entries of ``found``.
COST, SLACK = range(2)


@njit(**FAST_INNER)
def place_spheres(node, centers, frames, positions, first, end):
    """Compute centres of some spheres, or of balls around bodies, rows of (S, 3), from the poses of the nodes."""
    for s in range(first, end):
        m = node[s]
        a, b, c = centers[s, 0], centers[s, 1], centers[s, 2]
        for i in range(3):
            k = 3 * i
            positions[s, i] = (
                frames[m, k] * a + frames[m, k + 1] * b + frames[m, k + 2] * c + frames[m, 9 + i]
            )


@njit(**FAST_INNER)
def place_resting(around, positions, balls):
    """Write centres of the spheres and balls that do not move, into (S, 3) and (B, 3).

    They are the first ones, and are given in the root's frame.
    """
    centers, ball, resting = around.centers, around.body_ball, around.resting
    for s in range(resting[0]):
        for i in range(3):
            positions[s, i] = centers[s, i]
    for k in range(resting[1]):
        for i in range(3):
            balls[k, i] = ball[k, i]


@njit(**FAST_INNER)
def wanted_of(gaps, places, wanted, s, x, y, z):
    """Return the distance that is wanted of a sphere, and its gradient by the sphere's place."""
    best, gx, gy, gz = wanted, 0.0, 0.0, 0.0
    for a in range(gaps.shape[0]):
        gap = gaps[a, s]
        if gap >= best:
            continue
        dx, dy, dz = x - places[a, s, 0], y - places[a, s, 1], z - places[a, s, 2]
        way = np.sqrt(dx * dx + dy * dy + dz * dz)
        if gap + RAMP * way < best:
            best = gap + RAMP * way
            f = RAMP / max(way, 1e-9)
            gx, gy, gz = f * dx, f * dy, f * dz
    return best, gx, gy, gz


@njit(**FAST_INNER)
def balls_apart(ball, balls, one, two, wanted):
    """Check whether the balls around two bodies are as far apart as is wanted."""
    x, y, z = balls[one, 0] - balls[two, 0], balls[one, 1] - balls[two, 1], balls[one, 2] - balls[two, 2]
    far = ball[one, 3] + ball[two, 3] + wanted
    return x * x + y * y + z * z >= far * far


@njit(**FAST_INNER)
def distance(p, a, q, b):
    x, y, z = p[a, 0] - q[b, 0], p[a, 1] - q[b, 1], p[a, 2] - q[b, 2]
    return np.sqrt(x * x + y * y + z * z)


@njit(**FAST_INNER)
def set_anchor(tree, around, q, wanted, frames, positions, gaps, places, floor):
    """Record what one given configuration has: gaps (S,), places (S, 3); ``floor`` (S, S) is lowered to it."""
    radii, padded, mask, skipped = around.radii, around.padded, around.mask, around.skipped
    first, pairs = around.body_first, around.pairs
    set_frames(tree, q, frames)
    place_spheres(around.node, around.centers, frames, positions, 0, radii.shape[0])
    for s in range(radii.shape[0]):
        gaps[s] = np.inf
        p = positions[s]
        for i in range(3):
            places[s, i] = p[i]
        if mask[s] >= 0:
            d = ball_distance(
                around.numbers, around.integers, skipped[mask[s]], p[0], p[1], p[2], padded[s], wanted
            )[0]
            if d < wanted:
                gaps[s] = d
    for k in range(pairs.shape[0]):
        one, two = pairs[k, 0], pairs[k, 1]
        for a in range(first[one], first[one + 1]):
            for b in range(first[two], first[two + 1]):
                d = distance(positions, a, positions, b) - radii[a] - radii[b]
                floor[a, b] = min(floor[a, b], d)
