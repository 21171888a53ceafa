"""Compiled signed distances of balls to obstacles: outside exact, inside negative, with gradients.

Obstacles come as two arrays, written by ``obstacles.py``; every obstacle is a row of each:

``numbers`` (float64, n x NUMBERS): centre and radius of a bounding sphere, infinite for shapes without end; rotation
(row-major) and translation that take a point of the common frame to the shape's; up to three parameters of the shape.
``integers`` (int64, n x INTEGERS): kind, and the address of the tree of a big shape (``trees.py``), else 0. Whoever
holds the arrays keeps the trees alive.

Inside of cloud and octomap the distance is that of the ball or cube in which the point is deepest: the sign is
exact, the depth at most the true one. A height map is the surface of ``_ground``.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kinopt_ros.numba_cache import njit

# Columns of ``numbers``.
CENTER, REACH, ROTATION, TRANSLATION, PARAMETERS = 0, 3, 4, 13, 16
NUMBERS = 19
# Columns of ``integers``.
KIND, TREE = 0, 1
INTEGERS = 2
SPHERE, BOX, CYLINDER, CONE, CAPSULE, PLANE, MESH, HEIGHT_MAP, POINT_CLOUD, OCTOMAP = range(10)

# A tree of items is one float64 array: a header, nodes, items. Nodes form a complete binary tree in which the children
# of i are 2i + 1 and 2i + 2; node j of level l holds the items from j n / 2^l to (j + 1) n / 2^l.
COUNT, LEVELS, EXTRA = 0, 1, 2  # items, levels below the root, radius of the balls
TREE_HEADER = 3
LOWER, UPPER = 0, 3  # corners of a node's box,
NORMAL, MIDDLE, SPREAD = 6, 9, 12  # and in meshes the sum of its normals times areas, their centre and radius
BOX_NODE, MESH_NODE = 6, 13
POINT_ITEM, VOXEL_ITEM, TRIANGLE_ITEM = (
    3,
    4,
    12,
)  # point; centre and half edge; corners and unit normal (or zeros)
# The tree of a height map: a header, which ends with the places of the levels; the heights; then levels of the lowest
# and highest height of blocks of cells, single cells first.
ROWS, COLUMNS, RESOLUTION, HEIGHT_LEVELS, PLACES = 0, 1, 2, 3, 4
MOST_LEVELS = 24
HEIGHT_HEADER = PLACES + MOST_LEVELS

FAR_ENOUGH = 2.0
"""Distance, in radii of theirs, beyond which triangles count as one dipole in the winding number."""
TINY = 1e-12
"""Distance from a surface below which its normal is the gradient, m."""

_OUTER = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}}
_INNER = _OUTER | {"cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_INLINE = _INNER | {"forceinline": True}
_STACK = 256

_POINTER = types.CPointer(types.float64)


@intrinsic
def _tree(typing_context, address):
    """Return the numbers at an address."""

    def generate(context, builder, sig, args):
        return builder.inttoptr(args[0], ir.DoubleType().as_pointer())

    return _POINTER(types.int64), generate


@intrinsic
def _stack(typing_context):
    """Reserve memory for _STACK numbers on the stack of the calling function."""

    def generate(context, builder, sig, args):
        size = ir.Constant(ir.IntType(64), _STACK)
        return cgutils.alloca_once(builder, ir.DoubleType(), size=size)

    return _POINTER(), generate


@intrinsic
def _at(typing_context, pointer, index):
    def generate(context, builder, sig, args):
        return builder.load(builder.gep(args[0], [args[1]]), align=8)

    return types.float64(pointer, types.int64), generate


@intrinsic
def _put(typing_context, pointer, index, value):
    def generate(context, builder, sig, args):
        builder.store(args[2], builder.gep(args[0], [args[1]]), align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, types.float64), generate


@njit(**_OUTER)
def ball_distance(numbers, integers, skipped, px, py, pz, radius, most):
    """Compute the signed distance of a ball to the nearest obstacle, its gradient in the centre, and which obstacle.

    Args: arrays of the obstacles; ``skipped`` (bool, n) obstacles that do not count; centre and radius of the ball;
    ``most``: obstacles at this distance and beyond are passed over, which is quicker (infinity: none).

    Returns (distance, gx, gy, gz, obstacle), or (most, 0, 0, 0, -1) if every obstacle is as far as that.
    """
    best = most + radius
    gx = gy = gz = 0.0
    nearest = -1
    for i in range(numbers.shape[0]):
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


@njit(**_OUTER)
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


@njit(**_OUTER)
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


@njit(**_OUTER)
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


@njit(**_OUTER)
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


@njit(**_OUTER)
def items_near(tree, item_size, x, y, z, radius, found):
    """Find the items of a cloud's or octomap's tree whose point, or cube, is within ``radius`` of a point.

    ``item_size``: POINT_ITEM or VOXEL_ITEM. Numbers go to ``found`` (int64, as many as there are items); returns how
    many they are.
    """
    count, levels = int(tree[COUNT]), int(tree[LEVELS])
    items = TREE_HEADER + BOX_NODE * ((2 << levels) - 1)
    leaves = (1 << levels) - 1
    stack = np.empty(_STACK, dtype=np.int64)
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


@njit(**_INNER)
def _obstacle_distance(numbers, integers, i, px, py, pz, most):
    """Compute signed distance and gradient in the shape's frame; a distance of ``most`` or more need not be exact."""
    r, t, s = ROTATION, TRANSLATION, PARAMETERS
    x = numbers[i, r] * px + numbers[i, r + 1] * py + numbers[i, r + 2] * pz + numbers[i, t]
    y = numbers[i, r + 3] * px + numbers[i, r + 4] * py + numbers[i, r + 5] * pz + numbers[i, t + 1]
    z = numbers[i, r + 6] * px + numbers[i, r + 7] * py + numbers[i, r + 8] * pz + numbers[i, t + 2]
    kind = integers[i, KIND]
    if kind == BOX:
        return _box(x, y, z, numbers[i, s], numbers[i, s + 1], numbers[i, s + 2])
    if kind == SPHERE:
        return _sphere(x, y, z, numbers[i, s])
    if kind == CYLINDER:
        return _cylinder(x, y, z, numbers[i, s], numbers[i, s + 1])
    if kind == CAPSULE:
        h = numbers[i, s + 1]
        return _sphere(x, y, z - min(max(z, -h), h), numbers[i, s])
    if kind == CONE:
        return _cone(x, y, z, numbers[i, s], numbers[i, s + 1])
    if kind == PLANE:
        return z, 0.0, 0.0, 1.0
    tree = _tree(integers[i, TREE])
    if kind == MESH:
        return _mesh(tree, x, y, z, most)
    if kind == POINT_CLOUD:
        return _cloud(tree, x, y, z, most)
    if kind == OCTOMAP:
        return _octomap(tree, x, y, z, most)
    return _height_map(tree, x, y, z, most)


