"""Distances between placed shapes: against separating planes, brute force, and what must be contained."""

import sys
from itertools import combinations_with_replacement

import numpy as np
import pytest
from support.shape_cases import BOUNDED, PRIMITIVES, convex_separation, random_pose, random_primitive, support

from kinopt_ros.collision.obstacles import signed_distance
from kinopt_ros.errors import InvalidRequestError, InvalidShapeError, MissingPackageError
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
    Sphere,
)

coal = pytest.importorskip("coal")
trimesh = pytest.importorskip("trimesh")

from kinopt_ros.collision import judge
from kinopt_ros.collision.judge import distance, in_collision

HERE = np.eye(4)


def at(x, y=0.0, z=0.0):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def mesh_of(solid):
    return Mesh(np.array(solid.vertices, dtype=float), np.array(solid.faces))


def box_mesh(x, y, z):
    return mesh_of(trimesh.creation.box((x, y, z)))


def inside(shape, T, point):
    """Signed distance of a point of the common frame."""
    return signed_distance(shape, (T[:3, :3].T @ (point - T[:3, 3]))[None])[0][0]


PAIRS = list(combinations_with_replacement(BOUNDED, 2))


@pytest.mark.parametrize("kinds", PAIRS, ids=lambda pair: "-".join(kind.__name__ for kind in pair))
def test_pairs_of_primitives(kinds):
    rng = np.random.default_rng(0)
    for _ in range(40):
        a, b = (random_primitive(rng, kind) for kind in kinds)
        T_a, T_b = random_pose(rng, 0.5), random_pose(rng, 0.5)
        found = distance(a, T_a, b, T_b)
        way = found.point_b - found.point_a
        assert np.linalg.norm(way) == pytest.approx(abs(found.distance), abs=1e-9)
        # Both points belong to their shapes, so that the distance is not larger; a plane that separates the shapes
        # by as much shows that it is not smaller.
        assert inside(a, T_a, found.point_a) <= 1e-7
        assert inside(b, T_b, found.point_b) <= 1e-7
        if found.distance > 1e-3:
            normal = way[None] / found.distance
            gap = -support(a, T_a, normal) - support(b, T_b, -normal)
            assert gap[0] == pytest.approx(found.distance, abs=1e-6)
        elif found.distance < 0.0:
            least = convex_separation(a, T_a, b, T_b, rng)
            assert least - 1e-9 <= found.distance <= least + 0.02
        swapped = distance(b, T_b, a, T_a)
        assert swapped.distance == pytest.approx(found.distance, abs=2e-6)
        assert swapped.point_a == pytest.approx(found.point_b, abs=1e-2)


@pytest.mark.parametrize("length", [3e-4, 1e-3, 1e-2, 0.3])
def test_capsules_of_any_size_that_are_nearly_parallel(length):
    rng = np.random.default_rng(3)
    shape = Capsule(0.2 * length, length)
    shares = np.linspace(-0.5, 0.5, 2001)
    for _ in range(60):
        angle = 10.0 ** rng.uniform(-6.0, 0.0)
        T = at(length * rng.uniform(0.41, 0.5), *(length * rng.uniform(-0.5, 0.5, 2)))
        T[1:3, 1:3] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        # The nearest points of many of one segment to the other, which is on the z axis.
        points = T[:3, 3] + length * shares[:, None] * T[:3, 2]
        nearest = np.clip(points[:, 2], -0.5 * length, 0.5 * length)
        away = np.sqrt(points[:, 0] ** 2 + points[:, 1] ** 2 + (points[:, 2] - nearest) ** 2)
        expected = away.min() - 0.4 * length
        found = distance(shape, HERE, shape, T)
        assert expected - 1e-3 * length <= found.distance <= expected + 1e-9
        assert inside(shape, HERE, found.point_a) == pytest.approx(0.0, abs=1e-9)
        assert inside(shape, T, found.point_b) == pytest.approx(0.0, abs=1e-9)
        assert in_collision(shape, HERE, shape, T, max(expected, 0.0) + 1e-9)


