"""Spheres around solids: they contain everything, and little else."""

import time
import tracemalloc
from functools import cache

import numpy as np
import pytest
from support.thorough import times

from kinopt_ros.errors import InvalidRequestError, InvalidShapeError
from kinopt_ros.geometry import cover
from kinopt_ros.geometry.cells import cells_of
from kinopt_ros.geometry.fit import fit_spheres
from kinopt_ros.geometry.meshes import closed_mesh, hull_of
from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Octomap,
    PlacedShape,
    Plane,
    PointCloud,
    Sphere,
)
from kinopt_ros.geometry.surfaces import surface_points
from kinopt_ros.wanted import AbandonedError, as_long_as

trimesh = pytest.importorskip("trimesh")


def placed(shape, x=0.0, y=0.0, z=0.0, turn=(0.3, 0.5, 0.8)):
    T = trimesh.transformations.euler_matrix(*turn)
    T[:3, 3] = x, y, z
    return PlacedShape(shape, T)


def mesh_of(solid):
    return closed_mesh(np.array(solid.vertices), np.array(solid.faces))


def l_profile():
    corner = [(0, 0), (3, 0), (3, 1), (1, 1), (1, 3), (0, 3)]
    faces = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    low, high = np.array([(*p, 0.0) for p in corner]), np.array([(*p, 0.7) for p in corner])
    triangles = [f[::-1] for f in faces] + [tuple(i + 6 for i in f) for f in faces]
    for i in range(6):
        j = (i + 1) % 6
        triangles += [(i, j, j + 6), (i, j + 6, i + 6)]
    return closed_mesh(np.concatenate([low, high]) * 0.1, np.array(triangles))


UPRIGHT = (0, 0, 0)
SOLIDS = {
    "sphere": [placed(Sphere(0.1))],
    "box": [placed(Box(0.3, 0.2, 0.05))],
    "plate": [placed(Box(0.3, 0.3, 0.002))],
    "cylinder": [placed(Cylinder(0.05, 0.4))],
    "disc": [placed(Cylinder(0.3, 0.02))],
    "cone": [placed(Cone(0.1, 0.3))],
    "capsule": [placed(Capsule(0.06, 0.3))],
    "three as capsule": [placed(Cylinder(0.06, 0.3), turn=UPRIGHT)]
    + [placed(Sphere(0.06), z=z, turn=UPRIGHT) for z in (-0.15, 0.15)],
    "L": [PlacedShape(l_profile(), np.eye(4))],
    "ring": [PlacedShape(mesh_of(trimesh.creation.torus(0.2, 0.05, 24, 12)), np.eye(4))],
    "ball of triangles": [placed(mesh_of(trimesh.creation.icosphere(3, 0.1)))],
    "two apart": [placed(Box(0.1, 0.1, 0.1), x=1.0), placed(Sphere(0.1))],
    "tiny": [placed(Box(1e-5, 2e-5, 1e-5))],
    "huge": [placed(Box(900.0, 20.0, 3000.0), x=5000.0)],
}  # fmt: skip


def inside_points(shapes, count=3000):
    """Random points inside of the shapes, judged by trimesh's and closed-form rules."""
    random = np.random.default_rng(3)
    found = []
    for item in shapes:
        surface = surface_points([item], 400)
        shape = item.shape
        if isinstance(shape, Box | Sphere | Cylinder | Capsule | Cone):  # convex: mixtures of surface points
            weights = random.dirichlet(np.ones(3), count)
            found.append(
                np.einsum("ck,cki->ci", weights, surface[random.integers(0, len(surface), (count, 3))])
            )
            continue
        points = random.uniform(surface.min(axis=0), surface.max(axis=0), (count, 3))
        solid = trimesh.Trimesh(shape.vertices, shape.triangles, process=False)
        solid.apply_transform(item.T_frame_shape)
        found.append(points[winding(solid, points) > 0.5])
    return np.concatenate(found)


@cache
def inside_of(name):
    """Points inside of a solid, which take longer than to fit spheres."""
    return inside_points(SOLIDS[name], 600 if name == "ball of triangles" else 3000)


def winding(solid, points):
    a, b, c = (solid.triangles[None, :, k] - points[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=2) for v in (a, b, c))
    volume = np.einsum("pti,pti->pt", a, np.cross(b, c))
    dot = (a * b).sum(2) * lc + (b * c).sum(2) * la + (c * a).sum(2) * lb
    return np.arctan2(volume, la * lb * lc + dot).sum(1) / (2 * np.pi)


