"""`kinopt view` beside a node: one that runs, or one that is started with a simulated robot."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import rclpy
from rclpy.node import Node

from kinopt_ros.problems.chains import default_group
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.client.isolation import isolate
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.client.robot_link import RobotLink
from kinopt_ros.ros.client.simulated_robot import SimulatedRobotTopics
from kinopt_ros.ros.robot.bundled import bundled_parameters
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

_NODE = "kinopt_view"
_DESCRIPTION_SECONDS = 10.0
"""Time to wait for robot_description, s."""


@contextmanager
def beside(
    source: str | None, srdf: str | None, node: str
) -> Iterator[tuple[RobotModel, str | None, RobotLink]]:
    """Listen to a node that runs; yield its robot, the text of its description, and what talks to it.

    Args:
        source: name or file of the robot; None: what robot_description says.
        srdf: file of its SRDF.
        node: name of the node.

    Raises:
        KinoptError: no such robot, or nobody publishes a description.
    """
    rclpy.init(args=[])
    link = RobotLink(Node(_NODE), node)
    link.start()
    try:
        if source is not None:
            yield load_robot(source, srdf=srdf), None, link
        else:
            urdf, semantic = link.description(_DESCRIPTION_SECONDS)
            yield robot_from_urdf(urdf, semantic or None), urdf, link
    finally:
        link.close()
        rclpy.try_shutdown()


@contextmanager
def simulated(
    source: str, group: str | None, tip: str | None, say: Callable[[str], None]
) -> Iterator[tuple[RobotModel, str | None, RobotLink]]:
    """Start a node and a simulated robot, both on this machine only; yield as ``beside``.

    Args:
        source: name of the robot.
        group: whose joints the node moves; None: the first one with a tip.
        tip: link that it places; None: the group's.
        say: told where they are.

    Raises:
        KinoptError: no such robot, or ROS cannot be kept on this machine.
    """
    robot = load_robot(source)
    group = default_group(robot).name if group is None else group
    domain = isolate()
    parameters = {**bundled_parameters(source), "default_group": group, "target_pose.tip_link": tip or ""}
    with NodeProcess(parameters) as process:
        rclpy.init(args=[])
        node = Node(_NODE)
        start = dict(zip(robot.variable_names, robot.default_q.tolist(), strict=True))
        SimulatedRobotTopics(node, SimulatedRobot(robot, start=start))
        link = RobotLink(node)
        link.start()
        say(f"node and simulated robot in ROS_DOMAIN_ID={domain}, on this machine only")
        try:
            yield robot, None, link
        finally:
            link.close()
            rclpy.try_shutdown()
            if not process.running:
                print(process.log_text(), file=sys.stderr)
