"""When a published motion begins."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.errors import StartStateError
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion.published import (
    EARLIEST,
    EARLIEST_AT_ONCE,
    PAST,
    QUINTIC,
    Published,
    begin_of,
    check_clock,
    check_keeps_stamps,
    followed_motion,
    lead_to,
    told_by,
)
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.robot.parameters import MOST_DELAY, START_DELAY
from kinopt_ros.ros.robot.publisher_clock import LATEST
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory as Trajectory
from kinopt_ros.trajectory.timing import point_to_point

PANDA = load_robot("panda")
ARM = [f"panda_joint{i + 1}" for i in range(7)]
NOW = 5_000_000_000


class Measured:
    """A joint state of the arm at rest."""

    name, position, velocity = ARM, PANDA.default_q[:7].tolist(), [0.0] * 7


def states(late: float | None) -> JointStates:
    """Joint states that arrive so many seconds after their stamp; None: without one."""
    made = JointStates()
    made.update(Measured(), 0 if late is None else NOW - round(1e9 * late), NOW)
    return made


def motion(speed: float = 0.0, beside: float = 0.0) -> JointTrajectory:
    positions = [Measured.position[0] + beside, *Measured.position[1:]]
    point = JointTrajectoryPoint(positions=positions, velocities=[0.0] * 6 + [speed])
    return JointTrajectory(joint_names=ARM, points=[point])


@pytest.mark.parametrize("late", [0.0, EARLIEST, 0.01, LATEST])
def test_a_motion_from_rest_begins_ahead_where_clocks_agree(late: float) -> None:
    assert begin_of(motion(), PANDA, states(late).of(PANDA), NOW) == NOW + round(1e9 * START_DELAY)


@pytest.mark.parametrize(("beside", "within"), [(0.002, True), (0.01, True), (0.3, False)])
def test_one_that_begins_beside_the_robot_leaves_time_to_get_there(beside: float, within: bool) -> None:
    """A controller was to get there in 0.1 s, by 5 times a limit of 1 rad/s^2."""
    slow = replace(PANDA, limits=replace(PANDA.limits, acceleration=np.full(PANDA.nq, 2.0)))
    begin = begin_of(motion(beside=beside), slow, states(0.0).of(slow), NOW)
    assert begin is not None
    seconds = (begin - NOW) / 1e9
    assert START_DELAY <= seconds <= MOST_DELAY
    still = np.zeros((2, 1))
    way = Trajectory(("j",), np.array([0.0, seconds]), np.array([[0.0], [beside]]), still, still)
    acceleration = evaluate(way, np.linspace(0.0, seconds, 1001))[2]
    assert (np.abs(acceleration).max() <= 2.0 + 1e-6) == within


@pytest.mark.parametrize(("droop", "within"), [(0.0, True), (0.005, True), (0.02, False)])
def test_one_that_begins_beside_where_the_controller_holds_the_robot_leaves_time_to_get_there(
    droop: float, within: bool
) -> None:
    """Gravity pulls joints down from there; each motion to a target began by 12 times a limit of 1 rad/s^2."""
    slow = replace(PANDA, limits=replace(PANDA.limits, acceleration=np.full(PANDA.nq, 1.0)))
    before = Published(motion(beside=droop), slow, NOW - 10**10)
    begin = begin_of(motion(), slow, states(0.0).of(slow), NOW, published=[before])
    assert begin is not None
    seconds = (begin - NOW) / 1e9
    assert START_DELAY <= seconds <= MOST_DELAY
    assert (QUINTIC * droop / seconds**2 <= 1.0 + 1e-6) == within


@pytest.mark.parametrize("late", [None, EARLIEST - 0.01, LATEST + 0.01, 1e6])
def test_one_begins_when_it_comes_where_they_do_not_or_nobody_knows(late: float | None) -> None:
    assert begin_of(motion(), PANDA, states(late).of(PANDA), NOW) is None


def test_one_that_begins_in_motion_is_not_put_off() -> None:
    """Its first point is where the robot is now, and not a moment later."""
    assert begin_of(motion(0.1), PANDA, states(0.0).of(PANDA), NOW) is None
    assert begin_of(JointTrajectory(joint_names=ARM), PANDA, states(0.0).of(PANDA), NOW) is None


@pytest.mark.parametrize(
    ("late", "refused"), [(-0.01, False), (0.4, False), (-0.03, True), (-0.3, True), (3.0, True)]
)
def test_what_is_sent_at_once_is_for_controllers_of_the_same_clock(late: float, refused: bool) -> None:
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, tuple(ARM))
    state = states(late).of(PANDA)
    if not refused:
        check_clock(state, setup, EARLIEST_AT_ONCE)
        return
    with pytest.raises(StartStateError, match=r"'panda_joint1' is stamped .* that clock"):
        check_clock(state, setup, EARLIEST_AT_ONCE)


@pytest.mark.parametrize(
    ("ahead", "refused"),
    [(-0.3, "behind the motion"), (-0.1, ""), (0.0, ""), (0.03, ""), (START_DELAY, "start_delay")],
)
def test_a_robot_ahead_of_its_motion_has_a_controller_that_does_not_keep_stamps(
    ahead: float, refused: str
) -> None:
    """By a motion that begins where it was never measured to be, it would be set back."""
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, tuple(ARM))
    limits = setup.limits
    begin = PANDA.default_q[:7]
    way = point_to_point(tuple(ARM), begin, begin + 1.0, limits.velocity, limits.acceleration, limits.jerk)
    motion = Commanded(way, NOW, NOW, NOW)
    measured = Measured()
    now = NOW + 500_000_000
    at = motion.at(now + round(1e9 * ahead))
    measured.position, measured.velocity = at.position.tolist(), at.velocity.tolist()
    made = JointStates()
    made.update(measured, now, now)
    if not refused:
        check_keeps_stamps(motion, setup, made.of(PANDA), now)
        return
    with pytest.raises(StartStateError, match=refused):
        check_keeps_stamps(motion, setup, made.of(PANDA), now)


@pytest.mark.parametrize(
    ("scale", "late", "refused"), [(1.0, 0.0, False), (1.0, 0.06, False), (0.9, 0.0, True), (0.5, 0.0, True)]
)
def test_a_robot_that_is_slowed_down_does_not_leave_its_motion(
    scale: float, late: float, refused: bool
) -> None:
    """It was to be at once where the motion should be: 4 times a limit of velocity. Drives lag, but are as fast."""
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, tuple(ARM))
    limits = (getattr(PANDA.limits, name)[:7] for name in ("velocity", "acceleration", "jerk"))
    move = point_to_point(tuple(ARM), PANDA.default_q[:7], PANDA.default_q[:7] + 1.0, *limits)
    motion = Commanded(move, NOW, NOW, NOW)
    passed = 0.5 * move.time[-1]
    now = NOW + round(1e9 * passed)
    there = motion.at(NOW + round(1e9 * (scale * passed - late)))
    made = JointStates()
    velocity = (scale * there.velocity).tolist()
    made.update(JointState(name=ARM, position=there.position.tolist(), velocity=velocity), now, now)
    if refused:
        with pytest.raises(StartStateError, match="behind the motion that it is in, and slower"):
            check_keeps_stamps(motion, setup, made.of(PANDA), now)
    else:
        check_keeps_stamps(motion, setup, made.of(PANDA), now)


@pytest.mark.parametrize(
    ("pace", "lag", "refused"), [(0.5, 0.0, True), (0.3, 0.0, True), (1.0, 0.01, False), (1.0, 0.03, False)]
)
@pytest.mark.parametrize("passed", [0.2, 0.25, 0.3])
def test_a_motion_that_is_slowed_down_from_its_begin_is_not_left(
    pace: float, lag: float, refused: bool, passed: float
) -> None:
    """Where the joints were, it was too slow to say at which share of its speed: 0.1 rad in 1 ms."""
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, tuple(ARM))
    own = PANDA.limits
    limits = own.velocity[:7], 0.1 * own.acceleration[:7], own.jerk[:7]
    move = point_to_point(tuple(ARM), PANDA.default_q[:7], PANDA.default_q[:7] + 1.0, *limits)
    motion = Commanded(move, NOW, NOW, NOW)
    made, velocity = JointStates(), np.zeros(7)
    for time in np.arange(-0.3, passed, 0.01):
        there = motion.at(NOW + round(1e9 * (pace * time - lag)))
        velocity = pace * there.velocity * (time >= lag)
        state = JointState(name=ARM, position=there.position.tolist(), velocity=velocity.tolist())
        made.update(state, NOW + round(1e9 * time), NOW + round(1e9 * time))
    now = NOW + round(1e9 * float(time))
    if refused:
        with pytest.raises(StartStateError, match="behind the motion that it is in, and slower"):
            check_keeps_stamps(motion, setup, made.of(PANDA), now)
    else:
        check_keeps_stamps(motion, setup, made.of(PANDA), now)


@pytest.mark.parametrize("lag", [0.02, 0.04, 0.08])
def test_a_driver_that_measures_no_velocities_may_lag(lag: float) -> None:
    """A third of what takes over from a motion was refused, as if the motion were slowed down."""
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, tuple(ARM))
    limits = (getattr(PANDA.limits, name)[:7] for name in ("velocity", "acceleration", "jerk"))
    move = point_to_point(tuple(ARM), PANDA.default_q[:7], PANDA.default_q[:7] + 1.0, *limits)
    motion = Commanded(move, NOW, NOW, NOW)
    for share in (0.2, 0.4, 0.6, 0.8, 0.95):
        now = NOW + round(1e9 * share * move.time[-1])
        made = JointStates()
        for before in range(40, -1, -4):
            at = now - before * 1_000_000
            there = motion.at(at - round(1e9 * lag))
            made.update(JointState(name=ARM, position=there.position.tolist()), at, at)
        check_keeps_stamps(motion, setup, made.of(PANDA), now)


def test_without_a_delay_a_motion_begins_when_it_comes() -> None:
    assert begin_of(motion(), PANDA, states(0.0).of(PANDA), NOW, 0.0) is None


def test_a_brake_is_not_gone_on_from() -> None:
    """Where it begins is a guess that the controller never gets."""
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, tuple(ARM))
    points = [
        JointTrajectoryPoint(positions=Measured.position, velocities=[0.0] * 7, accelerations=[0.0] * 7)
        for _ in range(2)
    ]
    points[1].time_from_start.sec = 1
    message = JointTrajectory(joint_names=ARM, points=points)
    state = states(0.0).of(PANDA)
    for brakes in (False, True):
        one = Published(message, PANDA, NOW, brakes=brakes)
        assert (followed_motion([one], setup, state, NOW, 0.05) is None) == brakes


@pytest.mark.parametrize(("name", "hard"), [("panda", False), ("ur5", True)])
def test_a_stop_that_is_harder_than_motions_is_not_gone_on_from(name: str, hard: bool) -> None:
    """Nobody has stated a jerk of the UR5: a motion that left its stop turned back."""
    robot = load_robot(name)
    names = [joint for joint in robot.variable_names if "finger" not in joint]
    rest = [float(robot.default_q[robot.variable_index[joint]]) for joint in names]
    still = [0.0] * len(names)
    points = [JointTrajectoryPoint(positions=rest, velocities=still, accelerations=still) for _ in range(2)]
    points[1].time_from_start.sec = 1
    measured = JointStates()
    measured.update(SimpleNamespace(name=names, position=rest, velocity=still), NOW, NOW)
    setup = servo_setup(robot, robot.root_link, robot.root_link, tuple(names))
    for stops in (False, True):
        one = Published(JointTrajectory(joint_names=names, points=points), robot, NOW, stops=stops)
        found = followed_motion([one], setup, measured.of(robot), NOW, 0.05)
        assert (found is None) is (stops and hard)


def sent(value: float, start: int) -> Published:
    """A motion that stands at one place for ten seconds."""
    points = [
        JointTrajectoryPoint(positions=[value] * 7, velocities=[0.0] * 7, accelerations=[0.0] * 7)
        for _ in "12"
    ]
    points[1].time_from_start.sec = 10
    message = JointTrajectory(joint_names=ARM, points=points)
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(start, 10**9)
    return Published(message, PANDA, start)


def test_what_joints_were_told_lately_is_known_until_it_counts_no_more() -> None:
    last: Published | None = None
    for k in range(40):
        last = sent(0.1 * k, NOW + k * PAST // 10).with_past(last)
    assert last is not None
    told = told_by(last, tuple(ARM))
    assert told is not None
    times = NOW + np.arange(29 * PAST // 10, 45 * PAST // 10, PAST // 100)
    expected = 0.1 * np.minimum((times - NOW) // (PAST // 10), 39)
    np.testing.assert_allclose(told.at_all(times)[0][:, 0], expected)
    assert [told.at(int(time)).position[0] for time in times] == pytest.approx(expected)
    assert len(last.past) == 10  # the oldest is told until the time that still counts
    assert not any(one.past for one in last.past)  # which would keep all that ever was


def test_a_past_keeps_nothing_of_before() -> None:
    """Each stop kept the motion that it had ended, and that the stop before: for ever."""
    last: Published | None = None
    for k in range(10):
        motion = sent(0.0, NOW + 2 * k * PAST // 10).with_past(last)
        last = replace(sent(0.0, NOW + (2 * k + 1) * PAST // 10), before=motion).with_past(motion)
        assert all(one.before is None for one in last.past)


def test_a_past_without_stamps_is_none() -> None:
    unstamped = sent(0.0, 0)
    assert not sent(1.0, NOW).with_past(unstamped).past
    assert not unstamped.with_past(sent(1.0, NOW)).past


@pytest.mark.parametrize(
    ("beside", "delay", "lead"),
    [
        (0.0, 0.1, 0),
        (1e-3, 0.1, 27_745_276),
        (5e-3, 0.1, 62_040_324),
        (0.03, 0.1, 151_967_137),
        (5e-3, 0.0, 0),
    ],
)
def test_how_long_a_controller_takes_to_where_the_robot_is(beside: float, delay: float, lead: int) -> None:
    """From where it holds the joints: each goal began with a step of what they were measured beside that."""
    held = PANDA.default_q[:7].copy()
    held[1] -= beside
    point = JointTrajectoryPoint(positions=held[::-1].tolist())
    before = Published(JointTrajectory(joint_names=ARM[::-1], points=[point]), PANDA, NOW)
    for published, expected in (([before], lead), ([], round(delay * 1e9))):
        assert lead_to(PANDA, ARM, PANDA.default_q[:7], published, delay) == pytest.approx(expected, abs=10)
