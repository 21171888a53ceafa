"""Takes requests of services, has them worked on, and sends and counts their answers."""

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import rclpy
from rclpy.node import Node

from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.scheduler import Scheduler, Task
from kinopt_ros.planning.statistics import Statistics
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.conversions import error_message, status_message
from kinopt_ros.ros.deferred import Pending, create_deferred_service
from kinopt_ros.ros.qos import QUEUED
from kinopt_ros.ros.sizes import Room, check_lengths, entries_of, let_go
from kinopt_ros.status import Status


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
            if len(self._sent) == self._most:
                time.sleep(max(0.0, self._sent[0] + self._seconds - time.monotonic()))
            self._sent.append(time.monotonic())


class Way(Protocol):
    """Brings an answer to a client, as a Pending one does."""

    def send(self, response: Any) -> None:
        """Give the answer, once."""


class Reply:
    """The way back to one client: sends exactly one answer, and counts it."""

    def __init__(self, serving: "Serving", service: str, response_type: Any, pending: Way) -> None:
        self._serving = serving
        self._service = service
        self._response_type = response_type
        self._pending = pending
        self.arrived = time.monotonic()
        self.sent = False
        """Whether there was an answer."""
        self.queue_time = 0.0
        """Seconds spent waiting, as far as known."""
        self.entries = 0
        """Room that the request takes until it is answered."""

    def response(self) -> Any:
        """An empty response of the service's type."""
        return self._response_type()

    def send(self, response: Any) -> None:
        """Send an answer, unless there was one."""
        if self.sent:
            return
        self.sent = True
        entries, self.entries = self.entries, 0
        self._serving.room.leave(entries)
        wall = time.monotonic() - self.arrived
        self._serving.statistics.record(self._service, response.status.code, wall, self.queue_time)
        self._serving.pace.wait()
        try:
            self._pending.send(response)
        except RuntimeError as error:  # of which InvalidHandle and RCLError are two
            if rclpy.ok():  # otherwise the service went away first, and nobody waits any more
                # Not raised: that would end the thread, and with it the answers to everybody else.
                self._serving.node.get_logger().error(
                    f"an answer of {self._service} could not be sent: {type(error).__name__}: {error}"
                )

    def refuse(self, error: Exception) -> None:
        """Send an empty answer with the code and sentence of an error."""
        response = self.response()
        if isinstance(error, KinoptError):
            response.status = error_message(error)
        else:  # a defect: say so, keep serving
            trace = "".join(traceback.format_exception(error))
            self._serving.node.get_logger().error(f"internal error in {self._service}:\n{trace}")
            response.status = status_message(
                Status.FAILURE, f"internal error ({type(error).__name__}); the node's log says more"
            )
        self.send(response)


class Serving:
    """Connects services with the scheduler."""

    def __init__(self, context: Context, scheduler: Scheduler, statistics: Statistics) -> None:
        self.context = context
        self.node: Node = context.node
        self.scheduler = scheduler
        self.statistics = statistics
        self.pace = Pace()
        self.room = Room()

    def serve(
        self, service_type: Any, name: str, make_task: Callable[[Any, Reply], Task], counts: bool = False
    ) -> None:
        """Offer a service.

        Args:
            service_type: of kinopt_msgs.
            name: as in ``~/name``.
            make_task: reads a request, quickly, and with its way back makes a task; if it raises, that is the answer.
            counts: whether the service itself looks at the lengths of lists before it reads them.
        """

        def begin(request: Any, pending: Pending, alone: bool) -> None:
            reply = Reply(self, name, service_type.Response, pending)
            self.work_on(request, lambda: make_task(request, reply), reply, alone, counts)

        create_deferred_service(self.node, service_type, f"~/{name}", begin, qos_profile=QUEUED)

    def work_on(
        self,
        request: Any,
        make_task: Callable[[], Task],
        reply: Reply,
        alone: bool,
        counted: bool = False,
    ) -> None:
        """Work on a request, now if it came alone, or refuse it."""
        try:
            entries = (
                entries_of(request)
                if counted
                else check_lengths(request, self.context.parameter("max_batch"))
            )
            self.room.take(entries)
            reply.entries = entries
            task = make_task()
            if alone:
                self.scheduler.answer(task)
            else:  # worth being collected
                self.scheduler.submit(task)
        except Exception as error:  # nothing leaves a callback
            reply.refuse(error)
            let_go(request)


class HandlerTask(Task):
    """A request that a function answers: ``handle(request, response)`` fills the response or raises."""

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
