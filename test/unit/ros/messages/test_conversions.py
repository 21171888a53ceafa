"""Messages to arrays and back; quaternions change order here and nowhere else."""

import numpy as np
import pytest

pytest.importorskip("kinopt_msgs", reason="kinopt_msgs is not built")

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Pose
from sensor_msgs.msg import JointState
from support.ros_requests import pose

from kinopt_ros.conformance.robots import with_mimic
from kinopt_ros.errors import (
    InvalidGoalError,
    InvalidRequestError,
    InvalidStateError,
    KinoptError,
    UnknownJointError,
)
from kinopt_ros.kinematics.se3 import quaternion_to_matrix, rpy_to_matrix
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.messages import rotations
from kinopt_ros.ros.messages.conversions import (
    configuration_from_joint_state,
    configuration_to_reach,
    duration_message,
    flat_array,
    matrices_from_poses,
    nonnegative,
    poses_from_matrices,
    seconds,
    sentence_of,
    trajectory_message,
)
from kinopt_ros.solvers.readiness import PreparingError
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory


def random_transforms(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    quaternions = rng.normal(size=(count, 4))
    T = np.zeros((count, 4, 4))
    T[:, :3, :3] = quaternion_to_matrix(quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True))
    T[:, :3, 3] = rng.normal(size=(count, 3))
    T[:, 3, 3] = 1.0
    return T


def test_poses_survive_the_round_trip() -> None:
    """Requirement G1."""
    T = random_transforms(1000)
    np.testing.assert_allclose(matrices_from_poses(poses_from_matrices(T)), T, atol=1e-12)


def test_a_quarter_turn_about_x_is_xyzw() -> None:
    T = matrices_from_poses([pose(0, 0, 0, (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)))])[0]
    np.testing.assert_allclose(T[:3, :3] @ [0, 1, 0], [0, 0, 1], atol=1e-15)


def test_the_default_pose_is_the_identity() -> None:
    np.testing.assert_array_equal(matrices_from_poses([Pose()])[0], np.eye(4))


def test_no_poses_are_no_matrices() -> None:
    assert matrices_from_poses([]).shape == (0, 4, 4)
    assert poses_from_matrices(np.empty((0, 4, 4))) == []


@pytest.mark.parametrize("length", [0.0, 0.98, 1.02, float("nan"), float("inf")])
def test_quaternions_that_are_not_of_unit_length_are_refused(length: float) -> None:
    with pytest.raises(InvalidGoalError, match=r"target\[1\]"):
        matrices_from_poses([pose(), pose(q=(length, 0.0, 0.0, 0.0))], "target")


def test_quaternions_typed_to_three_digits_are_normalised() -> None:
    R = matrices_from_poses([pose(q=(0.707, 0.0, 0.0, 0.707))])[0][:3, :3]
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)


def test_nan_transforms_become_nan_poses() -> None:
    T = random_transforms(2)
    T[1] = np.nan
    first, second = poses_from_matrices(T)
    assert np.isfinite(first.position.x)
    assert np.isnan(second.position.x)
    assert np.isnan(second.orientation.w)


def test_single_rotations_agree_with_the_vectorised_ones() -> None:
    for R in random_transforms(50)[:, :3, :3]:
        xyzw = rotations.quaternion_from_matrix(R)
        np.testing.assert_allclose(rotations.matrix_from_quaternion(xyzw), R, atol=1e-12)
        rpy = rotations.rpy_from_matrix(R)
        np.testing.assert_allclose(rpy_to_matrix(np.array(rpy)), R, atol=1e-12)
        again = rotations.matrix_from_quaternion(rotations.quaternion_from_rpy(*rpy))
        np.testing.assert_allclose(again, R, atol=1e-12)


def test_rotations_at_gimbal_lock_are_finite() -> None:
    R = rpy_to_matrix(np.array([0.3, np.pi / 2, -0.4]))
    roll, pitch, yaw = rotations.rpy_from_matrix(R)
    np.testing.assert_allclose(rpy_to_matrix(np.array([roll, pitch, yaw])), R, atol=1e-7)
    assert yaw == 0.0


def test_a_joint_state_places_what_it_names() -> None:
    robot = with_mimic()
    base = np.arange(6, dtype=float) / 10
    state = JointState(name=["j4", "j1", "j3b"], position=[1.0, 2.0, 9.0])  # j3b follows j3: skipped
    q = configuration_from_joint_state(state, robot, base)
    np.testing.assert_array_equal(q, [2.0, 0.1, 0.2, 1.0, 0.4, 0.5])
    np.testing.assert_array_equal(base, np.arange(6) / 10)


