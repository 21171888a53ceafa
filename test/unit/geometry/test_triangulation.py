"""Triangles that shapes are drawn with."""

import numpy as np
import pytest

from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightMap,
    Octomap,
    Plane,
    PointCloud,
    Shape,
    Sphere,
)
from kinopt_ros.geometry.triangulation import AROUND, MOST_CELLS, triangulated

SOLIDS = {
    "box": (Box(0.2, 0.4, 0.6), 0.048),
    "sphere": (Sphere(0.3), 4.0 / 3.0 * np.pi * 0.027),
    "cylinder": (Cylinder(0.2, 0.5), np.pi * 0.04 * 0.5),
    "cone": (Cone(0.2, 0.6), np.pi * 0.04 * 0.2),
    "capsule": (Capsule(0.1, 0.4), np.pi * 0.01 * 0.4 + 4.0 / 3.0 * np.pi * 0.001),
    "two cubes": (Octomap(np.array([[0.0, 0, 0], [1, 0, 0]]), np.array([0.1, 0.2])), 0.009),
}


def volume(shape: Shape) -> float:
    """Return the volume that triangles enclose, positive if their normals point outwards."""
    vertices, triangles = triangulated(shape)
    a, b, c = (vertices[triangles[:, corner]] for corner in range(3))
    return float(np.einsum("ti,ti->t", a, np.cross(b, c)).sum() / 6.0)


@pytest.mark.parametrize("name", SOLIDS)
def test_triangles_enclose_the_shape_from_outside(name: str) -> None:
    shape, expected = SOLIDS[name]
    assert volume(shape) == pytest.approx(expected, rel=20.0 / AROUND**2)


def test_grounds_are_seen_from_above() -> None:
    for shape in (Plane(), HeightMap(np.zeros((3, 4)), 0.1)):
        vertices, triangles = triangulated(shape)
        a, b, c = (vertices[triangles[:, corner]] for corner in range(3))
        normal = np.cross(b - a, c - a)[:, 2]
        assert normal.max() > 0.0
        assert vertices[:, 2].max() == 0.0
    assert (normal > 0.0).all()


def test_what_is_drawn_is_bounded() -> None:
    cloud = PointCloud(np.random.default_rng(0).random((40_001, 3)), 0.01)
    assert len(triangulated(cloud)[1]) <= 12 * MOST_CELLS
    ground = HeightMap(np.zeros((500, 700)), 0.01)
    vertices, _ = triangulated(ground)
    assert len(vertices) <= 1.2 * MOST_CELLS
    assert vertices.max(axis=0) == pytest.approx([4.99, 6.99, 0.0])
