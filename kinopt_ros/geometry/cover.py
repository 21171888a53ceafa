"""Cover of a solid's pieces by few spheres that stick out of it little.

A sphere about a point of the solid whose nearest surface is ``depth`` away sticks out at most its radius less that
depth. So for a given excess every point has its sphere, and the fewest of them that cover all pieces are looked for:
greedily, the one that covers most of what is left first. The least excess for which a given number is enough is found
by halving.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.geometry.cells import Cells
from kinopt_ros.geometry.shapes import Box, Capsule, Cone, Cylinder, PlacedShape, Sphere
from kinopt_ros.geometry.surfaces import surface_points
from kinopt_ros.wanted import check_wanted

_SURFACE = 1000
"""Points that stand for the surface. Like everything here they decide how tight the spheres are, not what they hold."""
_LEAST, _TOGETHER = 100, 3200
"""Points of one shape's surface at least, unless those of all would be more than so many together."""
_HIDING = 500
"""Shapes that may hide a point: of more, so many are looked at."""
_CENTERS = 250
_HALVINGS = 8
_ENTRIES = 2**24
"""Most entries of a table in memory; larger tables are worked off in blocks of rows."""


def cover(
    cells: Cells, shapes: Sequence[PlacedShape], most: int, tolerance: float
) -> tuple[Annotated[Int64, "n"], int]:
    """Assign every piece to a sphere; return the assignment and the number of spheres, at most ``most``.

    Args:
        cells: the pieces of the shapes.
        shapes: the shapes.
        most: at most so many spheres.
        tolerance: spheres need not stick out less than this (m).
    """
    centers, depth = _deep_points(cells, shapes)
    middle, half = (cells.upper + cells.lower) / 2.0, (cells.upper - cells.lower) / 2.0
    excess = np.zeros((len(middle), len(centers)))
    """How far the sphere about point j that just covers piece i sticks out (m)."""
    for rows in _blocks(len(middle), len(centers)):
        square = excess[rows]
        for axis in range(3):
            square += (np.abs(middle[rows, axis, None] - centers[:, axis]) + half[rows, axis, None]) ** 2
        excess[rows] = np.sqrt(square) + cells.radius[rows, None] - depth
    low, high = tolerance, max(float(excess.max(axis=0).min()), tolerance)
    chosen = _greedy(excess <= low, most)
    if chosen is None:
        chosen = [int(excess.max(axis=0).argmin())]
        for _ in range(_HALVINGS):
            between = (low + high) / 2.0
            found = _greedy(excess <= between, most)
            if found is None:
                low = between
            else:
                high, chosen = between, found
    owner = excess[:, chosen].argmin(axis=1)
    used, owner = np.unique(owner, return_inverse=True)
    return owner.astype(np.int64), len(used)


def _greedy(covers: Annotated[Bool, "n m"], most: int) -> list[int] | None:
    """Choose columns that cover all rows; None if there would be more than ``most``."""
    chosen: list[int] = []
    while len(covers):
        check_wanted()
        if len(chosen) == most:
            return None
        gain = np.count_nonzero(covers, axis=0)
        best = int(gain.argmax())
        if gain[best] == 0:
            return None
        chosen.append(best)
        covers = covers[~covers[:, best]]
    return chosen


def _deep_points(cells: Cells, shapes: Sequence[PlacedShape]) -> tuple[Float64, Float64]:
    """Return points spread over the solid, some of them moved as far from its surface as they get, and their depths."""
    surface = _outer_surface(shapes)
    middle = (cells.upper + cells.lower) / 2.0
    depth, _ = _to_surface(middle, surface)
    size = float((cells.upper - cells.lower).max(axis=1).mean() + cells.radius.mean() / 8.0)
    block = size
    while True:
        _, number = np.unique(np.floor(middle / block).astype(np.int64), axis=0, return_inverse=True)
        number = number.reshape(-1)
        if number.max() < _CENTERS:
            break
        block *= 1.2
    order = np.lexsort((-depth, number))
    points = middle[order[np.unique(number[order], return_index=True)[1]]]
    moved = points
    depth, nearest = _to_surface(moved, surface)
    step = 0.5 * size
    for _ in range(8):
        further = moved + (moved - nearest) * (step / np.maximum(depth, 1e-12))[:, None]
        further_depth, further_nearest = _to_surface(further, surface)
        better = further_depth > depth
        moved = np.where(better[:, None], further, moved)
        nearest = np.where(better[:, None], further_nearest, nearest)
        depth = np.where(better, further_depth, depth)
        step *= 0.8
    centers = np.concatenate([points, moved])
    return centers, _to_surface(centers, surface)[0]


