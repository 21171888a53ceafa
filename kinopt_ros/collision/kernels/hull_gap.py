"""Lower bounds of the distances of convex pieces, compiled: what clears most pairs of shapes before coal is asked.

A piece is the hull of points, a box, a cylinder or a cone, widened on all sides by a radius (so that a sphere is one
point and a capsule two). Whatever direction is looked along, the gap between the two shadows is a lower bound; the
search for the best direction (E. Gilbert, D. Johnson, S. Keerthi, "A fast procedure for computing the distance
between complex objects", 1988) only decides how good it is. So bounds hold however the search ends, but for rounding.
"""

import numpy as np

from kinopt_ros.compiler_options import INLINE, INNER
from kinopt_ros.numba_cache import njit

POINTS, BOX, CYLINDER, CONE = range(4)
KIND, FIRST, LAST, RADIUS, SIZE, CENTER, REACH, CLUSTER = 0, 1, 2, 3, 4, 7, 10, 11
"""Columns of a row of ``packed_bodies.PackedBodies.pieces``; SIZE and CENTER begin three."""
COLUMNS = 12
WIDTH = 16
"""Points of a cluster. They follow each other; the last cluster of a piece may have fewer."""
FEW = 40
"""Points up to which a piece has no clusters."""
ROUNDING = 1e-9
"""Length that bounds are lowered by against rounding errors, m."""
_STEPS = 24
_CONVERGED = 1e-9
"""Relative gap of the squared distance to its lower bound at which the iteration ends."""
_SMALLEST = 1e-20
"""Squared distance from the origin below which a point counts as being there, m^2."""


@njit(**INNER)
def hull_gap(hulls, placed, a, i, b, j, direction, wanted, W):
    """Compute a lower bound (m) of the distance of two pieces; it says little where they overlap.

    The direction that the bound belongs to, a unit vector, is in W[4].

    Args: rows of pieces, their points, and clusters of these; poses (S, 4, 4) of shapes; numbers of a shape and of its
    piece, and of another; a first direction, from a to b, not 0; wanted (least, enough, loose): the search ends when
    the bound reaches ``enough``, is known to stay below ``least``, or is not below it and too low by ``loose`` at most;
    W (5, 3): memory.
    """
    pieces, points, clusters = hulls
    least, enough, loose = wanted
    widened = pieces[i, RADIUS] + pieces[j, RADIUS] + ROUNDING
    best = -np.inf
    size = 0
    # v is a point of the difference b - a, first only a direction.
    vx, vy, vz = direction
    square = vx * vx + vy * vy + vz * vz
    for step in range(_STEPS):
        ax, ay, az = _farthest(pieces, points, clusters, placed, a, i, vx, vy, vz)
        bx, by, bz = _farthest(pieces, points, clusters, placed, b, j, -vx, -vy, -vz)
        wx, wy, wz = bx - ax, by - ay, bz - az
        along = vx * wx + vy * wy + vz * wz
        length = np.sqrt(square)
        if along / length - widened > best:
            best = along / length - widened
            W[4, 0], W[4, 1], W[4, 2] = vx / length, vy / length, vz / length
        if best >= enough:
            return best
        if step > 0:
            most = length - widened
            if square - along <= _CONVERGED * square or most < least:
                return best
            if most < enough and best >= least and most - best <= loose:
                return best
        W[size, 0], W[size, 1], W[size, 2] = wx, wy, wz
        size, vx, vy, vz = _nearest(W, size + 1)
        before, square = square, vx * vx + vy * vy + vz * vz
        if size == 4 or not square > _SMALLEST or (step > 0 and square >= before):
            return best
    return best


@njit(**INNER)
def plane_gap(hulls, placed, a, i, nx, ny, nz, height):
    """Compute the distance of a piece from the half-space below a plane: normal and height above the origin."""
    pieces, points, clusters = hulls
    x, y, z = _farthest(pieces, points, clusters, placed, a, i, -nx, -ny, -nz)
    return nx * x + ny * y + nz * z - height - pieces[i, RADIUS] - ROUNDING


