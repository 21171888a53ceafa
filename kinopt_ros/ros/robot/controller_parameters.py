"""MoveIt's parameters of controllers: ``moveit_simple_controller_manager.<controller>.<key>``, of its
moveit_controllers.yaml.

They say how the controllers of parameter ``controllers`` are told motions; without them these follow trajectories. They
are what the node was started with.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from collections.abc import Iterable, Mapping
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from kinopt_ros.errors import shortened
from kinopt_ros.robot.moveit_controllers import MANAGER, ControllerEntry, entry_of, unused_keys
from kinopt_ros.ros.robot import parameters
from kinopt_ros.ros.robot.controller_names import SEVERAL, groups_of_controllers

PREFIX = f"{MANAGER}."


def declare(node: Node, words: Iterable[str]) -> Mapping[str, ControllerEntry]:
    """Declare what the node was given, so that it is seen; return what counts, by controller.

    Args:
        node: the node.
        words: of parameter ``controllers``.

    Raises:
        InvalidRequestError: a value that is not allowed.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, parameter in sorted(parameters.given_at_start(node).items()):
        if not name.startswith(PREFIX):
            continue
        controller, dot, key = name.removeprefix(PREFIX).partition(".")
        if dot:  # else it is controller_names
            found.setdefault(controller, {})[key] = parameter.value
        described = ParameterDescriptor(
            name=name, description="Of MoveIt's moveit_controllers.yaml.", read_only=True, dynamic_typing=True
        )
        node.declare_parameter(name, parameter.value, described, ignore_override=True)
    unused = sorted({key for given in found.values() for key in unused_keys(given)})
    if unused:
        node.get_logger().info(f"{PREFIX}*: {shortened(unused)} are not used")
    left_out = sorted(set(found) - set(groups_of_controllers(words)))
    if left_out:
        node.get_logger().warning(
            f"{PREFIX}*: parameter {SEVERAL} does not name {shortened(left_out)}, which is handed no motions: name it "
            "with the group of its joints"
        )
    entries = {name: entry_of(name, given) for name, given in found.items()}
    for name, entry in entries.items():
        parameters.check_action_name(f"{PREFIX}{name}.action_ns", entry.action_of(name))
    return entries