@njit(**_INLINE)
def _sphere(x, y, z, radius):
    length = np.sqrt(x * x + y * y + z * z)
    if length < TINY:
        return length - radius, 0.0, 0.0, 1.0
    return length - radius, x / length, y / length, z / length


@njit(**_INLINE)
def _box(x, y, z, hx, hy, hz):
    """Compute the signed distance to a box with half edges hx, hy, hz."""
    dx, dy, dz = abs(x) - hx, abs(y) - hy, abs(z) - hz
    if dx > 0.0 or dy > 0.0 or dz > 0.0:
        dx, dy, dz = max(dx, 0.0), max(dy, 0.0), max(dz, 0.0)
        length = np.sqrt(dx * dx + dy * dy + dz * dz)
        return length, np.copysign(dx / length, x), np.copysign(dy / length, y), np.copysign(dz / length, z)
    if dx >= dy and dx >= dz:
        return dx, np.copysign(1.0, x), 0.0, 0.0
    if dy >= dz:
        return dy, 0.0, np.copysign(1.0, y), 0.0
    return dz, 0.0, 0.0, np.copysign(1.0, z)


@njit(**_INLINE)
def _cylinder(x, y, z, radius, h):
    """Compute the signed distance to a cylinder of half length h."""
    rho = np.sqrt(x * x + y * y)
    ux, uy = (x / rho, y / rho) if rho > TINY else (1.0, 0.0)
    dr, dz = rho - radius, abs(z) - h
    if dr > 0.0 and dz > 0.0:
        length = np.sqrt(dr * dr + dz * dz)
        return length, dr / length * ux, dr / length * uy, np.copysign(dz / length, z)
    if dr > dz:
        return dr, ux, uy, 0.0
    return dz, 0.0, 0.0, np.copysign(1.0, z)


