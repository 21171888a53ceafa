"""Requests for what is as near as possible, to a real node."""

from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from support.ros_requests import READY, ik, pose

from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.status import Status

PANDA = load_robot("panda")
STATE = JointState(name=list(READY), position=list(READY.values()))
LOCKED = ["panda_joint3", "panda_joint5"]
"""Joints without which the arm has five."""


def ask(client: Client, /, *poses: Any, **fields: Any) -> Any:
    return client.call("solve_ik", ik(*poses, state=STATE, nearest=True, **fields), 30.0)


def tips(answer: Any) -> np.ndarray:
    """Poses of the last link in the attempts, by forward kinematics."""
    rows = np.array(answer.attempts).reshape(-1, len(answer.joint_names))
    q = np.repeat(PANDA.default_q[None], len(rows), axis=0)
    for joint, value in READY.items():
        q[:, PANDA.variable_index[joint]] = value
    q[:, [PANDA.variable_index[name] for name in answer.joint_names]] = rows
    assert ((q >= PANDA.limits.lower) & (q <= PANDA.limits.upper)).all()
    return np.asarray(forward_kinematics(PANDA, q, links=("panda_link8",))[:, 0])


def test_five_joints_meet_the_position_before_the_orientation(client: Client) -> None:
    target = pose(0.45, 0.2, 0.4, (0.8, 0.4, 0.4, 0.2))
    answer = ask(client, target, locked_joints=LOCKED, position_weights=[1000.0])
    assert answer.status.code == Status.NEAREST, answer.status.message
    assert list(answer.codes) == [Status.NEAREST]
    assert list(answer.positions) == []
    assert list(answer.num_found) == [0]
    assert "position met (off by " in answer.status.message
    assert "orientation off by " in answer.status.message
    assert list(answer.messages) == [answer.status.message]
    T = matrices_from_poses([target])[0]
    reached = tips(answer)[0]
    assert np.linalg.norm(reached[:3, 3] - T[:3, 3]) == pytest.approx(answer.position_errors[0], abs=1e-9)
    assert answer.position_errors[0] < 1e-4
    angle = np.arccos(np.clip(0.5 * (np.trace(T[:3, :3].T @ reached[:3, :3]) - 1.0), -1.0, 1.0))
    assert angle == pytest.approx(answer.orientation_errors[0], abs=1e-6)
    assert angle > 0.01
    np.testing.assert_allclose(matrices_from_poses(answer.attempt_poses)[0], reached, atol=1e-9)
    assert "whether something else is nearer" in list(answer.not_checked)
    assert "target pose" not in list(answer.checks)


def test_a_batch_where_some_are_reached_and_some_are_far_away(client: Client) -> None:
    answer = ask(client, pose(), pose(3.0, 0.0, 0.4), pose(0.4, 0.1, 0.5))
    assert answer.status.code == Status.NEAREST
    assert "3 targets" in answer.status.message
    assert len(answer.messages) == 3
    assert list(answer.codes) == [Status.NEAREST] * 3
    assert answer.position_errors[1] > 1.5
    assert np.delete(answer.position_errors, 1).max() < 1e-6
    assert "position met" in answer.messages[0]
    assert "position off by" in answer.messages[1]
    assert tips(answer).shape == (3, 4, 4)


def test_a_weight_of_nothing_frees_an_axis(client: Client) -> None:
    answer = ask(client, pose(0.5, -0.1, 0.3), locked_joints=LOCKED, orientation_weights=[0.0])
    assert answer.status.message.endswith("orientation free")
    assert answer.position_errors[0] < 1e-9
    assert answer.orientation_errors[0] == 0.0
    answer = ask(
        client, pose(0.5, -0.1, 0.3), orientation_weights=[1.0, 1.0, 0.0], position_weights=[1.0, 1.0, 2.0]
    )
    assert answer.status.code == Status.NEAREST
    assert answer.orientation_errors[0] < 1e-9


def test_collisions_are_avoided(client: Client) -> None:
    answer = ask(client, pose(2.0, 0.0, 0.4), avoid_collisions=True, timeout=10.0)
    assert answer.status.code == Status.NEAREST, answer.status.message
    assert "self collision" in list(answer.checks)


def test_what_does_not_go_together_is_refused_by_name(client: Client) -> None:
    for fields, code, named in (
        ({"num_solutions": 3}, Status.INVALID_REQUEST, "num_solutions is 3"),
        ({"prefer": "closest"}, Status.INVALID_REQUEST, "preference"),
        ({"turns": True}, Status.INVALID_REQUEST, "turns"),
        ({"position_weights": [1.0, 2.0]}, Status.INVALID_GOAL_CONSTRAINTS, "position_weights has 2 numbers"),
        ({"orientation_weights": [-1.0]}, Status.INVALID_GOAL_CONSTRAINTS, "weight of orientation"),
        (
            {"position_weights": [0.0], "orientation_weights": [0.0]},
            Status.INVALID_GOAL_CONSTRAINTS,
            "nothing is asked",
        ),
        ({"solver": "hjcd", "no_fallback": True}, None, "hjcd"),
    ):
        answer = ask(client, pose(), **fields)
        assert answer.status.code not in (Status.SUCCESS, Status.NEAREST)
        assert code is None or answer.status.code == code, answer.status.message
        assert named in answer.status.message
    answer = client.call("solve_ik", ik(pose(), position_weights=[1.0]), 30.0)
    assert answer.status.code == Status.INVALID_REQUEST
    assert "nearest is not set" in answer.status.message
