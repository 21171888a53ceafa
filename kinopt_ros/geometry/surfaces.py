"""Random points on the surfaces of shapes."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
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
    Shape,
    Sphere,
)


def surface_points(
    shapes: Sequence[PlacedShape], count: int = 2000, seed: int = 0
) -> Annotated[Float64, "P 3"]:
    """Return random points on every shape's surface, in the frame that the shapes are placed in.

    ``count`` for each, and all vertices of meshes and corners of boxes. Balls and cubes of clouds and octomaps may hide
    some of each other's points. The same for the same seed.
    """
    random = np.random.default_rng(seed)
    points = [
        _on(placed.shape, count, random) @ placed.T_frame_shape[:3, :3].T + placed.T_frame_shape[:3, 3]
        for placed in shapes
    ]
    return np.concatenate(points) if points else np.empty((0, 3))


def _on(shape: Shape, count: int, random: np.random.Generator) -> Float64:
    if isinstance(shape, Sphere):
        return shape.radius * _unit(count, random)
    if isinstance(shape, Capsule):
        on_ball = shape.radius * _unit(count, random)
        side = random.random(count) < shape.length / (shape.length + 2.0 * shape.radius)
        on_ball[side, :2] *= shape.radius / np.maximum(np.hypot(*on_ball[side, :2].T), 1e-300)[:, None]
        on_ball[side, 2] = (random.random(int(side.sum())) - 0.5) * shape.length
        on_ball[~side, 2] += np.copysign(shape.length / 2.0, on_ball[~side, 2])
        return on_ball
    if isinstance(shape, Cylinder | Cone):
        return _of_revolution(shape, count, random)
    if isinstance(shape, Box):
        corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float64)
        faces = random.uniform(-1.0, 1.0, (count, 3))
        axis = random.integers(0, 3, count)
        faces[np.arange(count), axis] = np.sign(faces[np.arange(count), axis])
        box: Float64 = np.concatenate([faces, corners]) * (shape.x / 2.0, shape.y / 2.0, shape.z / 2.0)
        return box
    if isinstance(shape, Mesh):
        a, b, c = (shape.vertices[shape.triangles[:, corner]] for corner in range(3))
        area = np.sqrt((np.cross(b - a, c - a) ** 2).sum(axis=1))
        chosen = random.choice(len(area), count, p=area / area.sum())
        u, v = random.random((2, count, 1))
        u, v = np.where(u + v > 1.0, 1.0 - u, u), np.where(u + v > 1.0, 1.0 - v, v)
        inner = a[chosen] + u * (b - a)[chosen] + v * (c - a)[chosen]
        return np.concatenate([inner, shape.vertices])
    if isinstance(shape, PointCloud):
        return shape.points[random.integers(0, len(shape.points), count)] + shape.radius * _unit(
            count, random
        )
    if isinstance(shape, Octomap):
        chosen = random.integers(0, len(shape.sizes), count)
        cubes: Float64 = (
            shape.centers[chosen] + shape.sizes[chosen, None] * _on(Box(1, 1, 1), count, random)[:count]
        )
        return cubes
    raise InvalidShapeError(
        f"a {type(shape).__name__} has no sampled surface; known: Box, Capsule, Cone, Cylinder, Mesh, Octomap, "
        "PointCloud, Sphere"
    )


def _of_revolution(shape: Cylinder | Cone, count: int, random: np.random.Generator) -> Float64:
    angle = 2.0 * np.pi * random.random(count)
    where = random.integers(0, 4, count)
    height, wide = random.random(count), np.sqrt(random.random(count))
    height[where == 0], wide[where == 1], height[where == 2] = 0.0, 1.0, 1.0
    wide[where == 3], height[where == 3] = 1.0, np.rint(height[where == 3])  # the rims
    if isinstance(shape, Cone):
        narrow = where != 0
        wide[narrow] = 1.0 - height[narrow]
    return np.column_stack(
        [
            shape.radius * wide * np.cos(angle),
            shape.radius * wide * np.sin(angle),
            shape.length * (height - 0.5),
        ]
    )


def _unit(count: int, random: np.random.Generator) -> Float64:
    directions = random.normal(size=(count, 3))
    unit: Float64 = directions / np.sqrt((directions**2).sum(axis=1, keepdims=True))
    return unit
