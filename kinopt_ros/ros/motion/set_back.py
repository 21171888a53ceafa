"""Watch over controllers that begin what replaces a motion where the robot is measured: brakes and stops set their
commands back by what the drives lag (``robot/ros2_controllers.py``). Their own parameters say so."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from collections.abc import Callable, Iterable
from typing import Any

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.exceptions import NameValidationException
from rclpy.node import Node

from kinopt_ros.errors import shortened
from kinopt_ros.robot.ros2_controllers import FROM_DESIRED, REMEDY

LOOK_SECONDS = 2.0
WAITS, TIMES = 4, 6
"""Looks for which an answer is waited for, and how often one is asked: ROS loses answers to those whom the other side
has not discovered yet."""


class SetBackWatch:
    """Asks the controllers that do the node's motions from where they begin, and says which ones set back."""

    def __init__(self, node: Node, controllers: Callable[[], Iterable[Any]]) -> None:
        """
        Args:
            node: that asks.
            controllers: returns endpoints (TopicEndpointInfo) of the nodes that may do motions now.
        """
        self._node = node
        self._controllers = controllers
        self._asked: dict[tuple[str, bytes], _Asked] = {}
        """By the node's full name, and the number of its endpoint: one that is started anew has another one."""
        self.sentence = ""
        """What is so now; empty if all is well, as far as is known."""
        # Not by simulated time, which can stand still.
        node.create_timer(LOOK_SECONDS, self.look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def look(self) -> None:
        """Look once. On the executor's thread."""
        present = {(_full_name(info), bytes(info.endpoint_gid)) for info in self._controllers()}
        for key in self._asked.keys() - present:  # one that comes again may have been set otherwise
            self._asked.pop(key).close()
        for name, number in present - self._asked.keys():
            self._asked[name, number] = _Asked(self._node, name)
        for one in self._asked.values():
            one.look()
        set_back = sorted({name for (name, _), one in self._asked.items() if one.sets_back})
        before, self.sentence = self.sentence, _sentence(set_back) if set_back else ""
        if self.sentence and self.sentence != before:
            self._node.get_logger().warning(self.sentence)


def _full_name(info: Any) -> str:
    return f"{info.node_namespace.rstrip('/')}/{info.node_name}"


def _sentence(names: list[str]) -> str:
    return (
        f"{shortened(names)} begins what replaces a motion where the robot is measured, so brakes and stops set its "
        f"commands back by what the drives lag: {REMEDY}"
    )


class _Asked:
    """What one controller says."""

    def __init__(self, node: Node, name: str) -> None:
        self._node = node
        # Its names first: rclcpp logs a warning of each parameter that is asked for and is not there.
        self._lists: Any = None
        self._gets: Any = None
        self._times = self._waits = 0
        self._waiting: tuple[Any, Any] | None = None
        """The client that was asked last, and the answer that it waits for."""
        self._names: list[str] | None = None
        """Which of the parameters it has."""
        self._values: list[bool] | None = None
        self._over = False
        try:
            self._lists = node.create_client(ListParameters, f"{name}/list_parameters")
            self._gets = node.create_client(GetParameters, f"{name}/get_parameters")
        except NameValidationException:  # no node of ROS
            self._over = True

    @property
    def sets_back(self) -> bool:
        """Whether it has one of the parameters, and says that none is on."""
        return bool(self._values) and not any(self._values or ())

    def look(self) -> None:
        """Read its answer, and ask what is not known yet, if it is there."""
        if self._over:
            return
        if self._waiting is not None:
            client, future = self._waiting
            if not future.done():
                self._waits -= 1
                if self._waits:
                    return
                client.remove_pending_request(future)
            elif client is self._lists:
                self._names = [name for name in FROM_DESIRED if name in future.result().result.names]
            else:
                values = future.result().values
                self._values = [v.bool_value for v in values if v.type == ParameterType.PARAMETER_BOOL]
            self._waiting = None
        client = self._lists if self._names is None else self._gets
        if self._values is not None or self._names == [] or self._times == TIMES:
            self.close()
        elif client.service_is_ready():
            self._times += 1
            request: Any = ListParameters.Request(prefixes=list(FROM_DESIRED))
            if self._names is not None:
                request = GetParameters.Request(names=self._names)
            self._waiting, self._waits = (client, client.call_async(request)), WAITS

    def close(self) -> None:
        """Ask nothing any more."""
        if not self._over:
            self._node.destroy_client(self._lists)
            self._node.destroy_client(self._gets)
        self._over = True
