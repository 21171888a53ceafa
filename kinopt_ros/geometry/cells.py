"""Solids cut into small convex pieces, so that whoever contains all pieces contains the solid.

A polyhedron is cut by a grid. What lies of it in one cell of the grid is contained in the convex hull of the pieces of
triangles in that cell and of those corners of the cell that are inside. A corner counts as outside only if a cell at
it is outside, and a cell is outside only if it holds no piece of a triangle and can be reached from beyond the grid
through such cells. So hollows without a way out count as solid, and no ray needs to be cast.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Mesh,
    Octomap,
    PlacedShape,
    PointCloud,
    Sphere,
)
from kinopt_ros.wanted import check_wanted

FACETS = 32
"""Number of sides of the prism around a cylinder or cone; it is 0.5% wider."""

_LEAST, _TOGETHER = 200, 6400
"""A polyhedron is cut into so many pieces at least, unless all of them would be more than so many together: what fits
spheres to the pieces takes time and memory by their number."""

_CORNERS = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)])


@dataclass(frozen=True, eq=False)
class Cells:
    """Pieces of a solid: piece i lies in the convex hull of its points, widened on all sides by its radius."""

    points: Annotated[Float64, "P 3"]
    start: Annotated[Int64, "n"]
    """Index of the first point of every piece."""
    radius: Annotated[Float64, "n"]
    lower: Annotated[Float64, "n 3"]
    upper: Annotated[Float64, "n 3"]
    """Upper bounds of every piece's points."""


