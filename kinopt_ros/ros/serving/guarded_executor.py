"""Executor that nothing ends but the end of ROS: what a callback raises is logged, and the others go on.

rclpy raises it out of ``spin_once``. If a message cannot even be taken (its text is no UTF-8), rclpy leaves its
callback group as if a callback were running for ever, so that the node is deaf from then on. Here both are caught where
they happen, for every callback: subscriptions, services, timers, actions and rclpy's own.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.logging import get_logger

from kinopt_ros.ros.serving.defects import log_defect

_PAUSE = 0.05
"""Pause after a round that failed as a whole, s: the next one may fail likewise, and must not fill the log."""
_Callback: TypeAlias = Callable[[], Coroutine[None, None, None]]


class GuardedExecutor(SingleThreadedExecutor):
    """Serves on, whatever a callback raises."""

    _interrupted = False

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
