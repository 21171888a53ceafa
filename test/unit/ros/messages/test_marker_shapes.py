"""Markers of shapes: where they are and how large, and not too many of them."""

import numpy as np
import pytest

pytest.importorskip("visualization_msgs")
from visualization_msgs.msg import Marker

from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightMap,
    Mesh,
    Octomap,
    PlacedShape,
    Plane,
    PointCloud,
    Shape,
    Sphere,
)
from kinopt_ros.kinematics.se3 import pose
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.ros.messages.marker_shapes import MOST_DRAWN, body_markers, color

AT = pose(np.eye(3), np.array([0.1, 0.2, 0.3]))


def drawn(shape: Shape) -> list[Marker]:
    return body_markers("name", "frame", AT, [PlacedShape(shape, AT)], color(1.0, 0.0, 0.0, 1.0))


def corners(marker: Marker) -> np.ndarray:
    return np.array([[p.x, p.y, p.z] for p in marker.points])


@pytest.mark.parametrize(
    ("shape", "kind", "scale"),
    [
        (Box(0.1, 0.2, 0.3), Marker.CUBE, (0.1, 0.2, 0.3)),
        (Sphere(0.1), Marker.SPHERE, (0.2, 0.2, 0.2)),
        (Cylinder(0.1, 0.5), Marker.CYLINDER, (0.2, 0.2, 0.5)),
    ],
)
def test_primitives_that_rviz_knows(shape: Shape, kind: int, scale: tuple[float, ...]) -> None:
    [marker] = drawn(shape)
    assert (marker.type, marker.ns, marker.header.frame_id) == (kind, "name", "frame")
    assert (marker.scale.x, marker.scale.y, marker.scale.z) == scale
    np.testing.assert_allclose(matrices_from_poses([marker.pose])[0][:3, 3], [0.2, 0.4, 0.6])


def test_a_capsule_is_a_cylinder_with_balls_at_its_ends() -> None:
    markers = drawn(Capsule(0.1, 0.4))
    assert [m.type for m in markers] == [Marker.CYLINDER, Marker.SPHERE, Marker.SPHERE]
    assert [m.id for m in markers] == [0, 1, 2]
    np.testing.assert_allclose([m.pose.position.z for m in markers[1:]], [0.4, 0.8])


def test_a_plane_is_a_square_whose_top_is_the_plane() -> None:
    [marker] = drawn(Plane())
    assert marker.pose.position.z + marker.scale.z / 2 == pytest.approx(0.6)


def test_triangles_of_a_cone_lie_on_it() -> None:
    points = corners(drawn(Cone(0.2, 0.6))[0])
    assert len(points) % 3 == 0
    on_side = np.hypot(points[:, 0], points[:, 1]) - 0.2 * (0.3 - points[:, 2]) / 0.6
    on_base = points[:, 2] + 0.3
    assert (np.minimum(np.abs(on_side), np.abs(on_base)) < 1e-12).all()
    assert points[:, 2].max() == pytest.approx(0.3)


def test_triangles_of_a_mesh_and_of_a_height_map() -> None:
    vertices = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    triangles = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    np.testing.assert_array_equal(
        corners(drawn(Mesh(vertices, triangles))[0]), vertices[triangles].reshape(-1, 3)
    )
    heights = np.arange(12.0).reshape(3, 4)
    points = corners(drawn(HeightMap(heights, 0.5))[0])
    assert len(points) == 2 * 3 * 2 * 3
    i, j = np.round(points[:, :2] / 0.5).astype(int).T
    np.testing.assert_array_equal(points[:, 2], heights[i, j])


def test_voxels_are_grouped_by_size() -> None:
    centers = np.arange(9.0).reshape(3, 3)
    small, large = drawn(Octomap(centers, np.array([0.1, 0.2, 0.1])))
    assert (small.scale.x, large.scale.x) == (0.1, 0.2)
    np.testing.assert_array_equal(corners(small), centers[[0, 2]])


def test_large_shapes_are_thinned_out() -> None:
    [cloud] = drawn(PointCloud(np.zeros((3 * MOST_DRAWN + 1, 3)), 0.01))
    assert MOST_DRAWN / 2 < len(cloud.points) <= MOST_DRAWN
    [ground] = drawn(HeightMap(np.zeros((700, 1)) + np.zeros((1, 500)), 0.01))
    assert len(ground.points) / 3 < 1.1 * MOST_DRAWN
    assert corners(ground)[:, 0].max() == pytest.approx(6.99)
