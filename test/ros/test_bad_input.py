"""Bad input through the running node: each kind gets its code and a sentence, nothing is published, and the node
goes on serving."""

from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from sensor_msgs.msg import JointState
from support.ros_requests import ik, pose

from kinopt_msgs.srv import ComputeFK
from kinopt_ros.ros.client.client import Client
from kinopt_ros.status import Status

NAN, INF = float("nan"), float("inf")
GOAL, STATE = Status.INVALID_GOAL_CONSTRAINTS, Status.INVALID_ROBOT_STATE
LINK, GROUP, JOINT = Status.INVALID_LINK_NAME, Status.INVALID_GROUP_NAME, Status.INVALID_JOINT_NAME
REQUEST = Status.INVALID_REQUEST

IK = {
    "NaN position": (ik(pose(NAN)), GOAL, "finite"),
    "infinite position": (ik(pose(INF)), GOAL, "finite"),
    "NaN quaternion": (ik(pose(q=(NAN, 0, 0, 1))), GOAL, "finite"),
    "zero quaternion": (ik(pose(q=(0.0, 0.0, 0.0, 0.0))), GOAL, "length 0"),
    "unnormalized quaternion": (ik(pose(q=(1.0, 0.0, 0.0, 1.0))), GOAL, "length 1.41"),
    "second pose bad": (ik(pose(), pose(y=NAN)), GOAL, "poses[1]"),
    "no pose": (ik(), REQUEST, "0 poses"),
    "huge batch": (ik(*[Pose()] * 10_001), REQUEST, "10001 poses"),
    "unknown frame": (ik(pose(), frame="nowhere"), Status.FRAME_TRANSFORM_FAILURE, "nowhere"),
    "unknown group": (ik(pose(), group="panda_amr"), GROUP, "panda_arm"),
    "unknown tip": (ik(pose(), tip_link="panda_link88"), LINK, "panda_link8"),
    "unknown base": (ik(pose(), base_link="panda_base", tip_link="panda_link8"), LINK, "panda_base"),
    "tip that does not move": (ik(pose(), tip_link="panda_link0"), REQUEST, "moves"),
    "unknown solver": (ik(pose(), solver="ikfast"), Status.UNKNOWN_SOLVER, "cpu"),
    "negative position tolerance": (ik(pose(), position_tolerance=-1e-3), GOAL, "position_tolerance"),
    "NaN orientation tolerance": (ik(pose(), orientation_tolerance=NAN), GOAL, "orientation_tolerance"),
    "negative timeout": (ik(pose(), timeout=-1.0), REQUEST, "timeout"),
    "infinite timeout": (ik(pose(), timeout=INF), REQUEST, "timeout"),
    "unknown joint in the state": (
        ik(pose(), state=JointState(name=["elbow"], position=[0.0])),
        JOINT,
        "elbow",
    ),
    "state of unequal lengths": (ik(pose(), state=JointState(name=["panda_joint1"])), STATE, "1 names"),
    "joint twice in the state": (
        ik(pose(), state=JointState(name=["panda_joint1"] * 2, position=[0.0, 0.0])),
        STATE,
        "twice",
    ),
    "NaN in the state": (
        ik(pose(), state=JointState(name=["panda_joint1"], position=[NAN])),
        STATE,
        "panda_joint1",
    ),
    "seeds of another length": (ik(pose(), seeds=[0.0] * 6), STATE, "seeds has 6"),
    "seeds that do not fit num_seeds": (ik(pose(), seeds=[0.0] * 14, num_seeds=3), STATE, "14"),
    "too many seeds": (ik(pose(), seeds=[0.0] * 14, num_seeds=10_001), REQUEST, "10001 seeds per target"),
    "num_seeds without seeds": (ik(pose(), num_seeds=2), STATE, "num_seeds"),
    "NaN seed": (ik(pose(), seeds=[0.0] * 6 + [NAN]), STATE, "seeds"),
}

ARM = [f"panda_joint{i + 1}" for i in range(7)]
FK = {
    "unknown link": (ComputeFK.Request(links=["panda_link99"]), LINK, "panda_link99"),
    "unknown joint": (ComputeFK.Request(joint_names=["elbow"], positions=[0.0]), JOINT, "elbow"),
    "joint twice": (
        ComputeFK.Request(joint_names=["panda_joint1"] * 2, positions=[0.0, 0.0]),
        REQUEST,
        "twice",
    ),
    "positions without names": (ComputeFK.Request(positions=[0.0]), REQUEST, "joint_names"),
    "wrong number of positions": (
        ComputeFK.Request(joint_names=ARM, positions=[0.0] * 8),
        STATE,
        "8 positions",
    ),
    "no positions": (ComputeFK.Request(joint_names=ARM), STATE, "0 positions"),
    "NaN position": (ComputeFK.Request(joint_names=ARM, positions=[0.0] * 6 + [NAN]), STATE, "panda_joint7"),
    "huge batch": (ComputeFK.Request(joint_names=ARM, positions=[0.0] * 7 * 10_001), REQUEST, "allowed"),
}


def fk_in(frame: str) -> ComputeFK.Request:
    request = ComputeFK.Request()
    request.header.frame_id = frame
    return request


def refused(client: Client, service: str, request: Any, code: Status, words: str) -> None:
    trajectories = len(client.trajectories)
    answer = client.call(service, request)
    assert Status(answer.status.code) is code, answer.status.message
    assert words in answer.status.message
    assert len(answer.status.message) > 20
    assert not (answer.positions if service == "solve_ik" else answer.poses)
    assert len(client.trajectories) == trajectories
    good = client.call("solve_ik", ik(pose()))
    assert good.status.code == Status.SUCCESS, "the node does not serve any more"


@pytest.mark.parametrize("kind", IK)
def test_solve_ik(client: Client, kind: str) -> None:
    refused(client, "solve_ik", *IK[kind])


@pytest.mark.parametrize("kind", FK)
def test_compute_fk(client: Client, kind: str) -> None:
    refused(client, "compute_fk", *FK[kind])


def test_compute_fk_in_an_unknown_frame(client: Client) -> None:
    refused(client, "compute_fk", fk_in("nowhere"), Status.FRAME_TRANSFORM_FAILURE, "nowhere")


def test_failed_targets_carry_no_positions(client: Client) -> None:
    answer = client.call("solve_ik", ik(pose(9.0), pose(8.0)))
    assert list(answer.positions) == []
    assert np.isfinite(answer.attempts).all()
