"""Convex pieces of shapes, and lower bounds of distances by them, against coal."""

import numpy as np
import pytest
from support.shape_cases import BOUNDED, bracket, random_pose, random_primitive

from kinopt_ros.array import Float64
from kinopt_ros.collision.contacts import Placement
from kinopt_ros.collision.hulls import Hulls, hulls_of
from kinopt_ros.collision.judge import distance
from kinopt_ros.collision.kernels.hull_gap import FEW, WIDTH
from kinopt_ros.collision.obstacles import bounding_box, signed_distance
from kinopt_ros.collision.packed_bodies import PackedBodies, packed_bodies_of
from kinopt_ros.geometry.shapes import HeightMap, Mesh, Octomap, PlacedShape, Plane, PointCloud, Shape
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import Scene, SceneObject

trimesh = pytest.importorskip("trimesh")


def ball() -> Mesh:
    mesh = trimesh.creation.icosphere(subdivisions=2, radius=0.3)
    return Mesh(np.array(mesh.vertices) + 0.2, np.array(mesh.faces, dtype=np.int64))


def in_pieces(hulls: Hulls, points: Float64) -> Float64:
    """Return how far points (in the frame of the box) are outside of the nearest piece, at least."""
    found = np.full(len(points), np.inf)
    directions = np.random.default_rng(0).normal(size=(200, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    for k in range(hulls.count):
        corners = hulls.points[hulls.first[k] : hulls.last[k]]
        reach = (corners @ directions.T).max(axis=0)
        found = np.minimum(found, (points @ directions.T - reach).max(axis=1))
    return found


@pytest.mark.parametrize("mesh", [bracket(), ball()], ids=["bracket", "ball"])
def test_pieces_and_balls_contain_a_mesh(mesh: Mesh) -> None:
    hulls = hulls_of(mesh)
    assert hulls is not None
    assert (len(hulls.kind) == 1) == (len(mesh.vertices) > 100)  # only the ball is convex
    rng = np.random.default_rng(1)
    center, half = (np.array(part) for part in bounding_box(mesh))
    points = center + rng.uniform(-1.0, 1.0, (3000, 3)) * half
    inside = points[signed_distance(mesh, points)[0] <= 0.0] - center
    assert len(inside) > 100
    assert (in_pieces(hulls, inside) <= 1e-9).all()
    away = np.linalg.norm(inside[:, None] - hulls.balls[:, :3], axis=2) - hulls.balls[:, 3]
    assert (away.min(axis=1) <= 1e-9).all()


@pytest.mark.parametrize("mesh", [bracket(), ball()], ids=["bracket", "ball"])
def test_the_hull_of_all_pieces_and_clusters_contain_the_corners(mesh: Mesh) -> None:
    hulls = hulls_of(mesh)
    assert hulls is not None
    assert (hulls.count > 1) == (len(hulls.kind) > 1) == (len(mesh.vertices) < 100)
    whole = hulls.points[hulls.first[-1] : hulls.last[-1]]
    directions = np.random.default_rng(0).normal(size=(500, 3))
    np.testing.assert_allclose(
        (whole @ directions.T).max(axis=0), (hulls.points @ directions.T).max(axis=0), rtol=0, atol=1e-12
    )
    clusters = 0
    for first, last, cluster in zip(hulls.first, hulls.last, hulls.cluster, strict=True):
        points = hulls.points[first:last]
        if len(points) <= FEW:
            continue
        for number in range(-(-len(points) // WIDTH)):
            center, radius = hulls.clusters[cluster + number, :3], hulls.clusters[cluster + number, 3]
            part = points[number * WIDTH : (number + 1) * WIDTH]
            assert (np.linalg.norm(part - center, axis=1) <= radius).all()
            clusters += 1
    assert clusters == len(hulls.clusters)


@pytest.mark.parametrize("kind", BOUNDED)
def test_balls_contain_a_primitive(kind: type) -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        shape = random_primitive(rng, kind)
        hulls = hulls_of(shape)
        assert hulls is not None
        points = rng.uniform(-1.0, 1.0, (2000, 3)) * np.array(bounding_box(shape)[1])
        inside = points[signed_distance(shape, points)[0] <= 0.0]
        away = np.linalg.norm(inside[:, None] - hulls.balls[:, :3], axis=2) - hulls.balls[:, 3]
        assert (away.min(axis=1) <= 1e-9).all()
        assert (np.linalg.norm(inside, axis=1) <= hulls.reach[0]).all()


def alone(shape: Shape) -> RobotModel:
    """A robot of one link that flies, with a shape."""
    robot = robot_from_urdf(
        """<robot name="one"><link name="world"/><link name="body"><collision><geometry><sphere radius="1"/>
        </geometry></collision></link><joint name="free" type="floating"><parent link="world"/><child link="body"/>
        </joint></robot>"""
    )
    robot.collision_shapes["body"] = (PlacedShape(shape, np.eye(4)),)  # type: ignore[index]
    return robot


def bound(packed: PackedBodies, q: Float64) -> float:
    found, bounds = Placement(packed, q).near(np.inf)
    return min((float(bounds[k]) for k in range(len(found))), default=np.inf)


def flying(rng: np.random.Generator, reach: float) -> Float64:
    quaternion = rng.normal(size=4)
    return np.concatenate([rng.uniform(-reach, reach, 3), quaternion / np.linalg.norm(quaternion)])


def things(rng: np.random.Generator) -> list[Shape]:
    ground = HeightMap(np.random.default_rng(3).uniform(-0.2, 0.0, (6, 6)), 0.2)
    cloud = PointCloud(rng.uniform(-0.2, 0.2, (200, 3)), 0.02)
    octomap = Octomap(rng.uniform(-0.2, 0.2, (60, 3)), rng.uniform(0.02, 0.1, 60))
    primitives: list[Shape] = [random_primitive(rng, kind) for kind in BOUNDED]
    return [*primitives, bracket(), ball(), ground, cloud, octomap, Plane()]


@pytest.mark.parametrize(
    "number", range(7), ids=["sphere", "box", "cylinder", "cone", "capsule", "bracket", "ball"]
)
def test_bounds_are_never_above_distances(number: int) -> None:
    rng = np.random.default_rng(number)
    ratios: dict[str, list[float]] = {}
    for round_ in range(3):
        shape = things(rng)[number]
        robot = alone(shape)
        for other in things(rng):
            T = random_pose(rng, 0.3)
            scene = Scene(objects={"thing": SceneObject("thing", (PlacedShape(other, np.eye(4)),), T)})
            packed = packed_bodies_of(robot, scene)
            for _ in range(6):
                q = flying(rng, 1.0 if round_ else 0.3)
                placement = Placement(packed, q)
                (a, b) = packed.bodies.pairs[0]
                exact = distance(shape, placement.pose(a), other, placement.pose(b)).distance
                lower = bound(packed, q)
                # How deep shapes overlap is another matter.
                assert lower <= max(exact, 0.0) + 1e-6
                if exact > 0.01:
                    ratios.setdefault(type(other).__name__, []).append(exact - lower)
    convex = {"Sphere", "Box", "Cylinder", "Cone", "Capsule", "Plane"}
    for name, gaps in ratios.items():
        if name in convex and number != 5:
            assert max(gaps) < 1e-5, name  # exact where both are convex
        else:
            assert np.median(gaps) < 0.15, name


def test_every_pair_of_a_robot_is_bounded() -> None:
    robot = load_robot("panda")
    rng = np.random.default_rng(5)
    objects = {
        f"thing{k}": SceneObject(f"thing{k}", (PlacedShape(shape, np.eye(4)),), random_pose(rng, 0.7))
        for k, shape in enumerate(things(rng))
    }
    packed = packed_bodies_of(robot, Scene(objects=objects))
    checked = 0
    for q in random_configurations(robot, 4, 7):
        placement = Placement(packed, q)
        found, bounds = placement.near(0.15)
        known = dict(zip(found.tolist(), bounds.tolist(), strict=True))
        assert list(bounds) == sorted(bounds)
        for pair in rng.choice(len(packed.every_pair), 120, replace=False).tolist():
            exact = placement.distance_of(pair)
            assert known.get(pair, 0.15) <= max(exact, 0.0) + 1e-6
            checked += exact < 0.15
    assert checked > 10
