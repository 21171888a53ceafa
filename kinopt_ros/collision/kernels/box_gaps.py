"""Lower bounds of the distances of shapes by boxes around them; compiled by numba."""

import numpy as np

from kinopt_ros.numba_cache import njit

_PARALLEL = 1e-6
"""Squared sine of the angle of two edges below which they count as parallel."""


@njit(cache=True, nogil=True, error_model="numpy")
def box_gap(placed, half, a, b, best, enough):
    """A lower bound of the distance of two boxes: ``best``, or the widest gap along the 15 axes that matter to two
    boxes, which is negative if and only if they overlap. Ends with the first that reaches ``enough``.

    Source: S. Gottschalk et al., "OBBTree: a hierarchical structure for rapid interference detection", 1996.

    Args: poses (S, 4, 4) of boxes by their centres, and their half edges (S, 3); numbers of two finite ones. All is
    computed in the first one's frame.
    """
    wx, wy, wz = (
        placed[b, 0, 3] - placed[a, 0, 3],
        placed[b, 1, 3] - placed[a, 1, 3],
        placed[b, 2, 3] - placed[a, 2, 3],
    )
    # Entries of the rotation from b to a: the sines and cosines of which all 15 gaps are made.
    r00 = (
        placed[a, 0, 0] * placed[b, 0, 0]
        + placed[a, 1, 0] * placed[b, 1, 0]
        + placed[a, 2, 0] * placed[b, 2, 0]
    )
    r01 = (
        placed[a, 0, 0] * placed[b, 0, 1]
        + placed[a, 1, 0] * placed[b, 1, 1]
        + placed[a, 2, 0] * placed[b, 2, 1]
    )
    r02 = (
        placed[a, 0, 0] * placed[b, 0, 2]
        + placed[a, 1, 0] * placed[b, 1, 2]
        + placed[a, 2, 0] * placed[b, 2, 2]
    )
    r10 = (
        placed[a, 0, 1] * placed[b, 0, 0]
        + placed[a, 1, 1] * placed[b, 1, 0]
        + placed[a, 2, 1] * placed[b, 2, 0]
    )
    r11 = (
        placed[a, 0, 1] * placed[b, 0, 1]
        + placed[a, 1, 1] * placed[b, 1, 1]
        + placed[a, 2, 1] * placed[b, 2, 1]
    )
    r12 = (
        placed[a, 0, 1] * placed[b, 0, 2]
        + placed[a, 1, 1] * placed[b, 1, 2]
        + placed[a, 2, 1] * placed[b, 2, 2]
    )
    r20 = (
        placed[a, 0, 2] * placed[b, 0, 0]
        + placed[a, 1, 2] * placed[b, 1, 0]
        + placed[a, 2, 2] * placed[b, 2, 0]
    )
    r21 = (
        placed[a, 0, 2] * placed[b, 0, 1]
        + placed[a, 1, 2] * placed[b, 1, 1]
        + placed[a, 2, 2] * placed[b, 2, 1]
    )
    r22 = (
        placed[a, 0, 2] * placed[b, 0, 2]
        + placed[a, 1, 2] * placed[b, 1, 2]
        + placed[a, 2, 2] * placed[b, 2, 2]
    )
    x = placed[a, 0, 0] * wx + placed[a, 1, 0] * wy + placed[a, 2, 0] * wz
    y = placed[a, 0, 1] * wx + placed[a, 1, 1] * wy + placed[a, 2, 1] * wz
    z = placed[a, 0, 2] * wx + placed[a, 1, 2] * wy + placed[a, 2, 2] * wz
    a0, a1, a2 = half[a, 0], half[a, 1], half[a, 2]
    b0, b1, b2 = half[b, 0], half[b, 1], half[b, 2]
    s00, s01, s02 = abs(r00), abs(r01), abs(r02)
    s10, s11, s12 = abs(r10), abs(r11), abs(r12)
    s20, s21, s22 = abs(r20), abs(r21), abs(r22)
    best = max(best, abs(x) - a0 - b0 * s00 - b1 * s01 - b2 * s02)
    best = max(best, abs(y) - a1 - b0 * s10 - b1 * s11 - b2 * s12)
    best = max(best, abs(z) - a2 - b0 * s20 - b1 * s21 - b2 * s22)
    if best >= enough:
        return best
    best = max(best, abs(x * r00 + y * r10 + z * r20) - b0 - a0 * s00 - a1 * s10 - a2 * s20)
    best = max(best, abs(x * r01 + y * r11 + z * r21) - b1 - a0 * s01 - a1 * s11 - a2 * s21)
    best = max(best, abs(x * r02 + y * r12 + z * r22) - b2 - a0 * s02 - a1 * s12 - a2 * s22)
    if best >= enough:
        return best
    # Cross products of an edge of a and one of b.
    best = _crossed(best, s00, z * r10 - y * r20, a1 * s20 + a2 * s10 + b1 * s02 + b2 * s01)
    best = _crossed(best, s01, z * r11 - y * r21, a1 * s21 + a2 * s11 + b0 * s02 + b2 * s00)
    best = _crossed(best, s02, z * r12 - y * r22, a1 * s22 + a2 * s12 + b0 * s01 + b1 * s00)
    best = _crossed(best, s10, x * r20 - z * r00, a0 * s20 + a2 * s00 + b1 * s12 + b2 * s11)
    best = _crossed(best, s11, x * r21 - z * r01, a0 * s21 + a2 * s01 + b0 * s12 + b2 * s10)
    best = _crossed(best, s12, x * r22 - z * r02, a0 * s22 + a2 * s02 + b0 * s11 + b1 * s10)
    best = _crossed(best, s20, y * r00 - x * r10, a0 * s10 + a1 * s00 + b1 * s22 + b2 * s21)
    best = _crossed(best, s21, y * r01 - x * r11, a0 * s11 + a1 * s01 + b0 * s22 + b2 * s20)
    return _crossed(best, s22, y * r02 - x * r12, a0 * s12 + a1 * s02 + b0 * s21 + b1 * s20)


@njit(cache=True, nogil=True, error_model="numpy")
def _crossed(best, cosine, way, reach):
    """Return the gap along the cross product of two edges, whose length is their sine."""
    square = 1.0 - cosine * cosine
    gap = abs(way) - reach
    # Only a gap that is a gap can be the widest; the sign needs no root.
    if square <= _PARALLEL or gap <= best * np.sqrt(square):
        return best
    return gap / np.sqrt(square)
