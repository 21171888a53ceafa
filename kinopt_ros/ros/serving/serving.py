"""Takes requests of services and passes them to the scheduler."""

from collections.abc import Callable
from typing import Any

from kinopt_ros.errors import StaleStateError
from kinopt_ros.planning.scheduler import Scheduler, Task
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.qos import QUEUED
from kinopt_ros.ros.messages.sizes import Room, check_lengths, entries_of, let_go
from kinopt_ros.ros.robot.frames import NoTransformYetError
from kinopt_ros.ros.robot.joint_states import UNREAD_SECONDS
from kinopt_ros.ros.serving.deferred import Pending, create_deferred_service
from kinopt_ros.ros.serving.reply import Pace, Reply
from kinopt_ros.ros.serving.retries import Retries
from kinopt_ros.ros.serving.service import QueuedService


class Serving:
    """Connects services with the scheduler."""

    def __init__(self, context: Context, scheduler: Scheduler, retries: Retries) -> None:
        self.context = context
        self._scheduler = scheduler
        self._retries = retries
        self.pace = Pace()
        self.room = Room()

    def serve(self, service: QueuedService) -> None:
        """Offer a service."""

        def begin(request: Any, pending: Pending, alone: bool) -> None:
            reply = Reply(self.context, self.pace, self.room, service.name, pending.response, pending)
            self.work_on(request, lambda: service.task(request, reply), reply, alone, service.counts)

        create_deferred_service(
            self.context.node, service.type, f"~/{service.name}", begin, qos_profile=QUEUED
        )

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
        except Exception as error:  # nothing leaves a callback
            _refuse(request, reply, error)
            return
        if not self._begin(request, make_task, reply, alone):
            self._retries.add(lambda: self._begin(request, make_task, reply, False))

    def _begin(self, request: Any, make_task: Callable[[], Task], reply: Reply, alone: bool) -> bool:
        """Put a request in line, or refuse it; False if it is to be tried again, as newer joint states may lie
        unread, or tf may have what its stamp asks for a moment later."""
        try:
            task = make_task()
            if alone:
                self._scheduler.answer(task)
            else:  # worth being collected
                self._scheduler.submit(task)
        except StaleStateError as error:
            if self._retries.allowed(reply.arrived, UNREAD_SECONDS):
                return False
            _refuse(request, reply, error)
        except NoTransformYetError as error:
            patience = self.context.parameter("tf_timeout")
            if self._retries.allowed(reply.arrived, patience):
                return False
            _refuse(request, reply, error.after(patience))
        except Exception as error:  # nothing leaves a callback
            _refuse(request, reply, error)
        return True


def _refuse(request: Any, reply: Reply, error: Exception) -> None:
    reply.refuse(error)
    let_go(request)
