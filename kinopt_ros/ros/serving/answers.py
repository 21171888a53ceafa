"""Turns every exception of a service into a code and a sentence: nothing leaves a callback."""

import traceback
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from kinopt_ros.errors import KinoptError
from kinopt_ros.ros.messages.conversions import error_message, status_message
from kinopt_ros.status import Status

Handler = Callable[[Any, Any], None]


def answering(node: Node, handle: Handler) -> Callable[[Any, Any], Any]:
    """Return a service callback that lets ``handle(request, response)`` fill the response.

    If it raises, the answer is an empty response with the error's status.
    """

    def callback(request: Any, response: Any) -> Any:
        try:
            handle(request, response)
        except KinoptError as error:
            response = type(response)()
            response.status = error_message(error)
        except Exception as error:  # a defect: say so, keep serving
            node.get_logger().error(f"internal error in {type(request).__name__}:\n{traceback.format_exc()}")
            response = type(response)()
            response.status = status_message(
                Status.FAILURE, f"internal error ({type(error).__name__}); the node's log says more"
            )
        return response

    return callback