def cells_of(shapes: Sequence[PlacedShape], pieces: int = 1500) -> Cells:
    """Cut all shapes into about so many pieces, in the frame that they are placed in."""
    parts: list[tuple[Float64, Int64, Float64]] = []
    simple = [part for placed in shapes for part in _without_capsules(placed)]
    polyhedra = sum(not isinstance(placed.shape, Sphere | PointCloud | Octomap) for placed in simple)
    most = max(min(pieces, _TOGETHER // max(len(simple), 1)), 1)
    least = max(min(_LEAST, _TOGETHER // max(polyhedra, 1)), 1)
    for placed in simple:
        check_wanted()
        shape, T = placed.shape, placed.T_frame_shape
        if isinstance(shape, Sphere):
            points, owner, radius = np.zeros((1, 3)), np.zeros(1, dtype=np.int64), np.full(1, shape.radius)
        elif isinstance(shape, PointCloud):
            order, owner = _grouped(shape.points, most)
            points, radius = shape.points[order], np.full(int(owner[-1]) + 1, shape.radius)
        elif isinstance(shape, Octomap):
            order, owner = _grouped(shape.centers, most)
            corners = shape.centers[order, None] + shape.sizes[order, None, None] * (_CORNERS - 0.5)
            points, owner, radius = corners.reshape(-1, 3), np.repeat(owner, 8), np.zeros(int(owner[-1]) + 1)
        else:
            own = pieces if isinstance(shape, Mesh) else pieces // 2
            points, owner = cut(triangles_of(shape), max(own // polyhedra, least))
            radius = np.zeros(int(owner[-1]) + 1)
        parts.append((points @ T[:3, :3].T + T[:3, 3], owner, radius))
    points = np.concatenate([part[0] for part in parts])
    sizes = np.concatenate([np.bincount(part[1]) for part in parts])
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return Cells(
        points=points,
        start=start,
        radius=np.concatenate([part[2] for part in parts]),
        lower=np.minimum.reduceat(points, start),
        upper=np.maximum.reduceat(points, start),
    )


def _grouped(points: Float64, groups: int) -> tuple[Int64, Int64]:
    """Order points in groups of neighbours, at most so many groups; return the order and each point's group."""
    if len(points) <= groups:
        return np.arange(len(points)), np.arange(len(points))
    low, size = points.min(axis=0), np.ptp(points, axis=0)
    width = float(size.max()) / groups
    while True:
        place = np.floor((points - low) / max(width, 1e-300)).astype(np.int64)
        numbers = place @ np.array(
            [1, 1 + place[:, 0].max(), (1 + place[:, 0].max()) * (1 + place[:, 1].max())]
        )
        _, owner = np.unique(numbers, return_inverse=True)
        if owner.max() < groups:
            order = np.argsort(owner, kind="stable")
            return order, owner.reshape(-1)[order]
        width *= 1.3


def _without_capsules(placed: PlacedShape) -> tuple[PlacedShape, ...]:
    """Replace a capsule by a cylinder and two balls. (Pieces of it that are round themselves would need larger
    spheres.)"""
    shape = placed.shape
    if not isinstance(shape, Capsule):
        return (placed,)
    ends = []
    for end in (-shape.length / 2.0, shape.length / 2.0):
        T = placed.T_frame_shape.copy()
        T[:3, 3] += end * T[:3, 2]
        ends.append(PlacedShape(Sphere(shape.radius), T))
    return (PlacedShape(Cylinder(shape.radius, shape.length), placed.T_frame_shape), *ends)


def triangles_of(shape: object) -> Annotated[Float64, "T 3 3"]:
    """Return a closed surface around a shape, in the shape's frame."""
    if isinstance(shape, Mesh):
        return shape.vertices[shape.triangles]
    if isinstance(shape, Box):
        corners = (_CORNERS - 0.5) * (shape.x, shape.y, shape.z)
        faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        return np.array([[corners[i] for i in t] for a, b, c, d in faces for t in ((a, b, c), (a, c, d))])
    if isinstance(shape, Cylinder | Cone):
        angle = np.arange(FACETS) * 2.0 * np.pi / FACETS
        wide = shape.radius / np.cos(np.pi / FACETS)
        low = np.column_stack(
            [wide * np.cos(angle), wide * np.sin(angle), np.full(FACETS, -shape.length / 2)]
        )
        high = (
            low * (1.0, 1.0, -1.0)
            if isinstance(shape, Cylinder)
            else np.tile([0, 0, shape.length / 2], (FACETS, 1))
        )
        bottom, top = np.broadcast_to(low.mean(0), low.shape), np.broadcast_to(high.mean(0), low.shape)
        low2, high2 = np.roll(low, -1, axis=0), np.roll(high, -1, axis=0)
        rings = [(low, low2, high2), (low, high2, high), (bottom, low2, low), (top, high, high2)]
        return np.concatenate([np.stack(ring, axis=1) for ring in rings])
    raise InvalidShapeError(
        f"a {type(shape).__name__} is not cut into pieces; known: Box, Capsule, Cone, Cylinder, Mesh, Octomap, "
        "PointCloud, Sphere"
    )


def cut(triangles: Annotated[Float64, "T 3 3"], pieces: int) -> tuple[Float64, Int64]:
    """Cut a closed surface into about so many pieces: points, and the number of the piece that each belongs to, in
    order."""
    planes = _planes(triangles, pieces)
    for axis in range(3):
        for value in planes[axis][1:-1]:
            triangles = _split(triangles, axis, value)
    middle = triangles.mean(axis=1)
    where = np.column_stack([np.searchsorted(planes[axis][1:-1], middle[:, axis]) for axis in range(3)])
    number = [len(values) - 1 for values in planes]
    crossed = np.zeros(number, dtype=np.bool_)
    crossed[tuple(where.T)] = True
    outside = _outside(crossed)
    beyond = _has_outside(outside)
    taken = np.argwhere(~outside)
    numbers = np.full(number, -1)
    numbers[tuple(taken.T)] = np.arange(len(taken))
    corners = (taken[:, None] + _CORNERS).reshape(-1, 3)
    inside = ~beyond[tuple(corners.T)] | ~np.repeat(crossed[tuple(taken.T)], 8)
    corner_points = np.column_stack([planes[axis][corners[inside, axis]] for axis in range(3)])
    points = np.concatenate([triangles.reshape(-1, 3), corner_points])
    owner = np.concatenate(
        [np.repeat(numbers[tuple(where.T)], 3), np.repeat(np.arange(len(taken)), 8)[inside]]
    )
    order = np.argsort(owner, kind="stable")
    return points[order], owner[order]


def _planes(triangles: Annotated[Float64, "T 3 3"], pieces: int) -> list[Float64]:
    """Return coordinates of the grid's planes along every axis, its bounds included.

    No inner plane holds a triangle, which would belong to the cells on both sides.
    """
    low, high = triangles.min((0, 1)), triangles.max((0, 1))
    size = np.maximum(high - low, 1e-3 * (high - low).max())
    step = float((size.prod() / pieces) ** (1.0 / 3.0))
    number = np.clip(np.rint(size / step), 1, 100).astype(np.int64)
    planes = []
    for axis in range(3):
        values = np.linspace(low[axis], high[axis], number[axis] + 1)
        along = triangles[:, :, axis]
        flat = np.unique(along[np.ptp(along, axis=1) <= 1e-9 * size[axis]])
        flat = np.concatenate([[-np.inf], flat, [np.inf]])
        tries = values[1:-1, None] + np.linspace(0.0, 0.3, 7) * (high[axis] - low[axis]) / number[axis]
        after = np.searchsorted(flat, tries)
        clear = np.minimum(tries - flat[after - 1], flat[after] - tries).clip(max=1e-6 * size[axis])
        values[1:-1] = tries[np.arange(len(tries)), clear.argmax(axis=1)]
        planes.append(values)
    return planes


def _split(triangles: Annotated[Float64, "T 3 3"], axis: int, value: float) -> Annotated[Float64, "U 3 3"]:
    """Cut triangles at a plane, so that the same surface is made of triangles that do not cross it."""
    above = triangles[:, :, axis] > value
    below = triangles[:, :, axis] < value
    crossing = above.any(axis=1) & below.any(axis=1)
    if not crossing.any():
        return triangles
    corners, high = triangles[crossing], above[crossing]
    alone = np.where(high.sum(axis=1) == 1, high.argmax(axis=1), (~high).argmax(axis=1))
    rows = np.arange(len(corners))
    a, b, c = (corners[rows, (alone + turn) % 3] for turn in range(3))
    p, q = _on_plane(a, b, axis, value), _on_plane(a, c, axis, value)
    return np.concatenate(
        [triangles[~crossing], np.stack([a, p, q], 1), np.stack([p, b, c], 1), np.stack([p, c, q], 1)]
    )


def _on_plane(a: Float64, b: Float64, axis: int, value: float) -> Float64:
    part = (value - a[:, axis]) / (b[:, axis] - a[:, axis])
    point: Float64 = a + np.clip(part, 0.0, 1.0)[:, None] * (b - a)
    point[:, axis] = value
    return point


def _outside(crossed: Bool) -> Bool:
    """Find cells that can be reached from beyond the grid without passing a crossed one."""
    free = np.pad(~crossed, 1, constant_values=True)
    reached = np.pad(np.zeros_like(crossed), 1, constant_values=True)
    while True:
        grown = reached.copy()
        for axis in range(3):
            ahead = [slice(None)] * 3
            behind = [slice(None)] * 3
            ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
            grown[tuple(ahead)] |= reached[tuple(behind)]
            grown[tuple(behind)] |= reached[tuple(ahead)]
        grown &= free
        if (grown == reached).all():
            return reached[1:-1, 1:-1, 1:-1]
        reached = grown


def _has_outside(outside: Bool) -> Bool:
    """Check whether one of the cells at a corner of the grid is outside."""
    beyond = np.pad(outside, 1, constant_values=True)
    nx, ny, nz = outside.shape
    corners = np.zeros((nx + 1, ny + 1, nz + 1), dtype=np.bool_)
    for x, y, z in _CORNERS:
        corners |= beyond[x : x + nx + 1, y : y + ny + 1, z : z + nz + 1]
    return corners
