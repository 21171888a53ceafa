"""Task of a request that a function answers."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.planning.solver_pool import SolverPool
from kinopt_ros.ros.serving.reply import Reply


class HandlerTask(Task):
    """Task of a request that a function answers: ``handle(request, response)`` fills the response or raises."""

    def __init__(
        self,
        handle: Callable[[Any, Any], None],
        request: Any,
        reply: Reply,
        slow: bool = False,
        collisions_of: Callable[[], SolverPool] | None = None,
        patience: float = 0.0,
    ) -> None:
        """
        Args:
            handle: answers.
            request: what is asked.
            reply: the way back.
            slow: whether to leave out the quick try.
            collisions_of: says whose collision checks are needed: of the robot in service, which may be another one by
                the time of the answer. The task waits for these without keeping a thread busy.
            patience: longest time to wait for them, s; then it is refused.
        """
        super().__init__(getattr(request, "client", ""), slow=slow)
        self._handle = handle
        self._request = request
        self._reply = reply
        self._collisions_of = collisions_of
        self._patience = patience

    def must_wait(self) -> bool:
        """Check whether collision checks are needed and still being prepared, and there is time to wait for them."""
        if self._collisions_of is None:
            return False
        try:
            pool = self._collisions_of()
        except KinoptError:  # the node ends: the answer says so
            return False
        return pool.must_wait(True, False, self.arrived + self._patience)

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
            if self._collisions_of is not None:
                self._collisions_of().check_prepared(True, False)
            self._handle(self._request, response)
        except Exception as error:  # nothing ends a worker
            self._reply.refuse(error)
            return
        self._reply.send(response)
