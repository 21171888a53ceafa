"""Task of a request that a function answers."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.serving.reply import Reply


class HandlerTask(Task):
    """Task of a request that a function answers: ``handle(request, response)`` fills the response or raises."""

    def __init__(
        self, handle: Callable[[Any, Any], None], request: Any, reply: Reply, slow: bool = False
    ) -> None:
        super().__init__(getattr(request, "client", ""), slow=slow)
        self._handle = handle
        self._request = request
        self._reply = reply

    def quick(self, others: Sequence[Task], hurried: bool = False) -> Sequence[Task]:
        """Answer it."""
        self._answer()
        return others

    def slow(self) -> None:
        """Answer it."""
        self._answer()

    def refuse(self, error: KinoptError) -> None:
        """Answer with an error."""
        self._reply.refuse(error)

    def _answer(self) -> None:
        self._reply.queue_time = time.monotonic() - self.arrived
        response = self._reply.response()
        try:
            self._handle(self._request, response)
        except Exception as error:  # nothing ends a worker
            self._reply.refuse(error)
            return
        self._reply.send(response)
