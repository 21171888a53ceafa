"""Requests that the node makes of its own services, on the way that all requests go: queue, lanes, one answer."""

from collections.abc import Callable
from typing import Any

from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.serving import Serving

CLIENT = "interactive_markers"
"""Name of the markers among clients, which take turns."""
Answered = Callable[[Any, Any], None]
"""Called with the answer, and with what was asked in terms of the library; None if it was refused before."""


class Asking:
    """Asks a service of this node."""

    def __init__(
        self, serving: Serving, name: str, response: Any, make_task: Callable[[Any, Reply], Task]
    ) -> None:
        """
        Args:
            serving: by which its requests are worked on.
            name: of the service.
            response: type of its answers, which have a ``status``.
            make_task: function of the service; its tasks have what was ``asked``.
        """
        self._serving = serving
        self._name = name
        self._response = response
        self._make_task = make_task

    def ask(self, request: Any, answered: Answered) -> None:
        """Work on a request; ``answered`` is called once, on any thread. Returns at once."""
        serving = self._serving
        way = _Way(serving, self._name, answered)
        name = f"{self._name} ({CLIENT})"
        reply = Reply(serving.context, serving.pace, serving.room, name, self._response, way)

        def make_task() -> Task:
            task: Any = self._make_task(request, reply)
            way.asked = task.asked
            return task  # type: ignore[no-any-return]

        request.client = CLIENT
        serving.work_on(request, make_task, reply, alone=False)


class _Way:
    """The way back to who asked."""

    def __init__(self, serving: Serving, name: str, answered: Answered) -> None:
        self._serving = serving
        self._name = name
        self._answered = answered
        self.asked: Any = None

    def send(self, answer: Any) -> None:
        """Hand the answer over. Never raises: the thread is somebody else's."""
        try:
            self._answered(answer, self.asked)
        except Exception as error:
            log_defect(self._serving.context.node.get_logger(), f"in an answer of {self._name}", error)