def test_capsules_whose_axes_cross():
    shape, turned = Capsule(0.1, 1.0), HERE[:, [2, 1, 0, 3]].copy()
    turned[:3, 0] *= -1.0
    for T in (turned, HERE, at(0.0, 0.0, 0.3)):
        found = distance(shape, HERE, shape, T)
        assert found.distance == pytest.approx(-0.2, abs=1e-9)
        assert np.linalg.norm(found.point_b - found.point_a) == pytest.approx(0.2, abs=1e-9)
        assert in_collision(shape, HERE, shape, T)


@pytest.mark.parametrize("kind", BOUNDED)
def test_planes(kind):
    rng = np.random.default_rng(1)
    for _ in range(100):
        shape, T, T_plane = random_primitive(rng, kind), random_pose(rng), random_pose(rng, 0.3)
        expected = -support(shape, T, -T_plane[None, :3, 2])[0] - T_plane[:3, 2] @ T_plane[:3, 3]
        found = distance(Plane(), T_plane, shape, T)
        assert found.distance == pytest.approx(expected, abs=1e-9)
        assert inside(Plane(), T_plane, found.point_a) == pytest.approx(0.0, abs=1e-9)
        assert found.distance == pytest.approx(inside(Plane(), T_plane, found.point_b), abs=1e-9)


@pytest.mark.parametrize("kind", [*PRIMITIVES, Mesh])
def test_a_mesh_is_as_the_box_it_looks_like(kind):
    rng = np.random.default_rng(2)
    for _ in range(40):
        x, y, z = (float(edge) for edge in rng.uniform(0.1, 0.6, 3))
        other = box_mesh(0.2, 0.3, 0.4) if kind is Mesh else random_primitive(rng, kind)
        reference = Box(0.2, 0.3, 0.4) if kind is Mesh else other
        T, T_other = random_pose(rng, 0.5), random_pose(rng, 0.5)
        expected = distance(Box(x, y, z), T, reference, T_other).distance
        found = distance(box_mesh(x, y, z), T, other, T_other)
        if expected > 0.0:
            assert found.distance == pytest.approx(expected, abs=1e-6)
            assert np.linalg.norm(found.point_b - found.point_a) == pytest.approx(expected, abs=1e-6)
        else:
            assert found.distance < 0.0
        for clearance in (0.0, 0.1):
            assert in_collision(box_mesh(x, y, z), T, other, T_other, clearance) == (expected < clearance)


SMALL = (
    Sphere(0.1),
    Box(0.1, 0.1, 0.1),
    Cylinder(0.1, 0.1),
    Cone(0.1, 0.1),
    Capsule(0.05, 0.1),
    box_mesh(0.1, 0.1, 0.1),
)


@pytest.mark.parametrize("small", SMALL, ids=lambda shape: type(shape).__name__)
def test_what_is_inside_a_mesh_collides(small):
    big = box_mesh(2.0, 2.0, 2.0)
    for found in (distance(small, at(0.3), big, HERE), distance(big, HERE, small, at(0.3))):
        # The deepest point of the small one is nearly 0.7 from the surface, and not more than 0.9.
        assert -0.9 <= found.distance <= -0.65
    assert in_collision(big, HERE, small, at(0.3))
    assert not in_collision(big, HERE, small, at(1.5))
    assert in_collision(big, HERE, small, at(1.5), clearance=0.5)


@pytest.mark.parametrize("small", SMALL, ids=lambda shape: type(shape).__name__)
def test_what_is_in_a_cavity_does_not(small):
    outer, inner = trimesh.creation.box((2.0, 2.0, 2.0)), trimesh.creation.box((1.0, 1.0, 1.0))
    inner.invert()
    hollow = mesh_of(trimesh.util.concatenate([outer, inner]))
    found = distance(small, at(0.2), hollow, HERE)
    assert 0.19 <= found.distance <= 0.26
    assert not in_collision(hollow, HERE, small, at(0.2))
    assert in_collision(hollow, HERE, small, at(0.47))
    assert in_collision(hollow, HERE, small, at(0.75))


