"""Distances of points to the boxes of a search tree, and the queue of nodes still to be looked at, compiled."""

import numpy as np

from kinopt_ros.collision.kernels.layout import TREE_HEADER
from kinopt_ros.collision.kernels.memory import get, put
from kinopt_ros.compiler_options import FAST_INLINE
from kinopt_ros.numba_cache import njit


@njit(**FAST_INLINE)
def box_distance2(tree, node, x, y, z):
    """Return the squared distance to a node's box, 0 inside."""
    dx = max(max(get(tree, node) - x, x - get(tree, node + 3)), 0.0)
    dy = max(max(get(tree, node + 1) - y, y - get(tree, node + 4)), 0.0)
    dz = max(max(get(tree, node + 2) - z, z - get(tree, node + 5)), 0.0)
    return dx * dx + dy * dy + dz * dz


@njit(**FAST_INLINE)
def box_signed(tree, node, x, y, z):
    dx = max(get(tree, node) - x, x - get(tree, node + 3))
    dy = max(get(tree, node + 1) - y, y - get(tree, node + 4))
    dz = max(get(tree, node + 2) - z, z - get(tree, node + 5))
    inside = max(max(dx, dy), dz)
    if inside <= 0.0:
        return inside
    dx, dy, dz = max(dx, 0.0), max(dy, 0.0), max(dz, 0.0)
    return np.sqrt(dx * dx + dy * dy + dz * dz)


@njit(**FAST_INLINE)
def push(tree, stride, stack, size, node, x, y, z, best):
    """Push both children of a node that are nearer than ``best`` onto the stack, the nearer one last."""
    first = 2 * node + 1
    d = box_distance2(tree, TREE_HEADER + stride * first, x, y, z)
    e = box_distance2(tree, TREE_HEADER + stride * (first + 1), x, y, z)
    second = first + 1
    if d < e:
        first, second = second, first
        d, e = e, d
    if d < best:
        put(stack, 2 * size, float(first))
        put(stack, 2 * size + 1, d)
        size += 1
    if e < best:
        put(stack, 2 * size, float(second))
        put(stack, 2 * size + 1, e)
        size += 1
    return size
