"""A base that drives: its variables are joints of trajectories, as controllers and joint states name them."""

from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import Quaternion
from sensor_msgs.msg import JointState
from support.forked_nodes import ForkedNode
from support.moving_base import base_urdf
from support.ros_requests import StartNode, ik, target
from support.trajectory_goals import ABORTED, SUCCEEDED, Goals

from kinopt_msgs.srv import ComputeCartesianPath, PlanTrajectory
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import quaternion_to_matrix, so3_exp
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import poses_from_matrices
from kinopt_ros.status import Status

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(900)
BASE = ["drive/x", "drive/y", "drive/theta"]
ARM = ["shoulder", "elbow", "wrist"]
MODULE = "kinopt_ros.ros.client.simulated_robot"


def until_prepared(client: Client, request: PlanTrajectory.Request) -> PlanTrajectory.Response:
    """Ask until collision checks and optimizer are prepared."""
    for _ in range(400):
        answer = client.call("plan_trajectory", request, timeout=60.0)
        if answer.status.code != Status.NOT_READY:
            break
        client.spin(1.0)
    return answer


def test_a_base_drives_where_it_shall(start_node: StartNode, tmp_path: Path) -> None:
    text = base_urdf("planar")
    robot = robot_from_urdf(text)
    file = tmp_path / "rover.urdf"
    file.write_text(text)
    _, client = start_node("rover", {"robot_description": text, "velocity_scaling": 1.0})
    with ForkedNode(
        {"trajectory_topics": ["rover/joint_trajectory"]},
        tmp_path / "robot.log",
        "simulated_robot",
        module=MODULE,
        words=[str(file)],
    ) as simulated:
        heard: dict[str, float] = {}
        client.node.create_subscription(
            JointState,
            "/joint_states",
            lambda message: heard.update(zip(message.name, message.position, strict=True)),
            10,
        )
        assert client.spin_until(lambda: set(BASE + ARM) <= set(heard), 60.0), simulated.log_text()
        goal = JointState(name=[*BASE, "elbow"], position=[1.0, 0.5, 4.0, 0.3])
        answer = until_prepared(client, PlanTrajectory.Request(joint_goals=[goal]))
        assert answer.status.code == Status.SUCCESS, answer.status.message
        assert list(answer.trajectory.joint_names) == [*BASE, *ARM]
        last = answer.trajectory.points[-1].positions
        np.testing.assert_allclose(last[:3], [1.0, 0.5, 4.0 - 2 * np.pi], atol=1e-6)
        assert {"collisions on the way", "velocity limits", "goal"} <= set(answer.checks)
        turn = JointState(name=["drive/theta"], position=[1.0])
        only = PlanTrajectory.Request(joint_goals=[turn], locked_joints=[*BASE[:2], *ARM])
        answer = client.call("plan_trajectory", only)
        assert answer.status.code == Status.SUCCESS, answer.status.message
        assert list(answer.trajectory.joint_names) == ["drive/theta"]

        there = robot.default_q.copy()
        there[:6] = 0.8, -0.6, 1.5, 0.5, 0.4, 0.2
        T = forward_kinematics(robot, there, links=("tool",))
        [place] = poses_from_matrices(T)
        beside = there.copy()
        beside[0] = heard["drive/x"]
        [near] = poses_from_matrices(forward_kinematics(robot, beside, links=("tool",)))
        locked = client.call(
            "solve_ik", ik(near, tip_links=["tool"], base_link="map", locked_joints=BASE[:1])
        )
        assert locked.status.code == Status.SUCCESS, locked.status.message
        assert list(locked.joint_names) == [*BASE[1:], *ARM]

        for _ in range(120):  # the node hears joint states by itself, perhaps later than this process
            report, trajectory = client.move_to(target(place, "map"), 60.0)
            if report.status.code not in (Status.INVALID_ROBOT_STATE, Status.ROBOT_STATE_STALE):
                break
            client.spin(0.5)
        assert report.status.code == Status.SUCCESS, report.status.message
        assert trajectory is not None
        assert list(trajectory.joint_names) == [*BASE, *ARM]
        end = dict(zip(trajectory.joint_names, trajectory.points[-1].positions, strict=True))
        assert client.spin_until(
            lambda: max(abs(heard[name] - value) for name, value in end.items()) < 1e-6, 60.0
        ), simulated.log_text()
        q = robot.default_q.copy()
        q[[robot.variable_index[name] for name in heard]] = list(heard.values())
        np.testing.assert_allclose(forward_kinematics(robot, q, links=("tool",)), T, atol=2e-3)

        T[0, :3, 3] += [0.3, 0.2, 0.0]
        request = ComputeCartesianPath.Request(waypoints=poses_from_matrices(T))
        request.header.frame_id = "map"
        line = client.call("compute_cartesian_path", request, timeout=60.0)
        assert line.status.code == Status.SUCCESS, line.status.message
        assert list(line.trajectory.joint_names) == [*BASE, *ARM]
        assert line.fraction == 1.0


