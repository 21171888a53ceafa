"""How fast joints go in a motion that was to be stopped."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.messages.conversions import trajectory_from_message, trajectory_message
from kinopt_ros.ros.motion.paces import Paces
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.timing import point_to_point

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
START = 10**15
STOPPED = 1.0
"""When the motion was to be stopped, s."""


def running() -> Published:
    """A motion of 3 s by the first joint, whose others hardly move."""
    begin = PANDA.default_q[:7]
    limits = (np.full(7, value) for value in (0.5, 1.0, 10.0))
    return Published(
        trajectory_message(point_to_point(ARM, begin, begin + 1.2 * np.eye(7)[0], *limits), "base"),
        PANDA,
        START,
    )


def state(one: Published, seconds: float, share: float, late: float = 0.0) -> Any:
    """The state of a robot that goes with a share of its velocity."""
    _, velocity, _ = evaluate(trajectory_from_message(one.message), np.array([seconds]))
    states = JointStates()
    said = SimpleNamespace(
        name=list(ARM), position=PANDA.default_q[:7].tolist(), velocity=(share * velocity[0]).tolist()
    )
    now = START + round(1e9 * seconds)
    states.update(said, now, now + round(1e9 * late))
    return states.of(PANDA)


@pytest.mark.parametrize("slider", [1.0, 0.3])
@pytest.mark.parametrize(("share", "kept"), [(1.0, True), (0.95, True), (0.85, False), (0.0, False)])
def test_what_is_not_stopped_keeps_its_pace(slider: float, share: float, kept: bool) -> None:
    one = running()
    paces = Paces(one, state(one, STOPPED, slider), START + round(1e9 * STOPPED))
    then = state(one, STOPPED + 0.3, slider * share)
    assert paces.are_kept(ARM, then, START + round(1e9 * (STOPPED + 0.3)), 0.2) is kept
    assert not paces.are_kept(ARM[1:], then, START + round(1e9 * (STOPPED + 0.3)), 0.2)
    assert not paces.are_kept([], then, START + round(1e9 * (STOPPED + 0.3)), 0.2)


def test_what_was_measured_before_says_nothing() -> None:
    one = running()
    now = START + round(1e9 * (STOPPED + 0.3))
    paces = Paces(one, state(one, STOPPED, 1.0), START + round(1e9 * STOPPED))
    assert not paces.are_kept(ARM, state(one, STOPPED + 0.1, 1.0, late=0.2), now, 0.2)


def test_at_its_end_a_motion_is_at_rest_anyway() -> None:
    one = running()
    end = one.end * 1e-9 - START * 1e-9
    paces = Paces(one, state(one, end - 0.3, 1.0), START + round(1e9 * (end - 0.3)))
    assert not paces.are_kept(ARM, state(one, end - 0.02, 1.0), START + round(1e9 * (end - 0.02)), 0.2)
