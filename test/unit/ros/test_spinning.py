"""How a process of nodes ends."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.ros import spinning

LONG = 20.0
"""s that no test waits unless it fails."""


class Executor:
    """Spins as a test says."""

    def __init__(self, spin_once: Any) -> None:
        self._spin_once = spin_once
        self.woken = threading.Event()

    def spin_once(self, timeout_sec: float) -> None:
        self._spin_once(self)

    def interrupt(self) -> None:
        self.woken.set()

    def go_on(self) -> None:
        pass


def test_motions_are_ended_while_a_callback_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = SimpleNamespace(collect=lambda: None)
    monkeypatch.setattr(spinning, "_Garbage", lambda: collector)
    monkeypatch.setattr(spinning.rclpy, "ok", lambda: True)
    ended = threading.Event()
    seen: list[bool] = []
    urgent = Executor(lambda executor: executor.woken.wait(LONG))
    node: Any = SimpleNamespace(urgent=urgent, end_motions=ended.set, ending=False)
    running = spinning._Running()

    def at_work(executor: Any) -> None:
        running.stop(15, None)
        assert node.ending
        seen.append(ended.wait(LONG))

    running._nodes = [node]
    rest: Any = Executor(at_work)
    running._executors = [rest, urgent]
    running.spin()
    assert seen == [True]
