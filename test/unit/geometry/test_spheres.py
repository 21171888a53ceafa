"""Sets of balls, and points on surfaces."""

import numpy as np
import pytest

from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.shapes import Box, Capsule, Cone, Cylinder, PlacedShape, Plane, Sphere
from kinopt_ros.geometry.spheres import SphereSet
from kinopt_ros.geometry.surfaces import surface_points


def test_containing_points():
    spheres = SphereSet(np.array([[0.0, 0, 0], [2, 0, 0]]), np.array([1.0, 0.5]))
    points = np.array([[0.0, 0, 1], [0, 0, 1.01], [2.4, 0, 0], [1.2, 0, 0]])
    np.testing.assert_array_equal(spheres.contain(points), [True, False, True, False])
    np.testing.assert_array_equal(spheres.contain(points, 0.02), [True, True, True, False])
    assert not SphereSet(np.empty((0, 3)), np.empty(0)).contain(points).any()
    with pytest.raises(ValueError, match="read-only"):
        spheres.radii[0] = 2.0


@pytest.mark.parametrize(
    ("centers", "radii", "complaint"),
    [
        ([[0, 0, 0]], [1.0, 2.0], "do not fit together"),
        ([[0, 0]], [1.0], "do not fit together"),
        ([[0, 0, 0]], [0.0], "radii from 0 to 0"),
        ([[0, 0, 0]], [np.nan], "not finite"),
        ([[np.inf, 0, 0]], [1.0], "not finite"),
        ([[1e9, 0, 0]], [1.0], "no value above 10000"),
    ],
)
def test_refused(centers, radii, complaint):
    with pytest.raises(InvalidShapeError, match=complaint):
        SphereSet(np.array(centers, dtype=float), np.array(radii))


@pytest.mark.parametrize(
    ("shape", "outside"),
    [
        (Sphere(0.5), lambda x, y, z: np.hypot(np.hypot(x, y), z) - 0.5),
        (Box(1, 2, 3), lambda x, y, z: np.max([abs(x) - 0.5, abs(y) - 1, abs(z) - 1.5], axis=0)),
        (Cylinder(0.5, 2), lambda x, y, z: np.maximum(np.hypot(x, y) - 0.5, abs(z) - 1)),
        (Capsule(0.5, 2), lambda x, y, z: np.hypot(np.hypot(x, y), (abs(z) - 1).clip(min=0)) - 0.5),
        (Cone(0.5, 2), lambda x, y, z: np.maximum(-1 - z, np.hypot(x, y) - 0.25 * (1 - z))),
    ],
)
def test_points_are_on_all_of_the_surface(shape, outside):
    T = np.eye(4)
    T[:3, 3] = 1, 2, 3
    points = surface_points([PlacedShape(shape, T)], 3000) - T[:3, 3]
    np.testing.assert_allclose(outside(*points.T), 0.0, atol=1e-12)
    for axis in range(3):
        assert (points[:, axis] > 0.05).sum() > 300
        assert (points[:, axis] < -0.05).sum() > 300


def test_shapes_without_end_have_no_surface_points():
    with pytest.raises(InvalidShapeError, match="a Plane has no sampled surface"):
        surface_points([PlacedShape(Plane(), np.eye(4))])
