"""Compiled poses of links against the reference."""

import numpy as np
import pytest

from kinopt_ros.collision.link_poses import link_poses
from kinopt_ros.conformance.robots import ROBOTS, two_arms
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

FLYING = """<robot name="flying"><link name="world"/><link name="body"/><link name="arm"/>
  <joint name="free" type="floating"><parent link="world"/><child link="body"/></joint>
  <joint name="turn" type="continuous"><parent link="body"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""
PLANAR = """<robot name="cart"><link name="world"/><link name="body"/><link name="arm"/>
  <joint name="drive" type="planar"><parent link="world"/><child link="body"/><axis xyz="0.1 0.2 0.9"/>
    <origin xyz="0.1 0.2 0.3" rpy="0.3 0.1 0.2"/></joint>
  <joint name="turn" type="continuous"><parent link="body"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""


def robots() -> list[RobotModel]:
    own = [factory() for factory, _ in ROBOTS.values()]
    return [*own, two_arms(), load_robot("panda"), robot_from_urdf(FLYING), robot_from_urdf(PLANAR)]


@pytest.mark.parametrize("robot", robots(), ids=lambda robot: robot.name)
def test_poses_are_those_of_the_reference(robot: RobotModel) -> None:
    q = random_configurations(robot, 50, 4)
    for links in (robot.link_names, robot.link_names[-1:], robot.link_names[::-2]):
        expected = forward_kinematics(robot, q, links)
        np.testing.assert_allclose(link_poses(robot, q, tuple(links)), expected, rtol=0.0, atol=1e-12)
    assert link_poses(robot, q[:0], robot.link_names).shape == (0, len(robot.link_names), 4, 4)
    np.testing.assert_array_equal(
        link_poses(robot, q[::3], robot.link_names)[1], link_poses(robot, q[3:4], robot.link_names)[0]
    )