@njit(**_INLINE)
def _cone(x, y, z, radius, h):
    """Compute the signed distance to a cone of half length h.

    In the half plane of the axis and the point it is a triangle, of which two sides are surface.
    """
    rho = np.sqrt(x * x + y * y)
    ux, uy = (x / rho, y / rho) if rho > TINY else (1.0, 0.0)
    slant = np.sqrt(radius * radius + 4.0 * h * h)
    # The slanted side runs from (radius, -h) along (tr, tz) to the apex; its outward normal is (tz, -tr).
    tr, tz = -radius / slant, 2.0 * h / slant
    along = (rho - radius) * tr + (z + h) * tz
    beyond = (rho - radius) * tz - (z + h) * tr
    below = -h - z
    if beyond <= 0.0 and below <= 0.0:
        if beyond > below:
            return beyond, tz * ux, tz * uy, -tr
        return below, 0.0, 0.0, -1.0
    if rho <= radius and below > 0.0:
        return below, 0.0, 0.0, -1.0
    along = min(max(along, 0.0), slant)
    dr, dz = rho - (radius + along * tr), z - (-h + along * tz)
    length = np.sqrt(dr * dr + dz * dz)
    if length < TINY:
        return length, tz * ux, tz * uy, -tr
    return length, dr / length * ux, dr / length * uy, dz / length


@njit(**_INLINE)
def _box_distance2(tree, node, x, y, z):
    """Return the squared distance to a node's box, 0 inside."""
    dx = max(max(_at(tree, node) - x, x - _at(tree, node + 3)), 0.0)
    dy = max(max(_at(tree, node + 1) - y, y - _at(tree, node + 4)), 0.0)
    dz = max(max(_at(tree, node + 2) - z, z - _at(tree, node + 5)), 0.0)
    return dx * dx + dy * dy + dz * dz


@njit(**_INLINE)
def _box_signed(tree, node, x, y, z):
    dx = max(_at(tree, node) - x, x - _at(tree, node + 3))
    dy = max(_at(tree, node + 1) - y, y - _at(tree, node + 4))
    dz = max(_at(tree, node + 2) - z, z - _at(tree, node + 5))
    inside = max(max(dx, dy), dz)
    if inside <= 0.0:
        return inside
    dx, dy, dz = max(dx, 0.0), max(dy, 0.0), max(dz, 0.0)
    return np.sqrt(dx * dx + dy * dy + dz * dz)


@njit(**_INNER)
def _cloud(tree, x, y, z, most):
    """Find the nearest point by depth-first search, the nearer child first."""
    radius = _at(tree, EXTRA)
    reach = most + radius
    if reach <= 0.0:
        return most, 0.0, 0.0, 0.0
    count, levels = int(_at(tree, COUNT)), int(_at(tree, LEVELS))
    items = TREE_HEADER + BOX_NODE * ((2 << levels) - 1)
    best, nearest = reach * reach, -1
    stack = _stack()
    _put(stack, 0, 0.0)
    _put(stack, 1, _box_distance2(tree, TREE_HEADER, x, y, z))
    size = 1
    leaves = (1 << levels) - 1
    while size > 0:
        size -= 1
        node, bound = int(_at(stack, 2 * size)), _at(stack, 2 * size + 1)
        if bound >= best:
            continue
        if node < leaves:
            size = _push(tree, BOX_NODE, stack, size, node, x, y, z, best)
            continue
        leaf = node - leaves
        for item in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
            place = items + POINT_ITEM * item
            dx, dy, dz = x - _at(tree, place), y - _at(tree, place + 1), z - _at(tree, place + 2)
            d = dx * dx + dy * dy + dz * dz
            if d < best:
                best, nearest = d, place
    if nearest < 0:
        return most, 0.0, 0.0, 0.0
    return _sphere(x - _at(tree, nearest), y - _at(tree, nearest + 1), z - _at(tree, nearest + 2), radius)


