"""Requests that are tried again a little later, on the thread that reads messages, which must not wait.

Right after a compiler or a C library has held Python's lock, joint states that are new enough lie unread: who is
refused then would be served a moment later.
"""

import threading
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
    """Requests that wait for another attempt, which the executor's thread makes. Thread-safe: goals of MoveIt's actions
    ask from threads of their own."""

    def __init__(self, node: Any) -> None:
        self._lock = threading.Lock()
        """Held where the timer is stopped or started: it must run whenever a request waits."""
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
        with self._lock:
            closed = self._closed
            if not closed:
                if not self._waiting:
                    self._timer.reset()
                self._waiting.append(attempt)
        if closed:
            attempt()

    def close(self) -> None:
        """Put nothing off any more, and make a last attempt of what waits."""
        with self._lock:
            self._closed = True
            left = [*self._waiting]
            self._waiting.clear()
        for attempt in left:
            attempt()

    def _look(self) -> None:
        end = time.monotonic() + _ROUND_SECONDS
        again: list[Callable[[], bool]] = []
        for _ in range(len(self._waiting)):
            with self._lock:
                if not self._waiting:  # it was closed
                    break
                attempt = self._waiting.popleft()
            if not attempt():
                again.append(attempt)
            if time.monotonic() >= end:
                break
        with self._lock:
            closed = self._closed
            if not closed:
                self._waiting.extend(again)
            if not self._waiting:
                self._timer.cancel()
        if closed:
            for attempt in again:
                attempt()