@pytest.mark.parametrize("name", SOLIDS)
@pytest.mark.parametrize("most", [1, 6])
def test_spheres_contain_the_solid(name, most):
    shapes = SOLIDS[name]
    spheres = fit_spheres(shapes, most)
    assert 1 <= len(spheres.radii) <= most
    assert spheres.contain(surface_points(shapes, 2000)).all()
    inside = inside_of(name)
    assert len(inside) > 100
    assert spheres.contain(inside).all()


@pytest.mark.parametrize("name", ["L", "ring"])
def test_pieces_contain_the_solid(name):
    """Every inner point lies in the bounds of a piece, and pieces do not fill what is hollow."""
    shapes = SOLIDS[name]
    cells = cells_of(shapes)
    points = inside_points(shapes, 2000)
    held = ((points[:, None] >= cells.lower - 1e-12) & (points[:, None] <= cells.upper + 1e-12)).all(2).any(1)
    assert held.all()
    solid = trimesh.Trimesh(shapes[0].shape.vertices, shapes[0].shape.triangles)
    assert np.prod(cells.upper - cells.lower, axis=1).sum() < 1.35 * solid.volume


def test_what_lies_in_a_plane_of_the_grid_belongs_to_both_sides():
    """Faces of a stack of boxes of equal size lie where the grid would cut."""
    boxes = [
        trimesh.creation.box((0.1, 0.1, 0.1)).apply_translation((0.1 * i, 0.1 * (i % 2), 0))
        for i in range(10)
    ]
    shapes = [PlacedShape(mesh_of(trimesh.util.concatenate(boxes)), np.eye(4))]
    spheres = fit_spheres(shapes, 8)
    assert spheres.contain(surface_points(shapes, 5000)).all()
    random = np.random.default_rng(0)
    assert all(spheres.contain(random.uniform(*box.bounds, (500, 3))).all() for box in boxes)


@pytest.mark.parametrize(
    ("name", "most", "ratio"),
    [
        ("sphere", 1, 1.0),
        ("capsule", 6, 1.25),
        ("three as capsule", 6, 1.25),
        ("box", 8, 3.2),
        ("cylinder", 8, 1.7),
        ("ring", 8, 4.0),
    ],
)
def test_spheres_are_tight(name, most, ratio):
    shapes = SOLIDS[name]
    spheres = fit_spheres(shapes, most, tolerance=0.0)
    volume = {
        "sphere": 4 / 3 * np.pi * 0.1**3,
        "capsule": np.pi * 0.06**2 * 0.3 + 4 / 3 * np.pi * 0.06**3,
        "three as capsule": np.pi * 0.06**2 * 0.3 + 4 / 3 * np.pi * 0.06**3,
        "box": 0.3 * 0.2 * 0.05,
        "cylinder": np.pi * 0.05**2 * 0.4,
        "ring": 0.93 * 2 * np.pi**2 * 0.2 * 0.05**2,  # its triangles lie within
    }[name]
    low, high = (spheres.centers.T - spheres.radii).min(1), (spheres.centers.T + spheres.radii).max(1)
    part = spheres.contain(np.random.default_rng(0).uniform(low, high, (20000, 3))).mean()
    assert part * np.prod(high - low) / volume < 1.03 * ratio


def test_fewer_spheres_where_they_are_tight_enough():
    shapes = SOLIDS["capsule"]
    loose, tight = fit_spheres(shapes, 20, 0.03), fit_spheres(shapes, 20, 0.005)
    assert len(loose.radii) < len(tight.radii) < 20


def test_the_same_for_the_same_shapes():
    first, second = fit_spheres(SOLIDS["L"]), fit_spheres(SOLIDS["L"])
    np.testing.assert_array_equal(first.centers, second.centers)
    np.testing.assert_array_equal(first.radii, second.radii)


def test_large_meshes_take_seconds():
    solid = trimesh.creation.icosphere(6, 0.1)  # 81,920 triangles
    shapes = [PlacedShape(mesh_of(solid), np.eye(4))]
    start = time.process_time()
    spheres = fit_spheres(shapes, 3)
    assert time.process_time() - start < 30.0
    assert spheres.contain(np.array(solid.vertices)).all()


