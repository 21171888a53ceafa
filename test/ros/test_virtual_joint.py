"""A robot whose base moves, as its SRDF says and a parameter asks for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from support.ros_requests import READY, StartNode, ik, pose, set_parameter

from kinopt_msgs.srv import ComputeFK
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.status import Status

Set = Callable[[str, object], tuple[bool, str]]


SRDF = (
    '<robot name="panda"><virtual_joint name="base" type="floating" parent_frame="odom" child_link="panda_link0"/>'
    '<group name="arm"><chain base_link="panda_link0" tip_link="panda_link8"/></group>'
    '<group name="free"><joint name="base"/></group></robot>'
)


@pytest.fixture
def setting(start_node: StartNode, panda_parameters: dict[str, object]) -> tuple[Client, Set]:
    """A node that waits for the SRDF of a robot whose virtual joint shall move, and a way to set parameters."""
    parameters = {**panda_parameters, "default_group": "", "virtual_joint": True}
    parameters["robot_description_semantic"] = ""
    _, client = start_node("rover", parameters, ready=False)
    client.wait_until_found()

    def set_to(name: str, value: object) -> tuple[bool, str]:
        result = set_parameter(client, "rover", name, value)
        return bool(result.successful), str(result.reason)

    return client, set_to


def test_a_free_flyer_goes_where_it_shall_be(
    setting: tuple[Client, Set], panda_texts: tuple[str, str]
) -> None:
    client, set_to = setting
    assert client.spin_until(
        lambda: "there is no SRDF" in client.call("ready", Trigger.Request()).message, 60.0
    )
    accepted, reason = set_to("robot_description_semantic", '<robot name="panda"/>')
    assert not accepted
    assert "no virtual_joint" in reason
    assert set_to("robot_description_semantic", SRDF)[0]
    client.wait_until_ready(300.0)
    robot = robot_from_urdf(panda_texts[0], SRDF, virtual_joint=True)
    state = JointState(name=list(READY), position=list(READY.values()))
    state.name.append("panda_finger_joint1")
    state.position.append(0.03)
    goal = pose(12.0, -3.0, 5.0)
    asked = ik(goal, group="free", tip_link="panda_leftfinger", state=state)

    answer = client.call("solve_ik", asked)
    assert list(answer.joint_names) == list(robot.variable_names[:7])
    q = robot.default_q.copy()
    for name, value in zip(
        [*state.name, *answer.joint_names], [*state.position, *answer.positions], strict=True
    ):
        q[robot.variable_index[name]] = value
    reached = forward_kinematics(robot, q, links=("panda_leftfinger",))[0]
    assert np.abs(reached - matrices_from_poses([goal])[0]).max() <= 1e-12

    locked = client.call(
        "solve_ik", ik(goal, group="free", tip_link="panda_leftfinger", locked_joints=["base"])
    )
    assert locked.status.code == Status.INVALID_REQUEST
    unknown = client.call("solve_ik", ik(goal, group="flyer"))
    assert unknown.status.code == Status.INVALID_GROUP_NAME
    assert "flyer" in unknown.status.message
    arm = client.call("solve_ik", ik(goal, frame="odom", group="arm", tip_link="panda_link8"))
    assert arm.status.code == Status.NO_IK_SOLUTION

    fk = ComputeFK.Request(links=["panda_link0"], joint_names=["base/trans_x"], positions=[2.5])
    assert client.call("compute_fk", fk).poses[0].position.x == 2.5
