"""Distances that collision costs use, against those of ``collision/`` and by finite differences."""

import numpy as np
import pytest

from kinopt_ros.collision.activation import activation as reference_activation
from kinopt_ros.collision.judge import distance as judged
from kinopt_ros.collision.obstacles import signed_distance
from kinopt_ros.costs import obstacles
from kinopt_ros.costs.obstacles import boxes_of, obstacles_of
from kinopt_ros.costs.robot_bodies import bodies_of, body_pairs
from kinopt_ros.costs.solids import activation, between_segments, point_distances, segment_distances
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.geometry.shapes import Box, Capsule, Cylinder, Mesh, PlacedShape, Plane, PointCloud, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import pose, so3_exp
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import Scene, SceneObject

SHAPES = (Sphere(0.2), Box(0.3, 0.1, 0.5), Capsule(0.1, 0.4))


def placed(count: int, seed: int) -> list[PlacedShape]:
    rng = np.random.default_rng(seed)
    return [
        PlacedShape(SHAPES[k % 3], pose(so3_exp(rng.normal(size=3)), rng.uniform(-0.5, 0.5, 3)))
        for k in range(count)
    ]


def scene_of(shapes: list[PlacedShape], padding: float = 0.0) -> Scene:
    objects = {f"o{k}": SceneObject(f"o{k}", (item,), np.eye(4)) for k, item in enumerate(shapes)}
    return Scene(objects=objects, padding=dict.fromkeys(objects, padding))


def test_points_to_rounded_boxes_are_the_exact_distances() -> None:
    shapes = placed(9, 1)
    boxes = boxes_of(obstacles_of(scene_of(shapes)))
    points = np.random.default_rng(2).uniform(-1.0, 1.0, (2000, 3))
    found = point_distances(np, boxes, points)
    for k, item in enumerate(shapes):
        T = item.T_frame_shape
        expected, _ = signed_distance(item.shape, (points - T[:3, 3]) @ T[:3, :3])
        np.testing.assert_allclose(found[:, k], expected, atol=1e-9)


def test_segments_find_the_least_along_them() -> None:
    boxes = boxes_of(obstacles_of(scene_of(placed(6, 3))))
    rng = np.random.default_rng(4)
    a, b = rng.uniform(-1.0, 1.0, (2, 300, 3))
    found = segment_distances(np, boxes, a, b)
    dense = np.stack([point_distances(np, boxes, a + t * (b - a)) for t in np.linspace(0.0, 1.0, 2001)])
    assert (found <= dense.min(axis=0) + 5e-4).all()
    assert (found >= dense.min(axis=0) - 1e-3).all()
    np.testing.assert_allclose(segment_distances(np, boxes, a, a), point_distances(np, boxes, a), atol=1e-12)


def test_segments_to_each_other_as_the_judge_says() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        T_a, T_b = (pose(so3_exp(rng.normal(size=3)), rng.uniform(-1.0, 1.0, 3)) for _ in range(2))
        one, two = Capsule(0.01, 0.6), Capsule(0.01, 0.3)
        expected = judged(one, T_a, two, T_b).distance + 0.02
        ends = [
            T[:3, 3] + sign * 0.5 * shape.length * T[:3, 2]
            for shape, T in ((one, T_a), (two, T_b))
            for sign in (-1, 1)
        ]
        assert between_segments(np, *(end[None] for end in ends))[0] == pytest.approx(expected, abs=1e-6)
    points = rng.normal(size=(4, 3))
    a, c = points[0], points[2]
    assert between_segments(np, a, a, c, c) == pytest.approx(np.linalg.norm(a - c))


def test_parallel_and_touching_segments() -> None:
    x, y = np.eye(3)[:2]
    assert between_segments(np, 0 * x, x, y, x + y) == pytest.approx(1.0)
    assert between_segments(np, 0 * x, x, 2 * x, 3 * x) == pytest.approx(1.0)
    assert between_segments(np, -x, x, -y, y) == 0.0


