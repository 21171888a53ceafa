"""Action server that is told how goals end, takes goals of any size, and hears a cancel whatever else arrives."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import math
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any

import rclpy
from rclpy.action.server import ActionServer, CancelResponse, GoalEvent
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.ros.serving.guarded_executor import GuardedExecutor
from kinopt_ros.ros.serving.urgent import UrgentExecutor

LONG_UNREAD = 0.02
"""Time for which goals may lie unread, s, that counts as long."""
CANCEL_SECONDS = 0.01
"""Time between two looks for cancels while the executor is at work, s."""


class GoalServer(ActionServer):  # type: ignore[type-arg]  # generic in later versions only
    """Action server that begins no callback by itself, and hears a cancel whatever else arrives.

    Goals may be large, and reading one takes rclpy as long as it takes. So the executor only takes goals and asks for
    results. Cancels are taken by a timer of the urgent thread, as long as there are goals, and answered there; goals
    are ended by another thread, so that sending large results keeps nobody waiting.

    The executor may be at work for seconds, and goals lie unread. Who stops means them, too, and cannot wait until they
    are read. So what they are to be told is kept: for one goal, if ROS has said that there is one; for more of them
    until the executor has waited since, and ROS had no goal for it.
    """

    def __init__(
        self,
        node: Node,
        type_: Any,
        name: str,
        *,
        urgent: UrgentExecutor,
        cancel_unread: Callable[[Any], None],
        **options: Any,
    ) -> None:
        """
        Args:
            node: whose action it is.
            type_: of the action.
            name: of the action.
            urgent: hears cancels.
            cancel_unread: what goals are told (see ``tell_unread``) that lie unread when all are cancelled.
            options: as of ActionServer.
        """
        self._name = name
        self._cancel_unread = cancel_unread
        self._endings = ThreadPoolExecutor(max_workers=1, thread_name_prefix="goal_end")
        self._said = node.get_logger()
        self._urgent = urgent
        self._cancels_wait = False
        self._goal_beside_cancel = False
        """Whether ROS had a goal, too, for the executor that found a cancel."""
        self._afterwards: list[Callable[[], None]] = []
        self._tells: dict[Callable[[Any], None], int] = {}
        """What goals are told that begin now, with a number of its own each time that it is asked for."""
        self._seen: dict[Callable[[Any], None], int] = {}
        """What of it was there when the executor began to wait."""
        self._numbers = count()
        self._looked = self._unread_since = -math.inf
        """When the executor began to look for goals; and when it did so last before it found one after the other: since
        then goals may lie unread, s."""
        self._next_told: list[Callable[[Any], None]] | None = None
        """What the next goal is told, which has come and has not begun; None: there may be none."""
        self._found = False
        """Whether ROS had a goal when the executor looked last."""
        self.closed = False
        """Whether no goal is ended any more."""
        self._telling = threading.Lock()
        self.changing = threading.Lock()
        """Lock held while goals begin and while they are cancelled, which happens on different threads."""
        super().__init__(node, type_, name, **options)
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._poll = node.create_timer(CANCEL_SECONDS, self._take_cancels, urgent.group, clock=clock)
        self._poll.cancel()

    def afterwards(self, call: Callable[[], None]) -> None:
        """Call something when the cancel that is being answered is answered. To be called by that cancel's callback."""
        self._afterwards.append(call)

    def close(self) -> None:
        """End the goals that shall end, and no other ones after that."""
        self.closed = True
        self._endings.shutdown()

    def listen(self, goals: bool) -> None:
        """Set whether there are goals that may be cancelled."""
        if not goals:
            self._poll.cancel()
        elif self._poll.is_canceled() and not self.closed:
            self._poll.reset()
            self._urgent.wake()

    def tell_unread(self, tell: Callable[[Any], None]) -> None:
        """Have goals told something that have come and have not begun. Returns at once. On any thread.

        That is the one that ROS has said to be there. Where others may lie unread for LONG_UNREAD and more, as the
        executor has not looked for goals since, or has taken one after the other, it is all of them; one that comes
        after this, while the executor is still at work, is told, too.

        What the executor itself tells is of nothing that it leaves unread; and one of somebody else serves stops, too,
        in their turn."""
        executor = self._node.executor
        if not isinstance(executor, GuardedExecutor) or executor.at_work == threading.get_ident():
            return
        with self._telling:
            if self._next_told is not None:
                self._next_told.append(tell)
            unread = time.monotonic() - self._unread_since
        if min(unread, executor.busy_for()) > LONG_UNREAD:
            self._tell_next(tell)  # else who stops and at once asks for the next motion gets that

    def _tell_next(self, tell: Callable[[Any], None]) -> None:
        with self._telling:
            self._tells[tell] = next(self._numbers)
        self._look_again()

    def _look_again(self) -> None:
        """Have the executor wait once more, and not for long."""
        if self._node.executor is not None:
            self._node.executor.wake()

    def take_tells(self) -> list[Callable[[Any], None]]:
        """Return what a goal is to be told that begins now."""
        with self._telling:
            own, self._next_told = self._next_told or (), None
            return list(dict.fromkeys((*own, *self._tells)))

    def add_to_wait_set(self, wait_set: Any) -> None:
        """As rclpy's."""
        with self._telling:
            self._seen = dict(self._tells)
            self._looked = time.monotonic()
        super().add_to_wait_set(wait_set)

    def is_ready(self, wait_set: Any) -> bool:
        """As rclpy's."""
        ready = bool(super().is_ready(wait_set))
        there = self._is_goal_request_ready
        with self._telling:
            if not (there and self._found):
                self._unread_since = self._looked  # not now: callbacks of other actions came between
            self._found = there
            if not there:
                self._next_told = None
                for tell, number in self._seen.items():  # ROS had none after these were asked for
                    if self._tells.get(tell) == number:
                        del self._tells[tell]
            elif self._next_told is None:
                self._next_told = []
            left = bool(self._tells)
        if left:
            self._look_again()
        return ready

    def take_data(self) -> Any:
        """Take what the executor goes on with: goals, and requests for results."""
        if self._is_cancel_request_ready:
            self._is_cancel_request_ready = False
            # Of a cancel of all and a goal that lay unread together nobody knows which came first.
            self._goal_beside_cancel |= self._is_goal_request_ready
            if not isinstance(self._node.executor, GuardedExecutor):
                self._take_cancels()  # as nobody serves the urgent thread
            elif not self._cancels_wait:
                self._cancels_wait = True
                self._urgent.create_task(self._take_cancels)
        goal, self._is_goal_request_ready = self._is_goal_request_ready, False
        data = dict(super().take_data())
        if goal:
            # Without rclpy's lock, for which a cancel would wait until the goal is read. Python's own lock keeps the
            # calls of the middleware apart.
            taken = self._handle.take_goal_request(self._action_type.Impl.SendGoalService.Request)
            if taken[0]:
                data["goal"] = taken
            else:  # ROS said that there was one when it was taken already: the next one is told nothing in its place
                self.take_tells()
        return data

    async def _execute_goal_request(self, taken: Any) -> None:
        """As rclpy's; a goal that it does not accept is told nothing, and neither is the next one in its place."""
        try:
            await super()._execute_goal_request(taken)
        finally:
            self.take_tells()

    def add_future(self, future: Any) -> None:
        """Leave the result to the thread that ends the goal: rclpy would have the executor send it."""

    def remove_future(self, future: Any) -> None:
        """Do nothing, for the same reason as in ``add_future``."""

    def notify_execute(self, goal_handle: Any, execute_callback: Callable[[Any], Any] | None) -> None:
        """Run what ends a goal. ``execute()`` of a goal without a callback only says that it is worked on."""
        if execute_callback is None:
            return
        with suppress(RuntimeError):  # closed: nobody hears of it any more
            self._endings.submit(self._end, goal_handle, execute_callback)

    def _take_cancels(self) -> None:
        """Answer all cancels that have arrived. On the urgent thread."""
        self._cancels_wait = False
        beside, self._goal_beside_cancel = self._goal_beside_cancel, False
        while True:
            taken = self._handle.take_cancel_request(self._action_type.Impl.CancelGoalService.Request)
            if not taken[0]:
                return
            try:
                if _is_of_all(taken[1].goal_info):
                    (self._tell_next if beside else self.tell_unread)(self._cancel_unread)
                with self.changing:
                    self._answer_cancel(*taken)
                    calls, self._afterwards = self._afterwards, []
                for call in calls:
                    call()
            except Exception as error:  # nothing ends the thread
                log_defect(self._said, f"in a cancel of {self._name}", error)

    def _answer_cancel(self, header: Any, request: Any) -> None:
        """Answer a cancel as rclpy does, but do not pass over the goal behind one that has just ended.

        rclpy takes an ended goal out of the very list that it goes through.
        """
        with self._lock:
            answer = self._handle.process_cancel_request(
                request, self._action_type.Impl.CancelGoalService.Response
            )
        answer.goals_canceling = [goal for goal in answer.goals_canceling if self._cancels(goal)]
        try:
            with self._lock:
                self._handle.send_cancel_response(header, answer)
        except RuntimeError as error:  # RCLError is one: the client may have gone away
            self._said.warning(f"a cancel of {self._name} could not be answered: {error}")

    def _cancels(self, goal: Any) -> bool:
        """Check whether a goal is being cancelled from now on; not one that has ended meanwhile."""
        handle = self._goal_handles.get(bytes(goal.goal_id.uuid))
        if handle is None or self._cancel_callback(handle) != CancelResponse.ACCEPT:
            return False
        try:
            handle._update_state(GoalEvent.CANCEL_GOAL)
        except RuntimeError:  # as above
            return False
        return True

    def _end(self, goal_handle: Any, callback: Callable[[Any], Any]) -> None:
        try:
            _complete(self._execute_goal(callback, goal_handle))
        except Exception as error:  # nothing ends the thread
            if rclpy.ok():
                log_defect(self._said, f"at the end of a goal of {self._name}", error)


def _is_of_all(asked: Any) -> bool:
    """Check whether a cancel is of all goals: it names none, and no time."""
    return not any(asked.goal_id.uuid) and asked.stamp.sec == asked.stamp.nanosec == 0


def _complete(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine of rclpy, whose callbacks here are no coroutines: it never waits."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("a callback of the action waits")
