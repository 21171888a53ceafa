"""~/target_pose to ~/joint_trajectory: what a joint_trajectory_controller takes as it is."""

from typing import Any

import numpy as np
import pytest
from rclpy.clock import ClockType
from rclpy.duration import Duration
from rclpy.time import Time
from sensor_msgs.msg import JointState
from support.ros_requests import READY, StartNode, ik, pose, set_parameter, stand, target

from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import matrices_from_poses, seconds
from kinopt_ros.ros.robot.parameters import START_DELAY
from kinopt_ros.status import Status
from kinopt_ros.verification.verify import ON_THE_WAY

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(900)

PANDA = load_robot("panda")
ARM = [f"panda_joint{i + 1}" for i in range(7)]


def controller_accepts(message: Any, joints: list[str]) -> None:
    """The checks of ros2_controllers' joint_trajectory_controller with its default parameters."""
    assert sorted(message.joint_names) == sorted(joints)
    assert message.points
    previous = -1.0
    for point in message.points:
        time = point.time_from_start.sec * 10**9 + point.time_from_start.nanosec
        assert time > previous
        previous = time
        assert len(point.positions) == len(point.velocities) == len(point.accelerations) == len(joints)
        assert len(point.effort) == 0
        assert np.isfinite([*point.positions, *point.velocities, *point.accelerations]).all()
    assert np.abs(message.points[-1].velocities).max() <= 1e-7


def test_a_motion_ends_at_the_target_and_keeps_the_limits(client: Client) -> None:
    goal = pose(0.45, -0.2, 0.4)
    before = client.node.get_clock().now() + Duration(seconds=START_DELAY)
    report, trajectory = client.move_to(target(goal))
    assert report.status.code == Status.SUCCESS, report.status.message
    assert trajectory is not None
    controller_accepts(trajectory, ARM)
    # Joint states are stamped by the node's clock: it says when the motion begins, a little ahead.
    begin = Time.from_msg(trajectory.header.stamp, ClockType.ROS_TIME)
    assert before < begin <= client.node.get_clock().now() + Duration(seconds=START_DELAY)
    assert trajectory.header.frame_id == "panda_link0"
    np.testing.assert_array_equal(trajectory.points[0].positions, list(READY.values()))
    q = PANDA.default_q.copy()
    q[:7] = trajectory.points[-1].positions
    reached = forward_kinematics(PANDA, q, links=("panda_link8",))[0]
    np.testing.assert_allclose(reached, matrices_from_poses([goal])[0], atol=2e-4)
    velocities = np.array([point.velocities for point in trajectory.points])
    limits = 0.1 * PANDA.limits.velocity[:7]
    assert (np.abs(velocities) <= limits * (1 + 1e-6)).all()
    assert np.abs(velocities / limits).max() > 0.5  # and they are used
    assert report.duration == pytest.approx(seconds(trajectory.points[-1].time_from_start))
    assert {"velocity limits", "target pose"} <= set(report.checks)
    assert {ON_THE_WAY, "self collision at the goal", "world collision at the goal"} <= set(report.checks)
    assert ON_THE_WAY not in report.not_checked


def test_an_unreachable_target_publishes_nothing(client: Client) -> None:
    report, trajectory = client.move_to(target(pose(5.0, 0.0, 0.0)))
    assert report.status.code == Status.NO_IK_SOLUTION
    assert trajectory is None
    assert report.duration == 0.0


@pytest.mark.parametrize(
    ("bad", "frame", "code"),
    [
        (pose(float("nan")), "", Status.INVALID_GOAL_CONSTRAINTS),
        (pose(q=(0.0, 0.0, 0.0, 0.0)), "", Status.INVALID_GOAL_CONSTRAINTS),
        (pose(q=(1.0, 1.0, 0.0, 0.0)), "", Status.INVALID_GOAL_CONSTRAINTS),
        (pose(), "nowhere", Status.FRAME_TRANSFORM_FAILURE),
    ],
)
def test_a_bad_target_publishes_nothing(client: Client, bad: Any, frame: str, code: Status) -> None:
    report, trajectory = client.move_to(target(bad, frame))
    assert report.status.code == code
    assert report.status.message
    assert trajectory is None