def test_one_part_of_a_mesh_inside_another_mesh_collides():
    far, near = trimesh.creation.box((0.1, 0.1, 0.1)), trimesh.creation.box((0.1, 0.1, 0.1))
    far.apply_translation([5.0, 0.0, 0.0])
    parts = mesh_of(trimesh.util.concatenate([far, near]))
    for pair in ((parts, box_mesh(2.0, 2.0, 2.0)), (box_mesh(2.0, 2.0, 2.0), parts)):
        assert distance(pair[0], HERE, pair[1], HERE).distance == pytest.approx(-0.95)


def test_a_crossing_without_a_corner_inside_collides():
    bar = box_mesh(4.0, 0.1, 0.1)
    assert distance(bar, HERE, box_mesh(0.1, 4.0, 0.1), HERE).distance < 0.0
    assert in_collision(bar, HERE, Cylinder(0.01, 4.0), HERE)
    assert in_collision(bar, HERE, box_mesh(0.1, 4.0, 0.1), HERE)


def test_ground_is_as_a_plane():
    rng = np.random.default_rng(3)
    flat = HeightMap(np.full((7, 5), 0.3), 0.2)
    for kind in (*BOUNDED, Mesh):
        for _ in range(15):
            shape = box_mesh(0.3, 0.2, 0.4) if kind is Mesh else random_primitive(rng, kind)
            T, T_map = random_pose(rng, 2.0), random_pose(rng)
            expected = distance(Plane(), T_map @ at(0.0, 0.0, 0.3), shape, T).distance
            found = distance(flat, T_map, shape, T)
            if expected > 0.0:
                assert found.distance == pytest.approx(expected, abs=1e-6)
                assert np.linalg.norm(found.point_b - found.point_a) == pytest.approx(expected, abs=1e-6)
            else:
                # Rims are looked at in 32 places.
                assert expected - 1e-6 <= found.distance <= 0.98 * expected + 1e-3
            for clearance in (0.0, 0.2):
                assert in_collision(shape, T, flat, T_map, clearance) == (expected < clearance)


def test_uneven_ground_as_all_its_triangles():
    from kinopt_ros.collision.coal_geometry import surface
    from kinopt_ros.collision.ground import ground_triangles

    rng = np.random.default_rng(4)
    ground = HeightMap(rng.uniform(-0.1, 0.1, (30, 20)), 0.1)
    everything = surface(*ground_triangles(ground, np.array([-20.0, -20.0]), np.array([20.0, 20.0])))
    for kind in (Box, Capsule, Cylinder, Cone):
        for _ in range(15):
            shape, T = random_primitive(rng, kind), random_pose(rng)
            T[:3, 3] = rng.uniform([-1.0, -1.0, 0.1], [4.0, 3.0, 1.5])
            expected = judge._by_coal(everything, HERE, judge.geometry_of(shape), T).distance
            found = distance(ground, HERE, shape, T).distance
            assert found == pytest.approx(expected, abs=1e-9) if expected > 0.0 else found < 0.0


def test_a_mesh_in_tiles_is_as_far_as_the_whole(monkeypatch):
    """coal holds Python's lock for 2.5 us a triangle while it builds a tree: no tree is built of very many."""
    from kinopt_ros.collision import coal_geometry

    rng = np.random.default_rng(7)
    ball = trimesh.creation.icosphere(subdivisions=3, radius=0.5)
    ball.vertices *= [1.0, 0.7, 0.4]
    whole, tiled = (Mesh(np.array(ball.vertices), np.array(ball.faces)) for _ in range(2))
    others = [box_mesh(0.3, 0.2, 0.1), Box(0.3, 0.2, 0.1), Cylinder(0.1, 0.3), whole]
    judge.prepare(whole)
    monkeypatch.setattr(coal_geometry, "TILE", 100)
    judge.prepare(tiled)
    parts = coal_geometry.geometry_of(tiled).parts
    assert len(parts) > 10
    assert sum(part.num_tris for part in parts) == len(ball.faces)
    assert max(part.num_tris for part in parts) <= 100
    for number in range(200):
        other, T_a, T_b = others[number % len(others)], random_pose(rng), random_pose(rng)
        expected, found = distance(whole, T_a, other, T_b), distance(tiled, T_a, other, T_b)
        assert (found.distance > 0.0) == (expected.distance > 0.0)
        if expected.distance > 0.0:
            assert found.distance == pytest.approx(expected.distance, abs=1e-9)
            assert np.linalg.norm(found.point_a - found.point_b) == pytest.approx(found.distance, abs=1e-6)
        for clearance in (0.0, 0.1):
            assert in_collision(tiled, T_a, other, T_b, clearance) == in_collision(
                whole, T_a, other, T_b, clearance
            )


