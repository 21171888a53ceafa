"""Packed obstacles: many balls, many shapes, culling, masks, bad input."""

import subprocess
import sys

import numpy as np
import pytest
from support.shape_cases import PRIMITIVES, random_pose, random_primitive

from kinopt_ros.collision import trees
from kinopt_ros.collision.kernels import ball_distances
from kinopt_ros.collision.obstacles import bounding_sphere, nearest, pack, signed_distance
from kinopt_ros.errors import InvalidRequestError, InvalidShapeError
from kinopt_ros.geometry.shapes import Box, HeightMap, Octomap, PlacedShape, Plane, PointCloud, Sphere


def scene(rng, count=30):
    shapes = [
        PlacedShape(random_primitive(rng, PRIMITIVES[number % 5]), random_pose(rng, 2.0))
        for number in range(count)
    ]
    shapes.append(PlacedShape(Plane(), random_pose(rng, 0.1)))
    shapes.append(PlacedShape(PointCloud(rng.uniform(-1.0, 1.0, (100, 3)), 0.02), random_pose(rng)))
    shapes.append(PlacedShape(Octomap(rng.uniform(-1.0, 1.0, (50, 3)), np.full(50, 0.05)), random_pose(rng)))
    shapes.append(PlacedShape(HeightMap(rng.uniform(-3.2, -3.0, (5, 5)), 0.3), random_pose(rng, 0.1)))
    return shapes


def balls_in(rng, count=300):
    return np.column_stack([rng.uniform(-2.5, 2.5, (count, 3)), rng.uniform(0.0, 0.2, count)])


def one_by_one(shapes, balls):
    """Distances and gradients (n, N) of every shape on its own, in the common frame."""
    distances, gradients = [], []
    for placed in shapes:
        T = placed.T_frame_shape
        d, g = signed_distance(placed.shape, (balls[:, :3] - T[:3, 3]) @ T[:3, :3])
        distances.append(d - balls[:, 3])
        gradients.append(g @ T[:3, :3].T)
    return np.array(distances), np.array(gradients)


def test_the_nearest_of_many_is_found():
    rng = np.random.default_rng(0)
    shapes, balls = scene(rng), balls_in(rng)
    distances, gradients = one_by_one(shapes, balls)
    found = nearest(pack(shapes), balls)
    best = distances.argmin(axis=0)
    assert (found.obstacles == best).all()
    assert np.abs(found.distances - distances.min(axis=0)).max() <= 1e-12
    assert np.abs(found.gradients - gradients[best, np.arange(len(balls))]).max() <= 1e-9


@pytest.mark.parametrize("most", [-0.05, 0.0, 0.1, 1.0])
def test_what_is_far_is_passed_over(most):
    rng = np.random.default_rng(1)
    shapes, balls = scene(rng), balls_in(rng)
    distances, _ = one_by_one(shapes, balls)
    found = nearest(pack(shapes), balls, most)
    near = distances.min(axis=0) < most
    assert near.any()
    assert not near.all()
    assert ((found.obstacles >= 0) == near).all()
    assert found.distances == pytest.approx(np.minimum(distances.min(axis=0), most), abs=1e-12)
    assert (found.gradients[~near] == 0.0).all()


def test_skipped_obstacles_do_not_count():
    rng = np.random.default_rng(2)
    shapes, balls = scene(rng), balls_in(rng)
    distances, _ = one_by_one(shapes, balls)
    skipped = rng.random(len(shapes)) < 0.5
    found = nearest(pack(shapes), balls, skipped=skipped)
    assert not skipped[found.obstacles].any()
    assert found.distances == pytest.approx(distances[~skipped].min(axis=0), abs=1e-12)


