"""Poses of links, compiled: what collision checks spend most of their time on otherwise."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def tree_poses(q, parent, T_fixed, first, last, turns, axis, variable, multiplier, offset, poses):
    """Poses of L links, parents first, in the root's frame, for M configurations (M, nq) into ``poses`` (M, L, 4, 4).

    Args: index of every link's parent, or -1 for the root; transforms before the joints' motions (L, 4, 4); ranges of
    elementary motions of each link; for every motion whether it turns or slides, its axis, the variable that drives it,
    and the multiplier and offset of its value.
    """
    R = np.empty((3, 3))
    for m in range(q.shape[0]):
        for link in range(parent.shape[0]):
            T = poses[m, link]
            if parent[link] < 0:
                for i in range(3):
                    for j in range(4):
                        T[i, j] = T_fixed[link, i, j]
            else:
                P = poses[m, parent[link]]
                F = T_fixed[link]
                for i in range(3):
                    for j in range(4):
                        T[i, j] = P[i, 0] * F[0, j] + P[i, 1] * F[1, j] + P[i, 2] * F[2, j]
                    T[i, 3] += P[i, 3]
            T[3, 0] = T[3, 1] = T[3, 2] = 0.0
            T[3, 3] = 1.0
            for k in range(first[link], last[link]):
                value = multiplier[k] * q[m, variable[k]] + offset[k]
                x, y, z = axis[k, 0], axis[k, 1], axis[k, 2]
                if turns[k]:
                    s, c = np.sin(value), np.cos(value)
                    v = 1.0 - c
                    R[0, 0], R[0, 1], R[0, 2] = c + x * x * v, x * y * v - z * s, x * z * v + y * s
                    R[1, 0], R[1, 1], R[1, 2] = x * y * v + z * s, c + y * y * v, y * z * v - x * s
                    R[2, 0], R[2, 1], R[2, 2] = x * z * v - y * s, y * z * v + x * s, c + z * z * v
                    for i in range(3):
                        a, b, d = T[i, 0], T[i, 1], T[i, 2]
                        for j in range(3):
                            T[i, j] = a * R[0, j] + b * R[1, j] + d * R[2, j]
                else:
                    for i in range(3):
                        T[i, 3] += value * (T[i, 0] * x + T[i, 1] * y + T[i, 2] * z)