def test_a_stale_state_is_no_start(client: Client, panda_parameters: dict[str, object]) -> None:
    client.stop_robot()
    assert set_parameter(client, "kinopt", "state_timeout", 0.05).successful
    try:
        client.spin(0.1)
        report, trajectory = client.move_to(target(pose()))
    finally:
        assert set_parameter(client, "kinopt", "state_timeout", panda_parameters["state_timeout"]).successful
        stand(client)
    assert report.status.code == Status.ROBOT_STATE_STALE
    assert "panda_joint1" in report.status.message
    assert trajectory is None


def test_a_start_outside_the_limits_is_refused(client: Client) -> None:
    stand(client, {**READY, "panda_joint4": 0.1})
    report, trajectory = client.move_to(target(pose()))
    stand(client)
    assert report.status.code == Status.START_STATE_INVALID
    assert "panda_joint4" in report.status.message
    assert trajectory is None


def test_bad_joint_states_are_dropped_and_the_node_goes_on(client: Client) -> None:
    for broken in (
        JointState(name=["panda_joint1"], position=[float("nan")]),
        JointState(name=["panda_joint1", "panda_joint2"], position=[0.0]),
        JointState(name=["panda_joint1"], position=[0.0], velocity=[0.0, 0.0]),
        JointState(name=["somebody_elses_joint"], position=[0.0]),
    ):
        client.publish_joint_state(broken)
    client.spin(0.2)
    report, trajectory = client.move_to(target(pose()))
    assert report.status.code == Status.SUCCESS, report.status.message
    assert trajectory is not None


def standing(start_node: StartNode, name: str, parameters: dict[str, object]) -> Client:
    """Client of a node of its own that sees a robot at READY."""
    _, client = start_node(name, parameters)
    stand(client)
    return client


def test_exactly_the_controllers_joints_in_its_order(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    order = ["panda_joint7", *ARM[:6]]
    client = standing(start_node, "kinopt_order", {**panda_parameters, "controller_joints": order})
    report, trajectory = client.move_to(target(pose()))
    assert report.status.code == Status.SUCCESS, report.status.message
    assert list(trajectory.joint_names) == order
    controller_accepts(trajectory, order)


def test_a_controller_that_lacks_a_moving_joint_gets_nothing(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    client = standing(start_node, "kinopt_few", {**panda_parameters, "controller_joints": ARM[:6]})
    report, trajectory = client.move_to(target(pose()))
    assert report.status.code == Status.INVALID_REQUEST
    assert "panda_joint7" in report.status.message
    assert trajectory is None


def test_moveits_joint_limits_parameters_count(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    prefix = "robot_description_planning.joint_limits.panda_joint1."
    limits = {f"{prefix}has_velocity_limits": True, f"{prefix}max_velocity": 0.02, f"{prefix}max_jerk": 100}
    client = standing(start_node, "kinopt_limits", {**panda_parameters, **limits, "velocity_scaling": 1})
    report, trajectory = client.move_to(target(pose(0.0, 0.5, 0.5)))
    assert report.status.code == Status.SUCCESS, report.status.message
    fastest = max(abs(point.velocities[0]) for point in trajectory.points)
    assert 0.015 < fastest <= 0.02 * (1 + 1e-6)


@pytest.mark.parametrize(
    ("excess", "code", "beside"),
    [(1e-8, Status.SUCCESS, 0.0), (5e-4, Status.SUCCESS, 0.6), (0.05, Status.START_STATE_INVALID, -0.6)],
)
def test_a_start_outside_the_limits(client: Client, excess: float, code: Status, beside: float) -> None:
    """``beside``: where joint 1 is, so that the robot is not in the motion that was published for the case before."""
    upper = PANDA.limits.upper[PANDA.variable_index["panda_joint4"]]
    stand(client, {**READY, "panda_joint1": beside, "panda_joint4": upper + excess})
    try:
        # A state outside the limits is no reason to refuse a request either.
        assert client.call("solve_ik", ik(pose())).status.code == Status.SUCCESS
        report, trajectory = client.move_to(target(pose(0.4, 0.1, 0.5)))
    finally:
        stand(client)
    assert Status(report.status.code) is code, report.status.message
    if code is not Status.SUCCESS:
        assert "start_state_tolerance" in report.status.message
        assert trajectory is None
        return
    assert trajectory is not None
    elbow = [point.positions[3] for point in trajectory.points]
    assert elbow[0] == upper + excess
    assert (np.diff(elbow)[: np.argmax(np.array(elbow) <= upper)] <= 0.0).all()
