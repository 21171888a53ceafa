"""Services whose answer may come later, from another thread.

rclpy sends what a callback returns, and polls coroutines that wait at every wake-up. Here the callback returns a
``Pending`` answer, and ``Service.send_response``, which the executor calls with it and the header of the request,
keeps the two until somebody has the answer.
"""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rclpy.node import Node

from kinopt_ros.errors import writable

_MOST_AT_ONCE = 32
_ROUND_SECONDS = 0.005
"""Most requests that are taken in one round, and most time for it, s: other callbacks wait meanwhile."""


class Pending:
    """Answer to come. ``send`` may be called once, from any thread, before or after rclpy asks for the answer."""

    def __init__(self, empty: Any) -> None:
        """``empty``: a response that nobody has filled."""
        self._empty = empty
        self._kind = type(empty)
        self._lock = threading.Lock()
        self._deliver: Callable[[Any], None] | None = None
        self._response: Any = None

    def response(self) -> Any:
        """Return an empty response, another one each time."""
        empty, self._empty = self._empty, None
        return self._kind() if empty is None else empty

    def send(self, response: Any) -> None:
        """Give the answer."""
        with self._lock:
            self._response = response
            deliver = self._deliver
        if deliver is not None:
            deliver(response)

    def bind(self, deliver: Callable[[Any], None]) -> None:
        """Set how an answer is delivered; one that is there already goes out now."""
        with self._lock:
            self._deliver = deliver
            response = self._response
        if response is not None:
            deliver(response)


def create_deferred_service(
    node: Node, service_type: Any, name: str, begin: Callable[[Any, Pending, bool], None], **options: Any
) -> Any:
    """Create a service of which ``begin(request, pending, alone)`` takes each request and returns at once.

    Requests that wait behind the one that rclpy brings are taken at the same time: rclpy takes one per service and
    round, and a round costs about as much as an answer. ``alone`` says that there was none.

    Options as of ``Node.create_service``.
    """

    def callback(request: Any, response: Any) -> Any:
        pending = Pending(response)
        waiting = list(_waiting(service))
        begin(request, pending, not waiting)
        for other, header in waiting:
            later = Pending(type(response)())
            later.bind(partial(_send_to, send, header))
            begin(other, later, False)
        return pending

    service: Any = node.create_service(service_type, name, callback, **options)
    send: Callable[[Any, Any], None] = service.send_response

    def send_response(response: Any, header: Any) -> None:
        response.bind(partial(_send_to, send, header))

    service.send_response = send_response
    return service


def _waiting(service: Any) -> Iterator[tuple[Any, Any]]:
    """Yield requests that have arrived, and their headers."""
    end = time.monotonic() + _ROUND_SECONDS
    for _ in range(_MOST_AT_ONCE):
        if time.monotonic() >= end:
            return
        with service.handle:
            request, header = service.handle.service_take_request(service.srv_type.Request)
        if header is None:
            return
        yield request, header


def _send_to(send: Callable[[Any, Any], None], header: Any, answer: Any) -> None:
    try:
        send(answer, header)
    except UnicodeEncodeError:  # as in a sentence of a plugin; its client would wait for ever
        _make_writable(answer)
        send(answer, header)


def _make_writable(message: Any) -> None:
    """Write out what UTF-8 cannot hold, in all texts of a message."""
    for slot in message.__slots__:
        value = getattr(message, slot)
        if isinstance(value, str):
            setattr(message, slot, writable(value))
        elif isinstance(value, list):
            setattr(message, slot, [writable(each) if isinstance(each, str) else each for each in value])
        for each in value if isinstance(value, list) else (value,):
            if hasattr(each, "get_fields_and_field_types"):
                _make_writable(each)
