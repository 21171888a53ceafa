"""MoveIt's joint limits parameters: ``robot_description_planning.joint_limits.<joint>.<key>``.

They are declared when the robot is known, so that a joint_limits.yaml of a MoveIt configuration can be given to
the node as it is.
"""

from rclpy.node import Node
from rclpy.parameter import Parameter

from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros import parameters

PREFIX = "robot_description_planning.joint_limits."

_KEYS = {
    "has_position_limits": (Parameter.Type.BOOL, "Whether min_position and max_position count."),
    "min_position": (Parameter.Type.DOUBLE, "Lower position limit instead of the URDF's (rad or m)."),
    "max_position": (Parameter.Type.DOUBLE, "Upper position limit instead of the URDF's (rad or m)."),
    "has_velocity_limits": (Parameter.Type.BOOL, "Whether max_velocity counts."),
    "max_velocity": (Parameter.Type.DOUBLE, "Velocity limit instead of the URDF's (rad/s or m/s)."),
    "has_acceleration_limits": (Parameter.Type.BOOL, "Whether max_acceleration counts."),
    "max_acceleration": (Parameter.Type.DOUBLE, "Acceleration limit (rad/s^2 or m/s^2)."),
    "has_jerk_limits": (Parameter.Type.BOOL, "Whether max_jerk counts."),
    "max_jerk": (Parameter.Type.DOUBLE, "Jerk limit (rad/s^3 or m/s^3)."),
}


def with_joint_limits(node: Node, robot: RobotModel) -> RobotModel:
    """The robot with the limits that the node's parameters give on top of its description.

    Raises:
        RobotDescriptionError: a value that cannot be a limit.
    """
    given: dict[str, dict[str, object]] = {}
    for name in _limited_names(robot):
        entry = {}
        for key, (kind, description) in _KEYS.items():
            parameter = f"{PREFIX}{name}.{key}"
            if not node.has_parameter(parameter):
                node.declare_parameter(parameter, kind, parameters.described(parameter, description))
            value = parameters.value(node, parameter)
            if value is not None:
                entry[key] = value
        if entry:
            given[name] = entry
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
