"""Action server whose goals are ended when something has happened, not when a callback returns."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import inspect
from collections.abc import Callable
from typing import Any

from rclpy.action.server import ActionServer
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy


class QuietActionServer(ActionServer):  # type: ignore[type-arg]  # generic in later versions only
    """Action server that begins no callback by itself."""

    def notify_execute(self, goal_handle: Any, execute_callback: Callable[[Any], Any] | None) -> None:
        """Run what ends a goal. ``execute()`` of a goal without a callback only says that it is worked on."""
        if execute_callback is not None:
            super().notify_execute(goal_handle, execute_callback)


def no_callback(handle: Any) -> Any:
    """Stand for the callback that such a server is created with; it is never called."""
    raise AssertionError("goals are ended with callbacks of their own")


def give_result(transition: Callable[..., None], result: Any) -> Any:
    """End a goal within its callback, by ``handle.succeed`` or another method; return what the callback has to
    return."""
    # Later versions of rclpy send the result within this call, earlier ones what the callback returns.
    transition(*([result] if inspect.signature(transition).parameters else []))
    return result


def begin_cancelling(handle: Any) -> None:
    """Let a goal be cancelled that nobody has asked to cancel, as controllers do with goals whose place is taken.

    rclpy has no word for it, but the protocol allows ``canceled`` only after that.
    """
    if handle.is_active and not handle.is_cancel_requested:
        handle._update_state(_rclpy.GoalEvent.CANCEL_GOAL)
