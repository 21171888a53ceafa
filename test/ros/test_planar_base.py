"""A base that drives: its variables are joints of trajectories, as controllers and joint states name them."""

from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from support.moving_base import base_urdf
from support.ros_requests import StartNode, ik, target

from kinopt_msgs.srv import ComputeCartesianPath, PlanTrajectory
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
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
    with NodeProcess(
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

        report, trajectory = client.move_to(target(place, "map"), 60.0)
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


def test_a_base_that_flies_is_placed_but_no_controller_turns_it(start_node: StartNode) -> None:
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
    goal = JointState(name=["drive/trans_x"], position=[1.0])
    refused = client.call("plan_trajectory", PlanTrajectory.Request(joint_goals=[goal]))
    assert refused.status.code == Status.INVALID_ROBOT_STATE
    assert "'drive/rot_w' turns the floating joint 'drive'" in refused.status.message