@njit(**INLINE)
def _farthest(pieces, points, clusters, placed, s, k, x, y, z):
    """Return the point of piece k of shape s, without its radius, that is farthest along a direction."""
    dx = placed[s, 0, 0] * x + placed[s, 1, 0] * y + placed[s, 2, 0] * z
    dy = placed[s, 0, 1] * x + placed[s, 1, 1] * y + placed[s, 2, 1] * z
    dz = placed[s, 0, 2] * x + placed[s, 1, 2] * y + placed[s, 2, 2] * z
    kind = pieces[k, KIND]
    if kind == POINTS:
        first, last = int(pieces[k, FIRST]), int(pieces[k, LAST])
        if last - first <= FEW:
            far, _ = _farthest_of(points, first, last, dx, dy, dz, first, -np.inf)
        else:
            far = _farthest_by_clusters(points, clusters, int(pieces[k, CLUSTER]), first, last, dx, dy, dz)
        px, py, pz = points[far, 0], points[far, 1], points[far, 2]
    elif kind == BOX:
        px = pieces[k, SIZE] if dx >= 0.0 else -pieces[k, SIZE]
        py = pieces[k, SIZE + 1] if dy >= 0.0 else -pieces[k, SIZE + 1]
        pz = pieces[k, SIZE + 2] if dz >= 0.0 else -pieces[k, SIZE + 2]
    else:
        radius, half = pieces[k, SIZE], pieces[k, SIZE + 2]
        across = np.sqrt(dx * dx + dy * dy)
        if kind == CONE and half * dz >= radius * across - half * dz:
            px, py, pz = 0.0, 0.0, half
        else:
            part = radius / across if across > 0.0 else 0.0
            px, py = part * dx, part * dy
            pz = half if kind == CYLINDER and dz >= 0.0 else -half
    return (
        placed[s, 0, 0] * px + placed[s, 0, 1] * py + placed[s, 0, 2] * pz + placed[s, 0, 3],
        placed[s, 1, 0] * px + placed[s, 1, 1] * py + placed[s, 1, 2] * pz + placed[s, 1, 3],
        placed[s, 2, 0] * px + placed[s, 2, 1] * py + placed[s, 2, 2] * pz + placed[s, 2, 3],
    )


@njit(**INLINE)
def _farthest_of(points, first, last, x, y, z, far, reach):
    """Return which of some points is farther along a direction than ``far``, and how far; else that one."""
    for i in range(first, last):
        along = points[i, 0] * x + points[i, 1] * y + points[i, 2] * z
        if along > reach:
            far, reach = i, along
    return far, reach


@njit(**INNER)
def _farthest_by_clusters(points, clusters, cluster, first, last, x, y, z):
    """Return which of the points of a piece is the farthest along a direction. Only in clusters whose spheres reach
    farther than a point of the best one it is looked for."""
    count = (last - first + WIDTH - 1) // WIDTH
    top, highest = 0, -np.inf
    for c in range(count):
        k = cluster + c
        along = clusters[k, 0] * x + clusters[k, 1] * y + clusters[k, 2] * z
        if along > highest:
            top, highest = c, along
    begin = first + top * WIDTH
    far, reach = _farthest_of(points, begin, min(begin + WIDTH, last), x, y, z, begin, -np.inf)
    length = np.sqrt(x * x + y * y + z * z)
    for c in range(count):
        k = cluster + c
        along = clusters[k, 0] * x + clusters[k, 1] * y + clusters[k, 2] * z
        if c != top and along + clusters[k, 3] * length > reach:
            begin = first + c * WIDTH
            far, reach = _farthest_of(points, begin, min(begin + WIDTH, last), x, y, z, far, reach)
    return far


@njit(**INLINE)
def _nearest(W, size):
    """Find the point of a simplex of up to four points that is nearest to the origin.

    Points that it does not need are dropped; all four stay if the origin is inside. Returns (points left, x, y, z).
    """
    if size == 1:
        return 1, W[0, 0], W[0, 1], W[0, 2]
    if size == 2:
        return _keep(W, *_segment(W, 0, 1), 0, 1, -1)
    if size == 3:
        return _keep(W, *_triangle(W, 0, 1, 2), 0, 1, 2)
    inside = True
    best = np.inf
    mask, x, y, z = 0, 0.0, 0.0, 0.0
    i, j, k = 0, 1, 2
    for face in range(4):
        p, q, r, other = (face + 1) % 4, (face + 2) % 4, (face + 3) % 4, face
        if not _beyond(W, p, q, r, other):
            continue
        inside = False
        corners, fx, fy, fz = _triangle(W, p, q, r)
        square = fx * fx + fy * fy + fz * fz
        if square < best:
            best, mask, x, y, z, i, j, k = square, corners, fx, fy, fz, p, q, r
    if inside:
        return 4, 0.0, 0.0, 0.0
    return _keep(W, mask, x, y, z, i, j, k)


