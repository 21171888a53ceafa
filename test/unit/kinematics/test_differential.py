"""Jacobians in three frames against Pinocchio, and joint velocities that keep what they promise."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pin = pytest.importorskip("pinocchio")

from kinopt_ros.conformance.robots import ROBOTS
from kinopt_ros.errors import (
    InvalidGoalError,
    InvalidRequestError,
    InvalidStateError,
    KinoptError,
    UnknownLinkError,
    UnknownNameError,
    UnsupportedFeatureError,
)
from kinopt_ros.kinematics.differential import FRAMES, frame_jacobian, joint_velocity
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import pose, so3_exp, so3_log
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

PANDA = load_robot("panda")
ARM = np.arange(7)
TIP, BASE = "panda_link8", "panda_link0"
TOOL = pose(so3_exp(np.array([0.3, -0.5, 0.8])), np.array([0.05, -0.1, 0.2]))


def twist_of(
    robot: RobotModel, q: np.ndarray, dq: np.ndarray, base: str, tip: str, tool: np.ndarray
) -> np.ndarray:
    """Twist of the tool in the base link's axes, by finite differences of the poses."""
    h = 1e-6
    states = np.stack([q + h * dq, q - h * dq])
    T = forward_kinematics(robot, states, links=(base, tip))
    T_base_tool = np.linalg.inv(T[:, 0]) @ T[:, 1] @ tool
    linear = (T_base_tool[0, :3, 3] - T_base_tool[1, :3, 3]) / (2 * h)
    angular = so3_log(T_base_tool[0, :3, :3] @ T_base_tool[1, :3, :3].T) / (2 * h)
    return np.concatenate([linear, angular])


def test_pinocchio_agrees_in_every_frame() -> None:
    urdf = find_robot("panda")[0]
    model = pin.buildModelFromUrdf(str(urdf))
    data = model.createData()
    frame = model.getFrameId(TIP, pin.FrameType.BODY)
    robot = robot_from_urdf(urdf.read_text())
    for q in random_configurations(robot, 20, 1):
        full = pin.neutral(model)
        for name, value in zip(robot.variable_names, q, strict=True):
            full[model.joints[model.getJointId(name)].idx_q] = value
        for ours, theirs in (("world", pin.LOCAL_WORLD_ALIGNED), ("tip", pin.LOCAL)):
            J = pin.computeFrameJacobian(model, data, full, frame, theirs)
            order = [model.joints[model.getJointId(f"panda_joint{i}")].idx_v for i in range(1, 8)]
            np.testing.assert_allclose(
                frame_jacobian(robot, robot.root_link, TIP, ARM, q, ours).J, J[:, order], atol=1e-12
            )


def test_a_configuration_may_be_a_list() -> None:
    q: Any = PANDA.default_q.tolist()
    J = frame_jacobian(PANDA, BASE, TIP, ARM, PANDA.default_q).J
    np.testing.assert_array_equal(frame_jacobian(PANDA, BASE, TIP, ARM, q).J, J)
    with pytest.raises(InvalidStateError, match="array of real numbers"):
        frame_jacobian(PANDA, BASE, TIP, ARM, ["a", *q[1:]])


@pytest.mark.parametrize("name", sorted(ROBOTS))
def test_finite_differences_agree_also_across_branches_and_with_a_tool(name: str) -> None:
    robot = ROBOTS[name][0]()
    if any(joint.type.num_variables > 3 for joint in robot.joints):
        pytest.skip("floating joints have no velocity per variable")
    variables = np.arange(robot.nq)
    rng = np.random.default_rng(0)
    for base, tip in ((robot.root_link, robot.link_names[-1]), (robot.link_names[-1], robot.link_names[1])):
        q = random_configurations(robot, 1, 4)[0]
        dq = rng.normal(size=robot.nq)
        J = frame_jacobian(robot, base, tip, variables, q, "base", TOOL).J
        np.testing.assert_allclose(J @ dq, twist_of(robot, q, dq, base, tip, TOOL), atol=1e-8)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_the_same_motion_in_every_frame(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = random_configurations(PANDA, 1, seed)[0]
    dq = rng.normal(size=7)
    twists = {f: frame_jacobian(PANDA, "panda_link2", TIP, ARM, q, f).J @ dq for f in FRAMES}
    answers = [joint_velocity(PANDA, "panda_link2", TIP, ARM, q, twists[f], f).velocity for f in FRAMES]
    np.testing.assert_allclose(answers[1], answers[0], atol=1e-9)
    np.testing.assert_allclose(answers[2], answers[0], atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-6, 1e3))
