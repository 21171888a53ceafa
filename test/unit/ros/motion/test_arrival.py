"""Whether robots are where controllers say to have brought them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.errors import StaleStateError, StartStateError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.motion.arrival import check_at_end, missed, off_end
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import JointStates

PANDA = load_robot("panda")
NAMES = ["panda_joint1", "panda_joint7", "panda_finger_joint1"]
WHEEL = robot_from_urdf(
    """<robot name="r"><link name="a"/><link name="b"/>
    <joint name="wheel" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>"""
)


def said(measured: dict[str, float], ends: dict[str, float], robot: RobotModel = PANDA, **change: Any) -> str:
    states = JointStates()
    states.update(JointState(name=list(measured), position=list(measured.values())), 0, 0)
    point = JointTrajectoryPoint(positions=list(ends.values()))
    one = Published(JointTrajectory(joint_names=list(ends), points=[point]), robot, 0)
    return missed(one, **{"joints": list(ends), "state": states.of(robot), "tolerance": 0.1, **change})


def test_the_joint_that_is_farthest_away_is_named() -> None:
    there = dict.fromkeys(NAMES, 0.0)
    assert not said({**there, "panda_joint1": 0.09}, there)
    sentence = said({**there, "panda_joint1": 0.2, "panda_joint7": -0.4}, there)
    assert "'panda_joint7' is at -0.4, and the motion ends at 0: allowed is a difference of 0.1" in sentence
    assert "'panda_joint1'" in said({**there, "panda_joint1": 0.2}, there)


def test_fingers_may_be_anywhere() -> None:
    """They hold something; the panda's end effector is its group hand."""
    there = dict.fromkeys(NAMES, 0.0)
    assert not said({**there, "panda_finger_joint1": 0.04}, there, tolerance=0.01)


def test_joints_that_no_such_controller_moves_are_left_out() -> None:
    there = dict.fromkeys(NAMES, 0.0)
    assert not said({**there, "panda_joint1": 0.5}, there, joints=["panda_joint7"])


def test_whole_turns_are_no_difference() -> None:
    assert not said({"wheel": 0.3}, {"wheel": 0.3 + 4.0 * np.pi}, WHEEL)
    assert "'wheel'" in said({"wheel": 0.3}, {"wheel": 0.3 + 3.0 * np.pi}, WHEEL)


@pytest.mark.parametrize("known", [{"panda_joint7": 0.0}, {}])
def test_of_joints_that_nobody_measures_nothing_is_said(known: dict[str, float]) -> None:
    assert not said(known, {"panda_joint1": 1.0, "panda_joint7": 0.0})


def led(
    begin: dict[str, float], end: dict[str, float], measured: dict[str, float], robot: RobotModel = PANDA
) -> tuple[Published, Any]:
    """A published motion, and the state of its robot, which stands."""
    states = JointStates()
    now = 10**15
    states.update(
        JointState(name=list(measured), position=list(measured.values()), velocity=[0.0] * len(measured)),
        now,
        now,
    )
    points = [JointTrajectoryPoint(positions=list(ends.values())) for ends in (begin, end)]
    return Published(JointTrajectory(joint_names=list(end), points=points), robot, 0), states.of(robot)


@pytest.mark.parametrize(
    ("begin", "end", "measured", "off"),
    [
        (2.0, 4.0, 4.0 - 2.0 * np.pi, 0.0),
        (2.0, 4.0, 3.9, 0.1),
        (0.0, 0.5 + 2.0 * np.pi, 0.5, 2.0 * np.pi),  # it waits on its way
        (0.0, 2.0 * np.pi, 0.0, 2.0 * np.pi),
    ],
)
def test_turns_that_a_motion_does_not_make_are_left_out(
    begin: float, end: float, measured: float, off: float
) -> None:
    one, state = led({"wheel": begin}, {"wheel": end}, {"wheel": measured}, WHEEL)
    assert off_end(one, state) == pytest.approx([off])
    if off:
        with pytest.raises(StartStateError, match="the motion ends with 'wheel' at"):
            check_at_end(one, state, 60.0)
    else:
        check_at_end(one, state, 60.0)


def test_what_holds_something_has_arrived() -> None:
    """It was told to be where it was measured, and let go."""
    there = dict.fromkeys(NAMES, 0.0)
    one, state = led({**there, "panda_finger_joint1": 0.04}, there, {**there, "panda_finger_joint1": 0.02})
    assert off_end(one, state) == pytest.approx([0.0] * 3)
    check_at_end(one, state, 60.0)


def test_old_joint_states_say_nothing_of_the_end() -> None:
    there = dict.fromkeys(NAMES, 0.0)
    one, state = led(there, there, there)
    with pytest.raises(StaleStateError):
        check_at_end(one, replace(state, age=state.age + 61.0), 60.0)
