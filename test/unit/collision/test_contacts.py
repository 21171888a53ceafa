"""Least distances of groups of pairs against those of single pairs."""

import numpy as np
import pytest
from support.arm_scenes import scene_of

import kinopt_ros
from kinopt_ros.collision.contacts import Placement, group_distances
from kinopt_ros.collision.packed_bodies import packed_bodies_of
from kinopt_ros.geometry.shapes import Box, Sphere
from kinopt_ros.kinematics.sampling import halton_configurations
from kinopt_ros.robot.model import RobotModel


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return kinopt_ros.load_robot("panda")


def test_groups_are_as_near_as_their_nearest_pair(panda: RobotModel) -> None:
    scene = scene_of((Box(0.3, 0.3, 0.3), (0.5, 0.0, 0.4)), (Sphere(0.15), (-0.2, 0.4, 0.6)))
    packed = packed_bodies_of(panda, scene)
    rng = np.random.default_rng(0)
    G, enough = 9, 0.2
    some = np.sort(rng.permutation(packed.every_pair)[: len(packed.every_pair) * 3 // 4])
    group = rng.integers(G, size=len(some))
    q = halton_configurations(panda, 40, seed=1)
    asked = rng.random((len(q), G)) < 0.7
    gaps = group_distances(packed, q, some, group, asked, enough)
    near = 0
    for row, wanted, found in zip(q, asked, gaps, strict=True):
        placement = Placement(packed, row)
        for g in range(G):
            bounds = placement.near(enough, pairs=some[group == g])[1]
            least = bounds.min(initial=enough) if wanted[g] else enough
            if least > 0.0:  # where shapes overlap bounds say little
                assert found[g] == pytest.approx(least, abs=1e-8)
                near += found[g] < enough
            else:
                assert found[g] <= 0.0
    assert near > 50


def test_nothing_asked_nothing_near(panda: RobotModel) -> None:
    packed = packed_bodies_of(panda, scene_of((Box(3.0, 3.0, 3.0), (0.0, 0.0, 0.0))))
    pairs = packed.every_pair
    asked = np.zeros((2, 1), dtype=np.bool_)
    gaps = group_distances(
        packed, np.repeat(panda.default_q[None], 2, axis=0), pairs, np.zeros_like(pairs), asked, 0.1
    )
    np.testing.assert_array_equal(gaps, 0.1)
