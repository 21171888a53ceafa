"""Signed distances of balls to shapes, against coal, trimesh, scipy and brute force."""

import sys
from pathlib import Path

import numpy as np
import pytest
from support.shape_cases import BOUNDED, PRIMITIVES, random_pose, random_primitive

from kinopt_ros.collision.obstacles import nearest, pack, signed_distance
from kinopt_ros.geometry.shapes import (
    Cone,
    Cylinder,
    HeightMap,
    Mesh,
    Octomap,
    PlacedShape,
    PointCloud,
    Sphere,
)

ROBOT_MESHES = (
    "panda_description/meshes/collision/link1.stl",
    "panda_description/meshes/collision/hand.stl",
    "ur_description/meshes/ur5/collision/forearm.stl",
    "ur_description/meshes/ur10/collision/upperarm.stl",
    "tiago_pro_description/meshes/arm_tiago_pro/arm_4_link_collision.stl",
    "go2_description/collisions/calf_upper_mirror_convex.stl",
)

BALLS = 5
"""Number of balls for each shape that is compared with coal."""


@pytest.fixture(scope="module")
def robot_meshes() -> Path:
    folders = [Path(entry) / "cmeel.prefix/share/example-robot-data/robots" for entry in sys.path]
    found = [folder for folder in folders if folder.is_dir()]
    if not found:
        pytest.skip("needs the package example-robot-data")
    return found[0]


def coal_distance(coal, ball, geometry, place):
    """Return coal's signed distance of a ball to a primitive."""
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.enable_signed_distance, request.gjk_tolerance = True, 1e-9
    return coal.distance(
        coal.Sphere(float(ball[3])),
        coal.Transform3s(np.eye(3), ball[:3]),
        geometry,
        place,
        request,
        result,
    )


def depth_in_round(shape, point):
    """Negative depth of a point inside a cylinder or cone, else None.

    There coal 3.0.3 gives the radial depth of a cylinder even where an end is nearer, and that of a cone to 1e-6.
    """
    match shape:
        case Cylinder(radius, length):
            depth = min(radius - np.hypot(*point[:2]), length / 2.0 - abs(point[2]))
        case Cone(radius, length):
            across = radius * (length / 2.0 - point[2]) - length * np.hypot(*point[:2])
            depth = min(across / np.hypot(radius, length), length / 2.0 + point[2])
        case _:
            return None
    return -depth if depth > 0.0 else None


