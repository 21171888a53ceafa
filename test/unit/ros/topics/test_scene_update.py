"""Updates of the scene: made in their order, and what is not made is said."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_msgs.msg import SceneOperation, SceneUpdate, Shape
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.ros.requests import scene_changes
from kinopt_ros.ros.topics import scene_update
from kinopt_ros.ros.topics.scene_update import SceneUpdateTopic
from kinopt_ros.status import Status

LONG = 20.0
"""Time that no test waits unless it fails, s."""


class World:
    """A topic whose changes wait for a gate."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []
        self.reports: list[Any] = []
        self.published: list[int] = []
        self.gate = threading.Event()
        self.begun = threading.Event()
        monkeypatch.setattr(scene_changes, "apply", self._apply)
        quiet = SimpleNamespace(warning=lambda text: None, error=pytest.fail)
        context: Any = SimpleNamespace(node=SimpleNamespace(get_logger=lambda: quiet))
        publisher: Any = SimpleNamespace(publish=lambda: self.published.append(len(self.made)))
        self.now = 0.0
        reports = SimpleNamespace(publish=self.reports.append)
        self.topic = SceneUpdateTopic(context, publisher, reports, lambda: self.now)

    def _apply(self, context: Any, update: Any) -> None:
        self.begun.set()
        assert self.gate.wait(LONG)
        name = update.state.header.frame_id
        self.made.append(name)
        if name == "late":
            self.now += 1.0
        if name == "wrong":
            raise InvalidRequestError("wrong")

    def finish(self) -> None:
        """Let all changes be made, and wait for it."""
        self.gate.set()
        self.topic._worker.shutdown(wait=True)


def update(name: Any, numbers: int = 0, operations: int = 1) -> Any:
    made = SceneUpdate(operations=[SceneOperation() for _ in range(operations)])
    made.state.header.frame_id = str(name)
    made.operations[0].object.shapes = [Shape(points=[0.0] * numbers)] if numbers else []
    return made


def test_a_burst_is_made_in_order_and_published_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.topic.take(update("first"))
    assert world.begun.wait(LONG)
    for k in range(1000):
        world.topic.take(update(k))
    world.finish()
    assert world.made == ["first", *map(str, range(1000))]
    assert not world.reports
    assert world.published == [1001]


def test_a_long_burst_is_published_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    for name in ("a", "late", "b", "c"):
        world.topic.take(update(name))
    world.finish()
    assert world.published == [2, 4]


def test_what_finds_no_room_is_said_in_one_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene_update, "MOST_WAITING", 10)
    world = World(monkeypatch)
    world.topic.take(update("first"))
    assert world.begun.wait(LONG)
    for k in range(25):
        world.topic.take(update(k))
    world.finish()
    assert world.made == ["first", *map(str, range(10))]
    (report,) = world.reports
    assert report.status.code == Status.QUEUE_FULL
    assert report.status.message.startswith("15 scene updates were refused")


def test_large_updates_find_less_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene_update, "MOST_BYTES", 10_000)
    world = World(monkeypatch)
    world.topic.take(update("first"))
    assert world.begun.wait(LONG)
    # A single one may be as large as a message can be.
    for name, numbers in (("huge", 2000), ("small", 1), ("next", 0)):
        world.topic.take(update(name, numbers))
    world.finish()
    assert world.made == ["first", "huge"]
    assert world.reports[0].status.message.startswith("2 scene updates were refused")


def test_what_the_middleware_loses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.topic.lost(SimpleNamespace(total_count_change=3))
    world.finish()
    (report,) = world.reports
    assert report.status.code == Status.QUEUE_FULL
    assert report.status.message.startswith("3 scene updates were lost on the way")


def test_a_wrong_update_is_reported_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    for name in ("wrong", "right"):
        world.topic.take(update(name))
    world.finish()
    assert world.made == ["wrong", "right"]
    assert [report.status.message for report in world.reports] == ["wrong"]


def test_operations_and_texts_take_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene_update, "MOST_BYTES", 1_000_000)
    world = World(monkeypatch)
    world.topic.take(update("first"))
    assert world.begun.wait(LONG)
    long = update("text")
    long.operations[0].object.id = "x" * 900_000
    many, last = update("many", operations=1000), update("last", operations=500)
    for each in (long, many, last):
        world.topic.take(each)
    assert (many.operations, last.operations) == ([], [])  # let go of
    world.finish()
    assert world.made == ["first", "text"]
    assert world.reports[0].status.message.startswith("2 scene updates were refused")


def test_too_many_operations_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.topic.take(update("first"))
    assert world.begun.wait(LONG)
    many = SceneUpdate(operations=[SceneOperation()] * 10_001)
    world.topic.take(many)
    world.topic.take(update("next"))
    assert many.operations == []
    assert world.topic._bytes < 100_000
    world.finish()
    assert world.made == ["first", "next"]
    (report,) = world.reports
    assert report.status.code == Status.INVALID_REQUEST
    assert report.status.message == "10001 operations were given; allowed are 1 to 10000"


def test_updates_of_all_kinds_are_made_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(message: Any) -> None:
        if message == "bad":
            raise InvalidRequestError("not even looked at")

    def apply(context: Any, message: str) -> None:
        del context
        world.made.append(message)
        if message == "odd":
            raise InvalidRequestError("odd")

    world = World(monkeypatch)
    kind = scene_update.Kind("other_topic", refuse, apply)
    world.topic.take(update("first"))
    assert world.begun.wait(LONG)
    for name in ("a", "bad", "odd"):
        world.topic.take(name, kind)
        world.topic.take(update(f"after {name}"))
    world.finish()
    assert world.made == ["first", "a", "after a", "after bad", "odd", "after odd"]
    assert [report.status.message for report in world.reports] == ["not even looked at", "odd"]
