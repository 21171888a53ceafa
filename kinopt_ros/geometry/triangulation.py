"""Triangles of shapes, to draw them. Round shapes become polyhedra; nothing is computed with these but pictures."""

from typing import Annotated, TypeAlias

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightMap,
    Mesh,
    Octomap,
    Plane,
    PointCloud,
    Shape,
    Sphere,
)

Triangles: TypeAlias = tuple[Annotated[Float64, "V 3"], Annotated[Int64, "T 3"]]
"""Vertices (m) and indices of three of them each, counter-clockwise as seen from outside.

Triangles of one smooth surface share vertices, and those that meet at an edge do not: normals averaged at vertices
shade the shape as it is. (Meshes are as they are.)"""

AROUND = 32
"""Number of sides of the polygon that stands for a circle."""
PLANE_SIZE = 4.0
"""Edge of the slab that stands for a half-space, m."""
_SLAB = 0.01
"""Thickness of that slab, m."""
MOST_CELLS = 5_000
"""Most points, cubes and cells of a grid that are drawn; of more, evenly chosen ones are."""


def triangulated(shape: Shape) -> Triangles:
    """Return triangles on a shape's surface, in the shape's frame."""
    match shape:
        case Box(x, y, z):
            return _box(np.array([x, y, z]))
        case Sphere(radius):
            return _turned(*_arc(radius, 0.0, -np.pi / 2.0, np.pi / 2.0, AROUND // 2))
        case Capsule(radius, length):
            low = _arc(radius, -length / 2.0, -np.pi / 2.0, 0.0, AROUND // 4)
            high = _arc(radius, length / 2.0, 0.0, np.pi / 2.0, AROUND // 4)
            return _turned(np.concatenate([low[0], high[0]]), np.concatenate([low[1], high[1]]))
        case Cylinder(radius, length):
            sides = [
                ((0.0, -0.5), (radius, -0.5)),
                ((radius, -0.5), (radius, 0.5)),
                ((radius, 0.5), (0.0, 0.5)),
            ]
            return _turned_sides(sides, length)
        case Cone(radius, length):
            return _turned_sides([((0.0, -0.5), (radius, -0.5)), ((radius, -0.5), (0.0, 0.5))], length)
        case Mesh(vertices=vertices, triangles=triangles):
            return vertices, triangles
        case Plane():
            vertices, triangles = _box(np.array([PLANE_SIZE, PLANE_SIZE, _SLAB]))
            return vertices - np.array([0.0, 0.0, _SLAB / 2.0]), triangles
        case HeightMap(heights=heights, resolution=resolution):
            return _grid(heights, resolution)
        case PointCloud(points=points, radius=radius):
            return _cubes(points, np.full(len(points), 2.0 * radius))
        case Octomap(centers=centers, sizes=sizes):
            return _cubes(centers, sizes)


_Corner: TypeAlias = tuple[float, float]
"""Radius, and height as a share of the length."""


def _turned_sides(sides: list[tuple[_Corner, _Corner]], length: float) -> Triangles:
    """Return the surfaces of some sides of an outline, from below to above, that turn about z."""
    vertices: list[Float64] = []
    triangles: list[Int64] = []
    for begin, end in sides:
        radii, heights = np.array([begin, end]).T
        points, corners = _turned(radii, length * heights)
        triangles.append(corners + sum(map(len, vertices)))
        vertices.append(points)
    return np.concatenate(vertices), np.concatenate(triangles)


def _arc(radius: float, height: float, begin: float, end: float, steps: int) -> tuple[Float64, Float64]:
    angle = np.linspace(begin, end, steps + 1)
    return radius * np.cos(angle), height + radius * np.sin(angle)


def _turned(radii: Float64, heights: Float64) -> Triangles:
    """Return the surface of an outline, from below to above, that turns about z."""
    angle = 2.0 * np.pi * np.arange(AROUND) / AROUND
    rings = np.stack(
        [
            np.outer(radii, np.cos(angle)),
            np.outer(radii, np.sin(angle)),
            np.repeat(heights[:, None], AROUND, axis=1),
        ],
        axis=-1,
    )
    return rings.reshape(-1, 3), _between(len(radii), AROUND, closed=True)


def _between(rows: int, columns: int, closed: bool) -> Int64:
    """Return two triangles for each cell of a grid of vertices; a closed one joins the last column to the first."""
    row, column = np.meshgrid(
        np.arange(rows - 1), np.arange(columns if closed else columns - 1), indexing="ij"
    )
    after = (column + 1) % columns
    a, b = row * columns + column, row * columns + after
    c, d = a + columns, b + columns
    return np.concatenate(
        [np.stack([a, b, d], axis=-1).reshape(-1, 3), np.stack([a, d, c], axis=-1).reshape(-1, 3)]
    )


_CORNERS = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_FACES = np.array(
    [
        *((0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5)),
        *((0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6)),
        *((0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)),
    ],
    dtype=np.int64,
)


def _box(size: Float64) -> Triangles:
    sides = _FACES.reshape(6, 6)  # two triangles each, which share corners with one another alone
    vertices, triangles = [], []
    for number, side in enumerate(sides):
        corners, local = np.unique(side, return_inverse=True)
        vertices.append(_CORNERS[corners] * size)
        triangles.append(4 * number + local.reshape(2, 3))
    return np.concatenate(vertices), np.concatenate(triangles).astype(np.int64)


def _cubes(centers: Float64, sizes: Float64) -> Triangles:
    step = -(-len(centers) // MOST_CELLS)
    centers, sizes = centers[::step], sizes[::step]
    vertices = centers[:, None] + sizes[:, None, None] * _CORNERS
    triangles = 8 * np.arange(len(centers))[:, None, None] + _FACES
    return vertices.reshape(-1, 3), triangles.reshape(-1, 3)


def _grid(heights: Float64, resolution: float) -> Triangles:
    step = max(1, int(np.ceil(np.sqrt(heights.size / MOST_CELLS))))
    rows, columns = (np.unique([*range(0, n, step), n - 1]) for n in heights.shape)
    x, y = np.meshgrid(rows * resolution, columns * resolution, indexing="ij")
    vertices = np.stack([x, y, heights[np.ix_(rows, columns)]], axis=-1).reshape(-1, 3)
    return vertices, _between(len(rows), len(columns), closed=False)[:, ::-1]
