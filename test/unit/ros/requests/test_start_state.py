"""Where motions start that a request says nothing about."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from sensor_msgs.msg import JointState

from kinopt_ros.conformance.robots import six_revolute
from kinopt_ros.ros.requests.trajectory import start_state
from kinopt_ros.ros.robot.joint_states import JointStates

ROBOT = six_revolute()


def start(given: JointState) -> Any:
    """Where a motion starts of a robot whose j1 hardly moves, and j2 does."""
    states = JointStates()
    states.update(JointState(name=["j1", "j2"], position=[0.1, 0.2], velocity=[0.009, 0.5]))
    context: Any = SimpleNamespace(joint_states=states, parameter={"state_timeout": 60.0}.get)
    return start_state(context, ROBOT, given, range(6), publish=False)


def test_noise_of_a_robot_that_stands_is_no_velocity() -> None:
    """Plans began at what a sensor said of joints that stand, and were refused by execute_trajectory."""
    found = start(JointState())
    np.testing.assert_array_equal(found.q[:2], [0.1, 0.2])
    np.testing.assert_array_equal(found.velocity[:2], [0.0, 0.5])


def test_velocities_that_are_given_are_kept() -> None:
    found = start(JointState(name=["j1", "j2"], position=[0.3, 0.4], velocity=[0.009, 0.0]))
    np.testing.assert_array_equal(found.velocity[:2], [0.009, 0.0])