@njit(**_INLINE)
def _push(tree, stride, stack, size, node, x, y, z, best):
    """Push both children of a node that are nearer than ``best`` onto the stack, the nearer one last."""
    first = 2 * node + 1
    d = _box_distance2(tree, TREE_HEADER + stride * first, x, y, z)
    e = _box_distance2(tree, TREE_HEADER + stride * (first + 1), x, y, z)
    second = first + 1
    if d < e:
        first, second = second, first
        d, e = e, d
    if d < best:
        _put(stack, 2 * size, float(first))
        _put(stack, 2 * size + 1, d)
        size += 1
    if e < best:
        _put(stack, 2 * size, float(second))
        _put(stack, 2 * size + 1, e)
        size += 1
    return size


@njit(**_INNER)
def _octomap(tree, x, y, z, most):
    count, levels = int(_at(tree, COUNT)), int(_at(tree, LEVELS))
    items = TREE_HEADER + BOX_NODE * ((2 << levels) - 1)
    best, nearest = most, -1
    stack = _stack()
    _put(stack, 0, 0.0)
    _put(stack, 1, _box_signed(tree, TREE_HEADER, x, y, z))
    size = 1
    leaves = (1 << levels) - 1
    while size > 0:
        size -= 1
        node, bound = int(_at(stack, 2 * size)), _at(stack, 2 * size + 1)
        if bound >= best:
            continue
        if node < leaves:
            first = 2 * node + 1
            second = first + 1
            d = _box_signed(tree, TREE_HEADER + BOX_NODE * first, x, y, z)
            e = _box_signed(tree, TREE_HEADER + BOX_NODE * second, x, y, z)
            if d < e:
                first, second = second, first
                d, e = e, d
            _put(stack, 2 * size, float(first))
            _put(stack, 2 * size + 1, d)
            _put(stack, 2 * size + 2, float(second))
            _put(stack, 2 * size + 3, e)
            size += 2
            continue
        leaf = node - leaves
        for item in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
            place = items + VOXEL_ITEM * item
            half = _at(tree, place + 3)
            dx = abs(x - _at(tree, place)) - half
            dy = abs(y - _at(tree, place + 1)) - half
            dz = abs(z - _at(tree, place + 2)) - half
            d = max(max(dx, dy), dz)
            if d > 0.0:
                dx, dy, dz = max(dx, 0.0), max(dy, 0.0), max(dz, 0.0)
                d = np.sqrt(dx * dx + dy * dy + dz * dz)
            if d < best:
                best, nearest = d, place
    if nearest < 0:
        return most, 0.0, 0.0, 0.0
    half = _at(tree, nearest + 3)
    return _box(
        x - _at(tree, nearest), y - _at(tree, nearest + 1), z - _at(tree, nearest + 2), half, half, half
    )


@njit(**_INNER)
def _mesh(tree, x, y, z, most):
    """Compute the distance to the nearest triangle; its sign is that of the winding number, which no bad triangle
    upsets."""
    outside = _box_distance2(tree, TREE_HEADER, x, y, z) > 0.0 or _winding(tree, x, y, z) < 0.5
    if outside and most <= 0.0:
        return most, 0.0, 0.0, 0.0
    best = most * most if outside else np.inf
    count, levels = int(_at(tree, COUNT)), int(_at(tree, LEVELS))
    items = TREE_HEADER + MESH_NODE * ((2 << levels) - 1)
    nearest = -1
    qx = qy = qz = 0.0
    stack = _stack()
    _put(stack, 0, 0.0)
    _put(stack, 1, _box_distance2(tree, TREE_HEADER, x, y, z))
    size = 1
    leaves = (1 << levels) - 1
    while size > 0:
        size -= 1
        node, bound = int(_at(stack, 2 * size)), _at(stack, 2 * size + 1)
        if bound >= best:
            continue
        if node < leaves:
            size = _push(tree, MESH_NODE, stack, size, node, x, y, z, best)
            continue
        leaf = node - leaves
        for item in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
            place = items + TRIANGLE_ITEM * item
            d, dx, dy, dz = _to_triangle(
                x - _at(tree, place),
                y - _at(tree, place + 1),
                z - _at(tree, place + 2),
                _at(tree, place + 3) - _at(tree, place),
                _at(tree, place + 4) - _at(tree, place + 1),
                _at(tree, place + 5) - _at(tree, place + 2),
                _at(tree, place + 6) - _at(tree, place),
                _at(tree, place + 7) - _at(tree, place + 1),
                _at(tree, place + 8) - _at(tree, place + 2),
                _at(tree, place + 9),
                _at(tree, place + 10),
                _at(tree, place + 11),
            )
            if d < best:
                best, nearest, qx, qy, qz = d, place, dx, dy, dz
    if nearest < 0:
        return most, 0.0, 0.0, 0.0
    d = np.sqrt(best)
    sign = 1.0 if outside else -1.0
    if d < TINY:
        nx, ny, nz = _at(tree, nearest + 9), _at(tree, nearest + 10), _at(tree, nearest + 11)
        return sign * d, nx, ny, nz if nx != 0.0 or ny != 0.0 or nz != 0.0 else 1.0
    return sign * d, sign * qx / d, sign * qy / d, sign * qz / d