def cloud(count):
    random = np.random.default_rng(0)
    points = np.concatenate(
        [random.uniform(-1, 1, (count // 2, 3)) * (1, 0.5, 0), random.normal(size=(count // 2, 3)) * 0.1]
    )
    return points * 0.2


@pytest.mark.parametrize("count", [1, 2, 40, 20_000])
@pytest.mark.parametrize("most", [1, 6, 64])
def test_balls_of_a_cloud_are_contained(count, most):
    points = cloud(count)[:count] if count > 1 else np.array([[1.0, 2, 3]])
    spheres = fit_spheres([PlacedShape(PointCloud(points, 0.01), np.eye(4))], most)
    assert len(spheres.radii) <= most
    away = np.sqrt(((points[:, None] - spheres.centers) ** 2).sum(axis=2))
    assert (away + 0.01 <= spheres.radii).any(axis=1).all()
    if count == 1:
        np.testing.assert_allclose(spheres.radii, [0.01], rtol=1e-6)
    if (count, most) == (20_000, 64):
        assert spheres.radii.max() < 0.1


@pytest.mark.parametrize("count", [1, 300, 5000])
def test_cubes_of_an_octomap_are_contained(count):
    places = cloud(2 * count)[:count]
    shape = Octomap(places, np.random.default_rng(0).choice([0.01, 0.02], count))
    shapes = [placed(shape)]
    spheres = fit_spheres(shapes, 64)
    corners = shape.centers[:, None] + shape.sizes[:, None, None] * (
        np.indices((2, 2, 2)).reshape(3, -1).T - 0.5
    )
    T = shapes[0].T_frame_shape
    corners = corners @ T[:3, :3].T + T[:3, 3]
    away = np.sqrt(((corners[:, :, None] - spheres.centers) ** 2).sum(axis=3))
    assert (away <= spheres.radii).all(axis=1).any(axis=1).all()


def test_random_hulls():
    for seed in range(5):
        points = np.random.default_rng(seed).normal(size=(30, 3)) * (0.3, 0.1, 0.05)
        shapes = [placed(hull_of(points))]
        assert fit_spheres(shapes, 4).contain(surface_points(shapes, 3000)).all()


@pytest.mark.parametrize(("most", "tolerance"), [(0, 0.01), (3, -1.0), (3, float("nan"))])
def test_bad_arguments(most, tolerance):
    with pytest.raises(InvalidRequestError, match="allowed are at least 1 and at least 0 m"):
        fit_spheres(SOLIDS["box"], most, tolerance)


def test_nothing_to_fit():
    with pytest.raises(InvalidRequestError, match="at least one"):
        fit_spheres([])
    with pytest.raises(InvalidShapeError, match="a Plane is not cut"):
        fit_spheres([placed(Plane())])


def jumble(count):
    """Boxes, cylinders, balls and hulls, here and there."""
    random = np.random.default_rng(1)
    hull = hull_of(random.normal(size=(20, 3)) * 0.01)
    kinds = [Box(0.01, 0.02, 0.01), Cylinder(0.01, 0.03), Sphere(0.01), hull, Capsule(0.005, 0.02)]
    return [placed(kinds[k % len(kinds)], *random.uniform(-0.2, 0.2, 3)) for k in range(count)]


@pytest.mark.parametrize("count", [10, times(100, 240)])
def test_many_shapes_of_one_link_take_little_memory(count):
    """240 boxes took 9 GB, and 600 asked for 27 GB at once."""
    shapes = jumble(count)
    tracemalloc.start()
    try:
        spheres = fit_spheres(shapes)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e8
    assert 1 <= len(spheres.radii) <= 6
    assert spheres.contain(surface_points(shapes, 100)).all()


def test_fitting_can_be_given_up():
    """The question must come within the work, not only before it."""
    asked = []

    def wanted():
        asked.append(None)
        return len(asked) < 40

    with as_long_as(wanted), pytest.raises(AbandonedError):
        fit_spheres(jumble(100))
    assert len(asked) == 40


def test_the_work_does_not_grow_by_the_square_of_the_number_of_shapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every shape was compared with all others: links of 5,000 boxes took minutes."""
    looks = 0

    def counted(placed: PlacedShape, points: np.ndarray) -> np.ndarray:
        nonlocal looks
        looks += 1
        return np.zeros(len(points), dtype=np.bool_)

    monkeypatch.setattr(cover, "_inside", counted)
    found = []
    for count in (1000, 2000):
        looks = 0
        cover._outer_surface([PlacedShape(Box(0.1, 0.1, 0.1), np.eye(4))] * count)
        found.append(looks)
    assert found[1] <= 2 * found[0]
