"""Whether robots are where controllers say to have brought them."""

from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.motion.arrival import missed
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
