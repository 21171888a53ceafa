"""Signed distances of balls to closed meshes, compiled: nearest triangle, inside by winding number."""

import numpy as np

from kinopt_ros.collision.kernels.boxes import box_distance2, push
from kinopt_ros.collision.kernels.layout import (
    COUNT,
    LEVELS,
    MESH_NODE,
    MIDDLE,
    NORMAL,
    SPREAD,
    TREE_HEADER,
    TRIANGLE_ITEM,
)
from kinopt_ros.collision.kernels.memory import get, new_stack, put
from kinopt_ros.collision.kernels.primitives import TINY
from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER
from kinopt_ros.numba_cache import njit

FAR_ENOUGH = 2.0
"""Distance, in radii of theirs, beyond which triangles count as one dipole in the winding number."""


@njit(**FAST_INNER)
def mesh_distance(tree, x, y, z, most):
    """Compute the distance to the nearest triangle; its sign is that of the winding number, which no bad triangle
    upsets."""
    outside = box_distance2(tree, TREE_HEADER, x, y, z) > 0.0 or _winding(tree, x, y, z) < 0.5
    if outside and most <= 0.0:
        return most, 0.0, 0.0, 0.0
    best = most * most if outside else np.inf
    count, levels = int(get(tree, COUNT)), int(get(tree, LEVELS))
    items = TREE_HEADER + MESH_NODE * ((2 << levels) - 1)
    nearest = -1
    qx = qy = qz = 0.0
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
            size = push(tree, MESH_NODE, stack, size, node, x, y, z, best)
            continue
        leaf = node - leaves
        for item in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
            place = items + TRIANGLE_ITEM * item
            ax, ay, az = get(tree, place), get(tree, place + 1), get(tree, place + 2)
            b = get(tree, place + 3) - ax, get(tree, place + 4) - ay, get(tree, place + 5) - az
            c = get(tree, place + 6) - ax, get(tree, place + 7) - ay, get(tree, place + 8) - az
            normal = get(tree, place + 9), get(tree, place + 10), get(tree, place + 11)
            d, dx, dy, dz = to_triangle((x - ax, y - ay, z - az), b, c, normal)
            if d < best:
                best, nearest, qx, qy, qz = d, place, dx, dy, dz
    if nearest < 0:
        return most, 0.0, 0.0, 0.0
    d = np.sqrt(best)
    sign = 1.0 if outside else -1.0
    if d < TINY:
        nx, ny, nz = get(tree, nearest + 9), get(tree, nearest + 10), get(tree, nearest + 11)
        return sign * d, nx, ny, nz if nx != 0.0 or ny != 0.0 or nz != 0.0 else 1.0
    return sign * d, sign * qx / d, sign * qy / d, sign * qz / d


@njit(**FAST_INLINE)
def _to_segment(px, py, pz, ex, ey, ez):
    """Return squared length and vector from the nearest point of a segment that starts at the origin to p."""
    length = ex * ex + ey * ey + ez * ez
    t = px * ex + py * ey + pz * ez
    t = min(max(t / length, 0.0), 1.0) if length > 0.0 else 0.0
    dx, dy, dz = px - t * ex, py - t * ey, pz - t * ez
    return dx * dx + dy * dy + dz * dz, dx, dy, dz


@njit(**FAST_INNER)
def to_triangle(p, b, c, n):
    """Return squared length and vector from the nearest point of a triangle to p.

    One corner of the triangle is at the origin, the others are b and c, and n is its unit normal.

    A normal of zeros marks a triangle without area, of which only the sides count.
    """
    px, py, pz = p
    bx, by, bz = b
    cx, cy, cz = c
    nx, ny, nz = n
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


@njit(**FAST_INNER)
def _winding(tree, x, y, z):
    """Compute how often the surface goes round a point: for closed meshes 0 outside, 1 inside, but for a small error.

    G. Barill et al., "Fast winding numbers for soups and clouds", ACM Transactions on Graphics 37 (2018), dipoles
    only. What is near is exact: A. van Oosterom and J. Strackee, "The solid angle of a plane triangle", 1983.
    """
    count, levels = int(get(tree, COUNT)), int(get(tree, LEVELS))
    items = TREE_HEADER + MESH_NODE * ((2 << levels) - 1)
    leaves = (1 << levels) - 1
    total = 0.0
    stack = new_stack()
    put(stack, 0, 0.0)
    size = 1
    while size > 0:
        size -= 1
        node = int(get(stack, size))
        place = TREE_HEADER + MESH_NODE * node
        dx = get(tree, place + MIDDLE) - x
        dy = get(tree, place + MIDDLE + 1) - y
        dz = get(tree, place + MIDDLE + 2) - z
        d2 = dx * dx + dy * dy + dz * dz
        near = FAR_ENOUGH * get(tree, place + SPREAD)
        if d2 > near * near:
            flow = dx * get(tree, place + NORMAL)
            flow += dy * get(tree, place + NORMAL + 1) + dz * get(tree, place + NORMAL + 2)
            total += flow / (d2 * np.sqrt(d2))
        elif node < leaves:
            put(stack, size, float(2 * node + 1))
            put(stack, size + 1, float(2 * node + 2))
            size += 2
        else:
            leaf = node - leaves
            for item in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
                total += _solid_angle(tree, items + TRIANGLE_ITEM * item, x, y, z)
    return total / (4.0 * np.pi)


@njit(**FAST_INNER)
def _solid_angle(tree, place, x, y, z):
    ax, ay, az = get(tree, place) - x, get(tree, place + 1) - y, get(tree, place + 2) - z
    bx, by, bz = get(tree, place + 3) - x, get(tree, place + 4) - y, get(tree, place + 5) - z
    cx, cy, cz = get(tree, place + 6) - x, get(tree, place + 7) - y, get(tree, place + 8) - z
    a = np.sqrt(ax * ax + ay * ay + az * az)
    b = np.sqrt(bx * bx + by * by + bz * bz)
    c = np.sqrt(cx * cx + cy * cy + cz * cz)
    volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
    ab, bc, ca = ax * bx + ay * by + az * bz, bx * cx + by * cy + bz * cz, cx * ax + cy * ay + cz * az
    return 2.0 * np.arctan2(volume, a * b * c + ab * c + bc * a + ca * b)
