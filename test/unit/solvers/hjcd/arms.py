"""Arms that the tests of this folder share."""

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import (
    continuous_and_prismatic,
    seven_revolute,
    six_revolute,
    with_mimic,
)
from kinopt_ros.kinematics.se3 import pose
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers.hjcd.reference.arm import Arm, arm_of

ROBOTS = {
    "six_revolute": six_revolute,
    "seven_revolute": seven_revolute,
    "continuous_and_prismatic": continuous_and_prismatic,
    "with_mimic": with_mimic,
}


def arm_named(name: str) -> Arm:
    """The whole arm of one of the suite's robots."""
    robot = ROBOTS[name]()
    return arm_of(robot, build_chain(robot, robot.root_link, robot.link_names[-1]))


def between(robot: RobotModel, base: str, tip: str) -> Arm:
    """Any two links."""
    return arm_of(robot, build_chain(robot, base, tip))


def planar_robot() -> RobotModel:
    """Three endless joints about z, 0.4, 0.3 and 0.2 m long."""
    limit = '<limit velocity="2" effort="1"/>'
    links = "".join(f'<link name="l{i}"/>' for i in range(5))
    joints = "".join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="{(0.0, 0.4, 0.3)[i]} 0 0"/><axis xyz="0 0 1"/>{limit}</joint>'
        for i in range(3)
    )
    tool = '<joint name="t" type="fixed"><parent link="l3"/><child link="l4"/><origin xyz="0.2 0 0"/></joint>'
    return robot_from_urdf(f'<robot name="planar">{links}{joints}{tool}</robot>')


def coupled_robot() -> RobotModel:
    """One endless joint about z, and one that slides half as far as it turns."""
    limit = '<limit velocity="2" effort="1" lower="-1" upper="1"/>'
    joints = (
        '<joint name="turn" type="continuous"><parent link="l0"/><child link="l1"/><axis xyz="0 0 1"/>'
        f'{limit}</joint><joint name="slide" type="prismatic"><parent link="l1"/><child link="l2"/>'
        f'<axis xyz="1 0 0"/><mimic joint="turn" multiplier="0.5"/>{limit}</joint>'
    )
    links = "".join(f'<link name="l{i}"/>' for i in range(3))
    return robot_from_urdf(f'<robot name="coupled">{links}{joints}</robot>')


def random_q(arm: Arm, count: int, seed: int) -> Float64:
    """Inside the limits, (count, n)."""
    return arm.sample_lower + arm.span * np.random.default_rng(seed).random((count, len(arm.lower)))


def random_poses(count: int, seed: int) -> Float64:
    """Any rotation, positions within a metre, (count, 4, 4)."""
    generator = np.random.default_rng(seed)
    rotations = np.linalg.qr(generator.normal(size=(count, 3, 3)))[0]
    rotations[:, :, 0] *= np.linalg.det(rotations)[:, None]
    return pose(rotations, generator.uniform(-1.0, 1.0, (count, 3)))
