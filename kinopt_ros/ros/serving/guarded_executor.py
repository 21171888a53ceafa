"""Executor that nothing ends but the end of ROS: what a callback raises is logged, and the others go on.

rclpy raises it out of ``spin_once``. If a message cannot even be taken (its text is no UTF-8), rclpy leaves its
callback group as if a callback were running for ever, so that the node is deaf from then on. Here both are caught where
they happen, for every callback: subscriptions, services, timers, actions and rclpy's own.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

import rclpy
from rclpy.event_handler import EventHandler, QoSPublisherEventType, QoSSubscriptionEventType
from rclpy.executors import SingleThreadedExecutor
from rclpy.logging import get_logger

from kinopt_ros.pauses import give_way
from kinopt_ros.ros.serving.defects import log_defect

_PAUSE = 0.05
"""Pause after a round that failed as a whole, s: the next one may fail likewise, and must not fill the log."""
_IDLE_SECONDS = 0.005
"""Time without anything to run, s, that is none of work: rclpy lists all that it waits for before it waits."""
_RARE = frozenset(
    id(getattr(kind, name))
    for kind, name in (
        (QoSPublisherEventType, "RCL_PUBLISHER_OFFERED_INCOMPATIBLE_QOS"),
        (QoSSubscriptionEventType, "RCL_SUBSCRIPTION_REQUESTED_INCOMPATIBLE_QOS"),
        (QoSPublisherEventType, "RCL_PUBLISHER_INCOMPATIBLE_TYPE"),
        (QoSSubscriptionEventType, "RCL_SUBSCRIPTION_INCOMPATIBLE_TYPE"),
    )
    if hasattr(kind, name)  # the last two not in Humble
)
"""Identities of the kinds of events of topics that only warnings come of. To compare the kinds themselves takes rclpy a
microsecond, for dozens of events in each round."""
_RARE_SECONDS = 0.5
"""Least time between two rounds in which those are looked for, s."""
_Callback: TypeAlias = Callable[[], Coroutine[None, None, None]]


class GuardedExecutor(SingleThreadedExecutor):
    """Serves on, whatever a callback raises."""

    gives_way = False
    """Whether what has arrived waits while something urgent is done."""
    _interrupted = False
    _hears_rare = True
    _next_rare = 0.0
    at_work: int | None = None
    """Thread that is in the middle of a callback."""
    _asked = 0.0
    """When it was asked last what is to be run next, s."""
    _busy_since = 0.0
    """When it was found last after some time in which there was nothing, s."""

    def __init__(self, *, context: Any = None) -> None:
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
            if threading.get_ident() != self.at_work:
                trigger()

        guard.trigger = trigger_from_elsewhere

    def interrupt(self) -> None:
        """Let nobody wait in ``spin_once`` any more, until ``go_on``. On any thread."""
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
            self._asked = time.monotonic()  # what comes between two callbacks is no waiting
            self.at_work = None

    def wait_for_ready_callbacks(self, *args: Any, **options: Any) -> Any:
        """Return what is to be run next."""
        self._asked = time.monotonic()
        self.at_work = None
        try:
            ready = super().wait_for_ready_callbacks(*args, **options)
        finally:
            now = time.monotonic()
            if now - self._asked > _IDLE_SECONDS:
                self._busy_since = now
            self.at_work = threading.get_ident()
        if self.gives_way:
            give_way()
        return ready

    def busy_for(self) -> float:
        """Return for how long there has been one thing after the other to do, s."""
        now = time.monotonic()
        waits = self.at_work is None and now - self._asked > _IDLE_SECONDS
        return 0.0 if waits else now - self._busy_since

    def can_execute(self, entity: Any) -> bool:
        """Check whether it is a callback's turn."""
        if not self._hears_rare and isinstance(entity, EventHandler) and id(entity.event_type) in _RARE:
            return False
        return super().can_execute(entity)

    def _wait_for_ready_callbacks(self, *args: Any, **options: Any) -> Any:
        # Each topic has two events that nearly never happen, half of all that rclpy would wait for. It hands the whole
        # list to the middleware in each round, which costs as much as an answer.
        now = time.monotonic()
        self._hears_rare = now >= self._next_rare
        if self._hears_rare:
            self._next_rare = now + _RARE_SECONDS
        return super()._wait_for_ready_callbacks(*args, **options)

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
