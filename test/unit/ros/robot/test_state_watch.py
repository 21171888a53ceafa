"""Drivers whose clock is behind, or whose velocities are wrong, are told of: stops are worse by it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from sensor_msgs.msg import JointState

from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.robot.state_watch import LOOKS, SAY_SECONDS, StateWatch

PANDA = load_robot("panda")
NAMES = [f"panda_joint{i + 1}" for i in range(7)]
SECOND = 10**9


class Watched:
    """A node that hears joint states, some of them late, and what it logs."""

    def __init__(self) -> None:
        self.said: list[tuple[str, float]] = []
        self.states = JointStates()
        self.now = 1000 * SECOND

        def warning(sentence: str, throttle_duration_sec: float) -> None:
            self.said.append((sentence, throttle_duration_sec))

        node = SimpleNamespace(
            get_logger=lambda: SimpleNamespace(warning=warning), create_timer=lambda *_, **__: None
        )
        loader = SimpleNamespace(is_ready=True, loaded=SimpleNamespace(model=PANDA))
        context: Any = SimpleNamespace(node=node, loader=loader, joint_states=self.states)
        self.clock: Any = SimpleNamespace(set_ahead=0.0, look=lambda: None)
        self.watch = StateWatch(context, self.clock)

    def hear(self, late: float, looks: int = 1) -> None:
        for _ in range(looks):
            self.now += SECOND
            self.states.update(
                JointState(name=NAMES, position=[0.0] * 7), self.now - round(late * SECOND), self.now
            )
            self.watch.look()


@pytest.mark.parametrize("late", [0.11, 0.3, 0.49])
def test_a_clock_that_is_behind_is_told_with_what_follows(late: float) -> None:
    node = Watched()
    node.hear(late, LOOKS - 1)
    assert not node.said
    node.hear(late)
    ((sentence, seconds),) = node.said
    assert sentence.startswith("joint_states:")
    assert f"{late:.2f} s" in sentence
    assert "emergency stop" in sentence
    assert "0.1 s later" in sentence
    assert seconds == SAY_SECONDS
    assert node.watch.sentence in sentence
    node.hear(0.01)
    assert not node.watch.sentence
    assert len(node.said) == 1


@pytest.mark.parametrize("late", [-0.3, 0.0, 0.05, 0.6, 1e6])
def test_clocks_that_agree_or_are_others_are_not_told_of(late: float) -> None:
    node = Watched()
    node.hear(late, 5 * LOOKS)
    assert not node.said


@pytest.mark.parametrize(("ahead", "way"), [(2.5, "set ahead by 2.50 s"), (-0.3, "set back by 0.30 s")])
def test_a_clock_that_was_set_is_told(ahead: float, way: str) -> None:
    node = Watched()
    node.clock.set_ahead = ahead
    node.hear(0.01)
    ((sentence, _),) = node.said
    assert way in sentence
    assert node.watch.sentence in sentence
    node.clock.set_ahead = 0.0
    node.hear(0.01)
    assert not node.watch.sentence


def test_one_that_was_late_now_and_then_says_nothing() -> None:
    node = Watched()
    for _ in range(3):
        node.hear(0.3, LOOKS - 1)
        node.hear(0.01)
    assert not node.said


def test_nor_does_one_that_has_stopped() -> None:
    node = Watched()
    node.hear(0.3)
    for _ in range(5 * LOOKS):
        node.watch.look()
    assert not node.said


def test_nor_does_one_that_was_late_before_it_stopped() -> None:
    """Its last state was told to be late for ever."""
    node = Watched()
    node.hear(0.3, LOOKS)
    assert len(node.said) == 1
    for _ in range(LOOKS - 1):  # it may publish less often than is looked
        node.watch.look()
    assert node.watch.sentence
    said = len(node.said)
    for _ in range(LOOKS):
        node.watch.look()
        assert not node.watch.sentence
    assert len(node.said) == said
    node.hear(0.3, LOOKS - 1)
    assert not node.watch.sentence  # it begins anew
    node.hear(0.3)
    assert node.watch.sentence


def test_velocities_in_another_unit_are_told_with_what_follows() -> None:
    node = Watched()
    for k in range(100):
        node.states.update(
            JointState(name=NAMES, position=7 * [0.002 * k], velocity=7 * [0.5 * 57.3]),
            node.now + k * SECOND // 250,
            node.now + k * SECOND // 250,
        )
    node.watch.look()
    ((sentence, _),) = node.said
    assert sentence.startswith("joint_states: velocities of panda_joint1, panda_joint2, panda_joint3, ...")
    assert "panda_joint1 moves 0.017 times as fast" in sentence
    assert "rad/s" in sentence
