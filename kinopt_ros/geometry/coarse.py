"""Few triangles in place of a mesh, for what is drawn many times a second."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.geometry.shapes import Mesh

DIRECTIONS = 96
"""Number of directions in which the farthest vertex is kept."""


def coarse(mesh: Mesh) -> Mesh:
    """Return the convex hull of the vertices that are farthest in evenly spread directions.

    It lies inside the mesh's convex hull, so it says nothing about collisions. Without scipy, or for a flat mesh, it
    is the box along the axes.
    """
    if len(mesh.triangles) <= 2 * DIRECTIONS:
        return mesh
    farthest = np.unique(np.argmax(mesh.vertices @ _directions(DIRECTIONS).T, axis=0))
    hull = _hull(mesh.vertices[farthest])
    return _box(mesh.vertices) if hull is None else hull


def _hull(points: Annotated[Float64, "N 3"]) -> Mesh | None:
    """Return the convex hull of points; None if there is none, or nobody can say."""
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:
        return None
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return None
    triangles: Int64 = hull.simplices.astype(np.int64)
    a, b, c = (points[triangles[:, k]] for k in range(3))
    inwards = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    triangles[inwards] = triangles[inwards][:, ::-1]
    return Mesh(points, triangles)


def _box(points: Annotated[Float64, "N 3"]) -> Mesh:
    low, high = points.min(axis=0), points.max(axis=0)
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=np.float64)
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = [triangle for a, b, c, d in sides for triangle in ((a, b, c), (a, c, d))]
    return Mesh(low + corners * (high - low), np.array(triangles, dtype=np.int64))


def _directions(count: int) -> Annotated[Float64, "count 3"]:
    """Return unit vectors on a Fibonacci spiral, which spreads them evenly."""
    k = np.arange(count) + 0.5
    z = 1.0 - 2.0 * k / count
    around = np.pi * (1.0 + np.sqrt(5.0)) * k
    radius = np.sqrt(1.0 - z * z)
    return np.column_stack([radius * np.cos(around), radius * np.sin(around), z])
