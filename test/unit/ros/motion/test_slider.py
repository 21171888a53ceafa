"""A speed slider is told from drives that lag by what was measured lately, and drives are never taken for one."""

from types import SimpleNamespace

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from kinopt_ros.errors import StartStateError
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion.published import check_keeps_stamps
from kinopt_ros.ros.motion.slider import pace_of
from kinopt_ros.ros.robot import joint_states
from kinopt_ros.ros.robot.joint_states import JointStates, RobotState
from kinopt_ros.trajectory.simulated_controller import SimulatedController, Waypoint

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
SETUP = servo_setup(PANDA, "panda_link0", "panda_link0", ARM)
NOW, MS = 10**15, 1_000_000
AHEAD = 100 * MS


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is of the time that a test says, however long the test takes."""
    monkeypatch.setattr(joint_states, "time", SimpleNamespace(monotonic=lambda: 0.0))


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
