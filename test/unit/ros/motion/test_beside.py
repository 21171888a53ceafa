"""Where motions that run are, and what is left of them."""

import tracemalloc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.errors import StartStateError
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.messages.conversions import trajectory_from_message, trajectory_message
from kinopt_ros.ros.motion.beside import begun_by, left_of
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
START = 10**12
HOME = PANDA.default_q[:7]


def running(duration: float) -> Published:
    """A motion of the first joint by 1 rad, which began at START."""
    still = np.zeros((2, 7))
    position = np.array([HOME, HOME + np.eye(7)[0]])
    motion = JointTrajectory(ARM, np.array([0.0, duration]), position, still, still)
    return Published(trajectory_message(motion, "base"), PANDA, START)


def measured(one: Published, after: float, beside: float = 0.0) -> Any:
    """The state of a robot that is so many s in the motion, its second joint elsewhere."""
    q = evaluate(trajectory_from_message(one.message), np.array([after]))[0][0] + beside * np.eye(7)[1]
    states = JointStates()
    state = SimpleNamespace(name=list(ARM), position=q.tolist(), velocity=[0.0] * 7)
    now = START + round(after * 1e9)
    states.update(state, now, now)
    return states.of(PANDA)


@pytest.mark.parametrize("duration", [2.0, 300.0, 1e5, 2e9])
def test_what_is_left_of_a_motion_of_any_length_begins_where_the_robot_is(duration: float) -> None:
    """One of 10^6 s took 8 GB, and its goal was never answered."""
    one = running(duration)
    state = measured(one, 0.4 * duration)
    tracemalloc.start()
    try:
        left, begun = left_of(one, state), begun_by(one, state)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6
    assert left.position[0] == pytest.approx(state.q[:7], abs=0.03)
    assert left.position[-1] == pytest.approx(HOME + np.eye(7)[0])
    assert begun is not None
    assert 0.35 * duration < (begun - START) * 1e-9 <= 0.4 * duration


def test_joints_beside_a_long_motion_are_named() -> None:
    one = running(1e6)
    with pytest.raises(StartStateError, match=r"'panda_joint2' is 0\.05 from the motion"):
        left_of(one, measured(one, 0.4e6, beside=0.05))