def test_limits_are_kept_and_the_answer_says_what_is_achieved(seed: int, speed: float) -> None:
    rng = np.random.default_rng(seed)
    q = random_configurations(PANDA, 1, seed)[0]
    stop = rng.random(PANDA.nq) < 0.2
    q[stop] = np.where(rng.random(PANDA.nq) < 0.5, PANDA.limits.lower, PANDA.limits.upper)[stop]
    twist = speed * rng.normal(size=6)
    before = twist.copy()
    answer = joint_velocity(PANDA, BASE, TIP, ARM, q, twist, velocity_scaling=0.5)
    np.testing.assert_array_equal(twist, before)
    v = answer.velocity
    assert np.isfinite(v).all()
    assert (np.abs(v) <= 0.5 * PANDA.limits.velocity[ARM]).all()
    lower, upper = PANDA.limits.lower[ARM], PANDA.limits.upper[ARM]
    assert not ((q[ARM] <= lower) & (v < 0.0)).any()
    assert not ((q[ARM] >= upper) & (v > 0.0)).any()
    assert 0.0 < answer.scale <= 1.0
    np.testing.assert_allclose(answer.achieved + answer.residual, answer.scale * twist, rtol=1e-9, atol=1e-12)
    ratio = answer.jacobian.smallest / answer.jacobian.largest
    if not answer.blocked and ratio > 0.021:
        np.testing.assert_allclose(answer.achieved, answer.scale * twist, atol=1e-9 * max(speed, 1.0))


@pytest.mark.parametrize("name", sorted(ROBOTS))
def test_singular_configurations_give_no_nan_and_bounded_velocities(name: str) -> None:
    robot = ROBOTS[name][0]()
    if any(joint.type.num_variables > 3 for joint in robot.joints):
        pytest.skip("floating joints have no velocity per variable")
    variables = np.arange(robot.nq)
    for q in (np.zeros(robot.nq), robot.default_q, np.clip(robot.limits.upper, -3.0, 3.0)):
        for axis in range(6):
            answer = joint_velocity(
                robot, robot.root_link, robot.link_names[-1], variables, q, np.eye(6)[axis]
            )
            assert np.isfinite(answer.velocity).all()
            assert np.isfinite([answer.jacobian.smallest, answer.jacobian.largest]).all()


