"""Tips of requests by name: links, tool frames of parameter ``tool_frames``, attached objects of the scene."""

from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.scene.tool_frames import Tip, find_tip, tool_frames


def tip_of(context: Context, robot: RobotModel, name: str) -> Tip:
    """Return the link that a name stands for, and where on it.

    Raises:
        KinoptError: nothing has this name.
    """
    if name in robot.link_index:  # most of them, and without a look at the scene
        return Tip(name)
    frames = tool_frames(context.parameter("tool_frames"))
    return find_tip(robot, frames, EMPTY_SCENE if name in frames else context.scene.of(robot), name)
