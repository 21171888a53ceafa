"""Turns every exception of a service into a code and a sentence: nothing leaves a callback."""

from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from kinopt_ros.ros.serving.defects import error_status

Handler = Callable[[Any, Any], None]


def answering(node: Node, handle: Handler) -> Callable[[Any, Any], Any]:
    """Return a service callback that lets ``handle(request, response)`` fill the response.

    If it raises, the answer is an empty response with the error's status.
    """

    def callback(request: Any, response: Any) -> Any:
        try:
            handle(request, response)
        except Exception as error:  # nothing leaves a callback
            response = type(response)()
            response.status = error_status(node.get_logger(), f"in {type(request).__name__}", error)
        return response

    return callback