def test_activation_is_that_of_the_searches() -> None:
    d = np.linspace(-0.1, 0.1, 101)
    np.testing.assert_allclose(activation(np, d, 0.05), reference_activation(d, 0.05)[0], atol=1e-15)
    np.testing.assert_allclose(activation(np, d, 0.0), np.maximum(-d, 0.0), atol=1e-15)


@pytest.mark.parametrize("of", [Cylinder(0.1, 0.4), Plane()])
def test_obstacles_are_never_smaller_than_their_shapes(of: object) -> None:
    boxes = boxes_of(obstacles_of(scene_of([PlacedShape(of, np.eye(4))])))  # type: ignore[arg-type]
    points = np.random.default_rng(6).uniform(-1.0, 1.0, (2000, 3))
    exact, _ = signed_distance(of, points)  # type: ignore[arg-type]
    assert (point_distances(np, boxes, points)[:, 0] <= exact + 1e-9).all()


def test_padding_counts_and_clouds_are_refused() -> None:
    near = boxes_of(obstacles_of(scene_of(placed(3, 7), 0.05)))
    far = boxes_of(obstacles_of(scene_of(placed(3, 7))))
    points = np.random.default_rng(8).uniform(-1.0, 1.0, (100, 3))
    np.testing.assert_allclose(
        point_distances(np, near, points), point_distances(np, far, points) - 0.05, atol=1e-9
    )
    cloud = PointCloud(np.zeros((1, 3)), 0.01)
    with pytest.raises(InvalidRequestError, match="PointCloud"):
        obstacles_of(scene_of([PlacedShape(cloud, np.eye(4))]))


def test_capsules_contain_the_spheres() -> None:
    robot = load_robot("panda")
    spheres, capsules = bodies_of(robot, "spheres"), bodies_of(robot, "capsules")
    assert spheres.links == capsules.links
    assert len(capsules.radius) == len(capsules.links)
    for k in range(len(capsules.links)):
        mine = spheres.link == k
        gap = between_segments(np, capsules.a[k][None], capsules.b[k][None], spheres.a[mine], spheres.a[mine])
        assert (gap + spheres.radius[mine] <= capsules.radius[k] + 1e-9).all()


def test_pairs_may_overlap_as_far_as_they_do_at_rest() -> None:
    robot = load_robot("panda")
    for shape in ("spheres", "capsules"):
        pairs = body_pairs(robot, shape)
        bodies = bodies_of(robot, shape)
        q = np.concatenate([robot.default_q[None], random_configurations(robot, 20, 1)])
        T = forward_kinematics(robot, q, bodies.links)[:, bodies.link]
        a, b = (
            np.einsum("tnij,nj->tni", T[..., :3, :3], end) + T[..., :3, 3] for end in (bodies.a, bodies.b)
        )
        gaps = between_segments(
            np, a[:, pairs.first], b[:, pairs.first], a[:, pairs.second], b[:, pairs.second]
        )
        gaps = (gaps - bodies.radius[pairs.first] - bodies.radius[pairs.second]).min(axis=2) + pairs.slack
        assert (gaps[0] >= -1e-12).all()
        assert gaps.shape == (21, len(pairs.names))
    with pytest.raises(InvalidRequestError, match="cubes"):
        bodies_of(robot, "cubes")


def test_a_mesh_is_fitted_once_wherever_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change of the scene had all its meshes fitted again, for seconds, whatever the deadline was."""
    corners = np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.2]])
    mesh = Mesh(corners, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))
    fits = []
    fit = obstacles.fit_spheres

    def counted(*arguments: object) -> object:
        fits.append(arguments)
        return fit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(obstacles, "fit_spheres", counted)
    for number in range(3):
        T = pose(so3_exp(np.array([0.3 * number, 0.2, -0.5])), np.array([0.4, 0.1 * number, 0.2]))
        item = SceneObject("mesh", (PlacedShape(mesh, np.eye(4)),), T)
        boxes = boxes_of(obstacles_of(Scene(objects={"mesh": item}, version=number + 1)))
        for corner in corners @ T[:3, :3].T + T[:3, 3]:
            inside = np.linalg.norm(boxes.center - corner, axis=1) - boxes.radius
            assert inside.min() <= 1e-9
    assert len(fits) == 1
