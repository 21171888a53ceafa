"""Compiled poses of the nodes of a ``MovingTree``, and how points and directions on them move."""

import numpy as np

from kinopt_ros.compiler_options import FAST_INNER
from kinopt_ros.numba_cache import njit


@njit(**FAST_INNER)
def set_frames(tree, q, frames):
    """Compute poses (M, 12) of all nodes after their motions: rotation (row-major), position."""
    parent, fixed, turns, column, multiplier, offset = tree
    for i in range(9):
        frames[0, i] = fixed[0, i]
    frames[0, 9] = frames[0, 10] = frames[0, 11] = 0.0
    for m in range(1, parent.shape[0]):
        A, B, C = frames[parent[m]], fixed[m], frames[m]
        value = multiplier[m] * q[column[m]] + offset[m]
        c, s, shift = 1.0, 0.0, value
        if turns[m]:
            c, s, shift = np.cos(value), np.sin(value), 0.0
        for i in range(3):
            a0, a1, a2 = A[3 * i], A[3 * i + 1], A[3 * i + 2]
            x = a0 * B[0] + a1 * B[3] + a2 * B[6]
            y = a0 * B[1] + a1 * B[4] + a2 * B[7]
            z = a0 * B[2] + a1 * B[5] + a2 * B[8]
            C[3 * i] = c * x + s * y
            C[3 * i + 1] = c * y - s * x
            C[3 * i + 2] = z
            C[9 + i] = A[9 + i] + a0 * B[9] + a1 * B[10] + a2 * B[11] + z * shift


@njit(**FAST_INNER)
def add_point_row(tree, frames, node, px, py, pz, ux, uy, uz, row):
    """Add to ``row`` (n,) how variables move a point on a node (both in the root's frame) along u."""
    parent, _, turns, column, multiplier, _ = tree
    while node > 0:
        F = frames[node]
        zx, zy, zz = F[2], F[5], F[8]
        if turns[node]:
            x, y, z = px - F[9], py - F[10], pz - F[11]
            value = ux * (zy * z - zz * y) + uy * (zz * x - zx * z) + uz * (zx * y - zy * x)
        else:
            value = ux * zx + uy * zy + uz * zz
        row[column[node]] += multiplier[node] * value
        node = parent[node]


@njit(**FAST_INNER)
def add_turn_row(tree, frames, node, ux, uy, uz, row):
    """Add to ``row`` (n,) how variables turn a node about u."""
    parent, _, turns, column, multiplier, _ = tree
    while node > 0:
        if turns[node]:
            F = frames[node]
            row[column[node]] += multiplier[node] * (ux * F[2] + uy * F[5] + uz * F[8])
        node = parent[node]
