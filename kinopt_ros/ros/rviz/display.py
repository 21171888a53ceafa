"""display_planned_path for plans of markers, where moveit_msgs is installed: rviz's Trajectory display plays it."""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

from rclpy.node import Node

from kinopt_ros.array import Float64
from kinopt_ros.ros.robot.loader import LoadedRobot

TOPIC = "display_planned_path"


def planned_path_display(node: Node) -> Callable[[LoadedRobot, Any, Annotated[Float64, "nq"]], None]:
    """Return what publishes a JointTrajectory that begins in a configuration of the whole robot; without moveit_msgs it
    publishes nothing."""
    try:
        messages = import_module("moveit_msgs.msg")
    except ImportError:
        return lambda loaded, trajectory, q: None
    from kinopt_ros.ros.moveit.robot_state import fill_robot_state  # imports moveit_msgs

    publisher = node.create_publisher(messages.DisplayTrajectory, TOPIC, 10)

    def display(loaded: LoadedRobot, trajectory: Any, q: Annotated[Float64, "nq"]) -> None:
        shown = messages.DisplayTrajectory(model_id=loaded.model.name)
        shown.trajectory = [messages.RobotTrajectory(joint_trajectory=trajectory)]
        fill_robot_state(shown.trajectory_start, loaded.model, q)
        publisher.publish(shown)

    return display
