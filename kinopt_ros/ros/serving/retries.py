"""Requests that are tried again a little later, on the thread that reads messages, which must not wait.

Right after a compiler or a C library has held Python's lock, joint states that are new enough lie unread: who is
refused then would be served a moment later.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType

LOOK_SECONDS = 0.02
"""Time between two rounds of attempts, s."""
_ROUND_SECONDS = 5e-3
"""Time after which a round ends, s: other callbacks wait meanwhile."""
MOST_WAITING = 100
"""Most requests that wait for another attempt."""


class Retries:
    """Requests that wait for another attempt. All of it on the executor's thread."""

    def __init__(self, node: Any) -> None:
        self._waiting: deque[Callable[[], bool]] = deque()
        self._closed = False
        self._timer = node.create_timer(
            LOOK_SECONDS, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )
        self._timer.cancel()  # until there is something to look at

    def allowed(self, since: float, seconds: float) -> bool:
        """Check whether a request that came at a value of time.monotonic() may be put off, for so many seconds at
        most."""
        return not self._closed and len(self._waiting) < MOST_WAITING and time.monotonic() < since + seconds

    def add(self, attempt: Callable[[], bool]) -> None:
        """Call a function again and again until it returns True; it must not raise."""
        if not self._waiting:
            self._timer.reset()
        self._waiting.append(attempt)

    def close(self) -> None:
        """Put nothing off any more, and make a last attempt of what waits."""
        self._closed = True
        while self._waiting:
            self._waiting.popleft()()

    def _look(self) -> None:
        end = time.monotonic() + _ROUND_SECONDS
        for _ in range(len(self._waiting)):
            attempt = self._waiting.popleft()
            if not attempt():
                self._waiting.append(attempt)
            if time.monotonic() >= end:
                break
        if not self._waiting:
            self._timer.cancel()