def test_contacts_and_the_least_distance():
    rng = np.random.default_rng(3)
    shapes, balls = scene(rng), balls_in(rng, 60)
    obstacles = pack(shapes)
    arrays = obstacles.numbers, obstacles.integers, obstacles.nothing_skipped
    distances, _ = one_by_one(shapes, balls)
    for clearance in (-0.3, -0.1, 0.0, 0.2):
        ball, obstacle = ball_distances.first_contact(*arrays, balls, clearance)
        hit = np.flatnonzero(distances.min(axis=0) < clearance)
        assert ball == (hit[0] if len(hit) else -1)
        assert obstacle == (-1 if ball < 0 else np.flatnonzero(distances[:, ball] < clearance)[0])
    least, *_, ball, obstacle = ball_distances.least_distance(*arrays, balls, np.inf)
    assert least == pytest.approx(distances.min(), abs=1e-12)
    assert distances[obstacle, ball] == pytest.approx(least, abs=1e-12)
    assert ball_distances.least_distance(*arrays, balls, -10.0)[4:] == (-1, -1)


def test_kernels_can_be_compiled_into_others():
    numba = pytest.importorskip("numba")

    @numba.njit
    def total(numbers, integers, skipped, balls):
        result = 0.0
        for i in range(len(balls)):
            d, _, _, _, obstacle = ball_distances.ball_distance(
                numbers, integers, skipped, balls[i, 0], balls[i, 1], balls[i, 2], balls[i, 3], 1.0
            )
            result += d if obstacle >= 0 else 0.0
        return result

    rng = np.random.default_rng(4)
    obstacles, balls = pack(scene(rng)), balls_in(rng)
    found = nearest(obstacles, balls, 1.0)
    expected = found.distances[found.obstacles >= 0].sum()
    given = total(obstacles.numbers, obstacles.integers, obstacles.nothing_skipped, balls)
    assert given == pytest.approx(expected)


def test_no_obstacles():
    found = nearest(pack([]), np.zeros((2, 4)), 0.5)
    assert found.distances.tolist() == [0.5, 0.5]
    assert found.obstacles.tolist() == [-1, -1]
    assert nearest(pack([PlacedShape(Sphere(1.0), np.eye(4))]), np.zeros((0, 4))).distances.shape == (0,)


def test_bounding_spheres_contain():
    rng = np.random.default_rng(5)
    points = rng.uniform(-3.0, 3.0, (20_000, 3))
    for placed in scene(rng, 10):
        (center, radius), inside = (
            bounding_sphere(placed.shape),
            signed_distance(placed.shape, points)[0] <= 0.0,
        )
        assert (np.linalg.norm(points[inside] - center, axis=1) <= radius).all()


def test_trees_are_built_once_and_kept_as_long_as_needed():
    cloud = PointCloud(np.random.default_rng(6).uniform(-1.0, 1.0, (1000, 3)), 0.1)
    before = len(trees._trees)
    first, second = pack([PlacedShape(cloud, np.eye(4))]), pack([PlacedShape(cloud, np.eye(4))])
    assert first.trees[0] is second.trees[0]
    expected = nearest(first, np.ones((1, 4))).distances
    del cloud, second
    assert len(trees._trees) <= before
    assert nearest(first, np.ones((1, 4))).distances == expected


def test_bad_input_is_refused():
    obstacles = pack([PlacedShape(Box(1.0, 1.0, 1.0), np.eye(4))])
    for balls, why in ((np.zeros((2, 3)), r"allowed is \(N, 4\)"), (np.full((1, 4), np.nan), "not finite")):
        with pytest.raises(InvalidRequestError, match=why):
            nearest(obstacles, balls)
    for skipped in (np.zeros(2, dtype=bool), np.zeros(1)):
        with pytest.raises(InvalidRequestError, match="one for each obstacle"):
            nearest(obstacles, np.zeros((1, 4)), skipped=skipped)
    with pytest.raises(InvalidRequestError, match="most is nan"):
        nearest(obstacles, np.zeros((1, 4)), np.nan)
    with pytest.raises(InvalidRequestError, match=r"allowed is \(N, 3\)"):
        signed_distance(Sphere(1.0), np.zeros(3))
    with pytest.raises(InvalidShapeError, match="pose of a shape"):
        pack([PlacedShape(Sphere(1.0), np.diag([1.0, 2.0, 1.0, 1.0]))])


def test_nothing_heavy_is_imported_with_the_shapes():
    program = (
        "import sys, kinopt_ros, kinopt_ros.geometry.shapes, kinopt_ros.geometry.meshes, kinopt_ros.collision;"
        "print([m for m in ('numba', 'coal', 'trimesh', 'scipy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
