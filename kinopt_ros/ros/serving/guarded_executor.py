"""Executor that nothing ends but the end of ROS: what a callback raises is logged, and the others go on.

rclpy raises it out of ``spin_once``. If a message cannot even be taken (its text is no UTF-8), rclpy leaves its
callback group as if a callback were running for ever, so that the node is deaf from then on. Here both are caught where
they happen, for every callback: subscriptions, services, timers, actions and rclpy's own.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from functools import partial
from typing import Any, TypeAlias

import rclpy
from rclpy._rclpy_pybind11 import InvalidHandle
from rclpy.event_handler import EventHandler, QoSPublisherEventType, QoSSubscriptionEventType
from rclpy.executors import (
    ConditionReachedException,
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
    TimeoutException,
)
from rclpy.logging import get_logger
from rclpy.utilities import timeout_sec_to_nsec

from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.ros.serving.wait_list import WaitList, entities_of

_PAUSE = 0.05
"""Pause after a round that failed as a whole, s: the next one may fail likewise, and must not fill the log."""
_RARE = (
    QoSPublisherEventType.RCL_PUBLISHER_OFFERED_INCOMPATIBLE_QOS,
    QoSSubscriptionEventType.RCL_SUBSCRIPTION_REQUESTED_INCOMPATIBLE_QOS,
    *(
        getattr(kind, name)
        for kind, name in (
            (QoSPublisherEventType, "RCL_PUBLISHER_INCOMPATIBLE_TYPE"),
            (QoSSubscriptionEventType, "RCL_SUBSCRIPTION_INCOMPATIBLE_TYPE"),
        )
        if hasattr(kind, name)  # not in Humble
    ),
)
"""Events of topics that only warnings come of."""
_RARE_SECONDS = 0.5
"""Least time between two rounds in which those are looked for, s."""
_Callback: TypeAlias = Callable[[], Coroutine[None, None, None]]


class GuardedExecutor(SingleThreadedExecutor):
    """Serves on, whatever a callback raises."""

    _interrupted = False
    _hears_rare = False
    _next_rare = 0.0
    _at_work: int | None = None
    """Thread that is in the middle of a callback."""

    def __init__(self, *, context: Any = None) -> None:
        self._list: WaitList | None = None
        self._listed: list[Any] = []
        """All entities there were when the list was made."""
        super().__init__(context=context)
        self._wake_others_only()

    def _wake_others_only(self) -> None:
        """Let callbacks not wake the thread that they run on.

        rclpy wakes it twice for each, as its threads may be several. All that it would be told it looks at anyway
        before it waits, and a round in vain costs as much as an answer.
        """
        guard: Any = self._guard
        trigger = guard.trigger

        def trigger_from_elsewhere() -> None:
            if threading.get_ident() != self._at_work:
                trigger()

        guard.trigger = trigger_from_elsewhere

    def interrupt(self) -> None:
        """Let nobody wait in ``spin_once`` any more, until ``go_on``. On any thread, and in signal handlers."""
        self._interrupted = True
        self.wake()

    def go_on(self) -> None:
        """Let callers wait again."""
        self._interrupted = False

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Serve one callback."""
        try:
            # Without the second argument rclpy goes on waiting when it is woken and nothing has arrived.
            self._spin_once_impl(timeout_sec, self._is_interrupted)
        except Exception as error:  # raised by a task or by waiting: callbacks are guarded below
            if not rclpy.ok(context=self.context):
                raise  # the end of ROS
            log_defect(get_logger("kinopt"), "between callbacks", error)
            time.sleep(_PAUSE)
        finally:
            self._at_work = None

    def wait_for_ready_callbacks(self, *args: Any, **options: Any) -> Any:
        """Return what is to be run next."""
        self._at_work = None
        try:
            return super().wait_for_ready_callbacks(*args, **options)
        finally:
            self._at_work = threading.get_ident()

    def can_execute(self, entity: Any) -> bool:
        """Check whether it is a callback's turn."""
        if not self._hears_rare and isinstance(entity, EventHandler) and entity.event_type in _RARE:
            return False
        return super().can_execute(entity)

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """End it, as rclpy does."""
        self._forget_list()
        return super().shutdown(timeout_sec)

    def _wait_for_ready_callbacks(
        self, timeout_sec: Any = None, nodes: Any = None, condition: Callable[[], bool] = lambda: False
    ) -> Generator[Any, None, None]:
        # Each topic has two events that nearly never happen, half of all that rclpy would wait for. It hands the whole
        # list to the middleware in each round, which costs as much as an answer.
        now = time.monotonic()
        if now >= self._next_rare:
            self._next_rare = now + _RARE_SECONDS
            self._hears_rare = True
            try:
                yield from super()._wait_for_ready_callbacks(0.0, nodes, condition)
            except TimeoutException:
                pass
            finally:
                self._hears_rare = False
        if nodes is None and (timeout_sec is None or isinstance(timeout_sec, float)) and self._is_plain():
            yield from self._plain_round(timeout_sec, condition)
        else:
            yield from super()._wait_for_ready_callbacks(timeout_sec, nodes, condition)

    def _is_plain(self) -> bool:
        """Check whether nothing is left to do from rounds before, so that all callbacks may be waited for, and put
        together for which."""
        with self._tasks_lock:
            self._tasks = [left for left in self._tasks if not (left[0].done() or left[0].cancelled())]
            if self._tasks or self._is_shutdown:
                return False
        nodes = self.get_nodes()
        entities = entities_of(nodes)
        if self._list is None or entities != self._listed:
            self._forget_list()
            try:
                self._list = WaitList(nodes, self.can_execute, (self._guard, self._sigint_gc), self.context)
            except InvalidHandle:
                return False
            self._listed = entities
        return all(map(self.can_execute, self._list.one_of_each_group.values()))

    def _forget_list(self) -> None:
        known, self._list = self._list, None
        self._listed = []
        if known is not None:
            known.close()

    def _plain_round(self, seconds: float | None, condition: Callable[[], bool]) -> Iterator[Any]:
        """Yield what is ready, as rclpy's ``_wait_for_ready_callbacks`` does, by the list of an earlier round."""
        known, found = self._list, False
        if known is None or condition():
            raise ConditionReachedException
        end = None if seconds is None or seconds < 0.0 else time.monotonic() + seconds
        known.wait(timeout_sec_to_nsec(seconds))
        if self._is_shutdown:
            raise ShutdownException
        if not self.context.ok():
            raise ExternalShutdownException
        for entity, node, kind in known.ready():
            if kind == "timer" and not entity.handle.is_timer_ready():
                continue
            if kind == "guard_condition":
                entity._executor_triggered = True  # waiting has taken that
            if self.can_execute(entity):
                found = True
                yield self._make_handler(entity, node, getattr(self, f"_take_{kind}")), entity, node
        if not found:  # somebody has woken this thread
            left = None if end is None else max(end - time.monotonic(), 0.0)
            if left == 0.0:
                raise TimeoutException
            yield from super()._wait_for_ready_callbacks(left, None, condition)

    def _is_interrupted(self) -> bool:
        return self._interrupted

    def _make_handler(self, entity: Any, node: Any, take_from_wait_list: Any) -> Any:
        # All of rclpy's kinds of callbacks come by here, with the function that takes what has arrived.
        guarded = partial(_taken, node, take_from_wait_list)
        return super()._make_handler(entity, node, guarded)


def _taken(node: Any, take: Callable[[Any], _Callback | None], entity: Any) -> _Callback | None:
    """Return what to run for something that has arrived; nothing if it cannot be read."""
    try:
        run = take(entity)
    except Exception as error:
        node.get_logger().warning(
            f"what has arrived on {_name(entity)} cannot be read and was dropped: {type(error).__name__}: "
            f"{str(error)[:200]}",
            throttle_duration_sec=1.0,
        )
        return None
    return None if run is None else partial(_guarded, node, entity, run)


async def _guarded(node: Any, entity: Any, run: _Callback) -> None:
    try:
        await run()
    except Exception as error:  # nothing leaves a callback
        if rclpy.ok(context=node.context):  # else it was the end of ROS that the callback ran into
            log_defect(node.get_logger(), f"in {_name(entity)}", error)


def _name(entity: Any) -> str:
    """Return the topic or service, or else the kind of a callback."""
    for attribute in ("topic_name", "service_name", "srv_name"):
        name = getattr(entity, attribute, None)
        if isinstance(name, str):
            return name
    return type(entity).__name__
