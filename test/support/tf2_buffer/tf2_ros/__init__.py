"""What the node uses of tf2_ros, for tests where it is not installed. Transforms are not chained."""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import Any

from geometry_msgs.msg import TransformStamped
from tf2_msgs.msg import TFMessage


class TransformException(Exception):
    """There is no such transform."""


class Buffer:
    """Transforms by frame and time. Between two it gives the earlier one; before, after and without any it raises."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[tuple[str, str], list[tuple[int, TransformStamped]]] = {}

    def take(self, stamped: TransformStamped) -> None:
        """Keep a transform."""
        stamp = stamped.header.stamp
        key = stamped.header.frame_id, stamped.child_frame_id
        with self._lock:
            known = self._of.setdefault(key, [])
            known.append((stamp.sec * 10**9 + stamp.nanosec, stamped))
            known.sort(key=lambda one: one[0])

    def lookup_transform(self, target_frame: str, source_frame: str, time: Any) -> TransformStamped:
        """Return the pose of the source frame in the target frame at a time; 0 is the newest."""
        with self._lock:
            known = list(self._of.get((target_frame, source_frame), ()))
        if not known:
            raise TransformException(f'"{source_frame}" passed to lookupTransform does not exist')
        if time.nanoseconds == 0:
            return known[-1][1]
        times = [one for one, _ in known]
        at = bisect_left(times, time.nanoseconds)
        if at == len(times):
            raise TransformException("Lookup would require extrapolation into the future")
        if times[at] != time.nanoseconds and at == 0:
            raise TransformException("Lookup would require extrapolation into the past")
        return known[at if times[at] == time.nanoseconds else at - 1][1]


class TransformListener:
    """Fills a buffer from topic tf."""

    def __init__(self, buffer: Buffer, node: Any) -> None:
        self._heard = node.create_subscription(
            TFMessage, "/tf", lambda message: [buffer.take(one) for one in message.transforms], 100
        )
