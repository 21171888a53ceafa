"""Spheres around the cells of a shape's box contain the shape."""

import numpy as np
import pytest

from kinopt_ros.collision.box_cover import MOST, covering_spheres
from kinopt_ros.collision.obstacles import signed_distance
from kinopt_ros.geometry.meshes import hull_of
from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Octomap,
    PlacedShape,
    PointCloud,
    Shape,
    Sphere,
)

RNG = np.random.default_rng(2)
SHAPES = [
    Sphere(0.3),
    Box(0.1, 0.5, 0.2),
    Box(1e-3, 1.0, 1.0),
    Cylinder(0.01, 0.6),
    Cone(0.2, 0.3),
    Capsule(0.05, 0.4),
    hull_of(RNG.normal(size=(40, 3)), what="hull"),
    PointCloud(RNG.normal(size=(500, 3)), 0.05),
    PointCloud(np.array([[1.0, 2.0, 3.0]]), 0.05),
    Octomap(RNG.uniform(-1.0, 1.0, (300, 3)), RNG.uniform(0.02, 0.2, 300)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_no_point_of_the_shape_is_left_out(shape: Shape) -> None:
    angle = 0.7
    T = np.eye(4)
    T[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    T[:3, 3] = 0.3, -0.2, 0.1
    spheres = covering_spheres(PlacedShape(shape, T))
    assert len(spheres.radii) <= max(MOST, 64)
    points = RNG.uniform(-4.0, 4.0, (200_000, 3)) * 0.5 ** RNG.integers(0, 6, (200_000, 1))
    inside = points[signed_distance(shape, points)[0] <= 0.0]
    if isinstance(shape, PointCloud):
        inside = np.concatenate([inside, shape.points])
    if isinstance(shape, Octomap):
        corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
        inside = (shape.centers[:, None] + corners * shape.sizes[:, None, None]).reshape(-1, 3)
    assert len(inside)
    assert spheres.contain(inside @ T[:3, :3].T + T[:3, 3], 1e-9).all()
