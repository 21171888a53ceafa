"""Signed distances of balls to height maps, compiled."""

import numpy as np

from kinopt_ros.collision.kernels.layout import (
    COLUMNS,
    HEIGHT_HEADER,
    HEIGHT_LEVELS,
    PLACES,
    RESOLUTION,
    ROWS,
)
from kinopt_ros.collision.kernels.memory import get, new_stack, put
from kinopt_ros.collision.kernels.mesh import to_triangle
from kinopt_ros.collision.kernels.primitives import TINY
from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER
from kinopt_ros.numba_cache import njit


@njit(**FAST_INLINE)
def _height(tree, i, j):
    """Return the height of a point of the grid, or of the nearest one."""
    rows, columns = int(get(tree, ROWS)), int(get(tree, COLUMNS))
    return get(tree, HEIGHT_HEADER + min(max(i, 0), rows - 1) * columns + min(max(j, 0), columns - 1))


@njit(**FAST_INNER)
def _ground(tree, i, j, x, y, z):
    """Nearest point of the ground's surface in a cell between the points (i, j) and (i + 1, j + 1) of the grid.

    Two triangles on the higher diagonal, which contain the bilinear surface and exceed it by at most a quarter of the
    difference of the sums of heights over the diagonals. Cells beside the grid (i = -1, for one) have no end; they are
    level across, so that cutting them off beyond the point changes nothing. Returns squared distance and vector to
    the point, the triangle's normal, and the height of the surface at (x, y), or infinity beside the cell.
    """
    step = get(tree, RESOLUTION)
    rows, columns = int(get(tree, ROWS)), int(get(tree, COLUMNS))
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
    p = x, y, z
    if h00 + h11 >= h10 + h01:
        d, dx, dy, dz, nx, ny, nz, h = _facet(p, (x0, y0, h00), (x1, y0, h10), (x1, y1, h11))
        e, ex, ey, ez, mx, my, mz, g = _facet(p, (x0, y0, h00), (x1, y1, h11), (x0, y1, h01))
    else:
        d, dx, dy, dz, nx, ny, nz, h = _facet(p, (x0, y0, h00), (x1, y0, h10), (x0, y1, h01))
        e, ex, ey, ez, mx, my, mz, g = _facet(p, (x1, y0, h10), (x1, y1, h11), (x0, y1, h01))
    # Both planes cross in the diagonal, a ridge: the lower one is the surface.
    h = min(h, g) if x0 <= x <= x1 and y0 <= y <= y1 else np.inf
    if e < d:
        return e, ex, ey, ez, mx, my, mz, h
    return d, dx, dy, dz, nx, ny, nz, h


@njit(**FAST_INNER)
def _facet(p, a, b, c):
    """Return for one triangle: squared distance, vector to p, upward normal, height of its plane at (x, y)."""
    x, y, z = p
    ax, ay, az = a
    bx, by, bz = b
    cx, cy, cz = c
    bx, by, bz, cx, cy, cz = bx - ax, by - ay, bz - az, cx - ax, cy - ay, cz - az
    nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    length = np.sqrt(nx * nx + ny * ny + nz * nz)
    nx, ny, nz = nx / length, ny / length, nz / length
    d, dx, dy, dz = to_triangle((x - ax, y - ay, z - az), (bx, by, bz), (cx, cy, cz), (nx, ny, nz))
    return d, dx, dy, dz, nx, ny, nz, az - (nx * (x - ax) + ny * (y - ay)) / nz


@njit(**FAST_INNER)
def height_map_distance(tree, x, y, z, most):
    """Distance to the surface of ``_ground``: a pyramid of lowest and highest heights, searched nearest first."""
    step = get(tree, RESOLUTION)
    rows, columns = int(get(tree, ROWS)), int(get(tree, COLUMNS))
    top = int(get(tree, HEIGHT_LEVELS)) - 1
    i = int(min(max(np.floor(x / step), -1.0), rows - 1.0))
    j = int(min(max(np.floor(y / step), -1.0), columns - 1.0))
    best, dx, dy, dz, nx, ny, nz, h = _ground(tree, i, j, x, y, z)
    outside = z > h
    if outside:
        if most <= 0.0:
            return most, 0.0, 0.0, 0.0
        best = min(best, most * most)
    stack = new_stack()
    size = 1
    put(stack, 0, float(top))
    put(stack, 1, 0.0)
    put(stack, 2, 0.0)
    while size > 0:
        size -= 1
        level, a, b = int(get(stack, 3 * size)), int(get(stack, 3 * size + 1)), int(get(stack, 3 * size + 2))
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
                put(stack, 3 * size, float(level - 1))
                put(stack, 3 * size + 1, float(qa))
                put(stack, 3 * size + 2, float(qb))
                size += 1
    d = np.sqrt(best)
    sign = 1.0 if outside else -1.0
    if d < TINY:
        return sign * d, nx, ny, nz
    return sign * d, sign * dx / d, sign * dy / d, sign * dz / d


@njit(**FAST_INLINE)
def _blocks(points, level):
    """Return how many blocks of cells a level has along an axis with so many points."""
    return (points + (1 << level)) >> level


@njit(**FAST_INNER)
def _cell_distance2(tree, level, a, b, x, y, z):
    """Return the squared distance to the box round the surface in a block of cells; cell 0 lies before the first
    point."""
    step = get(tree, RESOLUTION)
    rows, columns = int(get(tree, ROWS)), int(get(tree, COLUMNS))
    place = int(get(tree, PLACES + level)) + 2 * (a * _blocks(columns, level) + b)
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
    dz = max(max(get(tree, place) - z, z - get(tree, place + 1)), 0.0)
    return dx * dx + dy * dy + dz * dz