@njit(**_INLINE)
def _to_segment(px, py, pz, ex, ey, ez):
    """Return squared length and vector from the nearest point of a segment that starts at the origin to p."""
    length = ex * ex + ey * ey + ez * ez
    t = px * ex + py * ey + pz * ez
    t = min(max(t / length, 0.0), 1.0) if length > 0.0 else 0.0
    dx, dy, dz = px - t * ex, py - t * ey, pz - t * ez
    return dx * dx + dy * dy + dz * dz, dx, dy, dz


@njit(**_INNER)
def _to_triangle(px, py, pz, bx, by, bz, cx, cy, cz, nx, ny, nz):
    """Return squared length and vector from the nearest point of a triangle to p.

    One corner of the triangle is at the origin, the others are b and c, and n is its unit normal.

    A normal of zeros marks a triangle without area, of which only the sides count.
    """
    ex, ey, ez = cx - bx, cy - by, cz - bz
    rx, ry, rz = px - bx, py - by, pz - bz
    # Which side of every edge, seen along the normal; inside is left of all.
    left_b = nx * (by * pz - bz * py) + ny * (bz * px - bx * pz) + nz * (bx * py - by * px)
    left_e = nx * (ey * rz - ez * ry) + ny * (ez * rx - ex * rz) + nz * (ex * ry - ey * rx)
    left_c = nx * (cz * py - cy * pz) + ny * (cx * pz - cz * px) + nz * (cy * px - cx * py)
    if left_b > 0.0 and left_e > 0.0 and left_c > 0.0:
        height = px * nx + py * ny + pz * nz
        return height * height, height * nx, height * ny, height * nz
    best, dx, dy, dz = np.inf, 0.0, 0.0, 0.0
    if left_b <= 0.0:
        best, dx, dy, dz = _to_segment(px, py, pz, bx, by, bz)
    if left_c <= 0.0:
        d, x, y, z = _to_segment(px, py, pz, cx, cy, cz)
        if d < best:
            best, dx, dy, dz = d, x, y, z
    if left_e <= 0.0:
        d, x, y, z = _to_segment(rx, ry, rz, ex, ey, ez)
        if d < best:
            best, dx, dy, dz = d, x, y, z
    return best, dx, dy, dz


@njit(**_INNER)
def _winding(tree, x, y, z):
    """Compute how often the surface goes round a point: for closed meshes 0 outside, 1 inside, but for a small error.

    G. Barill et al., "Fast winding numbers for soups and clouds", ACM Transactions on Graphics 37 (2018), dipoles
    only. What is near is exact: A. van Oosterom and J. Strackee, "The solid angle of a plane triangle", 1983.
    """
    count, levels = int(_at(tree, COUNT)), int(_at(tree, LEVELS))
    items = TREE_HEADER + MESH_NODE * ((2 << levels) - 1)
    leaves = (1 << levels) - 1
    total = 0.0
    stack = _stack()
    _put(stack, 0, 0.0)
    size = 1
    while size > 0:
        size -= 1
        node = int(_at(stack, size))
        place = TREE_HEADER + MESH_NODE * node
        dx = _at(tree, place + MIDDLE) - x
        dy = _at(tree, place + MIDDLE + 1) - y
        dz = _at(tree, place + MIDDLE + 2) - z
        d2 = dx * dx + dy * dy + dz * dz
        near = FAR_ENOUGH * _at(tree, place + SPREAD)
        if d2 > near * near:
            flow = dx * _at(tree, place + NORMAL)
            flow += dy * _at(tree, place + NORMAL + 1) + dz * _at(tree, place + NORMAL + 2)
            total += flow / (d2 * np.sqrt(d2))
        elif node < leaves:
            _put(stack, size, float(2 * node + 1))
            _put(stack, size + 1, float(2 * node + 2))
            size += 2
        else:
            leaf = node - leaves
            for item in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
                total += _solid_angle(tree, items + TRIANGLE_ITEM * item, x, y, z)
    return total / (4.0 * np.pi)


