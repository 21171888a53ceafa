"""The newest value of every joint, of one publisher or several."""

import time

import numpy as np
import pytest

pytest.importorskip("sensor_msgs", reason="ROS messages are not installed")

from sensor_msgs.msg import JointState

from kinopt_ros.conformance.robots import six_revolute
from kinopt_ros.errors import InvalidStateError, StaleStateError
from kinopt_ros.ros.robot.joint_states import JUMP_SECONDS, JointStates

ROBOT = six_revolute()
ALL = np.arange(6)


def test_parts_of_several_publishers_are_put_together() -> None:
    states = JointStates()
    states.update(JointState(name=["j6", "j1", "j2"], position=[0.6, 0.1, 0.2], velocity=[6.0, 1.0, 2.0]))
    states.update(JointState(name=["j3", "j4", "gripper"], position=[0.3, 0.4, 7.0]))
    state = states.of(ROBOT)
    np.testing.assert_array_equal(state.q, [0.1, 0.2, 0.3, 0.4, ROBOT.default_q[4], 0.6])
    np.testing.assert_array_equal(state.velocity, [1.0, 2.0, 0.0, 0.0, 0.0, 6.0])
    assert state.known.tolist() == [True, True, True, True, False, True]


def test_unknown_joints_are_named() -> None:
    states = JointStates()
    states.update(JointState(name=["j1"], position=[0.0]))
    with pytest.raises(InvalidStateError, match="j2, j3, j4, j5, j6"):
        states.of(ROBOT).require_known(ALL, ROBOT)
    states.of(ROBOT).require_known(np.array([0]), ROBOT)


def test_old_values_are_stale_and_never_received_ones_are_not() -> None:
    states = JointStates()
    states.of(ROBOT).require_fresh(ALL, ROBOT, 0.01)
    states.update(JointState(name=["j1"], position=[0.0]))
    time.sleep(0.05)
    with pytest.raises(StaleStateError, match="j1"):
        states.of(ROBOT).require_fresh(ALL, ROBOT, 0.01)
    states.of(ROBOT).require_fresh(ALL, ROBOT, 10.0)
    states.of(ROBOT).require_fresh(ALL[1:], ROBOT, 0.01)


@pytest.mark.parametrize(
    "broken",
    [
        JointState(name=["j1", "j2"], position=[0.0]),
        JointState(name=["j1"], position=[0.0], velocity=[0.0, 0.0]),
        JointState(name=["j1"], position=[float("nan")]),
    ],
)
def test_a_broken_message_changes_nothing(broken: JointState) -> None:
    states = JointStates()
    states.update(JointState(name=["j1"], position=[0.5]))
    with pytest.raises(InvalidStateError):
        states.update(broken)
    assert states.of(ROBOT).q[0] == 0.5


def test_a_joint_without_a_position_does_not_take_the_others_along() -> None:
    states = JointStates()
    with pytest.raises(InvalidStateError, match="j2"):
        states.update(JointState(name=["j1", "j2"], position=[0.5, float("nan")]))
    assert states.of(ROBOT).known.tolist() == [True, False, False, False, False, False]


def test_velocities_that_nobody_measures_are_none() -> None:
    states = JointStates()
    states.update(JointState(name=["j1", "j2"], position=[0.1, 0.2], velocity=[float("nan"), 0.3]))
    np.testing.assert_array_equal(states.of(ROBOT).velocity[:2], [0.0, 0.3])


def test_a_flood_of_names_does_not_push_living_joints_out() -> None:
    states = JointStates()
    own = JointState(name=[f"j{i + 1}" for i in range(6)], position=[0.1] * 6)
    states.update(own)
    states.update(JointState(name=[f"x{i}" for i in range(9_998)], position=[0.0] * 9_998))
    states.update(own)
    states.update(JointState(name=["y1", "y2", "y3"], position=[0.0] * 3))
    assert states.of(ROBOT).known.all()


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (JointState(name=["j1", "j2", "j1"], position=[0.1, 0.2, 0.3]), "joint state names 'j1' twice"),
        (
            JointState(name=[f"x{i}" for i in range(10_001)], position=[0.0] * 10_001),
            "10001 names; at most 10000",
        ),
        (JointState(name=["x" * 10**6], position=[0.0]), "1000000 characters"),
    ],
    ids=["twice", "many", "long"],
)
def test_names_that_are_no_names_of_a_robot_change_nothing(message: JointState, why: str) -> None:
    states = JointStates()
    states.update(JointState(name=["j1"], position=[0.5]))
    with pytest.raises(InvalidStateError, match=why) as caught:
        states.update(message)
    assert len(str(caught.value)) < 1_000
    assert states.of(ROBOT).q[0] == 0.5
    assert not states.of(ROBOT).known[1]


@pytest.mark.parametrize("far", [1.0, -1e308])
def test_a_position_that_jumps_is_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch, far: float) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    states = JointStates()
    for position in (-far, far, far, far):
        states.update(JointState(name=["j1", "j2"], position=[position, 0.01 * now[0]]))
        now[0] += 0.02
    state = states.of(ROBOT)
    assert state.fastest[0] > 10.0
    assert state.fastest[1] < 0.01
    now[0] += JUMP_SECONDS
    assert states.of(ROBOT).fastest[0] == 0.0


def test_turns_are_no_jumps() -> None:
    states = JointStates()
    for position in (3.14, -3.14):
        states.update(JointState(name=["j1"], position=[position]))
    assert states.of(ROBOT).fastest[0] < 0.1
