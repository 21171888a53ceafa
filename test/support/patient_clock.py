"""Simulated time that stands still while the node or the simulated robot is late, so that a busy machine is none."""

from __future__ import annotations

import threading
import time
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from support.moveit_moves import Slowly

TICK = 5_000_000
"""Time between two messages on /clock, ns."""
BEHIND = 60_000_000
"""By how much simulated time may be ahead of the last look of the simulated robot at it, ns."""
START = 10**18


class PatientClock(threading.Thread):
    """Publishes /clock, no faster than real time. Before each tick the node has answered a request that has waited in
    its line of callbacks, and the robot has moved by the time before."""

    def __init__(self, service: Any, name: str) -> None:
        """``service``: a type and the name of a service of the node that costs little."""
        super().__init__(name="patient_clock", daemon=True)
        self.sim = START
        self.robot: LockedRobot | None = None
        self._end = threading.Event()
        self._node = Node("clock_of_test")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._clock = self._node.create_publisher(Clock, "/clock", 10)
        self._service, self._client = service, self._node.create_client(service, name)

    def run(self) -> None:
        """Let the time pass."""
        while not self._end.is_set():
            begin = time.monotonic()
            self._client_answered()
            while self.robot is not None and self.sim > self.robot.seen + BEHIND and not self._end.is_set():
                time.sleep(1e-3)
            self.sim += TICK
            message = Clock()
            message.clock.sec, message.clock.nanosec = divmod(self.sim, 10**9)
            self._clock.publish(message)
            time.sleep(max(0.0, begin + TICK / 1e9 - time.monotonic()))

    def _client_answered(self) -> None:
        if not self._client.service_is_ready():  # the node starts
            return
        answer = self._client.call_async(self._service.Request())
        end = time.monotonic() + 5.0  # the first answers may be lost
        while not answer.done() and not self._end.is_set() and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.1)

    def close(self) -> None:
        """Let it stand."""
        self._end.set()
        self.join(10.0)
        self._executor.shutdown(timeout_sec=1.0)
        self._node.destroy_node()


class LockedRobot(Slowly):
    """A simulated robot that lives in the time of such a clock."""

    def __init__(self, clock: PatientClock, *given: Any, **options: Any) -> None:
        self._of_test = clock
        self.seen = clock.sim
        """Time of its last look, ns."""
        super().__init__(*given, **options)
        clock.robot = self

    def now(self) -> int:
        return self._of_test.sim

    def _advance(self) -> None:
        super()._advance()
        self.seen = self._of_test.sim
