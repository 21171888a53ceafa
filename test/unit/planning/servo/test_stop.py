"""Stops of motions whose time is known: quick, and nowhere but where the motion leads."""

from typing import Annotated

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.session import Session
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.planning.servo.stop import leads_beyond, only_slows, quickest_stop
from kinopt_ros.planning.servo.velocity import Wanted
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

PANDA, UR5 = load_robot("panda"), load_robot("ur5")
JOINTS = tuple(f"panda_joint{i + 1}" for i in range(7))
READY = np.array([0.0, -0.7, 0.0, -2.0, 0.0, 1.5, 0.7])
SETUP = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, JOINTS)


@pytest.mark.parametrize("by", [-0.05, -0.01, 0.0, 0.004])
def test_how_far_a_stop_leads_beyond_its_motion(by: float) -> None:
    goal = np.zeros(7)
    goal[[0, 3]] = 0.5, -0.4  # joints that move up, and down
    motion = Commanded(rest_to_rest(READY, READY + goal, 1.0), 0, 10**9, 0)
    now = 600_000_000
    state = motion.at(now)
    stop = rest_to_rest(state.position, READY + goal * (1.0 + by / 0.5), 0.3)
    found = leads_beyond(Commanded(stop, now, now, now), motion, now)
    assert found == pytest.approx(max(0.0, by), abs=1e-9)


def rest_to_rest(
    start: Annotated[Float64, "n"], goal: Annotated[Float64, "n"], seconds: float
) -> JointTrajectory:
    still = np.zeros((2, 7))
    return JointTrajectory(JOINTS, np.array([0.0, seconds]), np.array([start, goal]), still, still.copy())


def planned(seed: int) -> Commanded:
    """A motion as fast as the limits allow, of joints that go differently far."""
    rng = np.random.default_rng(seed)
    start, goal = PANDA.default_q.copy(), PANDA.default_q.copy()
    goal[:7] = np.clip(
        goal[:7] + rng.uniform(-1.5, 1.5, 7), PANDA.limits.lower[:7] + 0.01, PANDA.limits.upper[:7] - 0.01
    )
    motion = plan_joint_motion(PANDA, JOINTS, start, np.zeros(PANDA.nq), goal, 1.0, 1.0).trajectory
    return Commanded(motion, 0, round(1e9 * motion.duration), 0)


def of_a_quick_robot(jerk: float | None) -> tuple[ServoSetup, Commanded]:
    """A UR5 with accelerations of 10 rad/s^2 that turns its first joint by 2.5 rad; ``jerk``: its limit, if any."""
    stated: dict[str, object] = {"has_acceleration_limits": True, "max_acceleration": 10.0}
    if jerk is not None:
        stated |= {"has_jerk_limits": True, "max_jerk": jerk}
    robot = apply_joint_limits(UR5, dict.fromkeys(UR5.variable_names, stated))
    start, goal = robot.default_q.copy(), robot.default_q.copy()
    goal[0] += 2.5
    joints = tuple(robot.variable_names)
    motion = plan_joint_motion(robot, joints, start, np.zeros(robot.nq), goal, 1.0, 1.0).trajectory
    setup = servo_setup(robot, robot.root_link, robot.root_link, joints)
    return setup, Commanded(motion, 0, round(1e9 * motion.duration), 0)


@pytest.mark.parametrize("after", [40, 80, 160, 400])
def test_servo_does_not_turn_back_as_it_leaves_a_stop(after: int) -> None:
    """Within the jerk of motions it took a second to take the stop's deceleration back, and went 6 rad the other
    way."""
    setup, running = of_a_quick_robot(None)
    begin = round(0.5 * running.end)
    session, slowest, moves = Session(setup, running, goes_on=True), np.inf, False
    for now in range(begin, begin + 10**9, setup.period):
        pushed = now >= begin + after * 10**6
        wanted = np.full(len(setup.joints), 0.05 if pushed else 0.0)
        step = session.advance(
            setup, now, setup.robot.default_q, lambda state, q, time, to=wanted: Wanted(to)
        )
        if now >= session.begins:
            session.accept(setup, step)
            assert step.status is Status.SUCCESS, step.sentence
        velocity = session.commanded.at(now + setup.period).velocity
        slowest = min(slowest, float(velocity[0]))
        moves = bool(velocity[1] > 0.01)
    assert slowest > -1e-3
    assert moves  # as servo was asked to, when the robot stood


