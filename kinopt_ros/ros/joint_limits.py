"""MoveIt's joint limits parameters: ``robot_description_planning.joint_limits.<joint>.<key>``.

They are declared when the robot is known, so that a joint_limits.yaml of a MoveIt configuration can be given to
the node as it is.
"""

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros import parameters

PREFIX = "robot_description_planning.joint_limits."

_KEYS = {
    "has_position_limits": "Whether min_position and max_position count.",
    "min_position": "Lower position limit instead of the URDF's (rad or m).",
    "max_position": "Upper position limit instead of the URDF's (rad or m).",
    "has_velocity_limits": "Whether max_velocity counts.",
    "max_velocity": "Velocity limit instead of the URDF's (rad/s or m/s).",
    "has_acceleration_limits": "Whether max_acceleration counts.",
    "max_acceleration": "Acceleration limit (rad/s^2 or m/s^2).",
    "has_jerk_limits": "Whether max_jerk counts.",
    "max_jerk": "Jerk limit (rad/s^3 or m/s^3).",
}


def declare_joint_limits(node: Node, robot: RobotModel) -> list[str]:
    """Declare the parameters of every joint, unset unless the node was given them.

    Returns the names of given parameters that belong to no joint and no key: they would be lost without a word.
    """
    for name in _limited_names(robot):
        for key, description in _KEYS.items():
            parameter = f"{PREFIX}{name}.{key}"
            if not node.has_parameter(parameter):
                node.declare_parameter(parameter, None, parameters.described(parameter, description))
    # What a node was started with is known to rclpy only; it offers no way to ask for what is not declared.
    given = getattr(node, "_parameter_overrides", {})
    return sorted(name for name in given if name.startswith(PREFIX) and not node.has_parameter(name))


def with_joint_limits(node: Node, robot: RobotModel, proposed: Mapping[str, Any] | None = None) -> RobotModel:
    """The robot with the limits that the node's parameters give on top of its description.

    Args:
        node: the node.
        robot: the robot as its description has it.
        proposed: values by parameter name that count instead of the present ones.

    Raises:
        RobotDescriptionError: a value that cannot be a limit.
    """
    given: dict[str, dict[str, object]] = {}
    for name in _limited_names(robot):
        for key in _KEYS:
            parameter = f"{PREFIX}{name}.{key}"
            present = parameters.value(node, parameter) if node.has_parameter(parameter) else None
            value = (proposed or {}).get(parameter, present)
            if value is not None:
                given.setdefault(name, {})[key] = value
    return apply_joint_limits(robot, given) if given else robot


def _limited_names(robot: RobotModel) -> list[str]:
    """Active and mimic joints; for planar and floating ones their variables."""
    names = []
    for joint in robot.joints:
        several = joint.type.num_variables > 1
        names += [robot.variable_names[i] for i in robot.variables_of(joint.name)] if several else []
        if joint.type.num_variables == 1:
            names.append(joint.name)
    return names
