"""Services whose answer may come later, from another thread.

rclpy sends what a callback returns, and polls coroutines that wait at every wake-up. Here the callback returns a
``Pending`` answer, and ``Service.send_response``, which the executor calls with it and the header of the request,
keeps the two until somebody has the answer.
"""

import threading
from collections.abc import Callable
from typing import Any

from rclpy.node import Node


class Pending:
    """An answer to come. ``send`` may be called once, from any thread, before or after rclpy asks for the answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deliver: Callable[[Any], None] | None = None
        self._response: Any = None

    def send(self, response: Any) -> None:
        """Give the answer."""
        with self._lock:
            self._response = response
            deliver = self._deliver
        if deliver is not None:
            deliver(response)

    def bind(self, deliver: Callable[[Any], None]) -> None:
        """Say how an answer is delivered; one that is there already goes out now."""
        with self._lock:
            self._deliver = deliver
            response = self._response
        if response is not None:
            deliver(response)


def create_deferred_service(
    node: Node, service_type: Any, name: str, begin: Callable[[Any, Pending], None], **options: Any
) -> Any:
    """A service of which ``begin(request, pending)`` takes each request and returns at once.

    Options as of ``Node.create_service``.
    """

    def callback(request: Any, response: Any) -> Any:
        del response  # a fresh one is made when there is an answer
        pending = Pending()
        begin(request, pending)
        return pending

    service: Any = node.create_service(service_type, name, callback, **options)
    send = service.send_response

    def send_response(response: Any, header: Any) -> None:
        response.bind(lambda answer: send(answer, header))

    service.send_response = send_response
    return service