def test_no_tree_has_very_many_triangles():
    from kinopt_ros.collision import coal_geometry

    ball = trimesh.creation.icosphere(subdivisions=6, radius=0.5)
    parts = coal_geometry.geometry_of(Mesh(np.array(ball.vertices), np.array(ball.faces))).parts
    assert sum(part.num_tris for part in parts) == len(ball.faces) > 80_000
    assert max(part.num_tris for part in parts) <= 5_000  # 12 ms of Python's lock


def test_what_is_below_ground_collides():
    ground = HeightMap(np.zeros((50, 50)), 0.1)
    for small in SMALL:
        assert distance(small, at(2.0, 2.0, -1.0), ground, HERE).distance <= -1.0
        assert in_collision(small, at(-9.0, 30.0, -1.0), ground, HERE)
        assert not in_collision(small, at(-9.0, 30.0, 0.2), ground, HERE)


def cloud_and_octomap(rng):
    return (
        PointCloud(rng.uniform(-0.5, 0.5, (200, 3)), 0.02),
        Octomap(rng.integers(-5, 5, (200, 3)) * 0.1, rng.choice([0.05, 0.1], 200)),
    )


def of_items(shape):
    """Balls or cubes of a cloud or octomap, with poses."""
    if isinstance(shape, PointCloud):
        return [(Sphere(shape.radius), at(*point)) for point in shape.points]
    return [
        (Box(*[float(size)] * 3), at(*point)) for point, size in zip(shape.centers, shape.sizes, strict=True)
    ]


@pytest.mark.parametrize("kind", [*PRIMITIVES, Mesh])
def test_clouds_and_octomaps_as_their_items(kind):
    rng = np.random.default_rng(5)
    for shape in cloud_and_octomap(rng):
        for _ in range(4):
            other = box_mesh(0.3, 0.2, 0.4) if kind is Mesh else random_primitive(rng, kind, most=0.3)
            T, T_other = random_pose(rng), random_pose(rng)
            expected = min(
                distance(item, T @ place, other, T_other).distance for item, place in of_items(shape)
            )
            found = distance(shape, T, other, T_other)
            assert found.distance == pytest.approx(expected, abs=1e-6)
            assert np.linalg.norm(found.point_b - found.point_a) == pytest.approx(abs(expected), abs=1e-6)
            for clearance in (0.0, 0.1):
                assert in_collision(other, T_other, shape, T, clearance) == (expected < clearance)


def test_clouds_and_octomaps_among_themselves():
    rng = np.random.default_rng(6)
    first, second = cloud_and_octomap(rng)
    small = cloud_and_octomap(rng)
    for a in (first, second):
        for b in small:
            T = random_pose(rng) @ at(1.3)
            gaps = [distance(item, T @ place, b, HERE).distance for item, place in of_items(a)]
            assert distance(a, T, b, HERE).distance == pytest.approx(min(gaps), abs=1e-6)
            assert in_collision(a, T, b, HERE, 0.05) == (min(gaps) < 0.05)
            assert in_collision(a, HERE, b, HERE)


def test_clouds_and_octomaps_over_ground():
    rng = np.random.default_rng(7)
    ground = HeightMap(np.full((4, 4), -0.5), 0.4)
    for shape in cloud_and_octomap(rng):
        T = random_pose(rng, 0.5)
        T[2, 3] = 1.0
        expected = min(
            distance(Plane(), at(0.0, 0.0, -0.5), i, T @ place).distance for i, place in of_items(shape)
        )
        assert distance(shape, T, ground, HERE).distance == pytest.approx(expected, abs=1e-6)
        assert in_collision(shape, at(0.0, 0.0, -0.5), ground, HERE)