def worst_against_coal(count, seed):
    """Compare ``count`` pairs of a random ball and a random shape with coal; each shape meets five balls."""
    coal = pytest.importorskip("coal")
    from kinopt_ros.collision.coal_geometry import geometry_of

    rng = np.random.default_rng(seed)
    worst = {}
    for number in range(count // BALLS):
        kind = PRIMITIVES[number % len(PRIMITIVES)]
        shape, T = random_primitive(rng, kind), random_pose(rng)
        balls = np.column_stack([rng.uniform(-1.0, 1.0, (BALLS, 3)), rng.uniform(0.01, 0.2, BALLS)])
        found = nearest(pack([PlacedShape(shape, T)]), balls).distances
        geometry, place = geometry_of(shape).parts[0], coal.Transform3s(T[:3, :3], T[:3, 3])
        for ball, distance in zip(balls, found, strict=True):
            inside = depth_in_round(shape, T[:3, :3].T @ (ball[:3] - T[:3, 3]))
            expected = coal_distance(coal, ball, geometry, place) if inside is None else inside - ball[3]
            worst[kind] = max(worst.get(kind, 0.0), abs(distance - expected))
    return worst


def test_primitives_as_coal():
    for kind, error in worst_against_coal(3000, seed=0).items():
        assert error <= 1e-8, kind


@pytest.mark.slow
def test_primitives_as_coal_on_20_000_pairs():
    worst = worst_against_coal(20_000, seed=1)
    print({kind.__name__: f"{error:.1e}" for kind, error in worst.items()})
    assert max(worst.values()) <= 1e-8


@pytest.mark.parametrize(
    ("shape", "point", "distance", "gradient"),
    [
        (Sphere(0.5), [0, 0, 0], -0.5, [0, 0, 1]),
        (Cylinder(0.5, 2.0), [0, 0, 0.9], -0.1, [0, 0, 1]),
        (Cylinder(0.5, 2.0), [0, 0, 0], -0.5, [1, 0, 0]),
        (Cylinder(0.5, 2.0), [0.8, 0, 1.4], 0.5, [0.6, 0, 0.8]),
    ],
)
def test_values_that_are_known(shape, point, distance, gradient):
    found, way = signed_distance(shape, np.array([point], dtype=float))
    assert found[0] == pytest.approx(distance, abs=1e-12)
    assert way[0] == pytest.approx(gradient, abs=1e-12)


def bumpy_ground(rng):
    return HeightMap(rng.uniform(-0.2, 0.2, (7, 9)), 0.1)


def some_octomap(rng):
    centers = rng.integers(-5, 5, (300, 3)) * 0.2
    return Octomap(centers, rng.choice([0.05, 0.1, 0.2], 300))


def some_mesh(trimesh):
    torus = trimesh.creation.torus(0.5, 0.2, major_sections=24, minor_sections=12)
    return Mesh(np.array(torus.vertices), np.array(torus.faces))


def everything(rng):
    shapes = [random_primitive(rng, kind, 0.2, 0.9) for kind in PRIMITIVES]
    cloud = PointCloud(rng.uniform(-1.0, 1.0, (500, 3)), 0.1)
    shapes += [bumpy_ground(rng), cloud, some_octomap(rng), some_mesh(pytest.importorskip("trimesh"))]
    return shapes


def test_gradients_are_unit_and_as_differences():
    rng = np.random.default_rng(2)
    points = rng.uniform(-1.0, 1.0, (400, 3))
    for shape in everything(rng):
        _, gradients = signed_distance(shape, points)
        assert np.linalg.norm(gradients, axis=1) == pytest.approx(1.0, abs=1e-12)
        step = 1e-6 * np.eye(3)
        differences = [
            signed_distance(shape, points + s)[0] - signed_distance(shape, points - s)[0] for s in step
        ]
        error = np.abs(np.stack(differences, axis=1) / 2e-6 - gradients).max(axis=1)
        # Where two sides are equally near, differences mean nothing: this hits hardly any random point.
        assert (error > 1e-5).sum() <= 2, shape


def test_surface_points_have_a_gradient():
    """Points are on faces, edges, corners, apexes and centres."""
    points = np.array(
        [[x, y, z] for x in (-0.5, 0, 0.5) for y in (-0.5, 0, 0.5) for z in (-0.5, 0, 0.5)], dtype=float
    )
    rng = np.random.default_rng(3)
    shapes = [
        kind(*[1.0] * 3) if kind.__name__ == "Box" else random_primitive(rng, kind, 1.0, 1.0)
        for kind in BOUNDED
    ]
    shapes += [
        Octomap(np.zeros((1, 3)), np.ones(1)),
        PointCloud(np.zeros((1, 3)), 0.5),
        HeightMap(np.zeros((2, 2)), 0.5),
    ]
    box = pytest.importorskip("trimesh").creation.box((1.0, 1.0, 1.0))
    shapes.append(Mesh(np.array(box.vertices), np.array(box.faces)))
    for shape in shapes:
        distances, gradients = signed_distance(shape, points)
        assert np.isfinite(distances).all()
        assert np.linalg.norm(gradients, axis=1) == pytest.approx(1.0, abs=1e-9), shape


def assert_as_trimesh(trimesh, mesh, count, rng):
    solid = trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False)
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    points = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), (count, 3))
    near = mesh.vertices[rng.integers(0, len(mesh.vertices), count // 4)]
    points[: len(near)] = near + rng.normal(size=near.shape) * 1e-4
    distances, gradients = signed_distance(mesh, points)
    _, unsigned, _ = trimesh.proximity.closest_point_naive(solid, points)
    # trimesh 5.2 is some 1e-6 m off beside slivers, so that this is no more than a cross-check of the next line.
    assert np.abs(np.abs(distances) - unsigned).max() <= 1e-5
    assert np.abs(np.abs(distances) - [unsigned_distance(mesh, point) for point in points]).max() <= 1e-12
    # trimesh's own inside test is by rays, which hit edges; this is the exact winding number.
    inside = np.array([winding(mesh, point) > 0.5 for point in points])
    assert (inside == (distances < 0.0)).all()
    surface = points - distances[:, None] * gradients
    assert np.abs(signed_distance(mesh, surface)[0]).max() <= 1e-9


def unsigned_distance(mesh, point):
    """Return the distance to all triangles, in extended precision."""
    a, b, c = (mesh.vertices[mesh.triangles[:, corner]].astype(np.longdouble) for corner in range(3))
    p = point.astype(np.longdouble)
    normals = np.cross(b - a, c - a)
    lengths = np.sqrt((normals**2).sum(axis=1))
    normals /= np.where(lengths > 0.0, lengths, 1.0)[:, None]
    heights = ((p - a) * normals).sum(axis=1)
    foot = p - heights[:, None] * normals
    above = lengths > 0.0
    nearest_side = np.full(len(a), np.longdouble(np.inf))
    for start, end in ((a, b), (b, c), (c, a)):
        edge = end - start
        above &= (np.cross(edge, foot - start) * normals).sum(axis=1) >= 0.0
        length2 = (edge**2).sum(axis=1)
        along = np.clip(((p - start) * edge).sum(axis=1) / np.where(length2 > 0.0, length2, 1.0), 0.0, 1.0)
        gap = np.sqrt(((p - start - along[:, None] * edge) ** 2).sum(axis=1))
        nearest_side = np.minimum(nearest_side, gap)
    return float(np.where(above, np.abs(heights), nearest_side).min())


def winding(mesh, point):
    a, b, c = (mesh.vertices[mesh.triangles[:, corner]] - point for corner in range(3))
    la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    ab, bc, ca = (np.einsum("ti,ti->t", *pair) for pair in ((a, b), (b, c), (c, a)))
    volumes = np.einsum("ti,ti->t", a, np.cross(b, c))
    angles = np.arctan2(volumes, la * lb * lc + ab * lc + bc * la + ca * lb)
    return angles.sum() / (2.0 * np.pi)


def test_ball_of_triangles_as_trimesh():
    trimesh = pytest.importorskip("trimesh")
    ball = trimesh.creation.icosphere(subdivisions=3, radius=0.5)
    mesh = Mesh(np.array(ball.vertices), np.array(ball.faces))
    assert_as_trimesh(trimesh, mesh, 200, np.random.default_rng(4))


@pytest.mark.peers
@pytest.mark.parametrize("name", ROBOT_MESHES, ids=lambda name: name.split("/")[0] + "-" + Path(name).stem)
def test_robot_meshes_as_trimesh(robot_meshes, name):
    trimesh = pytest.importorskip("trimesh")
    from kinopt_ros.geometry.meshes import load_mesh

    assert_as_trimesh(trimesh, load_mesh(robot_meshes / name), 120, np.random.default_rng(5))


def test_bad_triangles_do_not_upset_the_sign():
    """Slivers, triangles of no area, shells that cross each other, cubes that share an edge."""
    trimesh = pytest.importorskip("trimesh")
    one = trimesh.creation.box((1.0, 1.0, 1.0))
    shared = one.copy().apply_translation([1.0, 1.0, 0.0])
    crossing = one.copy().apply_translation([0.3, 0.2, 0.1])
    points = np.random.default_rng(6).uniform(-1.0, 2.0, (400, 3))
    for other, shift in ((shared, [1.0, 1.0, 0.0]), (crossing, [0.3, 0.2, 0.1])):
        both = trimesh.util.concatenate([one, other])
        sliver = [[0, 0, 0]] if other is shared else [[0, 1, 1]]
        mesh = Mesh(np.array(both.vertices), np.vstack([both.faces, sliver, np.roll(sliver, 1)[:, ::-1]]))
        inside = (np.abs(points) < 0.5).all(axis=1) | (np.abs(points - shift) < 0.5).all(axis=1)
        distances, gradients = signed_distance(mesh, points)
        assert ((distances < 0.0) == inside).all()
        assert np.isfinite(gradients).all()
        _, unsigned, _ = trimesh.proximity.closest_point_naive(both, points)
        assert np.abs(np.abs(distances) - unsigned).max() <= 1e-12


def test_a_cavity_is_outside():
    trimesh = pytest.importorskip("trimesh")
    outer, inner = trimesh.creation.box((2.0, 2.0, 2.0)), trimesh.creation.box((1.0, 1.0, 1.0))
    inner.invert()
    both = trimesh.util.concatenate([outer, inner])
    distances, gradients = signed_distance(
        Mesh(np.array(both.vertices), np.array(both.faces)), np.array([[0.4, 0.0, 0.0], [0.6, 0.0, 0.0]])
    )
    assert distances == pytest.approx([0.1, -0.1])
    assert gradients == pytest.approx(np.array([[-1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 1000, 20_000])
def test_clouds_as_scipy(count):
    spatial = pytest.importorskip("scipy.spatial")
    rng = np.random.default_rng(count)
    cloud = PointCloud(rng.uniform(-1.0, 1.0, (count, 3)), 0.03)
    points = rng.uniform(-1.2, 1.2, (500, 3))
    expected = spatial.cKDTree(cloud.points).query(points)[0] - 0.03
    assert np.abs(signed_distance(cloud, points)[0] - expected).max() <= 1e-12


def test_equal_points_make_a_cloud():
    cloud = PointCloud(np.ones((1000, 3)), 0.1)
    assert signed_distance(cloud, np.zeros((1, 3)))[0][0] == pytest.approx(np.sqrt(3.0) - 0.1)


@pytest.mark.parametrize("count", [1, 8, 300, 3000])
def test_octomaps_as_brute_force(count):
    rng = np.random.default_rng(count)
    octomap = Octomap(rng.integers(-9, 9, (count, 3)) * 0.1, rng.choice([0.05, 0.1, 0.4], count))
    points = rng.uniform(-1.2, 1.2, (300, 3))
    beyond = np.abs(points[:, None] - octomap.centers) - octomap.sizes[:, None] / 2.0
    each = np.linalg.norm(np.maximum(beyond, 0.0), axis=-1) + np.minimum(beyond.max(axis=-1), 0.0)
    assert np.abs(signed_distance(octomap, points)[0] - each.min(axis=1)).max() <= 1e-12


def bilinear(ground, x, y):
    """Height, with the nearest one outside of the grid."""
    rows, columns = ground.heights.shape
    u = np.clip(x / ground.resolution, 0.0, rows - 1.0)
    v = np.clip(y / ground.resolution, 0.0, columns - 1.0)
    i, j = np.minimum(u.astype(int), rows - 2), np.minimum(v.astype(int), columns - 2)
    u, v = u - i, v - j
    h = ground.heights
    low = h[i, j] * (1 - u) + h[i + 1, j] * u
    return low * (1 - v) + (h[i, j + 1] * (1 - u) + h[i + 1, j + 1] * u) * v


@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (7, 9), (16, 17)])
def test_ground_is_contained_and_hardly_exceeded(shape):
    rng = np.random.default_rng(7)
    ground = HeightMap(rng.uniform(-0.2, 0.2, shape), 0.1)
    h = ground.heights
    excess = np.abs(h[:-1, :-1] + h[1:, 1:] - h[1:, :-1] - h[:-1, 1:]).max() / 4.0
    points = rng.uniform([-0.5, -0.5, -0.6], [0.1 * shape[0] + 0.4, 0.1 * shape[1] + 0.4, 0.8], (150, 3))
    distances, _ = signed_distance(ground, points)
    x, y = np.meshgrid(np.arange(-1.5, 3.0, 0.01), np.arange(-1.5, 3.0, 0.01), indexing="ij")
    surface = np.stack([x, y, bilinear(ground, x, y)], axis=-1).reshape(-1, 3)
    pytest.importorskip("scipy")
    from scipy.spatial import cKDTree

    unsigned = cKDTree(surface).query(points)[0]
    inside = points[:, 2] < bilinear(ground, points[:, 0], points[:, 1])
    truth = np.where(inside, -unsigned, unsigned)
    sampling = 0.03  # m; the sampled surface's points are so far from its nearest ones
    assert (distances <= truth + 1e-9 + np.where(inside, sampling, 0.0)).all()
    assert (distances >= truth - excess - sampling).all()


def test_level_and_sloping_ground_is_exact():
    x = np.arange(5)[:, None] * np.ones((5, 5))
    points = np.random.default_rng(8).uniform([0.3, 0.3, -0.3], [0.7, 0.7, 0.9], (300, 3))
    distances, gradients = signed_distance(HeightMap(np.full((5, 5), 0.25), 0.25), points)
    assert distances == pytest.approx(points[:, 2] - 0.25, abs=1e-12)
    assert gradients == pytest.approx(np.tile([0.0, 0.0, 1.0], (300, 1)), abs=1e-12)
    # A slope of 45 degrees; the foot of every point lies in the grid.
    points[:, 2] = points[:, 0] + np.random.default_rng(9).uniform(-0.2, 0.2, 300)
    distances, _ = signed_distance(HeightMap(x * 0.25, 0.25), points)
    assert distances == pytest.approx((points[:, 2] - points[:, 0]) / np.sqrt(2.0), abs=1e-12)


def test_ground_goes_on_outside_of_its_grid():
    ground = HeightMap(np.array([[0.0, 1.0], [0.0, 1.0]]), 1.0)
    distances, _ = signed_distance(ground, np.array([[-9e3, -9e3, 2.0], [9e3, 9e3, 2.0], [9e3, -50.0, -2.0]]))
    assert distances == pytest.approx([2.0, 1.0, -2.0], abs=1e-9)


@pytest.mark.slow
def test_a_million_of_each():
    rng = np.random.default_rng(10)
    points = rng.uniform(-1.0, 1.0, (1_000_000, 3))
    centers = np.unique(rng.integers(-150, 150, (1_050_000, 3)), axis=0)[:1_000_000] * 0.01
    shapes = [
        PointCloud(points, 0.001),
        Octomap(centers, np.full(len(centers), 0.01)),
        HeightMap(rng.uniform(0.0, 0.1, (1000, 1000)), 0.01),
    ]
    for shape in shapes:
        distances, _ = signed_distance(shape, points[:1000] + 1e-4)
        assert np.isfinite(distances).all()
