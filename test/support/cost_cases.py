"""A cost of every registered kind, on two robots: Panda, and one with every type of joint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kinopt_ros.costs.acceleration_limits import AccelerationLimits
from kinopt_ros.costs.alignment import Alignment
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.center_of_mass import CenterOfMass
from kinopt_ros.costs.jerk_limits import JerkLimits
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.look_at import LookAt
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.obstacles import obstacles_of
from kinopt_ros.costs.position_limits import PositionLimits
from kinopt_ros.costs.reference import Reference
from kinopt_ros.costs.relative_pose import RelativePose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.self_collision import SelfCollision
from kinopt_ros.costs.smoothness import LeastAcceleration, LeastJerk, Smoothness
from kinopt_ros.costs.swept_collision import SweptCollision
from kinopt_ros.costs.velocity_limits import VelocityLimits
from kinopt_ros.costs.world_collision import WorldCollision
from kinopt_ros.geometry.shapes import Box, Capsule, PlacedShape, Sphere
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import pose, rpy_to_matrix
from kinopt_ros.kinematics.tangent import difference, directions, moved
from kinopt_ros.robot.inertials import Inertial
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import Scene, SceneObject

ORIGIN = '<origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/>'
LIMIT = '<limit lower="-1.5" upper="1.2" velocity="2" effort="1"/>'
NUM_POINTS, DT = 6, 0.2


def every_joint() -> RobotModel:
    """A robot with joints of every type: a floating base, then a planar one, an arm and a driven finger."""
    joints = [
        ("fly", "floating", "l0", "l1", ""),
        ("drive", "planar", "l1", "l2", '<axis xyz="0 0 1"/>' + ORIGIN),
        ("a", "revolute", "l2", "l3", '<axis xyz="0 1 0"/>' + ORIGIN + LIMIT),
        ("c", "continuous", "l3", "l4", '<axis xyz="1 0 0"/>' + ORIGIN),
        ("p", "prismatic", "l4", "l5", '<axis xyz="0 0 1"/>' + ORIGIN + LIMIT),
        ("b", "revolute", "l5", "l6", '<axis xyz="0 0 1"/>' + ORIGIN + LIMIT),
        (
            "m",
            "revolute",
            "l6",
            "tip",
            f'<axis xyz="1 0 0"/>{ORIGIN}{LIMIT}<mimic joint="a" multiplier="-0.5" offset="0.1"/>',
        ),
        ("s", "revolute", "l3", "side", '<axis xyz="0 0 1"/>' + ORIGIN + LIMIT),
        ("f", "fixed", "side", "hand", ORIGIN),
    ]
    parts = [
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inner}</joint>'
        for name, kind, parent, child, inner in joints
    ]
    names = ("l0", *(child for _, _, _, child, _ in joints))
    links = "".join(f'<link name="{name}">{_body(0.1 * (k + 1))}</link>' for k, name in enumerate(names))
    return robot_from_urdf(f'<robot name="every_joint">{links}{"".join(parts)}</robot>')


def _body(mass: float) -> str:
    ball = '<collision><geometry><sphere radius="0.05"/></geometry></collision>'
    return f'<inertial><origin xyz="0.01 {mass} 0.02"/><mass value="{mass}"/></inertial>{ball}'


def _scene() -> Scene:
    """A box, a ball and a capsule."""
    shapes = (Box(0.3, 0.2, 0.1), Sphere(0.1), Capsule(0.05, 0.4))
    items = [
        PlacedShape(shape, pose(rpy_to_matrix(0.3 * np.ones(3)), 0.3 * k * np.ones(3)))
        for k, shape in enumerate(shapes)
    ]
    return Scene(objects={"o": SceneObject("o", tuple(items), np.eye(4))})


def _panda() -> RobotModel:
    """The bundled Panda with masses, which its description does not have."""
    robot = load_robot("panda")
    masses = {name: Inertial(1.0 + k, 0.01 * k * np.ones(3)) for k, name in enumerate(robot.link_names)}
    return replace(robot, inertials=masses)


ROBOTS: dict[str, tuple[Callable[[], RobotModel], str, str, str]] = {
    "panda": (_panda, "panda_hand", "panda_link4", "panda_joint2"),
    "every_joint": (every_joint, "tip", "hand", "c"),
}
"""How a robot is made, a link at its end, another moving link, a joint."""


def target() -> np.ndarray:
    """A pose like no other."""
    return pose(rpy_to_matrix(np.array([0.7, -0.3, 1.1])), np.array([0.3, 0.2, 0.5]))


def cost_cases(name: str, robot: RobotModel) -> dict[str, Cost]:
    """One cost of every kind for a robot of ``ROBOTS``."""
    _, end, other, joint = ROBOTS[name]
    tool = pose(rpy_to_matrix(np.array([0.1, 0.2, -0.3])), np.array([0.05, 0.0, 0.1]))
    wide = np.linspace(0.5, 2.0, directions(robot).nv)
    cases: list[Cost] = [
        AccelerationLimits(scale=0.5),
        Alignment(link=end, axis=(1.0, 2.0, 3.0), direction=(0.5, -1.0, 0.2)),
        JerkLimits(joints=(joint,)),
        LeastAcceleration(weight=wide),
        LeastJerk(joints=(joint,)),
        LinkPose(
            link=end,
            T_base_target=target(),
            base_link=other,
            T_link_tool=tool,
            frame="base",
            weight=(1.0, 2.0, 0.0, 1.0, 0.5, 3.0),
        ),
        LookAt(link=end, place=(0.4, -0.3, 0.9), base_link=other, axis=(0.0, 1.0, 1.0)),
        Manipulability(link=end, part="translation"),
        PositionLimits(margin=0.2),
        Reference(q=smooth_path(robot, seed=3), weight=wide),
        RelativePose(link_a=other, link_b=end, T_a_b=target(), tolerance=(1e-3, 1e-2)),
        Rest(q=random_configurations(robot, 1, 7)[0], joints=(joint,)),
        Smoothness(weight=wide),
        VelocityLimits(scale=0.3),
        CenterOfMass(place=(0.1, -0.2, 0.5), base_link=other, weight=(1.0, 2.0, 0.5)),
        WorldCollision(margin=0.3, obstacles=obstacles_of(_scene())),
        SweptCollision(margin=0.3, obstacles=obstacles_of(_scene()), tolerance=0.01),
        SelfCollision(margin=0.3, shape="capsules"),
    ]
    return {cost.name: cost for cost in cases}


def smooth_path(robot: RobotModel, seed: int = 0) -> np.ndarray:
    """``NUM_POINTS`` configurations along a curve."""
    known = directions(robot)
    a, b, c = random_configurations(robot, 3, seed)
    towards, aside = 0.3 * difference(known, a, b), 0.2 * difference(known, a, c)
    s = np.linspace(0.0, 1.0, NUM_POINTS)
    return np.array([moved(known, a, t * towards + np.sin(3.0 * t + 1.0) * aside) for t in s])
