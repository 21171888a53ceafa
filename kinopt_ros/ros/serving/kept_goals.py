"""Goals of an action: all are taken, and each ends with exactly one result, on the threads of ``goal_server.py``."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from rclpy.action.server import CancelResponse, GoalResponse

from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.qos import QUEUED
from kinopt_ros.ros.serving.action_server import begin_cancelling, give_result, no_callback
from kinopt_ros.ros.serving.goal_server import GoalServer
from kinopt_ros.ros.serving.reply import Pace
from kinopt_ros.ros.serving.urgent import UrgentExecutor

G = TypeVar("G", bound="KeptGoal")
_ANOTHER = -1
"""Number of emergency stops that there never are."""
RESULT_SECONDS = 60
"""Time that a result is kept for clients to fetch, s."""


class KeptGoals(Generic[G]):
    """The goals of one action that have no result yet."""

    def __init__(
        self,
        context: Context,
        urgent: UrgentExecutor,
        type_: Any,
        name: str,
        make: Callable[[KeptGoals[G], Any], G],
    ) -> None:
        """
        Args:
            context: the node's.
            urgent: hears cancels.
            type_: of the action.
            name: of the action.
            make: makes a goal of rclpy's handle.
        """
        self.context = context
        self.name = name.removeprefix("~/")
        self._make = make
        self._goals: dict[bytes, G] = {}
        """By the client's number; guarded by the server's lock, as the next one is."""
        self._early: set[bytes] = set()
        """Numbers of goals that were cancelled before they were taken."""
        self._taking, self.ending = Pace(), Pace()
        self.server = GoalServer(
            context.node,
            type_,
            name,
            execute_callback=no_callback,
            goal_callback=self._take,
            handle_accepted_callback=self._accept,
            cancel_callback=self._cancel,
            goal_service_qos_profile=QUEUED,
            result_service_qos_profile=QUEUED,
            cancel_service_qos_profile=QUEUED,
            result_timeout=RESULT_SECONDS,
            urgent=urgent,
            cancel_unread=_cancelled,
        )

    @property
    def present(self) -> list[G]:
        """Goals without a result. On any thread."""
        return list(self._goals.values())

    def close(self) -> None:
        """End what was told to end, and nothing after that."""
        self.server.close()

    def forget(self, goal: G) -> None:
        """Remove a goal that has its result."""
        with self.server.changing:
            self._goals.pop(goal.number, None)
            self.server.listen(bool(self._goals))

    def _take(self, goal: Any) -> GoalResponse:
        """Take every goal, as what is wrong with it is said in its result, as long as there are some."""
        del goal
        if self.server.closed:
            return GoalResponse.REJECT
        self._taking.wait()
        return GoalResponse.ACCEPT

    def _accept(self, handle: Any) -> None:
        goal = self._make(self, handle)
        with self.server.changing:
            handle.execute()
            # After that: who ends all goals that are present must find none that has not begun, as ROS ends none.
            self._goals[goal.number] = goal
            self.server.listen(True)
            # Who stops has them told first, and then tells those that are present.
            tells = self.server.take_tells()
            cancelled = goal.number in self._early
            self._early.discard(goal.number)
        if cancelled:
            goal.cancel()
        for tell in tells:
            tell(goal)
        goal.begin()

    def _cancel(self, handle: Any) -> CancelResponse:
        """Cancel a goal; called with the server's lock."""
        number = number_of(handle)
        goal = self._goals.get(number)
        if goal is not None:
            self.server.afterwards(goal.cancel)
        elif handle.is_active:
            self._early.add(number)
        # Also of a goal that has just ended otherwise: it then ends so.
        return CancelResponse.ACCEPT


def _cancelled(goal: KeptGoal) -> None:
    """Cancel a goal that ROS may not know to be cancelled."""
    if goal.is_over:
        return
    with suppress(RuntimeError):  # RCLError is one: it may end otherwise just now
        begin_cancelling(goal.handle)
    goal.cancel()


def number_of(handle: Any) -> bytes:
    """Return the client's number of a goal."""
    return bytes(handle.goal_id.uuid)


class KeptGoal(ABC):
    """One goal, from its arrival to its result."""

    def __init__(self, goals: KeptGoals[Any], handle: Any) -> None:
        self.goals = goals
        self.handle = handle
        self.number = number_of(handle)
        self.arrived = time.monotonic()
        # A controller may say no while the motion is still being sent to it, on the same thread.
        self._lock = threading.RLock()
        self._ended = False
        self._stops: int | None = None
        """Number of emergency stops before it came; None: those before it begins."""

    @abstractmethod
    def begin(self) -> None:
        """Begin to work on it. On the executor's thread, never raises; a goal that was cancelled is told before."""

    @abstractmethod
    def cancel(self) -> None:
        """End the goal as cancelled, as soon as it may. Returns at once. On any thread."""

    def come_before_a_stop(self) -> None:
        """Take notice that an emergency stop came while it lay unread: it moves nothing."""
        self._stops = _ANOTHER

    @property
    def is_over(self) -> bool:
        """Whether the goal has its result."""
        return self._ended

    def end(self, result: Any, transition: Callable[..., None], code: int) -> None:
        """Give the goal its result, unless it has one.

        Args:
            result: of the action's type.
            transition: of the handle: ``succeed``, ``abort`` or ``canceled``.
            code: outcome, for the statistics.
        """
        if self.take_end():
            self.conclude(result, transition, code)

    def take_end(self) -> bool:
        """Check whether the caller may end the goal: the first one may, and has to."""
        with self._lock:
            first, self._ended = not self._ended, True
            return first

    def conclude(
        self, result: Any, transition: Callable[..., None], code: int, queue_time: float = 0.0
    ) -> None:
        """Give the goal its result; called once, by the one who took its end.

        Args:
            result: of the action's type.
            transition: as of ``end``.
            code: as of ``end``.
            queue_time: that it waited for its turn, s.
        """
        goals = self.goals
        goals.context.statistics.record(goals.name, code, time.monotonic() - self.arrived, queue_time)

        def conclude(handle: Any) -> Any:
            del handle
            goals.ending.wait()
            given = give_result(transition, result)
            goals.forget(self)
            return given

        goals.server.notify_execute(self.handle, conclude)