@pytest.mark.parametrize("jerk", [None, 10.0])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.4, 0.5, 0.6, 0.8])
def test_a_stop_does_not_wait_for_a_jerk_that_nobody_has_stated(share: float, jerk: float | None) -> None:
    """Robots of most URDFs, with accelerations of MoveIt's, got faster for a second, and went on for 1.8 rad."""
    setup, running = of_a_quick_robot(jerk)
    now = round(share * running.end)
    state = running.at(now)
    stop, checked = quickest_stop(setup, running, now, setup.robot.default_q)
    speeds = np.abs(evaluate(stop.trajectory, np.linspace(0.0, stop.trajectory.duration, 200))[1]).max()
    seconds = (stop.end - now) / 1e9
    if jerk is None:
        assert seconds <= abs(state.velocity[0]) / 10.0 + 0.2
        assert speeds <= abs(state.velocity[0]) + 0.1
        assert not checked.report.violations
    elif 0.25 < share < 0.7:
        assert seconds > abs(state.velocity[0]) / 10.0 + 0.2  # what was stated holds


@pytest.mark.parametrize("seed", range(8))
def test_a_stop_goes_nowhere_but_where_its_motion_leads_and_is_no_faster(seed: int) -> None:
    """The motion was let end where its stop would have gone beyond, and ran at up to 1.8 times the speed meanwhile."""
    motion = planned(seed)
    stops = 0
    for share in np.linspace(0.05, 0.95, 19):
        now = round(share * motion.end)
        stop, _ = quickest_stop(SETUP, motion, now, PANDA.default_q)
        # A little beyond, rather than much later.
        assert leads_beyond(stop, motion, now) <= 0.021
        if stop.end >= motion.end and only_slows(SETUP, motion, now):
            continue
        stops += 1
        _, before, _ = evaluate(motion.trajectory, np.linspace(now / 1e9, stop.leave / 1e9, 9))
        _, velocity, acceleration = evaluate(
            stop.trajectory, np.linspace(0.0, (stop.end - stop.start) / 1e9, 400)
        )
        fastest = (np.abs(before) / SETUP.unscaled.velocity).max()
        assert (np.abs(velocity) / SETUP.unscaled.velocity).max() <= fastest + 0.2
        assert (np.abs(acceleration) <= 1.51 * SETUP.unscaled.acceleration).all()
        assert stop.end - now < 0.7e9
    assert stops > 5


def turning(seed: int, share: float) -> Commanded:
    """A motion of 6 s whose joints turn at different times, as fast as a share of the limits allows."""
    rng = np.random.default_rng(seed)
    own = PANDA.limits
    rate, phase = 2.0 * np.pi * rng.uniform(0.3, 1.0, 7), rng.uniform(0.0, 2.0 * np.pi, 7)
    far = share * np.minimum(own.acceleration[:7] / rate**2, own.velocity[:7] / rate)
    far = np.minimum(far, 0.4)
    time = np.linspace(0.0, 6.0, 601)
    angle = rate * time[:, None] + phase
    motion = JointTrajectory(
        JOINTS,
        time,
        PANDA.default_q[:7] + far * np.sin(angle),
        far * rate * np.cos(angle),
        -far * rate**2 * np.sin(angle),
    )
    return Commanded(motion, 0, 6 * 10**9, 0)


def test_a_stop_of_joints_that_turn_at_different_times_goes_no_farther_than_they_would() -> None:
    """Each by itself, they would: by up to 0.1 rad."""
    along = quintics = 0
    for seed, share in enumerate((0.3, 0.6, 0.9)):
        motion = turning(seed, share)
        looks = evaluate(motion.trajectory, np.linspace(0.0, 6.0, 6001))[0]
        for now in range(10**8, 3 * 10**9, 10**8):
            alone, _ = quickest_stop(SETUP, motion, now, PANDA.default_q, inside=False)
            stop, _ = quickest_stop(SETUP, motion, now, PANDA.default_q)
            if leads_beyond(alone, motion, now) <= 1e-3:
                assert stop.end == alone.end
                continue
            way, _, acceleration = evaluate(stop.trajectory, np.linspace(0.0, stop.trajectory.duration, 200))
            assert leads_beyond(stop, motion, now) <= 0.021
            assert (np.abs(acceleration) <= 1.71 * SETUP.unscaled.acceleration).all()
            off = np.abs(way[:, None] - looks).max(axis=2).min(axis=1).max()
            along += off < 2e-3
            quintics += off >= 2e-3
    assert along > 5
    assert quintics > 0


@pytest.mark.parametrize("share", [0.6, 0.9])
def test_servo_stops_what_somebody_else_moves_within_the_limits(share: float) -> None:
    """A stop that broke a limit to stay where the motion leads was not sent, and the motion went on."""
    motion = turning(1, share)
    for now in range(10**8, 3 * 10**9, 10**8):
        for wish in (None, lambda state, q, time: Wanted(np.zeros(len(SETUP.joints)))):
            step = Session(SETUP, motion, goes_on=True).advance(SETUP, now, PANDA.default_q, wish)
            assert step.motion is not None
            assert step.motion.report.ok
            assert step.brakes  # so that it is sent even where joint states are silent


def test_what_only_slows_down() -> None:
    motion = planned(0)
    assert not only_slows(SETUP, motion, round(0.05 * motion.end))
    assert only_slows(SETUP, motion, round(0.95 * motion.end))
    assert only_slows(SETUP, motion, motion.end)