def test_collision_is_a_distance_below_the_clearance():
    rng = np.random.default_rng(8)
    torus = mesh_of(trimesh.creation.torus(0.4, 0.1, major_sections=16, minor_sections=8))
    ground = HeightMap(rng.uniform(-0.2, 0.2, (5, 5)), 0.3)
    everything = [*(random_primitive(rng, kind) for kind in BOUNDED), torus, *cloud_and_octomap(rng), ground]
    for a, b in combinations_with_replacement(everything[:-1], 2):
        T_a, T_b = random_pose(rng, 0.5), random_pose(rng, 0.5)
        found = distance(a, T_a, b, T_b).distance
        for clearance in (0.0, 0.05, 0.3):
            assert in_collision(a, T_a, b, T_b, clearance) == (found < clearance)
    for a in everything[:-1]:
        T_a = random_pose(rng, 0.8)
        found = distance(a, T_a, ground, HERE).distance
        assert in_collision(ground, HERE, a, T_a, 0.1) == (found < 0.1)


def test_poses_stay_the_caller_s():
    mesh, ground = box_mesh(1.0, 1.0, 1.0), HeightMap(np.zeros((3, 3)), 1.0)
    for shape in (
        Sphere(1.0),
        Box(1.0, 1.0, 1.0),
        mesh,
        ground,
        *cloud_and_octomap(np.random.default_rng(9)),
    ):
        T_shape, T_box = np.eye(4), np.eye(4)
        distance(shape, T_shape, Box(0.1, 0.1, 0.1), T_box)
        in_collision(shape, T_shape, Box(0.1, 0.1, 0.1), T_box, 0.1)
        assert T_shape.flags.writeable
        assert T_box.flags.writeable


def test_what_is_prepared_is_not_built_again(monkeypatch):
    from kinopt_ros.collision import coal_geometry, trees

    mesh, (cloud, _) = box_mesh(1.0, 1.0, 1.0), cloud_and_octomap(np.random.default_rng(10))
    for shape in (mesh, cloud, Box(1.0, 1.0, 1.0)):
        judge.prepare(shape)
    monkeypatch.setattr(trees, "_built", None)
    monkeypatch.setattr(coal_geometry, "_of_mesh", None)
    assert in_collision(mesh, HERE, cloud, HERE)
    assert in_collision(mesh, HERE, Box(1.0, 1.0, 1.0), HERE)


def test_nothing_of_a_shape_is_kept_beyond_its_life():
    from kinopt_ros.collision import coal_geometry, trees

    before = len(coal_geometry._known), len(trees._trees)
    mesh = box_mesh(1.0, 1.0, 1.0)
    assert in_collision(mesh, HERE, mesh, HERE)
    assert (len(coal_geometry._known), len(trees._trees)) == (before[0] + 1, before[1] + 1)
    del mesh
    assert (len(coal_geometry._known), len(trees._trees)) == before


@pytest.mark.parametrize("pair", [(Plane(), Plane()), (Plane(), HeightMap(np.zeros((2, 2)), 1.0))])
def test_two_shapes_without_end_are_refused(pair):
    with pytest.raises(InvalidRequestError, match="both without end"):
        distance(pair[1], HERE, pair[0], HERE)


def test_bad_poses_and_clearances_are_refused():
    sheared = np.eye(4)
    sheared[0, 1] = 0.1
    for T in (sheared, np.diag([1.0, 1.0, -1.0, 1.0]), np.full((4, 4), np.nan), np.eye(3), 2.0 * np.eye(4)):
        with pytest.raises(InvalidShapeError, match="pose of a shape"):
            distance(Sphere(1.0), T, Sphere(1.0), HERE)
        with pytest.raises(InvalidShapeError, match="pose of a shape"):
            in_collision(Sphere(1.0), HERE, Sphere(1.0), T)
    for clearance in (-0.1, np.nan, np.inf):
        with pytest.raises(InvalidRequestError, match="clearance is"):
            in_collision(Sphere(1.0), HERE, Sphere(1.0), HERE, clearance)


def test_without_coal_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "coal", None)
    with pytest.raises(MissingPackageError, match="need the package coal"):
        distance(Box(1.0, 1.0, 1.0), HERE, Box(1.0, 1.0, 1.0), HERE)
    with pytest.raises(MissingPackageError, match="need the package coal"):
        in_collision(Sphere(1.0), HERE, Sphere(1.0), HERE)
