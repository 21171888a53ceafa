"""Compiled signed distances of balls to obstacles: outside exact, inside negative, with gradients.

Obstacles come as two arrays, written by ``obstacles.py``; every obstacle is a row of each:

``numbers`` (float64, n x NUMBERS): centre and radius of a bounding sphere, infinite for shapes without end; rotation
(row-major) and translation that take a point of the common frame to the shape's; up to three parameters of the shape.
``integers`` (int64, n x INTEGERS): kind; the address of the tree of a big shape (``trees.py``), else 0; in the first
row, if there are many obstacles, the address of the tree of their spheres (``nearby.py``), else 0. Whoever holds the
arrays keeps the trees alive.

Inside of cloud and octomap the distance is that of the ball or cube in which the point is deepest: the sign is
exact, the depth at most the true one. A height map is the surface of ``_ground``.
"""

import numpy as np

from kinopt_ros.collision.kernels.height_map import height_map_distance
from kinopt_ros.collision.kernels.layout import (
    BOX,
    BOX_NODE,
    CAPSULE,
    CENTER,
    CONE,
    COUNT,
    CYLINDER,
    KIND,
    LEVELS,
    MESH,
    NEARBY,
    OCTOMAP,
    PARAMETERS,
    PLANE,
    POINT_CLOUD,
    REACH,
    ROTATION,
    SPHERE,
    TRANSLATION,
    TREE,
    TREE_HEADER,
    VOXEL_ITEM,
)
from kinopt_ros.collision.kernels.memory import STACK, new_bits, tree_at
from kinopt_ros.collision.kernels.mesh import mesh_distance
from kinopt_ros.collision.kernels.nearby import mark_nearby, next_marked
from kinopt_ros.collision.kernels.octomap import octomap_distance
from kinopt_ros.collision.kernels.point_cloud import cloud_distance
from kinopt_ros.collision.kernels.primitives import (
    box_distance,
    cone_distance,
    cylinder_distance,
    sphere_distance,
)
from kinopt_ros.compiler_options import FAST_INNER, FAST_OUTER
from kinopt_ros.numba_cache import njit


@njit(**FAST_OUTER)
def ball_distance(numbers, integers, skipped, px, py, pz, radius, most):
    """Compute the signed distance of a ball to the nearest obstacle, its gradient in the centre, and which obstacle.

    Args: arrays of the obstacles; ``skipped`` (bool, n) obstacles that do not count; centre and radius of the ball;
    ``most``: obstacles at this distance and beyond are passed over, which is quicker (infinity: none).

    Returns (distance, gx, gy, gz, obstacle), or (most, 0, 0, 0, -1) if every obstacle is as far as that.
    """
    best = most + radius
    gx = gy = gz = 0.0
    nearest = -1
    n = numbers.shape[0]
    if n > 1 and integers[0, NEARBY] != 0 and best < np.inf:
        best, gx, gy, gz, nearest = _nearest_of_many(numbers, integers, skipped, px, py, pz, best)
        n = 0
    for i in range(n):
        if skipped[i]:
            continue
        dx, dy, dz = px - numbers[i, CENTER], py - numbers[i, CENTER + 1], pz - numbers[i, CENTER + 2]
        reach = best + numbers[i, REACH]
        if reach <= 0.0 or dx * dx + dy * dy + dz * dz >= reach * reach:
            continue
        d, x, y, z = _obstacle_distance(numbers, integers, i, px, py, pz, best)
        if d < best:
            best, gx, gy, gz, nearest = d, x, y, z, i
    if nearest < 0:
        return most, 0.0, 0.0, 0.0, -1
    r = ROTATION
    return (
        best - radius,
        numbers[nearest, r] * gx + numbers[nearest, r + 3] * gy + numbers[nearest, r + 6] * gz,
        numbers[nearest, r + 1] * gx + numbers[nearest, r + 4] * gy + numbers[nearest, r + 7] * gz,
        numbers[nearest, r + 2] * gx + numbers[nearest, r + 5] * gy + numbers[nearest, r + 8] * gz,
        nearest,
    )


@njit(**FAST_INNER)
def _nearest_of_many(numbers, integers, skipped, px, py, pz, best):
    """Do as the loop of ``ball_distance``, in its order; it looks at those obstacles alone that are not far off."""
    gx = gy = gz = 0.0
    nearest, n, bits = -1, numbers.shape[0], new_bits()
    mark_nearby(tree_at(integers[0, NEARBY]), px, py, pz, best, bits)
    i = next_marked(bits, 0, n)
    while i < n:
        dx, dy, dz = px - numbers[i, CENTER], py - numbers[i, CENTER + 1], pz - numbers[i, CENTER + 2]
        reach = best + numbers[i, REACH]
        if not (skipped[i] or reach <= 0.0 or dx * dx + dy * dy + dz * dz >= reach * reach):
            d, x, y, z = _obstacle_distance(numbers, integers, i, px, py, pz, best)
            if d < best:
                best, gx, gy, gz, nearest = d, x, y, z, i
        i = next_marked(bits, i + 1, n)
    return best, gx, gy, gz, nearest


@njit(**FAST_OUTER)
def ball_contact(numbers, integers, skipped, px, py, pz, radius, clearance):
    """Return an obstacle that is nearer to a ball than ``clearance``, the first that is found, or -1. See
    ball_distance."""
    limit = clearance + radius
    for i in range(numbers.shape[0]):
        if skipped[i]:
            continue
        dx, dy, dz = px - numbers[i, CENTER], py - numbers[i, CENTER + 1], pz - numbers[i, CENTER + 2]
        reach = limit + numbers[i, REACH]
        if reach <= 0.0 or dx * dx + dy * dy + dz * dz >= reach * reach:
            continue
        if _obstacle_distance(numbers, integers, i, px, py, pz, limit)[0] < limit:
            return i
    return -1