def _to_surface(points: Float64, surface: Float64) -> tuple[Float64, Float64]:
    """Return the distance to the nearest of the surface's points, and that point."""
    origin = surface.mean(axis=0)
    a, b = (points - origin).astype(np.float32), (surface - origin).astype(np.float32)
    length = (b**2).sum(axis=1)
    nearest = np.concatenate(
        [(length - 2.0 * a[rows] @ b.T).argmin(axis=1) for rows in _blocks(len(a), len(b))]
    )
    found: Float64 = surface[nearest]
    return np.sqrt(((points - found) ** 2).sum(axis=1)), found


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield the rows of a table in parts that fit in memory."""
    most = max(_ENTRIES // max(columns, 1), 1)
    for start in range(0, rows, most):
        check_wanted()
        yield slice(start, start + most)


def _outer_surface(shapes: Sequence[PlacedShape]) -> Float64:
    """Return points on the shapes' surfaces, without those that lie inside another primitive.

    Few points each, of many shapes, are looked at together, and what of others hides them: else the time would grow by
    the square of their number.
    """
    hiding = range(0, len(shapes), -(-len(shapes) // _HIDING))
    each = max(_SURFACE // len(shapes), min(_LEAST, max(_TOGETHER // len(shapes), 4)))
    group = max(_LEAST // each, 1)
    every, found = [], []
    for first in range(0, len(shapes), group):
        check_wanted()
        some = range(first, min(first + group, len(shapes)))
        parts = [surface_points([shapes[i]], each)[:each] for i in some]
        points, owner = np.concatenate(parts), np.repeat(some, [len(part) for part in parts])
        free = np.ones(len(points), dtype=np.bool_)
        for j in hiding:
            if len(some) > 1 or j != first:
                free[_inside(shapes[j], points) & (owner != j)] = False
        every.append(points)
        found.append(points[free])
    outer = np.concatenate(found)
    return outer if len(outer) else np.concatenate(every)


def _inside(placed: PlacedShape, points: Float64) -> Bool:
    """Check whether points are inside of a primitive; False for other shapes."""
    shape, T = placed.shape, placed.T_frame_shape
    local = (points - T[:3, 3]) @ T[:3, :3]
    across, height = np.hypot(local[:, 0], local[:, 1]), np.abs(local[:, 2])
    inner = 1.0 - 1e-6
    if isinstance(shape, Sphere):
        in_ball: Bool = np.hypot(across, height) < inner * shape.radius
        return in_ball
    if isinstance(shape, Capsule):
        height = (height - shape.length / 2.0).clip(min=0.0)
        in_capsule: Bool = np.hypot(across, height) < inner * shape.radius
        return in_capsule
    if isinstance(shape, Cylinder):
        in_cylinder: Bool = (across < inner * shape.radius) & (height < inner * shape.length / 2.0)
        return in_cylinder
    if isinstance(shape, Cone):
        part = local[:, 2] / shape.length + 0.5
        in_cone: Bool = (part > 1.0 - inner) & (across < inner * shape.radius * (1.0 - part))
        return in_cone
    if isinstance(shape, Box):
        in_box: Bool = (np.abs(local) / (shape.x, shape.y, shape.z)).max(axis=1) < inner / 2.0
        return in_box
    return np.zeros(len(points), dtype=np.bool_)
