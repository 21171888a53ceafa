"""Whether joints go on that were to be stopped."""

from types import SimpleNamespace
from typing import Any

import pytest

from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion.paces import Paces
from kinopt_ros.ros.robot.joint_states import JointStates

PANDA = load_robot("panda")
ARM = list(range(7))
NAMES = [f"panda_joint{i + 1}" for i in range(7)]
BEGIN = 10**15
MS = 10**6


def state(after: int, speed: float, late: int = 0) -> Any:
    """A robot so many ms later whose first joint is so fast; ``late``: of its joint states, ms."""
    states = JointStates()
    said = SimpleNamespace(
        name=NAMES, position=PANDA.default_q[:7].tolist(), velocity=[speed, *[0.1 * speed] * 6]
    )
    now = BEGIN + after * MS
    states.update(said, now - late * MS, now)
    return states.of(PANDA)


@pytest.mark.parametrize("speed", [-1.0, 0.05, 1.0])
@pytest.mark.parametrize(
    ("share", "kept"), [(1.5, True), (1.0, True), (0.95, True), (0.85, False), (0.0, False)]
)
def test_what_is_not_stopped_keeps_its_pace(speed: float, share: float, kept: bool) -> None:
    paces = Paces(PANDA, state(0, speed), BEGIN, 0.2)
    assert paces.are_kept(ARM, state(300, share * speed), BEGIN + 300 * MS) is kept
    assert paces.are_kept([0, 3], state(300, share * speed), BEGIN + 300 * MS) is kept


def test_what_begins_later_goes_on() -> None:
    assert Paces(PANDA, state(0, 0.0), BEGIN, 0.2).are_kept(ARM, state(300, 0.1), BEGIN + 300 * MS)


def test_noise_is_no_pace() -> None:
    assert not Paces(PANDA, state(0, 0.0), BEGIN, 0.2).are_kept(ARM, state(300, 0.02), BEGIN + 300 * MS)


def test_what_was_measured_before_says_nothing() -> None:
    paces = Paces(PANDA, state(0, 1.0), BEGIN, 0.2)
    assert not paces.are_kept(ARM, state(300, 1.0, late=150), BEGIN + 300 * MS)
    assert not paces.are_kept(ARM, state(150, 1.0), BEGIN + 150 * MS)
