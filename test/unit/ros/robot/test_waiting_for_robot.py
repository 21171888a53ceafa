"""A node without a description says what it waits for, and not all the time."""

from typing import Any

import pytest

pytest.importorskip("rclpy")

from kinopt_ros.ros.robot.waiting_for_robot import WaitingForRobot


class FakeNode:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.publishers = 0
        self.running = True

    def create_timer(self, period: float, callback: Any, clock: Any) -> "FakeNode":
        return self

    def cancel(self) -> None:
        self.running = False

    def resolve_topic_name(self, name: str) -> str:
        return f"/left/{name}"

    def count_publishers(self, topic: str) -> int:
        return self.publishers

    def get_logger(self) -> "FakeNode":
        return self

    def warning(self, sentence: str) -> None:
        self.said.append(sentence)


class FakeDescription:
    is_there = False


def test_it_is_said_soon_and_then_rarely() -> None:
    node, description = FakeNode(), FakeDescription()
    waiting = WaitingForRobot(node, description)  # type: ignore[arg-type]
    waiting.look()
    assert len(node.said) == 1
    assert "/left/robot_description" in node.said[0]
    assert "published by nobody" in node.said[0]
    for _ in range(719):  # an hour
        waiting.look()
    assert 3 <= len(node.said) <= 9
    node.publishers = 1
    for _ in range(720):
        waiting.look()
    assert "latched" in node.said[-1]
    assert "nobody" not in node.said[-1]


def test_with_a_description_nothing_is_said() -> None:
    node, description = FakeNode(), FakeDescription()
    waiting = WaitingForRobot(node, description)  # type: ignore[arg-type]
    description.is_there = True
    waiting.look()
    assert not node.said
    assert not node.running
