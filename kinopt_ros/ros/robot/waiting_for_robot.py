"""Log messages that say what a node without a description is waiting for: soon, then rarely."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from typing import Protocol

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

PERIOD = 5.0
_ROUNDS = (1, 6)
"""Numbers of periods after which it is said first, and then again; from there after twice as many each time."""


class _Description(Protocol):
    @property
    def is_there(self) -> bool: ...


class WaitingForRobot:
    """Looks every few seconds until there is a description."""

    def __init__(self, node: Node, description: _Description) -> None:
        self._node = node
        self._description = description
        self._round = 0
        self._next, self._after = _ROUNDS
        steady = Clock(clock_type=ClockType.STEADY_TIME)  # simulated time may stand still
        self._timer = node.create_timer(PERIOD, self.look, clock=steady)

    def look(self) -> None:
        """Log what the node waits for if it is time to."""
        if self._description.is_there:
            self._timer.cancel()
            return
        self._round += 1
        if self._round < self._next:
            return
        self._next, self._after = self._after, 2 * self._after
        topic = self._node.resolve_topic_name("robot_description")
        published = self._node.count_publishers(topic) > 0
        found = "has brought no text yet (is it latched?)" if published else "is published by nobody"
        self._node.get_logger().warning(
            f"waiting for a robot: the parameter robot_description is empty, and topic {topic} (std_msgs/String, "
            f"latched, as robot_state_publisher has it) {found}"
        )
