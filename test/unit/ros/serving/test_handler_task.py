"""Requests that need collision checks wait for them beside the lanes: no thread waits for a compiler."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy")

from kinopt_ros.planning.scheduler import Scheduler
from kinopt_ros.ros.serving.handler_task import HandlerTask
from kinopt_ros.solvers.readiness import PreparingError

LONG = 60.0
"""Time that no test waits unless it fails, s."""


class Reply:
    """Keeps the answer."""

    def __init__(self) -> None:
        self.there = threading.Event()
        self.answer: Any = None
        self.queue_time = 0.0

    def response(self) -> Any:
        return SimpleNamespace()

    def send(self, response: Any) -> None:
        self.answer = response
        self.there.set()

    refuse = send


class Pool:
    """Prepares collision checks until it is told that they are ready."""

    def __init__(self) -> None:
        self.ready = False
        self.patient = True

    def must_wait(self, collisions: bool, motions: bool, until: float) -> bool:
        assert (collisions, motions) == (True, False)
        return not self.ready and self.patient

    def check_prepared(self, collisions: bool, motions: bool) -> None:
        if not self.ready:
            raise PreparingError("collision checks are being prepared", "try again soon")


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    one = Scheduler(quick_threads=1, slow_threads=1, capacity=10)
    yield one
    one.close()


def task(handled: list[str], name: str, reply: Reply, pool: Pool | None = None) -> HandlerTask:
    def of() -> Any:
        return pool

    given: Any = reply
    asked = None if pool is None else of
    return HandlerTask(lambda request, response: handled.append(name), name, given, True, asked, LONG)


def test_nobody_else_waits_for_what_is_being_prepared(scheduler: Scheduler) -> None:
    """Two requests of ~/check_state right after the start kept all threads for long requests busy, for minutes."""
    pool, handled, replies = Pool(), list[str](), [Reply() for _ in range(5)]
    for number, reply in enumerate(replies[:4]):
        scheduler.submit(task(handled, f"check {number}", reply, pool))
    scheduler.submit(task(handled, "other", replies[4]))
    assert replies[4].there.wait(LONG)
    assert handled == ["other"]
    pool.ready = True
    assert all(reply.there.wait(LONG) for reply in replies)
    assert sorted(handled) == [*(f"check {number}" for number in range(4)), "other"]


def test_who_has_waited_long_enough_is_told_so(scheduler: Scheduler) -> None:
    pool, handled, reply = Pool(), list[str](), Reply()
    scheduler.submit(task(handled, "check", reply, pool))
    assert not reply.there.wait(0.1)
    pool.patient = False
    assert reply.there.wait(LONG)
    assert isinstance(reply.answer, PreparingError)
    assert handled == []


def test_the_checks_of_the_robot_that_is_judged_are_waited_for(scheduler: Scheduler) -> None:
    """A description that came while a request of ~/check_state waited was judged before it was prepared: a thread
    compiled."""
    before, after, handled, reply = Pool(), Pool(), list[str](), Reply()
    in_service = [before]

    def pool() -> Any:
        return in_service[-1]

    given: Any = reply
    scheduler.submit(
        HandlerTask(lambda request, response: handled.append("check"), None, given, True, pool, LONG)
    )
    in_service.append(after)
    before.ready = True
    assert not reply.there.wait(0.2)
    assert handled == []
    after.ready = True
    assert reply.there.wait(LONG)
    assert handled == ["check"]
