"""Distances of balls to point clouds, compiled."""

from kinopt_ros.collision.kernels.boxes import box_distance2, push
from kinopt_ros.collision.kernels.layout import BOX_NODE, COUNT, EXTRA, LEVELS, POINT_ITEM, TREE_HEADER
from kinopt_ros.collision.kernels.memory import get, new_stack, put
from kinopt_ros.collision.kernels.primitives import sphere_distance
from kinopt_ros.compiler_options import FAST_INNER
from kinopt_ros.numba_cache import njit


@njit(**FAST_INNER)
def cloud_distance(tree, x, y, z, most):
    """Find the nearest point by depth-first search, the nearer child first."""
    radius = get(tree, EXTRA)
    reach = most + radius
    if reach <= 0.0:
        return most, 0.0, 0.0, 0.0
    count, levels = int(get(tree, COUNT)), int(get(tree, LEVELS))
    items = TREE_HEADER + BOX_NODE * ((2 << levels) - 1)
    best, nearest = reach * reach, -1
    stack = new_stack()
    put(stack, 0, 0.0)
    put(stack, 1, box_distance2(tree, TREE_HEADER, x, y, z))
    size = 1
    leaves = (1 << levels) - 1
    while size > 0:
        size -= 1
        node, bound = int(get(stack, 2 * size)), get(stack, 2 * size + 1)
        if bound >= best:
            continue
        if node < leaves:
            size = push(tree, BOX_NODE, stack, size, node, x, y, z, best)
            continue
        leaf = node - leaves
        for item in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
            place = items + POINT_ITEM * item
            dx, dy, dz = x - get(tree, place), y - get(tree, place + 1), z - get(tree, place + 2)
            d = dx * dx + dy * dy + dz * dz
            if d < best:
                best, nearest = d, place
    if nearest < 0:
        return most, 0.0, 0.0, 0.0
    return sphere_distance(
        x - get(tree, nearest), y - get(tree, nearest + 1), z - get(tree, nearest + 2), radius
    )
