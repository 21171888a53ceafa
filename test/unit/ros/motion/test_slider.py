"""A speed slider is told from drives that lag by what was measured lately, and drives are never taken for one."""

from dataclasses import replace

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from kinopt_ros.errors import StartStateError
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion.published import ToldMotion, TooSoonToTellError, check_keeps_stamps
from kinopt_ros.ros.motion.slider import pace_of
from kinopt_ros.ros.robot.joint_states import JointStates, RobotState
from kinopt_ros.trajectory.simulated_controller import SimulatedController, Waypoint

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
SETUP = servo_setup(PANDA, "panda_link0", "panda_link0", ARM)
NOW, MS = 10**15, 1_000_000
AHEAD = 100 * MS


def a_motion(seed: int) -> Commanded:
    goal = PANDA.default_q.copy()
    goal[:7] += np.random.default_rng(seed).uniform(-1.2, 1.2, 7)
    goal = np.clip(goal, PANDA.limits.lower, PANDA.limits.upper)
    still = np.zeros(PANDA.nq)
    motion = plan_joint_motion(
        PANDA, ARM, PANDA.default_q, still, goal, 1.0, 1.0, 0.01, None, 0.0, None
    ).trajectory
    return Commanded(motion, NOW, NOW, NOW)


def seen(
    motion: Commanded, drive_lag: float, pace: float, noise: float = 0.0
) -> list[tuple[int, RobotState]]:
    """What a driver says of it at 125 Hz; at some times."""
    given, random = motion.trajectory, np.random.default_rng(1)
    robot = SimulatedController(ARM, given.position[0], drive_lag, pace)
    rows = zip(given.nanoseconds.tolist(), given.position, given.velocity, given.acceleration, strict=True)
    robot.take(ARM, [Waypoint(time, *row) for time, *row in rows], NOW, NOW - AHEAD)
    states, found = JointStates(), []
    for k, time in enumerate(range(NOW - AHEAD, motion.end, 8 * MS)):
        there = robot.measured(time)
        position = there.position + noise * random.normal(size=7)
        message = JointState(name=ARM, position=position.tolist(), velocity=there.velocity.tolist())
        states.update(message, time, time)
        if k % 10 == 0:
            found.append((time, states.of(PANDA)))
    return found


@pytest.mark.parametrize("noise", [0.0, 3e-4])
@pytest.mark.parametrize("lag", [0.0, 0.01, 0.03, 0.07])
def test_drives_are_no_slider(lag: float, noise: float) -> None:
    for seed in range(4):
        motion = a_motion(seed)
        assert [pace_of(motion, SETUP, state, now) for now, state in seen(motion, lag, 1.0, noise)].count(
            None
        ) > 5
        assert not any(pace_of(motion, SETUP, state, now) for now, state in seen(motion, lag, 1.0, noise))


@pytest.mark.parametrize("pace", [0.9, 0.95, 0.97])
@pytest.mark.parametrize("lag", [0.0, 0.01])
def test_a_slider_is_seen_once_there_was_time(pace: float, lag: float) -> None:
    said = []
    for seed in range(4):
        motion = a_motion(seed)
        said += [
            found for now, state in seen(motion, lag, pace) if (found := pace_of(motion, SETUP, state, now))
        ]
    assert len(said) > 4
    np.testing.assert_allclose(said, pace, atol=0.011)


def test_nobody_leaves_a_motion_that_is_slowed_down() -> None:
    motion = a_motion(0)
    now, state = next((n, s) for n, s in seen(motion, 0.0, 0.97) if pace_of(motion, SETUP, s, n))
    with pytest.raises(StartStateError, match=r"at 97\.\d% of its speed, as by a speed slider"):
        check_keeps_stamps(motion, SETUP, state, now)
    check_keeps_stamps(motion, SETUP, *seen(motion, 0.01, 1.0)[6][::-1])


TELLS = 230 * MS
"""Time from its begin in which a motion may not tell drives from a slider; between two looks 80 ms pass."""


def refused(motion: Commanded, state: RobotState, now: int) -> StartStateError | None:
    try:
        check_keeps_stamps(motion, SETUP, state, now)
    except StartStateError as error:
        return error
    return None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("drive_lag", [0.01, 0.03])
def test_drives_that_lag_while_a_motion_gets_faster_are_no_slider(drive_lag: float, seed: int) -> None:
    """A quarter of the targets that came in such a motion were refused: joints are slower then than the motion ever is
    where they are. At first a slider may look the same: that is said, and until when."""
    motion = a_motion(seed)
    for now, state in seen(motion, drive_lag, 1.0):
        if now <= motion.start:
            continue
        error = refused(motion, state, now)
        assert error is None or (isinstance(error, TooSoonToTellError) and now < motion.start + TELLS), error
        if isinstance(error, TooSoonToTellError):
            assert now < error.until < motion.start + TELLS


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("drive_lag", [0.01, 0.03])
def test_drives_are_told_by_the_motion_before(drive_lag: float, seed: int) -> None:
    """One that goes on from another one need not be on for long."""
    before = a_motion(seed)
    leave = before.near_waypoint(before.start + 300 * MS)
    motion = replace(before.going_on(leave, before.end, []), turn=leave)
    told = ToldMotion([before, motion])
    looks = [pair for pair in seen(before, drive_lag, 1.0) if leave < pair[0] < leave + TELLS]
    assert looks
    for now, state in looks:
        check_keeps_stamps(motion, SETUP, state, now, told)


def test_a_slider_is_not_taken_for_drives_after_a_rest() -> None:
    """That the joints stood before says nothing of what is between their controller and them."""
    motion = a_motion(1)
    first = replace(
        motion.trajectory, position=0.0 * motion.trajectory.position + motion.trajectory.position[0]
    )
    still = replace(first, velocity=0.0 * first.velocity, acceleration=0.0 * first.acceleration)
    stood = Commanded(still, *[NOW - 900 * MS] * 3)
    told = ToldMotion([stood, motion])
    for now, state in seen(motion, 0.0, 0.9):
        behind = np.abs(motion.at(now).position - state.q[SETUP.variables]).max()
        if motion.start < now < motion.end and behind > 0.01:
            assert refused(motion, state, now) is not None
            with pytest.raises(StartStateError):
                check_keeps_stamps(motion, SETUP, state, now, told)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pace", [0.9, 0.8, 0.5])
def test_a_slider_is_never_taken_for_drives(pace: float, seed: int) -> None:
    motion = a_motion(seed)
    looks = 0
    for now, state in seen(motion, 0.0, pace):
        told = motion.at(now)
        behind = np.abs(told.position - state.q[SETUP.variables]).max()
        if now < motion.start + TELLS or now >= motion.end or behind < 0.03:
            continue
        looks += 1
        assert refused(motion, state, now) is not None
    assert looks
