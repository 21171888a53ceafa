"""Obstacles that are passed over, against the distances of all spheres from each obstacle alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import trimesh
from numba import njit
from support.arm_scenes import scene_of

from kinopt_ros.collision.kernels.ball_distances import ball_distance
from kinopt_ros.geometry.shapes import Box, Cylinder, Mesh, Plane, PointCloud, Sphere
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths.kernels.frames import set_frames
from kinopt_ros.solvers.cpu.paths.kernels.neighbours import STALE, pass_over
from kinopt_ros.solvers.cpu.paths.kernels.spheres import place_balls, place_spheres
from kinopt_ros.solvers.cpu.paths.model import path_model

BEGIN = np.array([0.0, 0.3, 0.0, -1.9, 0.0, 2.1, 0.785])
MOST = 0.12


@njit
def passed_over(
    tree: Any,
    around: Any,
    q: Any,
    neighbours: Any,
    renew: bool,
    frames: Any,
    positions: Any,
    balls: Any,
    skip: Any,
) -> Any:
    """Place everything at a configuration and ask for each body that moves; returns which have some left."""
    set_frames(tree, q, frames)
    place_spheres(around.node, around.centers, frames, positions, around.resting[0], around.node.shape[0])
    place_balls(around, frames, balls)
    some = np.zeros(balls.shape[0], dtype=np.bool_)
    for body in range(around.resting[1], balls.shape[0]):
        if around.body_mask[body] >= 0:
            some[body] = pass_over(around, body, balls, MOST, neighbours, renew, skip[body])
    return some


@pytest.mark.parametrize("renew", [True, False])
def test_what_is_passed_over_is_far_from_every_sphere(
    panda: RobotModel, problem_of: Callable[..., Any], renew: bool
) -> None:
    rng = np.random.default_rng(4)
    ball = trimesh.creation.icosphere(subdivisions=2, radius=0.08)
    shapes = [
        Plane(),
        Mesh(np.asarray(ball.vertices), np.asarray(ball.faces)),
        PointCloud(rng.normal(scale=0.2, size=(500, 3)), 0.01),
        *(Box(*rng.uniform(0.02, 0.6, 3)) for _ in range(12)),
        *(Cylinder(*rng.uniform(0.02, 0.3, 2)) for _ in range(6)),
        *(Sphere(rng.uniform(0.02, 0.2)) for _ in range(6)),
    ]
    places = rng.uniform([-0.9, -0.9, -0.5], [0.9, 0.9, 1.3], (len(shapes), 3))
    places[0] = 0.0, 0.0, -0.1
    scene = scene_of(*((shape, tuple(place)) for shape, place in zip(shapes, places, strict=True)))
    model = path_model(panda, problem_of(BEGIN, BEGIN, scene=scene))
    around, count = model.around.arrays, model.counts
    skip = np.zeros((count.bodies, count.obstacles), dtype=np.bool_)
    memory = np.empty((count.nodes, 12)), np.empty((count.spheres, 3)), np.empty((count.bodies, 3))
    neighbours = np.full((count.bodies, 3), np.nan), np.empty((count.bodies, count.obstacles))
    tree = model.tree.arrays
    passed_over(tree, around, BEGIN, neighbours, True, *memory, skip)
    only = ~np.eye(count.obstacles, dtype=np.bool_)
    far, kept = 0, 0
    for step in range(40):
        q = BEGIN + np.sin(0.05 * step * np.arange(1.0, 8.0))
        some = passed_over(tree, around, q, neighbours, renew, *memory, skip)
        for body in range(around.resting[1], count.bodies):
            if around.body_mask[body] < 0:
                continue
            assert some[body] == (~skip[body]).any()
            for obstacle in np.flatnonzero(skip[body]):
                for s in range(around.body_first[body], around.body_first[body + 1]):
                    found = ball_distance(
                        around.numbers, around.integers, only[obstacle], *memory[1][s], around.padded[s], MOST
                    )
                    assert found[0] >= MOST - 1e-12
                    far += 1
            kept += int((~skip[body]).sum())
    # All of this must be worth it: most are far away, and some are not.
    assert far > 10_000
    assert kept > 100


def test_distances_are_remembered_until_the_body_has_moved_by_much(
    panda: RobotModel, problem_of: Callable[..., Any]
) -> None:
    scene = scene_of((Box(0.2, 0.2, 0.2), (0.5, 0.4, 0.5)))
    model = path_model(panda, problem_of(BEGIN, BEGIN, scene=scene))
    around, count = model.around.arrays, model.counts
    skip = np.zeros((count.bodies, count.obstacles), dtype=np.bool_)
    memory = np.empty((count.nodes, 12)), np.empty((count.spheres, 3)), np.empty((count.bodies, 3))
    neighbours = np.full((count.bodies, 3), np.nan), np.empty((count.bodies, count.obstacles))
    last = count.bodies - 1
    at = []
    for turned in (0.0, 0.02, 0.2):
        q = BEGIN.copy()
        q[0] += turned
        passed_over(model.tree.arrays, around, q, neighbours, True, *memory, skip)
        at.append((memory[2][last].copy(), neighbours[0][last].copy()))
    (first, _), (second, were_second), (third, were_third) = at
    assert 0.0 < np.linalg.norm(second - first) <= STALE < np.linalg.norm(third - first)
    np.testing.assert_array_equal(were_second, first)
    np.testing.assert_array_equal(were_third, third)
