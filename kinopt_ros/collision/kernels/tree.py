"""Compiled poses of links, on which collision checks would spend most of their time otherwise."""

import numpy as np

from kinopt_ros.compiler_options import OUTER
from kinopt_ros.numba_cache import njit

ROTATION, TRANSLATION, QUATERNION = range(3)
"""Kinds of motions, as in ``robot.chain.Motion``."""


@njit(**OUTER)
def tree_poses(q, tree, poses):
    """Write poses of L links in the root's frame, for M configurations (M, nq), into ``poses`` (M, L, 4, 4)."""
    axes, origins = np.empty((tree.axis.shape[0], 3)), np.empty((tree.axis.shape[0], 3))
    for m in range(q.shape[0]):
        place_links(q[m], tree, poses[m], origins, axes)


@njit(**OUTER)
def place_links(q, tree, poses, origins, axes):
    """Poses of links for one configuration (nq), finite, into ``poses`` (L, 4, 4), and where the joints' axes are
    then, in the root's frame: a point of each, and its direction, into ``origins`` and ``axes`` (m, 3).

    ``tree``: ``link_poses.Tree``; parents come first in it.
    """
    R = np.empty((3, 3))
    for link in range(tree.parent.shape[0]):
        T = poses[link]
        F = tree.T_fixed[link]
        if tree.parent[link] < 0:
            for i in range(3):
                for j in range(4):
                    T[i, j] = F[i, j]
        else:
            P = poses[tree.parent[link]]
            for i in range(3):
                for j in range(4):
                    T[i, j] = P[i, 0] * F[0, j] + P[i, 1] * F[1, j] + P[i, 2] * F[2, j]
                T[i, 3] += P[i, 3]
        T[3, 0] = T[3, 1] = T[3, 2] = 0.0
        T[3, 3] = 1.0
        for k in range(tree.first[link], tree.last[link]):
            x, y, z = tree.axis[k, 0], tree.axis[k, 1], tree.axis[k, 2]
            for i in range(3):
                origins[k, i] = T[i, 3]
                axes[k, i] = T[i, 0] * x + T[i, 1] * y + T[i, 2] * z
            if tree.motion[k] == TRANSLATION:
                value = tree.multiplier[k] * q[tree.variable[k]] + tree.offset[k]
                for i in range(3):
                    T[i, 3] += value * axes[k, i]
                continue
            if tree.motion[k] == ROTATION:
                value = tree.multiplier[k] * q[tree.variable[k]] + tree.offset[k]
                s, c = np.sin(value), np.cos(value)
                v = 1.0 - c
                R[0, 0], R[0, 1], R[0, 2] = c + x * x * v, x * y * v - z * s, x * z * v + y * s
                R[1, 0], R[1, 1], R[1, 2] = x * y * v + z * s, c + y * y * v, y * z * v - x * s
                R[2, 0], R[2, 1], R[2, 2] = x * z * v - y * s, y * z * v + x * s, c + z * z * v
            else:
                first = tree.variable[k]
                w, x, y, z = q[first], q[first + 1], q[first + 2], q[first + 3]
                length = np.sqrt(w * w + x * x + y * y + z * z)
                w, x, y, z = w / length, x / length, y / length, z / length
                R[0, 0], R[0, 1], R[0, 2] = (
                    1.0 - 2.0 * (y * y + z * z),
                    2.0 * (x * y - w * z),
                    2.0 * (x * z + w * y),
                )
                R[1, 0], R[1, 1], R[1, 2] = (
                    2.0 * (x * y + w * z),
                    1.0 - 2.0 * (x * x + z * z),
                    2.0 * (y * z - w * x),
                )
                R[2, 0], R[2, 1], R[2, 2] = (
                    2.0 * (x * z - w * y),
                    2.0 * (y * z + w * x),
                    1.0 - 2.0 * (x * x + y * y),
                )
            for i in range(3):
                a, b, d = T[i, 0], T[i, 1], T[i, 2]
                for j in range(3):
                    T[i, j] = a * R[0, j] + b * R[1, j] + d * R[2, j]