@njit(**_INNER)
def _solid_angle(tree, place, x, y, z):
    ax, ay, az = _at(tree, place) - x, _at(tree, place + 1) - y, _at(tree, place + 2) - z
    bx, by, bz = _at(tree, place + 3) - x, _at(tree, place + 4) - y, _at(tree, place + 5) - z
    cx, cy, cz = _at(tree, place + 6) - x, _at(tree, place + 7) - y, _at(tree, place + 8) - z
    a = np.sqrt(ax * ax + ay * ay + az * az)
    b = np.sqrt(bx * bx + by * by + bz * bz)
    c = np.sqrt(cx * cx + cy * cy + cz * cz)
    volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
    ab, bc, ca = ax * bx + ay * by + az * bz, bx * cx + by * cy + bz * cz, cx * ax + cy * ay + cz * az
    return 2.0 * np.arctan2(volume, a * b * c + ab * c + bc * a + ca * b)


@njit(**_INLINE)
def _height(tree, i, j):
    """Return the height of a point of the grid, or of the nearest one."""
    rows, columns = int(_at(tree, ROWS)), int(_at(tree, COLUMNS))
    return _at(tree, HEIGHT_HEADER + min(max(i, 0), rows - 1) * columns + min(max(j, 0), columns - 1))


@njit(**_INNER)
def _ground(tree, i, j, x, y, z):
    """Nearest point of the ground's surface in a cell between the points (i, j) and (i + 1, j + 1) of the grid.

    Two triangles on the higher diagonal, which contain the bilinear surface and exceed it by at most a quarter of the
    difference of the sums of heights over the diagonals. Cells beside the grid (i = -1, for one) have no end; they are
    level across, so that cutting them off beyond the point changes nothing. Returns squared distance and vector to
    the point, the triangle's normal, and the height of the surface at (x, y), or infinity beside the cell.
    """
    step = _at(tree, RESOLUTION)
    rows, columns = int(_at(tree, ROWS)), int(_at(tree, COLUMNS))
    x0, x1 = i * step, (i + 1) * step
    y0, y1 = j * step, (j + 1) * step
    if i < 0:
        x0 = min(x, 0.0) - step
    if i == rows - 1:
        x1 = max(x, x0) + step
    if j < 0:
        y0 = min(y, 0.0) - step
    if j == columns - 1:
        y1 = max(y, y0) + step
    h00, h10 = _height(tree, i, j), _height(tree, i + 1, j)
    h01, h11 = _height(tree, i, j + 1), _height(tree, i + 1, j + 1)
    if h00 + h11 >= h10 + h01:
        d, dx, dy, dz, nx, ny, nz, h = _facet(x, y, z, x0, y0, h00, x1, y0, h10, x1, y1, h11)
        e, ex, ey, ez, mx, my, mz, g = _facet(x, y, z, x0, y0, h00, x1, y1, h11, x0, y1, h01)
    else:
        d, dx, dy, dz, nx, ny, nz, h = _facet(x, y, z, x0, y0, h00, x1, y0, h10, x0, y1, h01)
        e, ex, ey, ez, mx, my, mz, g = _facet(x, y, z, x1, y0, h10, x1, y1, h11, x0, y1, h01)
    # Both planes cross in the diagonal, a ridge: the lower one is the surface.
    h = min(h, g) if x0 <= x <= x1 and y0 <= y <= y1 else np.inf
    if e < d:
        return e, ex, ey, ez, mx, my, mz, h
    return d, dx, dy, dz, nx, ny, nz, h


