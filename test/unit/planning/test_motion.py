"""A verified move of some joints."""

import numpy as np
import pytest

from kinopt_ros.conformance.robots import continuous_and_prismatic, seven_revolute, with_mimic
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, StartStateError, UnknownJointError
from kinopt_ros.planning.motion import plan_joint_motion

ROBOT = seven_revolute()
JOINTS = [f"j{i + 1}" for i in range(7)]
START = ROBOT.default_q
GOAL = START + np.array([0.5, -0.3, 0.2, 0.1, 0.4, -0.6, 0.3])
STILL = np.zeros(7)


def test_the_motion_is_verified_and_ends_at_the_goal() -> None:
    motion = plan_joint_motion(ROBOT, JOINTS, START, STILL, GOAL, 0.1, 0.1)
    assert motion.report.ok
    np.testing.assert_array_equal(motion.trajectory.position[0], START)
    np.testing.assert_array_equal(motion.trajectory.position[-1], GOAL)
    assert (np.abs(motion.trajectory.velocity) <= 0.1 * ROBOT.limits.velocity * (1 + 1e-9)).all()


def test_scaling_makes_it_slower() -> None:
    slow = plan_joint_motion(ROBOT, JOINTS, START, STILL, GOAL, 0.1, 0.1).trajectory.duration
    fast = plan_joint_motion(ROBOT, JOINTS, START, STILL, GOAL, 1.0, 1.0).trajectory.duration
    assert slow > 2 * fast


@pytest.mark.parametrize("scaling", [0.0, -0.1, 1.1, float("nan")])
def test_scaling_out_of_range_is_refused(scaling: float) -> None:
    with pytest.raises(InvalidRequestError, match="scaling"):
        plan_joint_motion(ROBOT, JOINTS, START, STILL, GOAL, scaling, 0.1)


def test_the_order_of_the_joints_is_the_callers() -> None:
    order = JOINTS[::-1]
    motion = plan_joint_motion(ROBOT, order, START, STILL, GOAL, 0.5, 0.5)
    assert motion.trajectory.joint_names == tuple(order)
    np.testing.assert_array_equal(motion.trajectory.position[-1], GOAL[::-1])


def test_a_moving_joint_must_not_be_left_out_but_a_resting_one_may() -> None:
    with pytest.raises(InvalidRequestError, match="j7"):
        plan_joint_motion(ROBOT, JOINTS[:6], START, STILL, GOAL, 0.1, 0.1)
    goal = GOAL.copy()
    goal[6] = START[6]
    assert plan_joint_motion(ROBOT, JOINTS[:6], START, STILL, goal, 0.1, 0.1).report.ok


def test_a_continuous_joint_takes_the_shorter_way() -> None:
    robot = continuous_and_prismatic()
    start, goal = robot.default_q.copy(), robot.default_q.copy()
    start[1], goal[1] = 3.0, -3.0
    motion = plan_joint_motion(robot, robot.active_joints, start, np.zeros(7), goal, 0.5, 0.5)
    assert motion.report.ok
    assert motion.trajectory.position[-1, 1] == pytest.approx(2 * np.pi - 3.0)


def test_a_start_outside_the_limits_is_named() -> None:
    start = START.copy()
    start[3] = 0.5
    with pytest.raises(StartStateError, match="j4"):
        plan_joint_motion(ROBOT, JOINTS, start, STILL, GOAL, 0.1, 0.1)


def test_sensor_noise_is_no_motion() -> None:
    noise = np.full(7, 1e-4)
    motion = plan_joint_motion(ROBOT, JOINTS, START, noise, GOAL, 0.1, 0.1)
    assert not motion.trajectory.velocity[0].any()


def test_a_moving_robot_goes_on_smoothly() -> None:
    velocity = np.full(7, 0.1)
    motion = plan_joint_motion(ROBOT, JOINTS, START, velocity, GOAL, 0.5, 0.5)
    assert motion.report.ok
    np.testing.assert_allclose(motion.trajectory.velocity[0], velocity)


def test_too_fast_a_start_is_refused() -> None:
    with pytest.raises(StartStateError):
        plan_joint_motion(ROBOT, JOINTS, START, np.full(7, 1.9), GOAL, 0.1, 0.1)


@pytest.mark.parametrize(
    ("joints", "error", "words"),
    [
        (["j1", "j1"], InvalidRequestError, "once"),
        ([], InvalidRequestError, "at least one"),
        (["elbow"], UnknownJointError, "elbow"),
        (["j1", "j3b"], InvalidStateError, "follows 'j3'"),
    ],
)
def test_joints_that_cannot_be_commanded(joints: list[str], error: type[Exception], words: str) -> None:
    robot = with_mimic()
    q = robot.default_q
    with pytest.raises(error, match=words):
        plan_joint_motion(robot, joints, q, np.zeros(6), q, 0.1, 0.1)


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("excess", [1e-8, 5e-4])
def test_a_start_a_little_outside_the_limits_moves_inwards(side: str, excess: float) -> None:
    limit = getattr(ROBOT.limits, side)[3]
    outwards = 1.0 if side == "upper" else -1.0
    start, goal = START.copy(), GOAL.copy()
    start[3] = limit + outwards * excess
    motion = plan_joint_motion(ROBOT, JOINTS, start, STILL, goal, 0.5, 0.5)
    assert motion.report.ok, motion.report.violations
    np.testing.assert_array_equal(motion.trajectory.position[0], start)  # not bent into the limits
    assert (outwards * np.diff(motion.trajectory.position[:, 3]) <= 0.0).all()
    assert (outwards * (motion.trajectory.position[:, 3] - start[3]) <= 0.0).all()


def test_a_joint_may_rest_a_little_outside() -> None:
    start = START.copy()
    start[3] = ROBOT.limits.upper[3] + 1e-4
    goal = GOAL.copy()
    goal[3] = start[3]
    assert plan_joint_motion(ROBOT, JOINTS, start, STILL, goal, 0.5, 0.5).report.ok


def test_the_tolerance_is_the_callers() -> None:
    start = START.copy()
    start[3] = ROBOT.limits.upper[3] + 0.01
    with pytest.raises(StartStateError, match="start_state_tolerance"):
        plan_joint_motion(ROBOT, JOINTS, start, STILL, GOAL, 0.5, 0.5)
    assert plan_joint_motion(ROBOT, JOINTS, start, STILL, GOAL, 0.5, 0.5, 0.02).report.ok


def test_outside_and_moving_outwards_is_never_a_verified_motion() -> None:
    start, velocity = START.copy(), STILL.copy()
    start[3] = ROBOT.limits.upper[3] + 1e-4
    velocity[3] = 0.2
    motion = plan_joint_motion(ROBOT, JOINTS, start, velocity, GOAL, 0.5, 0.5)
    assert {violation.check for violation in motion.report.violations} == {"position limits"}
