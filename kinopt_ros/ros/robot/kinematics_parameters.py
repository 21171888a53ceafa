"""MoveIt's parameters of inverse kinematics: ``robot_description_kinematics.<group>.<key>``, of its kinematics.yaml.

``kinematics_solver_timeout`` and ``position_only_ik`` count for requests of compute_ik. Others name or tune solvers of
MoveIt: they are not used, and the log says so. They are what the node was started with.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from kinopt_ros.errors import InvalidRequestError, quoted, shortened, shown
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.robot import parameters

PREFIX = "robot_description_kinematics."
TIMEOUT, POSITION_ONLY = "kinematics_solver_timeout", "position_only_ik"
_LONGEST = 3600.0
"""Longest time that may be given, s."""


@dataclass(frozen=True)
class GroupKinematics:
    """What counts for one group."""

    timeout: float | None = None
    """Time for a request that gives none, s; None: parameter ik.timeout."""
    position_only: bool = False
    """Whether orientations of targets do not matter."""


NOTHING = GroupKinematics()


def declare(node: Node) -> Mapping[str, GroupKinematics]:
    """Declare what the node was given, so that it is seen; return what counts, by group.

    Raises:
        InvalidRequestError: a value that is not allowed.
    """
    found: dict[str, dict[str, Any]] = {}
    unused: dict[str, list[str]] = {}
    for name, parameter in sorted(parameters.given_at_start(node).items()):
        if not name.startswith(PREFIX):
            continue
        group, dot, key = name.removeprefix(PREFIX).partition(".")
        if not dot:
            raise InvalidRequestError(f"parameter {quoted(name)}; allowed is {PREFIX}GROUP.KEY")
        found.setdefault(group, {})
        if key in (TIMEOUT, POSITION_ONLY):
            found[group][key] = parameter.value
        else:
            unused.setdefault(key, []).append(group)
        described = ParameterDescriptor(
            name=name, description="Of MoveIt's kinematics.yaml.", read_only=True, dynamic_typing=True
        )
        node.declare_parameter(name, parameter.value, described, ignore_override=True)
    if unused:
        node.get_logger().info(
            f"{PREFIX}*: {shortened(sorted(unused))} are not used: the solvers of this node answer (parameter solver)"
        )
    return {group: _checked(group, given) for group, given in found.items()}


def unknown_groups(given: Mapping[str, GroupKinematics], robot: RobotModel) -> list[str]:
    """Return groups that were given and that the robot does not have."""
    return sorted(name for name in given if name not in robot.groups)


def _checked(group: str, given: Mapping[str, Any]) -> GroupKinematics:
    timeout, only = given.get(TIMEOUT), given.get(POSITION_ONLY, False)
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0.0 < timeout <= _LONGEST
    ):
        raise InvalidRequestError(
            f"parameter {PREFIX}{group}.{TIMEOUT} is {shown(timeout)}; allowed is a time above 0, up to {_LONGEST:g} s"
        )
    if not isinstance(only, bool):
        raise InvalidRequestError(
            f"parameter {PREFIX}{group}.{POSITION_ONLY} is {shown(only)}; allowed are true and false"
        )
    return GroupKinematics(None if timeout is None else float(timeout), only)
