"""Hand-over of work to the thread that serves a node's callbacks, as only that one may touch rclpy's parameters."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from rclpy.node import Node

from kinopt_ros.errors import NotReadyError

_AT_ONCE = 2e-3
"""Time that other callbacks wait for a part of the work, s, at most one step longer."""


class _Work:
    def __init__(self, steps: Iterable[Callable[[], None]]) -> None:
        self.steps: Iterator[Callable[[], None]] = iter(steps)
        self.done = threading.Event()
        self.error: Exception | None = None


class ExecutorThread:
    """Hands work over in small steps, between which other callbacks are served."""

    def __init__(self, node: Node) -> None:
        self._waiting: deque[_Work] = deque()
        self._closed = threading.Event()
        self._guard = node.create_guard_condition(self._go_on)

    def do(self, steps: Iterable[Callable[[], None]]) -> None:
        """Have all steps done, in their order, and wait for that. Not to be called on the executor's thread.

        Raises:
            NotReadyError: the node shuts down meanwhile.
            Exception: what a step has raised; those after it are left out.
        """
        work = _Work(steps)
        self._waiting.append(work)
        self._guard.trigger()
        while not work.done.wait(0.05):
            if self._closed.is_set():
                raise NotReadyError("the node is shutting down")
            self._guard.trigger()  # also if the executor was not there yet
        if work.error is not None:
            raise work.error

    def close(self) -> None:
        """Let nobody wait any more."""
        self._closed.set()

    def _go_on(self) -> None:
        """Do a part of the work on the executor's thread."""
        if not self._waiting:
            return
        work = self._waiting[0]
        end = time.monotonic() + _AT_ONCE
        try:
            for step in work.steps:
                step()
                if time.monotonic() >= end:
                    self._guard.trigger()
                    return
        except Exception as error:  # belongs to who asked for the work
            work.error = error
        self._waiting.popleft()
        work.done.set()
        if self._waiting:
            self._guard.trigger()
