"""Watch for another node of equal name: clients would get the answer of either, and both would move the robot."""

import os

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

WATCH_SECONDS = 2.0


class TwinWatch:
    """Logs when a node of this one's full name appears or is gone. ROS itself allows several."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._others = 0
        # Not by simulated time, which can stand still.
        node.create_timer(WATCH_SECONDS, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _look(self) -> None:
        node = self._node
        own = (node.get_name(), node.get_namespace())
        others = max(node.get_node_names_and_namespaces().count(own) - 1, 0)
        before, self._others = self._others, others
        name = node.get_fully_qualified_name()
        if others > before:
            domain = os.environ.get("ROS_DOMAIN_ID") or "0"
            node.get_logger().error(
                f"there are {others + 1} nodes {name} in ROS domain {domain}: clients get the answer of any of them, "
                "and each moves the robot. End the others, or give this one a namespace (--ros-args -r __ns:=/left), a "
                "name (-r __node:=kinopt_2) or a ROS_DOMAIN_ID of its own. (Killed ones are forgotten after 20 s.)"
            )
        elif before and not others:
            node.get_logger().info(f"this is the only node {name} again")