@njit(**FAST_OUTER)
def nearest_obstacles(numbers, integers, skipped, balls, most, distances, gradients, obstacles):
    """Write ``ball_distance`` of every ball (N x 4: centre, radius) into the rows of the last three arguments."""
    for ball in range(balls.shape[0]):
        d, x, y, z, obstacle = ball_distance(
            numbers,
            integers,
            skipped,
            balls[ball, 0],
            balls[ball, 1],
            balls[ball, 2],
            balls[ball, 3],
            most,
        )
        distances[ball] = d
        gradients[ball, 0], gradients[ball, 1], gradients[ball, 2] = x, y, z
        obstacles[ball] = obstacle


@njit(**FAST_OUTER)
def least_distance(numbers, integers, skipped, balls, most):
    """Return the least distance of any ball to any obstacle, its gradient, the ball and the obstacle.

    (most, 0, 0, 0, -1, -1) if none is below ``most``.
    """
    gx = gy = gz = 0.0
    nearest = obstacle = -1
    for ball in range(balls.shape[0]):
        d, x, y, z, i = ball_distance(
            numbers,
            integers,
            skipped,
            balls[ball, 0],
            balls[ball, 1],
            balls[ball, 2],
            balls[ball, 3],
            most,
        )
        if i >= 0:
            most, gx, gy, gz, nearest, obstacle = d, x, y, z, ball, i
    return most, gx, gy, gz, nearest, obstacle


@njit(**FAST_OUTER)
def first_contact(numbers, integers, skipped, balls, clearance):
    """Return the first ball that is nearer than ``clearance`` to an obstacle, and the obstacle; (-1, -1) if there is
    none."""
    for ball in range(balls.shape[0]):
        obstacle = ball_contact(
            numbers,
            integers,
            skipped,
            balls[ball, 0],
            balls[ball, 1],
            balls[ball, 2],
            balls[ball, 3],
            clearance,
        )
        if obstacle >= 0:
            return ball, obstacle
    return -1, -1


@njit(**FAST_OUTER)
def items_near(tree, item_size, x, y, z, radius, found):
    """Find the items of a cloud's or octomap's tree whose point, or cube, is within ``radius`` of a point.

    ``item_size``: POINT_ITEM or VOXEL_ITEM. Numbers go to ``found`` (int64, as many as there are items); returns how
    many they are.
    """
    count, levels = int(tree[COUNT]), int(tree[LEVELS])
    items = TREE_HEADER + BOX_NODE * ((2 << levels) - 1)
    leaves = (1 << levels) - 1
    stack = np.empty(STACK, dtype=np.int64)
    stack[0], size, number = 0, 1, 0
    while size > 0:
        size -= 1
        node = stack[size]
        place = TREE_HEADER + BOX_NODE * node
        dx = max(tree[place] - x, x - tree[place + 3], 0.0)
        dy = max(tree[place + 1] - y, y - tree[place + 4], 0.0)
        dz = max(tree[place + 2] - z, z - tree[place + 5], 0.0)
        if dx * dx + dy * dy + dz * dz > radius * radius:
            continue
        if node < leaves:
            stack[size], stack[size + 1] = 2 * node + 1, 2 * node + 2
            size += 2
            continue
        leaf = node - leaves
        for item in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
            place = items + item_size * item
            half = tree[place + 3] if item_size == VOXEL_ITEM else 0.0
            dx = max(abs(x - tree[place]) - half, 0.0)
            dy = max(abs(y - tree[place + 1]) - half, 0.0)
            dz = max(abs(z - tree[place + 2]) - half, 0.0)
            if dx * dx + dy * dy + dz * dz <= radius * radius:
                found[number] = item
                number += 1
    return number


@njit(**FAST_INNER)
def _obstacle_distance(numbers, integers, i, px, py, pz, most):
    """Compute signed distance and gradient in the shape's frame; a distance of ``most`` or more need not be exact."""
    r, t, s = ROTATION, TRANSLATION, PARAMETERS
    x = numbers[i, r] * px + numbers[i, r + 1] * py + numbers[i, r + 2] * pz + numbers[i, t]
    y = numbers[i, r + 3] * px + numbers[i, r + 4] * py + numbers[i, r + 5] * pz + numbers[i, t + 1]
    z = numbers[i, r + 6] * px + numbers[i, r + 7] * py + numbers[i, r + 8] * pz + numbers[i, t + 2]
    kind = integers[i, KIND]
    if kind == BOX:
        return box_distance(x, y, z, numbers[i, s], numbers[i, s + 1], numbers[i, s + 2])
    if kind == SPHERE:
        return sphere_distance(x, y, z, numbers[i, s])
    if kind == CYLINDER:
        return cylinder_distance(x, y, z, numbers[i, s], numbers[i, s + 1])
    if kind == CAPSULE:
        h = numbers[i, s + 1]
        return sphere_distance(x, y, z - min(max(z, -h), h), numbers[i, s])
    if kind == CONE:
        return cone_distance(x, y, z, numbers[i, s], numbers[i, s + 1])
    if kind == PLANE:
        return z, 0.0, 0.0, 1.0
    tree = tree_at(integers[i, TREE])
    if kind == MESH:
        return mesh_distance(tree, x, y, z, most)
    if kind == POINT_CLOUD:
        return cloud_distance(tree, x, y, z, most)
    if kind == OCTOMAP:
        return octomap_distance(tree, x, y, z, most)
    return height_map_distance(tree, x, y, z, most)