@pytest.mark.filterwarnings("error")
def test_however_large_the_twist_velocities_keep_its_direction() -> None:
    twist = np.array([0.4, -1.0, 0.2, 0.3, 0.0, 0.5])
    expected = joint_velocity(PANDA, BASE, TIP, ARM, PANDA.default_q, 1e3 * twist)
    for size in (1e20, 1e200, 1.7e308):
        answer = joint_velocity(PANDA, BASE, TIP, ARM, PANDA.default_q, size * twist)
        np.testing.assert_allclose(answer.velocity, expected.velocity, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(answer.scale, 1e3 * expected.scale / size, rtol=1e-12)
        np.testing.assert_allclose(answer.residual, 0.0, atol=1e-12)


def test_numbers_that_overflow_are_no_success() -> None:
    for x in (1e200, 1e308):
        tool = pose(np.eye(3), np.array([x, x, 0.0]))
        with np.errstate(all="ignore"), pytest.raises(KinoptError, match="too large"):
            joint_velocity(PANDA, BASE, TIP, ARM, PANDA.default_q, np.ones(6), T_link_tool=tool)
    tool = pose(np.eye(3), np.array([1.7e308, 1.7e308, 1.7e308]))
    with np.errstate(all="ignore"), pytest.raises(InvalidStateError, match="too large"):
        frame_jacobian(PANDA, BASE, TIP, ARM, np.ones(PANDA.nq), "base", tool)


def test_a_stretched_arm_is_called_near_singular() -> None:
    assert frame_jacobian(PANDA, BASE, TIP, ARM, np.zeros(PANDA.nq)).near_singular
    assert not frame_jacobian(PANDA, BASE, TIP, ARM, PANDA.default_q).near_singular


def test_locked_joints_are_the_reduced_problem() -> None:
    q = PANDA.default_q
    some = np.array([0, 1, 3, 5, 6])
    twist = np.array([0.1, 0.0, -0.05, 0.0, 0.2, 0.0])
    whole = frame_jacobian(PANDA, BASE, TIP, ARM, q)
    reduced = frame_jacobian(PANDA, BASE, TIP, some, q)
    np.testing.assert_array_equal(reduced.J, whole.J[:, some])
    answer = joint_velocity(PANDA, BASE, TIP, some, q, twist)
    expected = np.linalg.lstsq(reduced.J, answer.scale * twist, rcond=None)[0]
    np.testing.assert_allclose(answer.velocity, expected, atol=1e-9)


def test_bad_input_is_refused_by_name() -> None:
    q = PANDA.default_q
    with pytest.raises(UnknownNameError, match="world, base, tip"):
        frame_jacobian(PANDA, BASE, TIP, ARM, q, "leaf")
    with pytest.raises(UnknownLinkError, match="flange"):
        frame_jacobian(PANDA, BASE, "flange", ARM, q)
    with pytest.raises(InvalidStateError, match="finite"):
        frame_jacobian(PANDA, BASE, TIP, ARM, np.full(PANDA.nq, np.nan))
    with pytest.raises(InvalidGoalError, match="twist"):
        joint_velocity(PANDA, BASE, TIP, ARM, q, np.array([np.nan, 0, 0, 0, 0, 0]))
    for scaling in (0.0, 1.5, np.nan):
        with pytest.raises(InvalidRequestError, match="velocity_scaling"):
            joint_velocity(PANDA, BASE, TIP, ARM, q, np.zeros(6), velocity_scaling=scaling)


def test_floating_joints_are_refused_where_they_should_move_and_fine_where_they_stand() -> None:
    text = (
        '<robot name="f"><link name="a"/><link name="b"/><link name="c"/>'
        '<joint name="free" type="floating"><parent link="a"/><child link="b"/></joint>'
        '<joint name="turn" type="continuous"><parent link="b"/><child link="c"/><origin xyz="1 0 0"/>'
        '<axis xyz="0 0 1"/><limit velocity="1" effort="1"/></joint></robot>'
    )
    robot = robot_from_urdf(text)
    q = robot.default_q
    with pytest.raises(UnsupportedFeatureError, match="quaternion"):
        frame_jacobian(robot, "a", "c", np.arange(robot.nq), q)
    turn = np.array([robot.variable_index["turn"]])
    tool = pose(np.eye(3), np.array([0.5, 0.0, 0.0]))
    J = frame_jacobian(robot, "a", "c", turn, q, "base", tool).J
    np.testing.assert_allclose(J[:, 0], [0, 0.5, 0, 0, 0, 1], atol=1e-12)


def test_a_joint_at_its_bound_moves_at_it_and_the_others_make_up_for_it() -> None:
    q = PANDA.default_q.copy()
    q[:7] = [0.3, -0.6, 0.2, -2.0, 0.4, 1.7, 0.5]
    twist = np.array([0.05, -0.02, 0.03, 0.1, 0.0, -0.1])
    free = joint_velocity(PANDA, BASE, TIP, ARM, q, twist)
    bounds = np.array([np.full(7, -9.0), np.full(7, 9.0)])
    joint = 2  # without which the arm is not near a singularity
    bounds[:, joint] = -0.5 * abs(free.velocity[joint]), 0.5 * abs(free.velocity[joint])
    answer = joint_velocity(PANDA, BASE, TIP, ARM, q, twist, bounds=bounds)
    assert answer.blocked == (f"panda_joint{joint + 1}",)
    assert answer.velocity[joint] == pytest.approx(0.5 * free.velocity[joint])
    np.testing.assert_allclose(answer.achieved, twist, atol=1e-9)  # seven joints can do without one of them
    with pytest.raises(InvalidRequestError, match="0 between"):
        joint_velocity(PANDA, BASE, TIP, ARM, q, twist, bounds=np.ones((2, 7)))
