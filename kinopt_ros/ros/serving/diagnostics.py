"""Diagnostics on /diagnostics: how the node, its services and its solvers are doing, once per second."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.node import Node

from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.scheduler import Scheduler
from kinopt_ros.planning.statistics import Percentiles, Statistics, Summary
from kinopt_ros.ros.context import Context
from kinopt_ros.solvers.registry import list_solvers
from kinopt_ros.status import Status

PERIOD = 1.0
"""Period of messages, s."""
_OK, _WARN, _ERROR = b"\x00", b"\x01", b"\x02"
_BUSY = 0.5
"""Share of the queue that may be full before that is a warning."""
_DEFECTS = (Status.FAILURE, Status.VERIFICATION_FAILED)
"""Codes of answers that nobody should ever see."""


def create_diagnostics(
    node: Node, context: Context, scheduler: Scheduler, statistics: Statistics, found: Callable[[], str]
) -> "Diagnostics | None":
    """Publish diagnostics from now on; None, and a line in the log, where diagnostic_msgs is not installed. ``found``:
    returns what the watches of the node have found; empty if all is well."""
    try:
        messages: Any = importlib.import_module("diagnostic_msgs.msg")
    except ImportError:
        node.get_logger().info("diagnostic_msgs is not installed: /diagnostics is not published")
        return None
    return Diagnostics(node, context, scheduler, statistics, found, messages)


class Diagnostics:
    """Publishes diagnostic_msgs/DiagnosticArray."""

    def __init__(
        self,
        node: Node,
        context: Context,
        scheduler: Scheduler,
        statistics: Statistics,
        found: Callable[[], str],
        messages: Any,
    ) -> None:
        self._node = node
        self._context = context
        self._scheduler = scheduler
        self._statistics = statistics
        self._found = found
        self._messages = messages
        self._publisher = node.create_publisher(messages.DiagnosticArray, "/diagnostics", 10)
        self._timer = node.create_timer(PERIOD, self._publish)

    def _publish(self) -> None:
        array = self._messages.DiagnosticArray()
        array.header.stamp = self._node.get_clock().now().to_msg()
        array.status = [self._of_node()]
        for name in self._statistics.names():
            if not name.startswith("solver "):
                array.status.append(self._of_requests(f"~/{name}", self._statistics.summary(name)))
        for info in list_solvers():
            summary = self._statistics.summary(f"solver {info.name}")
            status = self._of_requests(f"solver {info.name}", summary)
            reason = info.unavailable_reason or self._context.trouble(info.name)
            if reason is not None:
                status.message = f"not available: {reason}"
            elif remark := self._context.remark(info.name):
                status.message += f"; {remark}"
            array.status.append(status)
        self._publisher.publish(array)

    def _of_node(self) -> Any:
        quick, slow = self._scheduler.waiting
        capacity = self._scheduler.capacity
        values: dict[str, Any] = {
            "waiting for a first try": quick,
            "waiting in the slow lane": slow,
            "queue_size": capacity,
        }
        try:
            robot = self._context.loaded.model
        except KinoptError as error:
            return self._status("node", _WARN, f"no robot: {error}", values)
        values["robot"] = robot.name
        state = self._context.joint_states.of(robot)
        values["joints with a state"] = f"{int(state.known.sum())} of {robot.nq}"
        if state.known.any():
            values["age of the oldest joint state (s)"] = f"{float(np.max(state.age[state.known])):.3f}"
            values["latest after its stamp (s)"] = f"{float(np.max(state.late[state.known])):.3f}"
        if quick + slow > _BUSY * capacity:
            return self._status("node", _WARN, f"{quick + slow} requests are waiting", values)
        if found := self._found():
            return self._status("node", _WARN, found, values)
        return self._status("node", _OK, f"serves robot {robot.name!r}", values)

    def _of_requests(self, name: str, summary: Summary) -> Any:
        values: dict[str, Any] = {"requests": summary.requests}
        level, message = _OK, "no request yet"
        if summary.requests:
            succeeded = summary.codes.get(int(Status.SUCCESS), 0)
            nearest = summary.codes.get(int(Status.NEAREST), 0)  # as asked, but no successes
            if summary.requests > nearest:
                values["success rate"] = f"{succeeded / (summary.requests - nearest):.4f}"
            message = f"{succeeded} of {summary.requests} succeeded"
            if nearest:
                message += f", {nearest} came as near as possible"
            values |= _times("time", summary.wall) | _times("queue time", summary.queue)
            values |= {f"answers {_code_name(code)}": count for code, count in sorted(summary.codes.items())}
            values |= {f"fallback: {reason}": count for reason, count in sorted(summary.reasons.items())}
            if summary.recent.get(int(Status.QUEUE_FULL), 0) or summary.recent_fallbacks:
                level = _WARN
            if any(summary.recent.get(int(code), 0) for code in _DEFECTS):
                level = _ERROR
        return self._status(name, level, message, values)

    def _status(self, name: str, level: bytes, message: str, values: dict[str, Any]) -> Any:
        pairs = [self._messages.KeyValue(key=key, value=str(value)) for key, value in values.items()]
        return self._messages.DiagnosticStatus(
            level=level,
            name=f"{self._node.get_name()}: {name}",
            message=message,
            hardware_id=self._node.get_fully_qualified_name(),
            values=pairs,
        )


def _times(what: str, times: Percentiles | None) -> dict[str, str]:
    if times is None:
        return {}
    return {
        f"{what} {name} (ms)": f"{1e3 * value:.3f}"
        for name, value in (("p50", times.p50), ("p95", times.p95), ("p99", times.p99))
    }


def _code_name(code: int) -> str:
    try:
        return Status(code).name
    except ValueError:
        return str(code)