def so3_of(message: Quaternion) -> np.ndarray:
    return quaternion_to_matrix(np.array([message.w, message.x, message.y, message.z]))


def test_a_base_that_flies_is_planned_for_but_no_controller_turns_it(start_node: StartNode) -> None:
    text = base_urdf("floating")
    robot = robot_from_urdf(text)
    _, client = start_node("flyer", {"robot_description": text})
    there = robot.default_q.copy()
    there[:3] = 1.0, 2.0, 0.5
    there[7:] = 0.5, 0.4, 0.2, 0.9
    poses = poses_from_matrices(forward_kinematics(robot, there, links=("tool", "mast")))
    for _ in range(200):
        both = client.call("solve_ik", ik(*poses, base_link="map", tip_links=["tool", "mast"]))
        if both.status.code != Status.NOT_READY:
            break
        client.spin(1.0)
    assert both.status.code == Status.SUCCESS, both.status.message
    half = np.sqrt(0.5)
    goal = JointState(
        name=["drive/trans_x", "drive/rot_w", "drive/rot_z", "elbow"], position=[1.0, half, half, 0.4]
    )
    answer = until_prepared(client, PlanTrajectory.Request(joint_goals=[goal]))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    names = list(answer.trajectory.joint_names)
    assert names == [*(f"drive/trans_{k}" for k in "xyz"), *(f"drive/turn_{k}" for k in "xyz"), *ARM]
    assert "floating joints" in answer.checks
    [turning] = answer.turning
    assert (turning.joint, list(turning.angles)) == ("drive", names[3:6])
    before, after = (so3_of(one) for one in (turning.before, turning.after))
    a, b, c = (
        so3_exp(angle * axis)
        for angle, axis in zip(answer.trajectory.points[-1].positions[3:6], np.eye(3), strict=True)
    )
    np.testing.assert_allclose(
        before @ a @ b @ c @ after, so3_exp(np.array([0.0, 0.0, np.pi / 2])), atol=1e-9
    )
    np.testing.assert_allclose(before @ after, np.eye(3), atol=1e-9)

    orientation = [f"drive/rot_{k}" for k in "wxyz"]
    flat = JointState(name=["drive/trans_x", "elbow"], position=[1.0, 0.4])
    locked = PlanTrajectory.Request(
        joint_goals=[flat], locked_joints=[*orientation, "drive/trans_z", "wrist"]
    )
    answer = client.call("plan_trajectory", locked)
    assert answer.status.code == Status.SUCCESS, answer.status.message
    assert list(answer.trajectory.joint_names) == ["drive/trans_x", "drive/trans_y", "shoulder", "elbow"]
    assert not answer.turning
    for names, said in (
        (["drive/rot_w"], "some of the quaternion of joint 'drive'"),
        (["drive/up"], "drive/up"),
        (["drive", *ARM], "not locked"),
    ):
        refused = client.call(
            "plan_trajectory", PlanTrajectory.Request(joint_goals=[flat], locked_joints=names)
        )
        assert refused.status.code != Status.SUCCESS
        assert said in refused.status.message, refused.status.message

    goals = Goals(client, "flyer")
    status, result = goals.run(joint_goals=[goal])
    assert status == SUCCEEDED, result.status.message
    assert [one.joint for one in result.turning] == ["drive"]
    status, result = goals.run(joint_goals=[goal], publish=True)
    assert status == ABORTED
    assert result.status.code == Status.INVALID_ROBOT_STATE
    assert "'drive/rot_w' turns the floating joint 'drive'" in result.status.message
    assert not result.published
    goals.close()
    report, trajectory = client.move_to(target(poses[0], "map"), 60.0)
    assert trajectory is None
    assert "turns the floating joint" in report.status.message
