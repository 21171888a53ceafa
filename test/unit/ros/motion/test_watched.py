"""Motions that nobody waits for."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.ros.messages.conversions import status_message
from kinopt_ros.ros.motion import watched as module
from kinopt_ros.ros.motion.watched import WatchedMotions
from kinopt_ros.status import Status

PATIENCE = 30.0


class Log:
    """Remembers errors."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def error(self, text: str, **options: Any) -> None:
        self.errors.append(text)


class Run:
    """A motion that goes on until it is stopped."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self.status: Any = status_message(Status.SUCCESS)

    def stop(self, status: Status, sentence: str) -> None:
        if not self._stopped.is_set():
            self.status = status_message(status, sentence)
        self._stopped.set()

    def watch(self) -> Any:
        assert self._stopped.wait(PATIENCE)
        return self.status


def test_motions_are_watched_at_the_same_time_and_their_ends_told() -> None:
    ended: dict[int, Any] = {}
    all_ended = threading.Event()
    watched = WatchedMotions(Log(), None)

    def end(number: int, status: Any) -> None:
        ended[number] = status.code
        if len(ended) == 3:
            all_ended.set()

    runs: list[Any] = [Run() for _ in range(3)]
    for number, run in enumerate(runs):
        watched.begin(run, lambda status, number=number: end(number, status))
    runs[1].stop(Status.ENVIRONMENT_CHANGED, "a box has come")
    watched.close()  # the others, too
    assert all_ended.wait(PATIENCE)
    assert ended == {0: Status.PREEMPTED, 1: Status.ENVIRONMENT_CHANGED, 2: Status.PREEMPTED}
    late: Any = Run()
    told = threading.Event()
    watched.begin(late, lambda status: told.set())
    assert told.wait(PATIENCE)
    assert late.status.code == Status.PREEMPTED


def test_who_is_told_an_end_and_fails_is_logged() -> None:
    log, run = Log(), Run()
    watched = WatchedMotions(log, None)

    def fails(status: Any) -> None:
        raise RuntimeError("a defect")

    motion: Any = run
    watched.begin(motion, fails)
    watched.close()
    assert any("a defect" in text for text in log.errors)


def test_what_no_thread_can_watch_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Thread:
        def __init__(self, **options: Any) -> None:
            """Cannot be started."""

        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module.threading, "Thread", Thread)
    run: Any = Run()
    ends: list[Any] = []
    WatchedMotions(Log(), None).begin(run, ends.append)
    [status] = ends
    assert status.code == Status.FAILURE
    assert "the robot brakes" in status.message
