"""`kinopt ik --demo updown --display`: each motion on display_planned_path, for rviz."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import numpy as np
from rclpy.context import Context
from rclpy.node import Node

from kinopt_ros.array import Float64, Int64
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.messages.conversions import trajectory_message
from kinopt_ros.ros.rviz.display import planned_path_display

_NODE = "kinopt_ik"
_SCALING = 0.1
"""Share of the limits of velocity and acceleration, as everywhere by default."""

Show = Callable[[Annotated[Float64, "nq"], Annotated[Float64, "nq"], Annotated[Int64, "n"]], str]
"""Shows the motion of some variables from one configuration to another; returns why it does not, or ''."""


@contextmanager
def path_display(robot: RobotModel) -> Iterator[Show]:
    """Yield what shows motions of a robot in rviz, in the ROS domain of the caller. They move nothing.

    Raises:
        MissingPackageError: there are no messages of MoveIt.
    """
    context = Context()
    context.init(args=[])
    try:
        node = Node(_NODE, context=context)
        display = planned_path_display(node)

        def show(
            start: Annotated[Float64, "nq"], goal: Annotated[Float64, "nq"], variables: Annotated[Int64, "n"]
        ) -> str:
            names = [robot.variable_names[i] for i in variables]
            motion = plan_joint_motion(robot, names, start, np.zeros(len(start)), goal, _SCALING, _SCALING)
            if not motion.report.ok:
                return motion.report.violations[0].message
            display(robot, trajectory_message(motion.trajectory, robot.root_link), start)
            return ""

        yield show
    finally:
        context.try_shutdown()
