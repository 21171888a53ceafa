"""Whether a robot is in its motion, behind drives that lag, or behind it by a controller that slows it down."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from kinopt_ros.errors import StartStateError
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion import published
from kinopt_ros.ros.motion.drives import is_there, time_in
from kinopt_ros.ros.motion.published import ToldMotion
from kinopt_ros.ros.robot import joint_states
from kinopt_ros.ros.robot.joint_states import JointStates, RobotState
from kinopt_ros.trajectory.braking import MotionState
from kinopt_ros.trajectory.simulated_controller import SimulatedController, Waypoint
from kinopt_ros.trajectory.timing import point_to_point

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
NOW = 10**15
SHARES = (0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95)
"""Of the motion that is over."""
MOST_BESIDE = 0.01
"""How far a slowed robot may be beside its motion before that has to be seen, rad."""


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is of the time that a test says, however long the test takes."""
    monkeypatch.setattr(joint_states, "time", SimpleNamespace(monotonic=lambda: 0.0))


def a_setup() -> ServoSetup:
    return servo_setup(PANDA, "panda_link0", "panda_link0", ARM)


def a_motion() -> Commanded:
    limits = (getattr(PANDA.limits, name)[:7] for name in ("velocity", "acceleration", "jerk"))
    goal = PANDA.default_q[:7] + np.array([1.5, *[0.3] * 6])
    return Commanded(point_to_point(ARM, PANDA.default_q[:7], goal, *limits), NOW, NOW, NOW)


def done_by(motion: Commanded, drive_lag: float | np.ndarray, speed_scaling: float) -> SimulatedController:
    controller = SimulatedController(ARM, PANDA.default_q[:7], drive_lag, speed_scaling)
    given = motion.trajectory
    rows = zip(given.nanoseconds.tolist(), given.position, given.velocity, given.acceleration, strict=True)
    controller.take(ARM, [Waypoint(time, *row) for time, *row in rows], NOW, NOW)
    return controller


def measured(robot: Callable[[int], Any], now: int, speeds: bool = True) -> RobotState:
    """What a driver says at 50 Hz."""
    states = JointStates()
    for time in range(now - 200_000_000, now + 1, 20_000_000):
        there = robot(time)
        velocity = there.velocity.tolist() if speeds else []
        states.update(JointState(name=ARM, position=there.position.tolist(), velocity=velocity), time, time)
    return states.of(PANDA)


@pytest.mark.parametrize("lag", [0.0, 0.005, 0.02, 0.04])
def test_drives_of_the_first_order_are_in_time(lag: float) -> None:
    motion, setup = a_motion(), a_setup()
    for share in SHARES:
        now = NOW + round(share * (motion.end - NOW))
        state = measured(done_by(motion, lag, 1.0).measured, now)
        assert time_in(motion, setup, state, now) is not None, share


def test_drives_that_lag_by_different_times_are_in_time_for_who_trusts_them() -> None:
    """A controller that sets back jerked them by up to 590 times a limit of acceleration."""
    motion, setup = a_motion(), a_setup()
    usually = []
    for share in SHARES:
        now = NOW + round(share * (motion.end - NOW))
        state = measured(done_by(motion, np.linspace(0.003, 0.03, 7), 1.0).measured, now)
        assert time_in(motion, setup, state, now, trusting=True) is not None, share
        usually.append(time_in(motion, setup, state, now))
    assert None in usually


@pytest.mark.parametrize("late", [10_000_000, 20_000_000])
def test_velocities_that_a_driver_filters_are_in_time_for_who_trusts_them(late: int) -> None:
    motion, setup = a_motion(), a_setup()

    def filtered(time: int) -> SimpleNamespace:
        before = motion.at(time - 5_000_000 - late)
        return SimpleNamespace(position=robot.measured(time).position, velocity=before.velocity)

    usually = []
    for share in SHARES[2:]:  # before, it may be a speed slider
        robot = done_by(motion, 0.005, 1.0)
        now = NOW + round(share * (motion.end - NOW))
        state = measured(filtered, now)
        assert time_in(motion, setup, state, now, trusting=True) is not None, share
        usually.append(time_in(motion, setup, state, now))
    assert None in usually


