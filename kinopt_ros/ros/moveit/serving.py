"""Serving of MoveIt's service types on the way that all requests go: queue, lanes, deadlines, exactly one answer."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from rclpy.node import Node

from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.messages.qos import QUEUED
from kinopt_ros.ros.requests.planning_task import PlanningTask
from kinopt_ros.ros.serving.defects import error_status
from kinopt_ros.ros.serving.deferred import Pending, create_deferred_service
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.serving import Serving
from kinopt_ros.status import Status


class MoveItService(ABC):
    """Reads requests of one of MoveIt's services for a service of ours, and writes its answers in MoveIt's terms."""

    name: ClassVar[str]
    """Name of the service, as move_group offers it."""
    type: ClassVar[Any]
    """Service type of moveit_msgs."""
    answer: ClassVar[Any]
    """Function that makes the empty answer that a task fills: anything with a ``status``, kinopt_msgs/Status."""
    counts: ClassVar[bool] = False
    """Whether the service checks the lengths of a request's lists itself, before it reads them."""

    @abstractmethod
    def task(self, request: Any, reply: Reply) -> tuple[Task, Any]:
        """Return the task of a request, and what ``write`` needs to know of it; KinoptError if it cannot be
        answered."""

    @abstractmethod
    def write(self, response: Any, answer: Any, asked: Any) -> None:
        """Fill the response; ``asked`` is what ``task`` gave, or None if it raised."""


def serve(serving: Serving, service: MoveItService) -> None:
    """Offer a service under MoveIt's name, in the node's namespace."""

    def begin(request: Any, pending: Pending, alone: bool) -> None:
        ask(serving, service, request, pending.send, alone, pending.response)

    create_deferred_service(serving.context.node, service.type, service.name, begin, qos_profile=QUEUED)


def ask(
    serving: Serving,
    service: MoveItService,
    request: Any,
    send: Callable[[Any], None],
    alone: bool = False,
    new_response: Callable[[], Any] | None = None,
) -> None:
    """Work on a request of a service, whoever asks. Returns at once, unless it is ``alone``.

    Args:
        serving: by which requests of the service are worked on.
        service: the service.
        request: of its type.
        send: called once with the response, on any thread.
        alone: whether nobody else waits, so that it may be answered on this thread.
        new_response: makes empty responses; default: their type.
    """
    way = _Way(service, serving.context.node, send, new_response or service.type.Response)
    reply = Reply(
        serving.context, serving.pace, serving.room, f"{service.name} (MoveIt)", service.answer, way
    )

    def make_task() -> Task:
        task, way.asked = service.task(request, reply)
        return task

    serving.work_on(request, make_task, reply, alone, service.counts)


def check(serving: Serving, service: MoveItService, request: Any) -> None:
    """Read a request of a service, and do nothing of it: who would end a motion for it asks first, with a copy.

    Raises:
        KinoptError: it cannot be answered now.
    """
    way = _Way(service, serving.context.node, lambda response: None, service.type.Response)
    reply = Reply(serving.context, serving.pace, serving.room, service.name, service.answer, way)
    task, _ = service.task(request, reply)
    if isinstance(task, PlanningTask):
        task.check()


class _Way:
    """The way back to a MoveIt client."""

    def __init__(
        self,
        service: MoveItService,
        node: Node,
        send: Callable[[Any], None],
        new_response: Callable[[], Any],
    ) -> None:
        self._service = service
        self._node = node
        self._send = send
        self._new_response = new_response
        self.asked: Any = None

    def send(self, answer: Any) -> None:
        """Send an answer of ours; a failure is logged, too, as some of MoveIt's answers have no room for why."""
        service, log = self._service, self._node.get_logger()
        if answer.status.code != Status.SUCCESS:
            code = Status(answer.status.code).name
            log.warning(f"{service.name}: {code}: {answer.status.message}", throttle_duration_sec=1.0)
        response = self._new_response()
        try:
            service.write(response, answer, self.asked)
        except Exception as error:  # a defect: say so, keep serving
            response, empty = self._new_response(), service.answer()
            empty.status = error_status(log, f"in {service.name}", error)
            service.write(response, empty, None)
        self._send(response)
