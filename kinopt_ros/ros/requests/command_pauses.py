"""Whether a stream of commands has paused: after a stop, who has held his joystick all the time means nothing new."""

import threading
import time
from collections.abc import Mapping
from typing import Any

from kinopt_ros.ros.messages.stamps import seconds_unread

_MOST = 16
"""Most senders that are told apart."""


class CommandPauses:
    """Tells whether commands count, as far as pauses go. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits = False
        self._since = self._came = 0
        """When commands were last told to pause, and when the last one came, ns of the machine's time."""
        self._senders: dict[bytes, tuple[int, int]] = {}
        """When each sender's last command was sent, ns of his clock, and its number; 0: that is not known."""

    @property
    def waits(self) -> bool:
        """Whether commands do not count, as they have not paused since ``wait``."""
        with self._lock:
            return self._waits

    def wait(self) -> None:
        """Let commands not count until one comes after a pause."""
        with self._lock:
            self._waits, self._since = True, time.monotonic_ns()

    def take(self, info: Mapping[str, Any] | None, timeout: float) -> None:
        """Take notice of a command.

        Args:
            info: what rclpy tells callbacks of it (``MessageInfo``).
            timeout: time without any that is a pause, s.
        """
        came = time.monotonic_ns() - round(1e9 * seconds_unread(info))
        told = info or {}
        gid = told.get("publisher_gid")
        sender = bytes(gid["data"]) if gid else b""
        sent, number = told.get("source_timestamp") or 0, told.get("publication_sequence_number") or 0
        with self._lock:
            pause = came - self._came
            last = self._senders.pop(sender, None)
            if last is not None and sent and last[0]:  # of a machine that is held up all comes late at once
                pause = min(pause, abs(sent - last[0]))
            if last is not None and number and last[1]:
                # Of a node that is held up the newest one is left: between it and the last, as many more were sent. If
                # they take as long on the average, there was a pause between two of them.
                pause //= max(1, number - last[1])
            self._senders[sender] = sent, number
            while len(self._senders) > _MOST:
                del self._senders[next(iter(self._senders))]
            self._came = came
            if pause >= round(1e9 * timeout) and came >= self._since:
                self._waits = False