@pytest.mark.parametrize("scaling", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("after", [None, 10**8, 10**9, 3 * 10**9])
def test_a_speed_slider_is_not_in_time_for_who_trusts_drives(after: int | None, scaling: float) -> None:
    """It counts from the last motion: in one after another it was taken for a lag, and jumped by up to 39 mrad."""
    motion, setup = a_motion(), a_setup()
    told: Commanded | ToldMotion = motion
    if after is not None:
        limits = (getattr(PANDA.limits, name)[:7] for name in ("velocity", "acceleration", "jerk"))
        before = point_to_point(ARM, PANDA.default_q[:7] - 0.3, PANDA.default_q[:7], *limits)
        start = NOW - after - round(1e9 * before.duration)
        told = ToldMotion([Commanded(before, start, start, start), motion])
    for share in np.linspace(0.05, 1.0, 50).tolist():
        now = NOW + round(share * (motion.end - NOW))
        robot = done_by(motion, 0.0, scaling)
        beside = np.abs(robot.state(now).position - motion.at(now).position).max()
        got = time_in(told, setup, measured(robot.state, now), now, trusting=True)
        assert beside <= MOST_BESIDE or got is None, (beside, share)


@pytest.mark.parametrize("lag", [0.02, 0.04])
def test_drives_without_velocities_are_in_time_where_their_velocity_is_even(lag: float) -> None:
    motion, setup = a_motion(), a_setup()
    now = NOW + (motion.end - NOW) // 2
    state = measured(done_by(motion, lag, 1.0).measured, now, speeds=False)
    assert time_in(motion, setup, state, now) is not None


@pytest.mark.parametrize("late", [5_000_000, 40_000_000, 90_000_000])
def test_joint_states_that_are_older_than_they_say_are_in_time(late: int) -> None:
    motion, setup = a_motion(), a_setup()
    for share in SHARES[2:5]:  # where it is quick
        now = NOW + round(share * (motion.end - NOW))
        got = time_in(motion, setup, measured(lambda time: motion.at(time - late), now), now)
        assert got is not None
        assert abs(got - (now - late)) <= 2_000_000


@pytest.mark.parametrize("speeds", [True, False])
@pytest.mark.parametrize("scaling", [0.3, 0.8, 0.9, 0.95])
def test_a_speed_slider_is_not_in_time(scaling: float, speeds: bool) -> None:
    """At one moment it may be where drives that lag would be, and as fast, but not a little before."""
    motion, setup = a_motion(), a_setup()
    robot = done_by(motion, 0.0, scaling)
    for share in np.linspace(0.05, 1.0, 50).tolist():
        now = NOW + round(share * (motion.end - NOW))
        beside = np.abs(robot.state(now).position - motion.at(now).position).max()
        got = time_in(motion, setup, measured(robot.state, now, speeds), now)
        assert beside <= MOST_BESIDE or got is None, (beside, share)


@pytest.mark.parametrize("speeds", [True, False])
@pytest.mark.parametrize("scaling", [0.8, 0.95, 0.98, 0.99])
@pytest.mark.parametrize("lag", [0.0, 0.01])
def test_a_speed_slider_is_never_where_the_motion_is(lag: float, scaling: float, speeds: bool) -> None:
    """One of 98 % was taken for drives that lag, and was to jump by 46 mrad."""
    motion, setup = a_motion(), a_setup()
    for share in np.linspace(0.05, 1.0, 50).tolist():
        now = NOW + round(share * (motion.end - NOW))
        robot = done_by(motion, lag, scaling)
        state = measured(robot.measured, now, speeds)
        beside = np.abs(robot.measured(now).position - motion.at(now).position).max()
        assert beside <= 1e-3 or not is_there(motion, setup, state, now), (beside, share)


def test_a_robot_that_does_its_motion_is_there() -> None:
    motion, setup = a_motion(), a_setup()
    for share in SHARES:
        now = NOW + round(share * (motion.end - NOW))
        assert is_there(motion, setup, measured(done_by(motion, 0.0, 1.0).measured, now), now), share


def test_a_robot_that_brakes_is_not_in_time() -> None:
    motion, setup = a_motion(), a_setup()
    now = NOW + (motion.end - NOW) // 2

    def braking(time: int) -> MotionState:
        there = motion.at(time - 50_000_000)
        return MotionState(there.position, 0.8 * there.velocity, there.acceleration)

    def elsewhere(time: int) -> MotionState:
        there = motion.at(time - 50_000_000)
        return MotionState(there.position - 0.05, there.velocity, there.acceleration)

    for robot in (braking, elsewhere):
        assert time_in(motion, setup, measured(robot, now), now) is None


LAGS = [0.0, 0.02, np.linspace(0.005, 0.015, 7)]


@pytest.mark.parametrize("lag", LAGS, ids=["exact", "20 ms", "5 to 15 ms"])
@pytest.mark.parametrize("passed", [120, 135, 150])
def test_a_robot_that_somebody_else_has_just_taken_over_is_not_in_its_motion(
    lag: float | np.ndarray, passed: int
) -> None:
    """It was beside its motion by no more than drives may lag, and what left the motion set it on by up to 43 mrad."""
    motion, setup = a_motion(), a_setup()
    taken = NOW + round(0.4 * (motion.end - NOW))
    robot = done_by(motion, lag, 1.0)
    state = measured(robot.measured, taken)
    published.check_keeps_stamps(motion, setup, state, taken)
    at, still = motion.at(taken), np.zeros(7)
    theirs = at.position + 0.3 * at.velocity + np.array([0.0, 0.0, 0.4, 0.0, -0.4, 0.0, 0.0])
    first = Waypoint(0, at.position, at.velocity, at.acceleration)
    robot.take(ARM, [first, Waypoint(600_000_000, theirs, still, still)], taken, taken)
    now = taken + passed * 1_000_000
    state = measured(robot.measured, now)
    assert published.followed(motion, setup, state, now, 0.01)
    with pytest.raises(StartStateError, match=r"somebody else|slower"):
        published.check_keeps_stamps(motion, setup, state, now)


@pytest.mark.parametrize("lag", LAGS, ids=["exact", "20 ms", "5 to 15 ms"])
def test_no_robot_that_nobody_else_moves_is_taken_to_be_led_aside(lag: float | np.ndarray) -> None:
    motion, setup = a_motion(), a_setup()
    for share in np.linspace(0.05, 0.95, 19):
        now = NOW + round(share * (motion.end - NOW))
        state = measured(done_by(motion, lag, 1.0).measured, now)
        assert not published._is_led_aside(motion, setup, state, now)
