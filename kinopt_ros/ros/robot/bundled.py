"""The node's parameters for a bundled robot."""

from typing import Any

from kinopt_ros.robot.sources import bundled_joint_limits, find_robot
from kinopt_ros.ros.robot.joint_limits import PREFIX


def bundled_parameters(name: str) -> dict[str, Any]:
    """Return URDF, SRDF and joint limits of a bundled robot, by parameter name."""
    urdf, srdf = find_robot(name)
    limits = bundled_joint_limits(name)
    return {
        "robot_description": urdf.read_text(encoding="utf-8"),
        "robot_description_semantic": srdf.read_text(encoding="utf-8") if srdf else "",
        **{
            f"{PREFIX}{joint}.{key}": value for joint, entry in limits.items() for key, value in entry.items()
        },
    }
