"""Action server that is told how goals end, takes goals of any size, and hears a cancel whatever else arrives."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import rclpy
from action_msgs.msg import GoalInfo
from action_msgs.srv import CancelGoal
from rclpy.action.server import ActionServer, CancelResponse, GoalEvent
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.ros.serving.urgent import UrgentExecutor

CANCEL_SECONDS = 0.01
"""Time between two looks for cancels while the executor is at work, s."""


class GoalServer(ActionServer):  # type: ignore[type-arg]  # generic in later versions only
    """Action server that begins no callback by itself, and hears a cancel whatever else arrives.

    Goals may be large, and reading one takes rclpy as long as it takes. So the executor only takes goals and asks for
    results. Cancels are taken by a timer of the urgent thread, as long as there are goals, and answered there; goals
    are ended by another thread, so that sending large results keeps nobody waiting.
    """

    def __init__(
        self,
        node: Node,
        type_: Any,
        name: str,
        *,
        urgent: UrgentExecutor,
        cancel_early: Callable[[Sequence[bytes]], None],
        **options: Any,
    ) -> None:
        """
        Args:
            node: whose action it is.
            type_: of the action.
            name: of the action.
            urgent: hears cancels.
            cancel_early: cancels goals, by their numbers, that have not begun; on the urgent thread.
            options: as of ActionServer.
        """
        self._name = name
        self._cancel_early = cancel_early
        self._endings = ThreadPoolExecutor(max_workers=1, thread_name_prefix="goal_end")
        self._said = node.get_logger()
        self._urgent = urgent
        self._cancels_wait = False
        self._afterwards: list[Callable[[], None]] = []
        self._waiting: deque[tuple[Any, Any]] = deque()
        """Goals that were taken from ROS by somebody who stops, and that the executor begins."""
        self._begins: set[bytes] = set()
        """Numbers of goals that the executor has taken and begins just now."""
        self._taking = threading.Lock()
        """Lock held while a goal is taken, so that it is known to somebody whenever it is not."""
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
        self._endings.shutdown()

    def listen(self, goals: bool) -> None:
        """Set whether there are goals that may be cancelled."""
        if not goals:
            self._poll.cancel()
        elif self._poll.is_canceled():
            self._poll.reset()
            self._urgent.wake()

    def take_waiting(self) -> list[bytes]:
        """Take the goals that ROS has received and the executor has not, which may be at work for seconds; it begins
        them. Return the numbers of all that have not begun. On any thread."""
        new = 0
        with self._taking:
            while (taken := self._take_goal()) is not None:
                self._waiting.append(taken)
                new += 1
            numbers = [*(_number(request) for _, request in self._waiting), *self._begins]
        executor = self._node.executor
        for _ in range(new):
            if (
                executor is None
            ):  # nobody spins: they begin as soon as somebody does, with the next one that comes
                break
            executor.create_task(self._begin_waiting)
        return numbers

    def take_data(self) -> Any:
        """Take what the executor goes on with: goals, and requests for results."""
        data: dict[str, Any] = {}
        if self._is_goal_request_ready:
            self._is_goal_request_ready = False
            with self._taking:
                taken = self._take_goal()
                if taken is not None:
                    self._begins.add(_number(taken[1]))
                    data["goal"] = taken
        if self._is_cancel_request_ready:  # which may be of that goal
            self._is_cancel_request_ready = False
            if not self._cancels_wait:
                self._cancels_wait = True
                self._urgent.create_task(self._take_cancels)
        return {**super().take_data(), **data}

    async def execute(self, taken_data: Any) -> None:
        """As rclpy's."""
        try:
            await super().execute(taken_data)
        finally:
            if "goal" in taken_data:
                self._begins.discard(_number(taken_data["goal"][1]))

    async def _begin_waiting(self) -> None:
        """Begin the goal that has waited longest. On the executor's thread."""
        with self._taking:
            taken = self._waiting.popleft()
            self._begins.add(_number(taken[1]))
        await self.execute({"goal": taken})

    def _take_goal(self) -> tuple[Any, Any] | None:
        """Take a goal, without rclpy's lock, for which a cancel would wait until it is read. Python's own lock keeps
        the calls of the middleware apart."""
        taken = self._handle.take_goal_request(self._action_type.Impl.SendGoalService.Request)
        return taken if taken[0] else None

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
        while True:
            taken = self._handle.take_cancel_request(self._action_type.Impl.CancelGoalService.Request)
            if not taken[0]:
                return
            try:
                unread = self._cancel_unread(taken[1].goal_info)
                with self.changing:
                    self._answer_cancel(*taken, unread)
                    calls, self._afterwards = self._afterwards, []
                for call in calls:
                    call()
            except Exception as error:  # nothing ends the thread
                log_defect(self._said, f"in a cancel of {self._name}", error)

    def _cancel_unread(self, asked: Any) -> list[Any]:
        """Cancel goals that ROS received before the cancel and that have not begun, if it is of one of them or of all;
        return what is said of them."""
        number = bytes(asked.goal_id.uuid)
        every = not any(number) and asked.stamp.sec == asked.stamp.nanosec == 0
        if not (every or number not in self._goal_handles):
            return []
        found = [one for one in self.take_waiting() if every or one == number]
        self._cancel_early(found)
        infos = [GoalInfo() for _ in found]
        for info, one in zip(infos, found, strict=True):
            info.goal_id.uuid = list(one)
        return infos

    def _answer_cancel(self, header: Any, request: Any, unread: list[Any]) -> None:
        """Answer a cancel as rclpy does, but do not pass over the goal behind one that has just ended.

        rclpy takes an ended goal out of the very list that it goes through.
        """
        with self._lock:
            answer = self._handle.process_cancel_request(
                request, self._action_type.Impl.CancelGoalService.Response
            )
        answer.goals_canceling = [goal for goal in answer.goals_canceling if self._cancels(goal)]
        known = {_number(goal) for goal in answer.goals_canceling}
        unread = [goal for goal in unread if _number(goal) not in known]  # one may have begun meanwhile
        if unread:
            answer.goals_canceling = [*answer.goals_canceling, *unread]
            answer.return_code = CancelGoal.Response.ERROR_NONE
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


def _number(goal: Any) -> bytes:
    return bytes(goal.goal_id.uuid)


def _complete(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine of rclpy, whose callbacks here are no coroutines: it never waits."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("a callback of the action waits")
