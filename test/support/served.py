"""A node that is served as the project's is: urgent callbacks, and topics of the scene, on threads of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from kinopt_ros.ros.serving.urgent import RestExecutor, SceneExecutor, UrgentExecutor

LONG = 60.0
"""Time that no test waits unless it fails, s."""


class Served:
    """A node with its executors on threads of their own, and a client."""

    def __init__(self, name: str) -> None:
        self.node = Node(name)
        self.urgent = UrgentExecutor(self.node)
        self.scenes = SceneExecutor(self.node)
        self.rest = RestExecutor(self.node, self.urgent, self.scenes)
        self.client = Node(f"{name}_client")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.client)
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._serve, args=(executor,))
            for executor in (self.rest, self.urgent, self.scenes)
        ]

    def _serve(self, executor: SingleThreadedExecutor) -> None:
        while not self._over.is_set():
            executor.spin_once(timeout_sec=0.1)

    def start(self) -> None:
        """Serve from now on."""
        for thread in self._threads:
            thread.start()

    def until(self, condition: Callable[[], Any]) -> None:
        """Let the client hear until a condition holds."""
        end = time.monotonic() + LONG
        while not condition():
            assert time.monotonic() < end
            self._executor.spin_once(timeout_sec=0.05)

    def pause(self, seconds: float) -> None:
        """Let the client hear for some time."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end)

    def close(self) -> None:
        """End all."""
        self._over.set()
        for thread in self._threads:
            if thread.is_alive():  # a test may fail before
                thread.join()
        for executor in (self.rest, self.urgent, self.scenes, self._executor):
            executor.shutdown(timeout_sec=0.0)
        self.node.destroy_node()
        self.client.destroy_node()


class Gate:
    """A callback that lasts until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()

    def pass_through(self, *given: Any) -> Any:
        self.entered.set()
        assert self.open.wait(LONG)
        return given[-1] if given else None
