"""Simulated time in which node and robot always have a processor core each, however busy the machine is."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from support.moveit_moves import Slowly

TICK = 5_000_000
"""Time between two messages on /clock, ns."""
BEHIND = 60_000_000
"""By how much simulated time may be ahead of the last look of the simulated robot at it, ns."""
START = 10**18
_LOOK = 5e-4


class PatientClock(threading.Thread):
    """Publishes /clock, no faster than real time. Before each tick the node has computed for as long as the tick is, or
    has nothing to do, so has this process, where the robot is, and the robot has moved by the time before."""

    def __init__(self) -> None:
        super().__init__(name="patient_clock", daemon=True)
        self.sim = START
        self.robot: LockedRobot | None = None
        self.pid: int | None = None
        """Process of the node, once it is known."""
        self._end = threading.Event()
        self._node = Node("clock_of_test")
        self._clock = self._node.create_publisher(Clock, "/clock", 10)

    def run(self) -> None:
        """Let the time pass."""
        while not self._end.is_set():
            begin = time.monotonic()
            self._all_had_their_time()
            while self.robot is not None and self.sim > self.robot.seen + BEHIND and not self._end.is_set():
                time.sleep(_LOOK)
            self.sim += TICK
            message = Clock()
            message.clock.sec, message.clock.nanosec = divmod(self.sim, 10**9)
            self._clock.publish(message)
            time.sleep(max(0.0, begin + TICK / 1e9 - time.monotonic()))

    def _all_had_their_time(self) -> None:
        if self.pid is None:
            return
        begun = {pid: _computed(pid)[0] for pid in (self.pid, os.getpid())}
        while begun and not self._end.is_set():
            time.sleep(_LOOK)
            for pid, before in tuple(begun.items()):
                now, wants_more = _computed(pid)
                if not wants_more or now - before >= TICK:
                    del begun[pid]

    def close(self) -> None:
        """Let it stand."""
        self._end.set()
        self.join(10.0)
        self._node.destroy_node()


def _computed(pid: int) -> tuple[int, bool]:
    """Return the processor time of a process (ns), and whether one of its threads runs or wants to."""
    total, wants_more = 0, False
    own = str(threading.get_native_id())
    for task in Path(f"/proc/{pid}/task").iterdir():
        if task.name == own:  # which would always run
            continue
        try:
            total += int((task / "schedstat").read_text().split()[0])
            wants_more |= (task / "stat").read_text().rpartition(")")[2].split()[0] in ("R", "D")
        except OSError:  # it has ended
            continue
    return total, wants_more


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