@njit(**_INNER)
def _facet(x, y, z, ax, ay, az, bx, by, bz, cx, cy, cz):
    """Return for one triangle: squared distance, vector to p, upward normal, height of its plane at (x, y)."""
    bx, by, bz, cx, cy, cz = bx - ax, by - ay, bz - az, cx - ax, cy - ay, cz - az
    nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    length = np.sqrt(nx * nx + ny * ny + nz * nz)
    nx, ny, nz = nx / length, ny / length, nz / length
    d, dx, dy, dz = _to_triangle(x - ax, y - ay, z - az, bx, by, bz, cx, cy, cz, nx, ny, nz)
    return d, dx, dy, dz, nx, ny, nz, az - (nx * (x - ax) + ny * (y - ay)) / nz


@njit(**_INNER)
def _height_map(tree, x, y, z, most):
    """Distance to the surface of ``_ground``: a pyramid of lowest and highest heights, searched nearest first."""
    step = _at(tree, RESOLUTION)
    rows, columns = int(_at(tree, ROWS)), int(_at(tree, COLUMNS))
    top = int(_at(tree, HEIGHT_LEVELS)) - 1
    i = int(min(max(np.floor(x / step), -1.0), rows - 1.0))
    j = int(min(max(np.floor(y / step), -1.0), columns - 1.0))
    best, dx, dy, dz, nx, ny, nz, h = _ground(tree, i, j, x, y, z)
    outside = z > h
    if outside:
        if most <= 0.0:
            return most, 0.0, 0.0, 0.0
        best = min(best, most * most)
    stack = _stack()
    size = 1
    _put(stack, 0, float(top))
    _put(stack, 1, 0.0)
    _put(stack, 2, 0.0)
    while size > 0:
        size -= 1
        level, a, b = int(_at(stack, 3 * size)), int(_at(stack, 3 * size + 1)), int(_at(stack, 3 * size + 2))
        if _cell_distance2(tree, level, a, b, x, y, z) >= best:
            continue
        if level == 0:
            d, ex, ey, ez, mx, my, mz, _ = _ground(tree, a - 1, b - 1, x, y, z)
            if d < best:
                best, dx, dy, dz, nx, ny, nz = d, ex, ey, ez, mx, my, mz
            continue
        # The quarter towards the point is put on the stack last.
        width = (1 << level) >> 1
        near_a = 1 if x > ((2 * a + 1) * width - 1) * step else 0
        near_b = 1 if y > ((2 * b + 1) * width - 1) * step else 0
        blocks_a, blocks_b = _blocks(rows, level - 1), _blocks(columns, level - 1)
        for quarter in range(4):
            qa = 2 * a + (near_a if quarter >= 2 else 1 - near_a)
            qb = 2 * b + (near_b if quarter % 2 == 1 else 1 - near_b)
            if qa < blocks_a and qb < blocks_b:
                _put(stack, 3 * size, float(level - 1))
                _put(stack, 3 * size + 1, float(qa))
                _put(stack, 3 * size + 2, float(qb))
                size += 1
    d = np.sqrt(best)
    sign = 1.0 if outside else -1.0
    if d < TINY:
        return sign * d, nx, ny, nz
    return sign * d, sign * dx / d, sign * dy / d, sign * dz / d


@njit(**_INLINE)
def _blocks(points, level):
    """Return how many blocks of cells a level has along an axis with so many points."""
    return (points + (1 << level)) >> level


@njit(**_INNER)
def _cell_distance2(tree, level, a, b, x, y, z):
    """Return the squared distance to the box round the surface in a block of cells; cell 0 lies before the first
    point."""
    step = _at(tree, RESOLUTION)
    rows, columns = int(_at(tree, ROWS)), int(_at(tree, COLUMNS))
    place = int(_at(tree, PLACES + level)) + 2 * (a * _blocks(columns, level) + b)
    dx = dy = 0.0
    first, last = (a << level) - 1, ((a + 1) << level) - 1
    if first >= 0:
        dx = max(dx, first * step - x)
    if last < rows:
        dx = max(dx, x - last * step)
    first, last = (b << level) - 1, ((b + 1) << level) - 1
    if first >= 0:
        dy = max(dy, first * step - y)
    if last < columns:
        dy = max(dy, y - last * step)
    dz = max(max(_at(tree, place) - z, z - _at(tree, place + 1)), 0.0)
    return dx * dx + dy * dy + dz * dz
