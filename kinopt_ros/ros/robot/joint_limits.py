"""MoveIt's joint limits parameters: ``robot_description_planning.joint_limits.<joint>.<key>``.

They are declared when the robot is known, so that a joint_limits.yaml of a MoveIt configuration can be given to
the node as it is. None of them is ever unset, as `ros2 param dump` writes what nobody can read for those: a limit that
is not given is NaN.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from kinopt_ros.errors import shown
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.robot import parameters

PREFIX = "robot_description_planning.joint_limits."

_KEYS = {
    "has_position_limits": "Whether min_position and max_position count.",
    "min_position": "Lower position limit instead of the URDF's (rad or m).",
    "max_position": "Upper position limit instead of the URDF's (rad or m).",
    "has_velocity_limits": "Whether max_velocity counts.",
    "max_velocity": "Velocity limit instead of the URDF's (rad/s or m/s).",
    "has_acceleration_limits": "Whether max_acceleration counts.",
    "max_acceleration": "Acceleration limit (rad/s^2 or m/s^2).",
    "has_deceleration_limits": "Whether max_deceleration counts.",
    "max_deceleration": "Deceleration limit; what is smaller counts for acceleration, too (rad/s^2 or m/s^2).",
    "has_jerk_limits": "Whether max_jerk counts.",
    "max_jerk": "Jerk limit (rad/s^3 or m/s^3).",
}
_VALUES = {
    flag: [key for key in _KEYS if key.endswith(f"_{what}")]
    for flag, what in (
        ("has_position_limits", "position"),
        ("has_velocity_limits", "velocity"),
        ("has_acceleration_limits", "acceleration"),
        ("has_deceleration_limits", "deceleration"),
        ("has_jerk_limits", "jerk"),
    )
}


def declaration(node: Node, robot: RobotModel) -> Iterator[Callable[[], None]]:
    """Yield steps that declare the parameters of every joint; for the thread that serves the node's callbacks."""
    joints = _limited_names(robot)
    wanted = {f"{PREFIX}{name}.{key}" for name in joints for key in _KEYS}
    for name in node.get_parameters_by_prefix(PREFIX.rstrip(".")):
        if PREFIX + name not in wanted:
            yield partial(_forget, node, PREFIX + name)
    for name in joints:
        yield partial(_declare, node, name)


def unknown_limits(node: Node, robot: RobotModel) -> list[str]:
    """Return names of given parameters that belong to no joint and no key: they would be lost without a word."""
    known = {f"{PREFIX}{name}.{key}" for name in _limited_names(robot) for key in _KEYS}
    return sorted(
        name for name in parameters.given_at_start(node) if name.startswith(PREFIX) and name not in known
    )


def converted(given: list[Parameter[Any]]) -> list[Parameter[Any]]:
    """Return limits that somebody sets, as the node keeps them: floats, and NaN for one that is unset."""
    return [_converted(parameter) for parameter in given]


def _converted(parameter: Parameter[Any]) -> Parameter[Any]:
    key = parameter.name.rpartition(".")[2]
    if not parameter.name.startswith(PREFIX) or key not in _KEYS:
        return parameter
    stored = _stored(key, parameter.value)
    # What stays is left alone: rclpy does not make an empty array anew.
    return parameter if stored is parameter.value else Parameter(parameter.name, value=stored)


def check(given: list[Parameter[Any]]) -> SetParametersResult:
    """Refuse limits of the wrong type; whether the robot can have them is seen when it is built."""
    for parameter in given:
        key = parameter.name.rpartition(".")[2]
        if parameter.name.startswith(PREFIX) and key in _KEYS:
            wanted, words = (bool, "true or false") if key in _VALUES else (float, "a number")
            if not isinstance(parameter.value, wanted):
                return parameters.refusal(f"{parameter.name} takes {words}, not {shown(parameter.value)}")
    return SetParametersResult(successful=True)


def with_joint_limits(node: Node, robot: RobotModel, proposed: Mapping[str, Any] | None = None) -> RobotModel:
    """Return the robot with the limits that the node's parameters give on top of its description.

    Args:
        node: the node.
        robot: the robot as its description has it.
        proposed: values by parameter name that count instead of the present ones.

    Raises:
        RobotDescriptionError: a value that cannot be a limit.
    """
    start = parameters.given_at_start(node)
    given: dict[str, dict[str, object]] = {}
    for name in _limited_names(robot):
        entry: dict[str, object] = {}
        for key in _KEYS:
            parameter = f"{PREFIX}{name}.{key}"
            if proposed is not None and parameter in proposed:
                value = proposed[parameter]
            elif node.has_parameter(parameter):
                value = node.get_parameter(parameter).value
            else:  # not declared yet, or any more
                value = start[parameter].value if parameter in start else None
            if not _is_unset(value):
                entry[key] = value
        for flag, values in _VALUES.items():
            if entry.get(flag) is True and not any(key in entry for key in values):
                forgotten = f"{PREFIX}{name}.{flag}" in start and not any(
                    f"{PREFIX}{name}.{key}" in start for key in values
                )
                if not forgotten:  # else it is refused: a limit that somebody wanted is missing
                    del entry[flag]
        if entry:
            given[name] = entry
    return apply_joint_limits(robot, given) if given else robot


def _declare(node: Node, joint: str) -> None:
    start = parameters.given_at_start(node)
    for key, description in _KEYS.items():
        name = f"{PREFIX}{joint}.{key}"
        if not node.has_parameter(name):
            value = _stored(key, start[name].value if name in start else None)
            note = "" if key in _VALUES else " NaN: none is given."
            node.declare_parameter(
                name, value, parameters.described(name, description + note), ignore_override=True
            )


def _forget(node: Node, name: str) -> None:
    """Remove the limit of a joint of another robot, unless somebody has set it meanwhile: else they pile up."""
    start = parameters.given_at_start(node)
    before = _stored(name.rpartition(".")[2], start[name].value if name in start else None)
    value = node.get_parameter(name).value
    if value == before or (_is_unset(value) and _is_unset(before)):
        node.undeclare_parameter(name)


def _stored(key: str, given: Any) -> Any:
    """Return a value as the node keeps it; what is not allowed as it came, to be refused."""
    if given is None:
        return True if key in _VALUES else math.nan
    return float(given) if type(given) is int and key not in _VALUES else given


def _is_unset(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _limited_names(robot: RobotModel) -> list[str]:
    """Return active and mimic joints; for planar and floating ones their variables."""
    names = []
    for joint in robot.joints:
        several = joint.type.num_variables > 1
        names += [robot.variable_names[i] for i in robot.variables_of(joint.name)] if several else []
        if joint.type.num_variables == 1:
            names.append(joint.name)
    return names
