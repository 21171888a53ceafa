"""Times of messages, and a /clock that says only such."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import time
from collections.abc import Callable, Mapping
from typing import Any

LATEST = 2**31 - 10**6
"""Last second of a time, s: what begins hours later can be said in a message, too. That is 12 days before its 32 bits
end, in January 2038."""
SAY_SECONDS = 5.0
"""Least time between two lines in the log about a clock, s."""


def nanoseconds(stamp: Any) -> int:
    """Return a builtin_interfaces/Time or Duration in ns."""
    return int(stamp.sec * 10**9 + stamp.nanosec)


def seconds_unread(info: Mapping[str, Any] | None) -> float:
    """Return how long ago a message came, s: a busy executor reads it when others have come long since.

    Args:
        info: what rclpy tells callbacks of it (``MessageInfo``). 0 s where that is None, or the middleware says
            nothing.
    """
    came = info["received_timestamp"] if info else 0  # by the system's clock, whatever the node's is
    return max(time.time_ns() - came, 0) / 1e9 if came else 0.0


def wrong_time(stamp: Any) -> str:
    """Return what is wrong with a builtin_interfaces/Time, and what is allowed; empty if nothing is."""
    if 0 <= stamp.sec <= LATEST and stamp.nanosec < 10**9:
        return ""
    return f"{stamp.sec} s and {stamp.nanosec} ns; allowed are 0 to {LATEST} s and 0 to 999999999 ns"


def hearing_times(node: Any, hear: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a callback for /clock that hands on what is a time, and drops the rest with a line in the log.

    rclpy raises an error at each of the others, and the node's time is what it was before.
    """

    def heard(message: Any) -> None:
        wrong = wrong_time(message.clock)
        if wrong:
            node.get_logger().warning(
                f"/clock says {wrong}. Such messages are dropped, and the time stands still",
                throttle_duration_sec=SAY_SECONDS,
            )
            return
        hear(message)

    return heard
