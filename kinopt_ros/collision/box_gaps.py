"""Lower bounds of the distances of many pairs of shapes, by boxes around them; compiled by numba."""

import numpy as np
from numba import njit

_PARALLEL = 1e-3
"""Edges whose sine is less than this have no cross product to speak of."""


@njit(cache=True, nogil=True, error_model="numpy")
def box_gaps(T, halves, pairs, gaps):
    """The widest gap along the 15 axes that matter to two boxes, negative if there is none, into ``gaps`` (P).

    Not above the boxes' distance, and thus not above that of what they contain. S. Gottschalk et al., "OBBTree: a
    hierarchical structure for rapid interference detection", 1996.

    Args: poses of the boxes (S, 4, 4) by their centres; half edges (S, 3), finite; indices of boxes (P, 2).
    """
    for pair in range(pairs.shape[0]):
        a, b = pairs[pair, 0], pairs[pair, 1]
        A, B, ha, hb = T[a], T[b], halves[a], halves[b]
        wx, wy, wz = B[0, 3] - A[0, 3], B[1, 3] - A[1, 3], B[2, 3] - A[2, 3]
        # Bounding spheres of the boxes first: most pairs are far apart.
        far = np.sqrt(wx * wx + wy * wy + wz * wz)
        far -= np.sqrt(ha[0] ** 2 + ha[1] ** 2 + ha[2] ** 2) + np.sqrt(hb[0] ** 2 + hb[1] ** 2 + hb[2] ** 2)
        best = far
        for k in range(3):
            best = max(best, _gap(A, B, ha, hb, wx, wy, wz, A[0, k], A[1, k], A[2, k]))
            best = max(best, _gap(A, B, ha, hb, wx, wy, wz, B[0, k], B[1, k], B[2, k]))
        for i in range(3):
            for j in range(3):
                x = A[1, i] * B[2, j] - A[2, i] * B[1, j]
                y = A[2, i] * B[0, j] - A[0, i] * B[2, j]
                z = A[0, i] * B[1, j] - A[1, i] * B[0, j]
                length = np.sqrt(x * x + y * y + z * z)
                if length > _PARALLEL:
                    best = max(best, _gap(A, B, ha, hb, wx, wy, wz, x / length, y / length, z / length))
        gaps[pair] = best


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _gap(A, B, ha, hb, wx, wy, wz, x, y, z):
    """Between the shadows of two boxes on a line; (wx, wy, wz) leads from one centre to the other."""
    gap = abs(wx * x + wy * y + wz * z)
    for k in range(3):
        gap -= ha[k] * abs(A[0, k] * x + A[1, k] * y + A[2, k] * z)
        gap -= hb[k] * abs(B[0, k] * x + B[1, k] * y + B[2, k] * z)
    return gap