def test_what_is_wanted_of_joints_that_follow_others_must_hold() -> None:
    """A goal that named a gripper's second finger alone was a success, and the gripper stayed closed."""
    robot, base = with_mimic(), np.zeros(6)
    follows = JointState(name=["j3", "j3b"], position=[0.4, -0.5 * 0.4 + 0.2 + 5e-4])
    np.testing.assert_array_equal(configuration_to_reach(follows, robot, base), [0, 0, 0.4, 0, 0, 0])
    for name, position in (
        (["j3b"], [0.5]),
        (["j3b", "j3"], [0.5, 0.4]),
        (["j3b"], [np.nan]),
        (["j3b"], [0.2 + 2e-3]),
    ):
        with pytest.raises(
            InvalidStateError, match=r"'j3b' is to be at .* but it follows 'j3', which takes it to "
        ):
            configuration_to_reach(JointState(name=name, position=position), robot, base)


def test_a_joint_of_several_variables_is_named_by_them() -> None:
    robot = robot_from_urdf(
        """<robot name="drives"><link name="a"/><link name="b"/><link name="c"/>
        <joint name="base" type="planar"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>
        <joint name="bolt" type="fixed"><parent link="b"/><child link="c"/></joint></robot>"""
    )
    names = ", ".join(robot.variable_names)
    with pytest.raises(InvalidStateError, match=f"joint 'base' has several variables: name {names}"):
        configuration_from_joint_state(JointState(name=["base"], position=[1.0]), robot, np.zeros(3))
    for read in (configuration_from_joint_state, configuration_to_reach):
        np.testing.assert_array_equal(
            read(JointState(name=["bolt"], position=[0.0]), robot, np.zeros(3)), 0.0
        )
    with pytest.raises(InvalidStateError, match="'bolt' is to be at 1, but it is fixed: leave it out"):
        configuration_to_reach(JointState(name=["bolt"], position=[1.0]), robot, np.zeros(3))


def test_a_joint_state_of_another_robot() -> None:
    robot, base = with_mimic(), np.zeros(6)
    state = JointState(name=["elbow"], position=[1.0])
    with pytest.raises(UnknownJointError, match="elbow"):
        configuration_from_joint_state(state, robot, base)


def test_durations_are_whole_nanoseconds() -> None:
    assert duration_message(1.5) == Duration(sec=1, nanosec=500_000_000)
    assert duration_message(0.999_999_999_9) == Duration(sec=1, nanosec=0)
    for value in (0.0, 1e-9, 0.1, 123.456789012):
        assert seconds(duration_message(value)) == pytest.approx(value, abs=1e-9)


def test_a_trajectory_keeps_every_number() -> None:
    rng = np.random.default_rng(1)
    time = np.array([0.0, 0.25, 1.0])
    trajectory = JointTrajectory(("a", "b"), time, *(rng.normal(size=(3, 2)) for _ in range(3)))
    message = trajectory_message(trajectory, "base")
    assert message.header.frame_id == "base"
    for i, point in enumerate(message.points):
        assert list(point.positions) == trajectory.position[i].tolist()
        assert list(point.velocities) == trajectory.velocity[i].tolist()
        assert list(point.accelerations) == trajectory.acceleration[i].tolist()
        assert seconds(point.time_from_start) == time[i]


def test_flat_arrays_are_row_major() -> None:
    values = np.arange(6, dtype=float).reshape(2, 3)
    assert list(flat_array(values)) == [0, 1, 2, 3, 4, 5]
    assert list(flat_array(values.T)) == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_numbers_that_cannot_be_meant_are_refused(value: float) -> None:
    with pytest.raises(InvalidRequestError, match="timeout"):
        nonnegative(value, "timeout", InvalidRequestError, 1.0)
    assert nonnegative(0.0, "timeout", InvalidRequestError, 1.0) == 1.0
    assert nonnegative(2.0, "timeout", InvalidRequestError, 1.0) == 2.0


def test_what_is_being_prepared_is_said_to_clients_of_the_node() -> None:
    error = PreparingError("collision checks are being prepared", "call prepare_collisions(robot) before")
    assert sentence_of(error) == "collision checks are being prepared; ~/ready says when that is done"
    assert sentence_of(KinoptError("as it is")) == "as it is"
