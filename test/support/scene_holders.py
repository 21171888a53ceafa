"""Scenes in service, of a robot that serves."""

from collections.abc import Callable

from kinopt_ros.planning.scene_holder import SceneHolder
from kinopt_ros.robot.model import RobotModel


def serving(robot: RobotModel, report: Callable[[str], object] = lambda sentence: None) -> SceneHolder:
    """Return an empty scene that such a robot is in."""
    holder = SceneHolder(report)
    holder.serve(robot)
    return holder
