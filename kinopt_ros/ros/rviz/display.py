"""display_planned_path, where moveit_msgs is installed: rviz's Trajectory display plays it."""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

from rclpy.node import Node

from kinopt_ros.array import Float64
from kinopt_ros.errors import MissingPackageError
from kinopt_ros.robot.model import RobotModel

TOPIC = "display_planned_path"
Display = Callable[[RobotModel, Any, Annotated[Float64, "nq"]], None]
"""Publishes a trajectory_msgs/JointTrajectory that begins in a configuration of the whole robot."""


def offered_display(node: Node) -> Display:
    """Return ``planned_path_display``; without moveit_msgs what publishes nothing."""
    try:
        return planned_path_display(node)
    except MissingPackageError:
        return lambda robot, trajectory, q: None


def planned_path_display(node: Node) -> Display:
    """Return what publishes motions.

    Raises:
        MissingPackageError: there are no messages of MoveIt.
    """
    try:
        messages = import_module("moveit_msgs.msg")
    except ImportError as error:
        raise MissingPackageError(
            f"moveit_msgs is not installed, whose DisplayTrajectory {TOPIC} is made of ({error})"
        ) from error
    from kinopt_ros.ros.moveit.robot_state import fill_robot_state  # imports moveit_msgs

    publisher = node.create_publisher(messages.DisplayTrajectory, TOPIC, 10)

    def display(robot: RobotModel, trajectory: Any, q: Annotated[Float64, "nq"]) -> None:
        shown = messages.DisplayTrajectory(model_id=robot.name)
        shown.trajectory = [messages.RobotTrajectory(joint_trajectory=trajectory)]
        fill_robot_state(shown.trajectory_start, robot, q)
        publisher.publish(shown)

    return display
