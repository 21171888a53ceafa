"""Whether a stream of commands has paused: after a stop, who has held his joystick all the time means nothing new."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MOST = 16
"""Most senders that are told apart."""
_LONGER, _LONG = 3, 1_000_000_000
"""A sender's pause is at least so many times as long as his last commands were apart, but no longer than so many ns;
that long where nobody knows how far apart they are."""


@dataclass(frozen=True)
class _Sent:
    """The last command of a sender."""

    came: int
    """When it came, ns of the machine's time."""
    at: int
    """When it was sent, ns of his clock; 0: that is not known."""
    number: int
    """0: that is not known."""
    gaps: tuple[int, int]
    """Times between his last three, ns; 0: that is not known."""


class CommandPauses:
    """Tells whether commands count, as far as pauses go. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits = False
        self._since = self._came = 0
        """When commands were last told to pause, and when the last one came, ns of the machine's time."""
        self._senders: dict[bytes, _Sent] = {}

    @property
    def waits(self) -> bool:
        """Whether commands do not count, as they have not paused since ``wait``."""
        with self._lock:
            return self._waits

    def wait(self) -> None:
        """Let commands not count until one comes after a pause."""
        with self._lock:
            self._waits, self._since = True, time.monotonic_ns()

    def take(self, info: Mapping[str, Any] | None, unread: float, timeout: float) -> None:
        """Take notice of a command.

        Args:
            info: what rclpy tells callbacks of it (``MessageInfo``).
            unread: how long ago it came, s.
            timeout: time without any that is a pause, s.
        """
        came = time.monotonic_ns() - round(1e9 * unread)
        told = info or {}
        gid = told.get("publisher_gid")
        sender = bytes(gid["data"]) if gid else b""
        sent, number = told.get("source_timestamp") or 0, told.get("publication_sequence_number") or 0
        with self._lock:
            last = self._senders.pop(sender, None)
            pause, least, gaps = came - self._came, round(1e9 * timeout), (0, 0)
            if last is not None:
                gap = came - last.came
                if sent and last.at:  # of a machine that is held up all comes late at once
                    gap = min(gap, abs(sent - last.at))
                if number and last.number:
                    # Of a node that is held up the newest one is left: between it and the last, as many more were sent.
                    # If they take as long on the average, there was a pause between two of them.
                    gap //= max(1, number - last.number)
                pause, gaps = min(pause, gap), (last.gaps[1], gap)
                # Commands may be farther apart than they hold, and target poses hold for longer.
                usual = _LONGER * max(last.gaps) or _LONG
                least = max(least, min(usual, _LONG))
            self._senders[sender] = _Sent(came, sent, number, gaps)
            while len(self._senders) > _MOST:
                del self._senders[next(iter(self._senders))]
            self._came = max(self._came, came)
            if pause >= least and came >= self._since:
                self._waits = False