@njit(**INLINE)
def _keep(W, mask, x, y, z, i, j, k):
    """Move the points of the mask (1: i, 2: j, 4: k) to the front."""
    p0, p1, p2 = W[i, 0], W[i, 1], W[i, 2]
    q0, q1, q2 = W[j, 0], W[j, 1], W[j, 2]
    r0, r1, r2 = W[k, 0], W[k, 1], W[k, 2]  # not used where k is -1
    size = 0
    if mask & 1:
        W[size, 0], W[size, 1], W[size, 2] = p0, p1, p2
        size += 1
    if mask & 2:
        W[size, 0], W[size, 1], W[size, 2] = q0, q1, q2
        size += 1
    if mask & 4:
        W[size, 0], W[size, 1], W[size, 2] = r0, r1, r2
        size += 1
    return size, x, y, z


@njit(**INLINE)
def _segment(W, i, j):
    """Return the point of a segment nearest to the origin: (which of its ends are needed, x, y, z)."""
    ex, ey, ez = W[j, 0] - W[i, 0], W[j, 1] - W[i, 1], W[j, 2] - W[i, 2]
    t = -(W[i, 0] * ex + W[i, 1] * ey + W[i, 2] * ez)
    length = ex * ex + ey * ey + ez * ez
    if t <= 0.0 or length <= 0.0:
        return 1, W[i, 0], W[i, 1], W[i, 2]
    if t >= length:
        return 2, W[j, 0], W[j, 1], W[j, 2]
    t /= length
    return 3, W[i, 0] + t * ex, W[i, 1] + t * ey, W[i, 2] + t * ez


@njit(**INNER)
def _triangle(W, i, j, k):
    """Return the point of a triangle nearest to the origin: (which of its corners are needed, x, y, z).

    It is found by the regions of corners and edges (C. Ericson, "Real-Time Collision Detection", 5.1).
    """
    ax, ay, az = W[i, 0], W[i, 1], W[i, 2]
    bx, by, bz = W[j, 0], W[j, 1], W[j, 2]
    cx, cy, cz = W[k, 0], W[k, 1], W[k, 2]
    ux, uy, uz = bx - ax, by - ay, bz - az
    wx, wy, wz = cx - ax, cy - ay, cz - az
    d1, d2 = -(ux * ax + uy * ay + uz * az), -(wx * ax + wy * ay + wz * az)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1, ax, ay, az
    d3, d4 = -(ux * bx + uy * by + uz * bz), -(wx * bx + wy * by + wz * bz)
    if d3 >= 0.0 and d4 <= d3:
        return 2, bx, by, bz
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        t = d1 / (d1 - d3)
        return 3, ax + t * ux, ay + t * uy, az + t * uz
    d5, d6 = -(ux * cx + uy * cy + uz * cz), -(wx * cx + wy * cy + wz * cz)
    if d6 >= 0.0 and d5 <= d6:
        return 4, cx, cy, cz
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        t = d2 / (d2 - d6)
        return 5, ax + t * wx, ay + t * wy, az + t * wz
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return 6, bx + t * (cx - bx), by + t * (cy - by), bz + t * (cz - bz)
    total = va + vb + vc
    s, t = vb / total, vc / total
    return 7, ax + s * ux + t * wx, ay + s * uy + t * wy, az + s * uz + t * wz


@njit(**INLINE)
def _beyond(W, p, q, r, other):
    """Check whether the origin and the fourth point are on different sides of a face, or that cannot be told."""
    ux, uy, uz = W[q, 0] - W[p, 0], W[q, 1] - W[p, 1], W[q, 2] - W[p, 2]
    wx, wy, wz = W[r, 0] - W[p, 0], W[r, 1] - W[p, 1], W[r, 2] - W[p, 2]
    nx, ny, nz = uy * wz - uz * wy, uz * wx - ux * wz, ux * wy - uy * wx
    origin = -(nx * W[p, 0] + ny * W[p, 1] + nz * W[p, 2])
    fourth = nx * (W[other, 0] - W[p, 0]) + ny * (W[other, 1] - W[p, 1]) + nz * (W[other, 2] - W[p, 2])
    return origin * fourth <= 0.0
