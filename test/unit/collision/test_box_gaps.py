"""Boxes around shapes, and lower bounds of distances by them."""

import numpy as np
import pytest
from support.shape_cases import BOUNDED, random_pose, random_primitive

from kinopt_ros.collision.kernels.box_gaps import box_gap
from kinopt_ros.collision.obstacles import bounding_box, signed_distance
from kinopt_ros.geometry.shapes import Box, HeightMap, Mesh, Octomap, Plane, PointCloud


def gap_of(T_a, half_a, T_b, half_b, enough=np.inf):
    placed, half = np.stack([T_a, T_b]), np.array([half_a, half_b])
    apart = float(np.linalg.norm(T_b[:3, 3] - T_a[:3, 3]) - np.linalg.norm(half, axis=1).sum())
    return apart if apart >= enough else box_gap(placed, half, 0, 1, apart, float(enough))


def everything(rng):
    yield from (random_primitive(rng, kind) for kind in BOUNDED)
    yield PointCloud(rng.uniform(0.5, 1.0, (50, 3)), 0.05)
    yield Octomap(rng.uniform(-1.0, 0.0, (50, 3)), rng.uniform(0.01, 0.2, 50))
    ball = pytest.importorskip("trimesh").creation.icosphere(subdivisions=2, radius=0.3)
    yield Mesh(np.array(ball.vertices) + 0.2, np.array(ball.faces))


def test_boxes_contain_and_touch():
    rng = np.random.default_rng(0)
    for shape in everything(rng):
        center, half = (np.array(part) for part in bounding_box(shape))
        points = center + rng.uniform(-1.5, 1.5, (100_000, 3)) * half
        inside = np.abs(points[signed_distance(shape, points)[0] <= 0.0] - center)
        assert (inside <= half).all()
        assert (inside.max(axis=0) >= 0.8 * half).all()


@pytest.mark.parametrize("shape", [Plane(), HeightMap(np.zeros((2, 2)), 1.0)])
def test_what_has_no_end_has_no_box(shape):
    assert bounding_box(shape)[1] == (np.inf, np.inf, np.inf)


def test_gaps_are_not_above_distances():
    pytest.importorskip("coal")
    from kinopt_ros.collision.judge import distance

    rng = np.random.default_rng(1)
    tight = []
    for _ in range(300):
        a, b = Box(*rng.uniform(0.05, 0.6, 3).tolist()), Box(*rng.uniform(0.05, 0.6, 3).tolist())
        T_a, T_b = random_pose(rng, 0.6), random_pose(rng, 0.6)
        found = distance(a, T_a, b, T_b).distance
        gap = gap_of(T_a, bounding_box(a)[1], T_b, bounding_box(b)[1])
        assert gap <= found + 1e-6
        # Boxes that overlap have no gap, and the other way round.
        assert (gap <= 0.0) == (found <= 0.0)
        for enough in (-0.1, 0.0, 0.2):
            rough = gap_of(T_a, bounding_box(a)[1], T_b, bounding_box(b)[1], enough)
            assert rough <= gap + 1e-12
            assert rough == pytest.approx(gap) if gap < enough else rough >= enough
        if found > 0.0:
            tight.append(gap / found)
    assert np.median(tight) > 0.9


def test_aligned_boxes_and_parallel_edges():
    half = (0.5, 0.5, 0.5)
    beside = np.eye(4)
    beside[0, 3] = 1.25
    assert gap_of(np.eye(4), half, beside, half) == pytest.approx(0.25)
    assert gap_of(np.eye(4), half, np.eye(4), half) == pytest.approx(-1.0)
