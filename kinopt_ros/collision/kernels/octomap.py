"""Signed distances of balls to octomaps, compiled."""

import numpy as np

from kinopt_ros.collision.kernels.boxes import box_signed
from kinopt_ros.collision.kernels.layout import BOX_NODE, COUNT, LEVELS, TREE_HEADER, VOXEL_ITEM
from kinopt_ros.collision.kernels.memory import get, new_stack, put
from kinopt_ros.collision.kernels.primitives import box_distance
from kinopt_ros.compiler_options import FAST_INNER
from kinopt_ros.numba_cache import njit


@njit(**FAST_INNER)
def octomap_distance(tree, x, y, z, most):
    count, levels = int(get(tree, COUNT)), int(get(tree, LEVELS))
    items = TREE_HEADER + BOX_NODE * ((2 << levels) - 1)
    best, nearest = most, -1
    stack = new_stack()
    put(stack, 0, 0.0)
    put(stack, 1, box_signed(tree, TREE_HEADER, x, y, z))
    size = 1
    leaves = (1 << levels) - 1
    while size > 0:
        size -= 1
        node, bound = int(get(stack, 2 * size)), get(stack, 2 * size + 1)
        if bound >= best:
            continue
        if node < leaves:
            first = 2 * node + 1
            second = first + 1
            d = box_signed(tree, TREE_HEADER + BOX_NODE * first, x, y, z)
            e = box_signed(tree, TREE_HEADER + BOX_NODE * second, x, y, z)
            if d < e:
                first, second = second, first
                d, e = e, d
            put(stack, 2 * size, float(first))
            put(stack, 2 * size + 1, d)
            put(stack, 2 * size + 2, float(second))
            put(stack, 2 * size + 3, e)
            size += 2
            continue
        leaf = node - leaves
        for item in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
            place = items + VOXEL_ITEM * item
            half = get(tree, place + 3)
            dx = abs(x - get(tree, place)) - half
            dy = abs(y - get(tree, place + 1)) - half
            dz = abs(z - get(tree, place + 2)) - half
            d = max(max(dx, dy), dz)
            if d > 0.0:
                dx, dy, dz = max(dx, 0.0), max(dy, 0.0), max(dz, 0.0)
                d = np.sqrt(dx * dx + dy * dy + dz * dz)
            if d < best:
                best, nearest = d, place
    if nearest < 0:
        return most, 0.0, 0.0, 0.0
    half = get(tree, nearest + 3)
    return box_distance(
        x - get(tree, nearest), y - get(tree, nearest + 1), z - get(tree, nearest + 2), half, half, half
    )
