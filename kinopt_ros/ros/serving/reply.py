"""Reply to a client: exactly one answer, counted."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import rclpy

from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.sizes import Room
from kinopt_ros.ros.serving.defects import error_status


class Pace:
    """Spreads answers over time.

    DDS brings every answer of a service to all of its clients, and a client keeps ten by default: a burst of answers to
    others would push its own out before it looks.
    """

    def __init__(self, most: int = 6, seconds: float = 5e-3) -> None:
        """At most so many within so many seconds."""
        self._most = most
        self._seconds = seconds
        self._lock = threading.Lock()
        self._sent: deque[float] = deque(maxlen=most)

    def wait(self) -> None:
        """Return when it is time for one more."""
        with self._lock:
            now = time.monotonic()
            if len(self._sent) == self._most and (early := self._sent[0] + self._seconds - now) > 0.0:
                time.sleep(early)  # never for 0 s, by which a busy machine gives the processor to others
                now = time.monotonic()
            self._sent.append(now)


class Way(Protocol):
    """Way to bring an answer to a client, as a Pending one does."""

    def send(self, response: Any) -> None:
        """Give the answer, once."""


class Reply:
    """The way back to one client: sends exactly one answer, and counts it."""

    def __init__(
        self,
        context: Context,
        pace: Pace,
        room: Room,
        service: str,
        new_response: Callable[[], Any],
        pending: Way,
    ) -> None:
        self._context = context
        self._pace = pace
        self._room = room
        self._service = service
        self._new_response = new_response
        self._pending = pending
        self.arrived = time.monotonic()
        self.sent = False
        """Whether an answer was sent."""
        self.queue_time = 0.0
        """Time spent waiting, as far as known, s."""
        self.entries = 0
        """Room that the request takes until it is answered, in entries of lists."""

    def response(self) -> Any:
        """Return an empty response of the service's type."""
        return self._new_response()

    def send(self, response: Any) -> None:
        """Send an answer, unless there was one."""
        if self.sent:
            return
        self.sent = True
        entries, self.entries = self.entries, 0
        self._room.leave(entries)
        wall = time.monotonic() - self.arrived
        self._context.statistics.record(self._service, response.status.code, wall, self.queue_time)
        self._pace.wait()
        try:
            self._pending.send(response)
        except RuntimeError as error:  # InvalidHandle and RCLError are among them
            if rclpy.ok():  # otherwise the service went away first, and nobody waits any more
                # Not raised: that would end the thread, and with it the answers to everybody else.
                self._context.node.get_logger().error(
                    f"an answer of {self._service} could not be sent: {type(error).__name__}: {error}"
                )

    def refuse(self, error: Exception) -> None:
        """Send an empty answer with the code and sentence of an error."""
        response = self.response()
        response.status = error_status(self._context.node.get_logger(), f"in {self._service}", error)
        self.send(response)
