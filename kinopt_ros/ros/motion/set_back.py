"""Watch over controllers that begin what replaces a motion where the robot is measured: brakes and stops set their
commands back by what the drives lag (``robot/ros2_controllers.py``). Their own parameters say so."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from collections.abc import Callable, Iterable
from typing import Any

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from kinopt_ros.errors import shortened
from kinopt_ros.robot.ros2_controllers import FROM_DESIRED, REMEDY

LOOK_SECONDS = 2.0
TIMES = 5
"""How often one is asked: ROS loses answers to those whom the other side has not discovered yet."""


class SetBackWatch:
    """Asks the controllers that do the node's motions from where they begin, and says which ones set back."""

    def __init__(self, node: Node, controllers: Callable[[], Iterable[str]]) -> None:
        """
        Args:
            node: that asks.
            controllers: returns the full names of the nodes that may do motions now.
        """
        self._node = node
        self._controllers = controllers
        self._asked: dict[str, _Asked] = {}
        self.sentence = ""
        """What is so now; empty if all is well, as far as is known."""
        # Not by simulated time, which can stand still.
        node.create_timer(LOOK_SECONDS, self.look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def look(self) -> None:
        """Look once. On the executor's thread."""
        present = set(self._controllers())
        for name in self._asked.keys() - present:  # one that comes again may have been set otherwise
            self._asked.pop(name).close()
        for name in present - self._asked.keys():
            self._asked[name] = _Asked(self._node, name)
        for one in self._asked.values():
            one.look()
        set_back = sorted(name for name, one in self._asked.items() if one.sets_back)
        before, self.sentence = self.sentence, _sentence(set_back) if set_back else ""
        if self.sentence and self.sentence != before:
            self._node.get_logger().warning(self.sentence)


def _sentence(names: list[str]) -> str:
    return (
        f"{shortened(names)} begins what replaces a motion where the robot is measured, so brakes and stops set its "
        f"commands back by what the drives lag: {REMEDY}"
    )


class _Asked:
    """What one controller says."""

    def __init__(self, node: Node, name: str) -> None:
        self._node = node
        self._client: Any = node.create_client(GetParameters, f"{name}/get_parameters")
        self._times = 0
        self._answers: dict[str, bool | None] = {}
        """None: it has no such parameter."""
        self._waiting: dict[str, Any] = {}

    @property
    def sets_back(self) -> bool:
        """Whether it has one of the parameters, and says that none is on."""
        said = [value for value in self._answers.values() if value is not None]
        return len(self._answers) == len(FROM_DESIRED) and bool(said) and not any(said)

    def look(self) -> None:
        """Read its answers, and ask what it has not answered, if it is there: one parameter at a time, as one that it
        has not spoils the whole answer."""
        if self._client is None:
            return
        for parameter, future in self._waiting.items():
            if future.done():
                self._answers[parameter] = _value(future.result())
            else:
                self._client.remove_pending_request(future)
        self._waiting = {}
        left = [parameter for parameter in FROM_DESIRED if parameter not in self._answers]
        if not left or self._times == TIMES:
            self.close()
        elif self._client.service_is_ready():
            self._times += 1
            for parameter in left:
                self._waiting[parameter] = self._client.call_async(GetParameters.Request(names=[parameter]))

    def close(self) -> None:
        """Ask nothing any more."""
        if self._client is not None:
            self._node.destroy_client(self._client)
            self._client = None


def _value(answer: Any) -> bool | None:
    values = list(answer.values)
    if len(values) != 1 or values[0].type != ParameterType.PARAMETER_BOOL:
        return None
    return bool(values[0].bool_value)
