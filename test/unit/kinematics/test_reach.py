"""The reach bound holds for every configuration, and is near to what arms reach."""

import math

import numpy as np
import pytest

from kinopt_ros.conformance.robots import ROBOTS
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.reach import beyond_reach, reach_bounds
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import pose, so3_exp
from kinopt_ros.robot.chain import build_chain, chain_between
from kinopt_ros.robot.sources import load_robot


@pytest.mark.parametrize("name", sorted(ROBOTS))
def test_no_configuration_is_beyond(name: str) -> None:
    robot = ROBOTS[name][0]()
    tip = robot.link_names[-1]
    for base in (robot.root_link, robot.link_names[len(robot.link_names) // 2]):
        chain = build_chain(robot, base, tip)
        q = random_configurations(robot, 2000, 3)[:, chain.variables]
        tool = pose(so3_exp(np.array([0.3, -0.2, 0.9])), np.array([0.1, 0.2, -0.3]))
        T = chain_pose(chain, q)
        assert (beyond_reach(robot, chain, T, None, 1e-9, 1e-9) == 0.0).all()
        assert (beyond_reach(robot, chain, T @ tool, tool, 1e-9, 1e-9) == 0.0).all()
        assert (beyond_reach(robot, chain, T @ tool, tool, 1e-9, math.inf) == 0.0).all()


def test_the_panda_reaches_nearly_as_far() -> None:
    robot = load_robot("panda")
    chain = chain_between(robot, "panda_link0", "panda_link8")
    T = chain_pose(chain, random_configurations(robot, 20_000, 0)[:, chain.variables])
    reached = np.linalg.norm(T[:, :3, 3] - [0.0, 0.0, 0.333], axis=1).max()
    _, bound = reach_bounds(robot, chain)
    assert reached <= bound <= 1.12 * reached


def test_how_far_beyond() -> None:
    robot = load_robot("panda")
    chain = chain_between(robot, "panda_link0", "panda_link8")
    T = np.repeat(np.eye(4)[None], 2, axis=0)
    T[0, :3, 3] = 10.0, 0.0, 0.0
    T[1, :3, 3] = 11.0, 0.0, 0.0
    near, far = beyond_reach(robot, chain, T, None, 1e-4, math.inf)
    assert 5.0 < near < 10.0
    assert far - near == pytest.approx(1.0, abs=0.1)


def test_a_sphere_around_the_base_is_not_beyond() -> None:
    robot = load_robot("panda")
    chain = chain_between(robot, "panda_link0", "panda_link8")
    assert reach_bounds(robot, chain) is reach_bounds(robot, chain)
    T = np.eye(4)[None].copy()
    T[0, :3, 3] = 0.5, 0.0, 0.5
    assert beyond_reach(robot, chain, T, None, 1e-4, 1e-3)[0] == 0.0
