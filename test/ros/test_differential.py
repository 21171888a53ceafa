"""~/get_jacobian and ~/twist_to_joint_velocity through a real node."""

from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Pose, Quaternion, Twist, Vector3
from sensor_msgs.msg import JointState
from support.ros_requests import READY, ik, pose

from kinopt_msgs.srv import GetJacobian, TwistToJointVelocity
from kinopt_ros.kinematics.differential import frame_jacobian
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.status import Status

NAN = float("nan")
ROBOT = load_robot("panda")
Q = np.array(
    [READY.get(name, value) for name, value in zip(ROBOT.variable_names, ROBOT.default_q, strict=True)]
)


def twist(x: float = 0.0, y: float = 0.0, z: float = 0.0, turn: float = 0.0) -> Twist:
    return Twist(linear=Vector3(x=x, y=y, z=z), angular=Vector3(z=turn))


@pytest.mark.parametrize("frame", ["", "world", "base", "tip"])
def test_the_jacobian_at_the_present_state(client: Client, frame: str) -> None:
    answer = client.call("get_jacobian", GetJacobian.Request(frame=frame))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    assert list(answer.joint_names) == [f"panda_joint{i}" for i in range(1, 8)]
    J = np.array(answer.jacobian).reshape(6, 7)
    expected = frame_jacobian(ROBOT, "panda_link0", "panda_link8", np.arange(7), Q, frame or "base")
    np.testing.assert_allclose(J, expected.J, atol=1e-9)
    assert not answer.near_singular
    assert answer.smallest_singular_value == pytest.approx(expected.smallest, abs=1e-9)


def test_a_twist_is_made(client: Client) -> None:
    request = TwistToJointVelocity.Request(twist=twist(x=0.02, turn=0.1), frame="tip")
    answer = client.call("twist_to_joint_velocity", request)
    assert answer.status.code == Status.SUCCESS
    assert answer.scale == 1.0
    J = frame_jacobian(ROBOT, "panda_link0", "panda_link8", np.arange(7), Q, "tip").J
    np.testing.assert_allclose(J @ np.array(answer.velocities), [0.02, 0, 0, 0, 0, 0.1], atol=1e-9)
    assert "velocity limits" in answer.checks


def test_too_fast_is_scaled_and_said(client: Client) -> None:
    request = TwistToJointVelocity.Request(twist=twist(x=50.0), velocity_scaling=0.2)
    answer = client.call("twist_to_joint_velocity", request)
    assert answer.status.code == Status.SUCCESS
    assert 0.0 < answer.scale < 0.1
    velocities = np.array(answer.velocities)
    limits = 0.2 * ROBOT.limits.velocity[:7]
    assert (np.abs(velocities) / limits).max() == pytest.approx(1.0)
    assert answer.achieved.linear.x == pytest.approx(50.0 * answer.scale, rel=1e-6)


def test_a_singular_state_is_reported_and_bounded(client: Client) -> None:
    state = JointState(name=list(READY), position=[0.0, 0.0, 0.0, -0.0698, 0.0, 0.0, 0.0])
    request = TwistToJointVelocity.Request(twist=twist(z=0.1), state=state)
    answer = client.call("twist_to_joint_velocity", request)
    assert answer.status.code == Status.SUCCESS
    assert np.isfinite(answer.velocities).all()
    assert answer.smallest_singular_value < 0.05 * answer.largest_singular_value


def test_locked_joints_stand_still(client: Client) -> None:
    request = TwistToJointVelocity.Request(twist=twist(y=0.01), locked_joints=["panda_joint1"])
    answer = client.call("twist_to_joint_velocity", request)
    assert "panda_joint1" not in answer.joint_names
    assert len(answer.velocities) == 6


BAD: dict[str, tuple[dict[str, Any], Status, str]] = {
    "unknown frame": ({"frame": "leaf"}, Status.INVALID_REQUEST, "world, base, tip"),
    "unknown tip": ({"tip_link": "flange"}, Status.INVALID_LINK_NAME, "flange"),
    "unknown base": ({"tip_link": "panda_link8", "base_link": "floor"}, Status.INVALID_LINK_NAME, "floor"),
    "unknown group": ({"group": "leg"}, Status.INVALID_GROUP_NAME, "leg"),
    "unknown locked joint": ({"locked_joints": ["elbow"]}, Status.INVALID_JOINT_NAME, "elbow"),
    "everything locked": ({"locked_joints": list(READY)}, Status.INVALID_REQUEST, "locked"),
    "unknown joint in the state": (
        {"state": JointState(name=["elbow"], position=[0.0])},
        Status.INVALID_JOINT_NAME,
        "elbow",
    ),
    "NaN in the state": (
        {"state": JointState(name=["panda_joint2"], position=[NAN])},
        Status.INVALID_ROBOT_STATE,
        "panda_joint2",
    ),
    "tool of no length": (
        {"tool": Pose(orientation=Quaternion(w=0.0))},
        Status.INVALID_GOAL_CONSTRAINTS,
        "tool",
    ),
}


@pytest.mark.parametrize("service", ["get_jacobian", "twist_to_joint_velocity"])
@pytest.mark.parametrize("kind", sorted(BAD))
def test_bad_input(client: Client, service: str, kind: str) -> None:
    fields, code, words = BAD[kind]
    kinds = {"get_jacobian": GetJacobian, "twist_to_joint_velocity": TwistToJointVelocity}
    refused(client, service, kinds[service].Request(**fields), code, words)


@pytest.mark.parametrize("kind", ["NaN twist", "scaling above one", "negative scaling", "NaN scaling"])
def test_bad_twists(client: Client, kind: str) -> None:
    fields: dict[str, Any] = {
        "NaN twist": {"twist": twist(x=NAN)},
        "scaling above one": {"velocity_scaling": 1.5},
        "negative scaling": {"velocity_scaling": -0.5},
        "NaN scaling": {"velocity_scaling": NAN},
    }[kind]
    code = Status.INVALID_GOAL_CONSTRAINTS if kind == "NaN twist" else Status.INVALID_REQUEST
    request = TwistToJointVelocity.Request(**fields)
    refused(
        client, "twist_to_joint_velocity", request, code, "twist" if "twist" in kind else "velocity_scaling"
    )


def refused(client: Client, service: str, request: Any, code: Status, words: str) -> None:
    answer = client.call(service, request)
    assert Status(answer.status.code) is code, answer.status.message
    assert words in answer.status.message
    assert not answer.joint_names
    assert client.call("solve_ik", ik(pose())).status.code == Status.SUCCESS
