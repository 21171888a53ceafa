"""Whether a stream of commands has paused: after a stop, who has held his joystick all the time means nothing new."""

import threading
import time
from collections.abc import Mapping
from typing import Any

from kinopt_ros.ros.messages.stamps import seconds_unread

DEPTH = 100
"""Commands that are kept until they are read: of a node that is held up none may be missing, as that would be a
pause."""


class CommandPauses:
    """Tells whether commands count, as far as pauses go. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits = False
        self._came = self._sent = 0
        """When the last command came, ns of the machine's time, and when it was sent, ns of its sender's; 0: that is
        not known."""

    @property
    def waits(self) -> bool:
        """Whether commands do not count, as they have not paused since ``wait``."""
        with self._lock:
            return self._waits

    def wait(self) -> None:
        """Let commands not count until they have paused."""
        with self._lock:
            self._waits = True

    def take(self, info: Mapping[str, Any] | None, timeout: float) -> None:
        """Take notice of a command.

        Args:
            info: what rclpy tells callbacks of it (``MessageInfo``).
            timeout: time without any that is a pause, s.
        """
        came = time.monotonic_ns() - round(1e9 * seconds_unread(info))
        sent = info.get("source_timestamp", 0) if info else 0
        with self._lock:
            pause = came - self._came
            if sent and self._sent:  # of a machine that is held up all comes late at once
                pause = min(pause, abs(sent - self._sent))
            self._came, self._sent = came, sent
            if pause >= round(1e9 * timeout):
                self._waits = False
