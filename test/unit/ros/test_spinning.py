"""Tests of how a process of nodes ends."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.ros import spinning

LONG = 20.0
"""Time that no test waits unless it fails, s."""


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
        self.woken.clear()


def test_motions_are_ended_while_a_callback_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = SimpleNamespace(collect=lambda: None)
    monkeypatch.setattr(spinning, "_Garbage", lambda: collector)
    monkeypatch.setattr(spinning.rclpy, "ok", lambda: True)
    ended = threading.Event()
    seen: list[bool] = []
    urgent = Executor(lambda executor: executor.woken.wait(LONG))
    node: Any = SimpleNamespace(urgent=urgent, end_motions=ended.set, ending=False, moving=[], watches=False)
    running = spinning._Running()

    def at_work(executor: Any) -> None:
        running.stop()
        assert node.ending
        seen.append(ended.wait(LONG))

    running._nodes = [node]
    rest: Any = Executor(at_work)
    running._executors = [rest, urgent]
    running.spin()
    assert seen == [True]


def test_controllers_are_heard_while_a_callback_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A motion that its controller has not taken yet can be cancelled only when the answer is read."""
    collector = SimpleNamespace(collect=lambda: None)
    monkeypatch.setattr(spinning, "_Garbage", lambda: collector)
    monkeypatch.setattr(spinning, "STOP_SECONDS", LONG)
    monkeypatch.setattr(spinning.rclpy, "ok", lambda: True)
    ended, told = threading.Event(), threading.Event()
    seen: list[bool] = []

    def urgent_spin(executor: Executor) -> None:
        if not ended.is_set():
            executor.woken.wait(LONG)
        elif not executor.woken.is_set():  # interrupted, it takes nothing
            node.moving = []
            told.set()

    urgent = Executor(urgent_spin)
    node: Any = SimpleNamespace(
        urgent=urgent, end_motions=ended.set, ending=False, moving=["/arm/follow"], watches=False
    )
    running = spinning._Running()

    def at_work(executor: Any) -> None:
        running.stop()
        seen.append(told.wait(LONG))

    running._nodes = [node]
    rest: Any = Executor(at_work)
    running._executors = [rest, urgent]
    running.spin()
    assert seen == [True]


def test_garbage_is_put_off_while_much_waits_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[float] = []
    clock = SimpleNamespace(now=0.0, blocks=1_000_000)
    collector = SimpleNamespace(
        set_threshold=lambda *numbers: None,
        get_count=lambda: (0, 1, 0),
        collect=lambda: times.append(clock.now),
        freeze=lambda: None,
    )
    monkeypatch.setattr(spinning, "gc", collector)
    monkeypatch.setattr(spinning, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(spinning.sys, "getallocatedblocks", lambda: clock.blocks)
    garbage = spinning._Garbage()

    def until(end: float) -> list[float]:
        times.clear()
        while clock.now < end:
            clock.now += 1.0
            garbage.collect()
        return times

    assert until(40.0) == [10.0, 20.0, 30.0, 40.0]
    clock.blocks += 2 * spinning._MANY_BLOCKS  # large requests wait
    assert until(99.0) == []
    assert until(100.0) == [100.0]
    clock.blocks -= spinning._MANY_BLOCKS  # some of them are done
    assert until(130.0) == [110.0, 120.0, 130.0]
    clock.blocks += 2 * spinning._MANY_BLOCKS
    assert until(150.0) == []
