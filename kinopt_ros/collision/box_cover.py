"""Spheres that quickly cover a shape: those around the cells of its box.

Looser than a fit (``geometry/fit.py``), for what comes with a request.
"""

import math
from itertools import product
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.collision.obstacles import bounding_box
from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.shapes import HeightMap, Octomap, PlacedShape, Plane, PointCloud, Sphere
from kinopt_ros.geometry.spheres import SphereSet

MOST = 27
"""Most cells of a box."""


def covering_spheres(placed: PlacedShape) -> SphereSet:
    """Return spheres whose union contains a shape, in the frame that it is placed in; not for endless shapes."""
    shape, T = placed.shape, placed.T_frame_shape
    if isinstance(shape, Sphere):
        centers, radii = np.zeros((1, 3)), np.array([shape.radius])
    elif isinstance(shape, PointCloud):
        centers, radii = _grouped(shape.points, np.full(len(shape.points), shape.radius))
    elif isinstance(shape, Octomap):
        centers, radii = _grouped(shape.centers, shape.sizes * (math.sqrt(3.0) / 2.0))
    elif isinstance(shape, Plane | HeightMap):
        raise InvalidShapeError(f"a {type(shape).__name__} has no end: nothing can carry it")
    else:
        centers, radii = _cells(*bounding_box(shape))
    return SphereSet(centers @ T[:3, :3].T + T[:3, 3], radii)


def _cells(
    center: tuple[float, float, float], half: tuple[float, float, float]
) -> tuple[Annotated[Float64, "N 3"], Annotated[Float64, "N"]]:
    """Divide a box into about cubes of the shortest edge, or larger ones if there would be too many."""
    edge = min(half)
    counts = [1, 1, 1]
    while True:
        counts = [max(1, math.ceil(h / edge - 1e-9)) for h in half]
        if math.prod(counts) <= MOST:
            break
        edge *= 1.2
    step = [2.0 * h / count for h, count in zip(half, counts, strict=True)]
    ranges = [
        [c - h + (k + 0.5) * width for k in range(count)]
        for c, h, count, width in zip(center, half, counts, step, strict=True)
    ]
    centers = np.array(list(product(*ranges)))
    return centers, np.full(len(centers), 0.5 * math.hypot(*step))


def _grouped(
    points: Annotated[Float64, "N 3"], radii: Annotated[Float64, "N"]
) -> tuple[Annotated[Float64, "M 3"], Annotated[Float64, "M"]]:
    """Put one ball around all balls that are in the same cell of a grid."""
    low, high = points.min(axis=0), points.max(axis=0)
    side = max(float((high - low).max()) / 4.0, 1e-9)
    cell = np.minimum(((points - low) / side).astype(np.int64), 3)
    _, group = np.unique(cell @ np.array([16, 4, 1]), return_inverse=True)
    group = group.reshape(-1)
    count = int(group.max()) + 1
    lower, upper = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    np.minimum.at(lower, group, points)
    np.maximum.at(upper, group, points)
    centers = 0.5 * (lower + upper)
    reach = np.zeros(count)
    np.maximum.at(reach, group, np.linalg.norm(points - centers[group], axis=1) + radii)
    return centers, reach
