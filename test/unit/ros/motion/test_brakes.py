"""Brakes of motions that controllers do keep the limits, however old the joint states are that they are made from."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.array import Float64
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.messages.conversions import trajectory_from_message, trajectory_message
from kinopt_ros.ros.motion.brakes import brake_of
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
VELOCITY, ACCELERATION = PANDA.limits.velocity[:7], PANDA.limits.acceleration[:7]
START = 10**15


def motion(seed: int) -> JointTrajectory:
    """A motion as fast as the limits allow."""
    rng = np.random.default_rng(seed)
    start, goal = PANDA.default_q.copy(), PANDA.default_q.copy()
    start[:7] += rng.uniform(-0.3, 0.3, 7)
    goal[:7] = np.clip(
        start[:7] + rng.uniform(-1.2, 1.2, 7), PANDA.limits.lower[:7] + 0.01, PANDA.limits.upper[:7] - 0.01
    )
    return plan_joint_motion(PANDA, ARM, start, np.zeros(PANDA.nq), goal, 1.0, 1.0).trajectory


def brake(
    moving: JointTrajectory, t: float, behind: float, lag: float, way: float, slowest: float = 0.0
) -> JointTrajectory:
    """What a controller does that begins the motion so late, and hears a brake made at ``t`` after so long a way;
    ``slowest``: that of joint states lately, s."""
    now = START + round(t * 1e9)
    state: Any = measured(moving, t - behind - lag, behind, now, slowest)
    end = trajectory_from_message(brake_of(in_it(state, now), published(moving)))
    begin = [rows[0] for rows in evaluate(moving, np.array([t + way - lag]))]
    rest = (end.position[-1], np.zeros(7), np.zeros(7))
    rows = [np.array([first, last]) for first, last in zip(begin, rest, strict=True)]
    return JointTrajectory(ARM, np.array([0.0, end.duration]), *rows)


def beyond(moving: JointTrajectory, position: Annotated[Float64, "T n"]) -> float:
    """How far positions are beyond where a motion goes, rad: its brakes went on through its goal by up to 0.3 rad."""
    way, _, _ = evaluate(moving, np.linspace(0.0, moving.duration, 401))
    return float(np.maximum(position - way.max(axis=0), way.min(axis=0) - position).max())


def published(moving: JointTrajectory) -> Published:
    execution: Any = SimpleNamespace(over=False)
    return Published(trajectory_message(moving, "base"), PANDA, START, execution)


def in_it(state: RobotState, now: int) -> Any:
    """A node's context in which this was measured."""
    given = {"servo.state_timeout": 1.0, "servo.tracking_tolerance": 0.05}
    return SimpleNamespace(
        now=lambda: now,
        joint_states=SimpleNamespace(of=lambda robot: state),
        parameter=given.__getitem__,
    )


def measured(moving: JointTrajectory, t: float, behind: float, now: int, slowest: float = 0.0) -> RobotState:
    position, velocity, _ = (rows[0] for rows in evaluate(moving, np.array([t])))
    q, v, nothing = PANDA.default_q.copy(), np.zeros(PANDA.nq), np.zeros(PANDA.nq)
    q[:7], v[:7] = position, velocity
    known, stamp = np.ones(PANDA.nq, dtype=np.bool_), np.full(PANDA.nq, now, dtype=np.int64)
    ages, ways = np.full(PANDA.nq, behind), np.full(PANDA.nq, slowest)
    return RobotState(q, v, known, ages, stamp, nothing, nothing.copy(), nothing, slowest=ways)


@pytest.mark.parametrize(
    ("behind", "lag", "way"),
    [
        (0.0, 0.0, 0.005),
        (0.02, 0.0, 0.03),
        (0.02, 0.05, 0.02),
        (0.02, 0.15, 0.005),
        (0.1, 0.05, 0.03),
        (0.3, 0.0, 0.005),
        (0.3, 0.1, 0.03),
    ],
)
def test_a_brake_keeps_the_limits_whatever_the_joint_states_age(
    behind: float, lag: float, way: float
) -> None:
    """Made of a state 0.3 s old, from which the robot was taken to go on evenly, it went back to there, at 20 times the
    acceleration and 3.6 times the velocity that are allowed; of one 20 ms old at 1.9 times the acceleration."""
    faster, harder, farther = [], [], []
    for seed in range(3):
        moving = motion(seed)
        for t in np.linspace(0.02, moving.duration - 0.02, 12):
            way_to_rest = brake(moving, float(t), behind, lag, way)
            position, velocity, acceleration = evaluate(
                way_to_rest, np.linspace(0.0, way_to_rest.duration, 201)
            )
            farther.append(beyond(moving, position))
            faster.append(np.max(np.abs(velocity) / VELOCITY))
            harder.append(np.max(np.abs(acceleration) / ACCELERATION))
    # A controller's quintic from a joint that is nearly as fast as it may be, and gets faster, overshoots in any case.
    # One that slows down already brakes a little harder, so as not to go on through where it was to come to rest.
    assert max(faster) < 1.12
    assert max(harder) < 1.55
    assert max(farther) < 0.01
    assert np.mean(np.array(faster) > 1.001) < 0.15
    assert np.mean(np.array(harder) > 1.2) < 0.25


@pytest.mark.parametrize("spent", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("lag", [0.0, 0.05])
def test_a_brake_keeps_the_limits_however_much_of_the_slowest_way_it_takes(lag: float, spent: float) -> None:
    """Made for the slowest way alone, it had a controller that got it at once speed up."""
    faster, harder, farther = [], [], []
    for seed in range(3):
        moving = motion(seed)
        for t in np.linspace(0.02, moving.duration - 0.02, 12):
            way_to_rest = brake(moving, float(t), 0.02, lag, spent, slowest=0.1)
            position, velocity, acceleration = evaluate(
                way_to_rest, np.linspace(0.0, way_to_rest.duration, 201)
            )
            farther.append(beyond(moving, position))
            faster.append(np.max(np.abs(velocity) / VELOCITY))
            harder.append(np.max(np.abs(acceleration) / ACCELERATION))
    # As above; it was 1.63 times the velocity.
    assert max(faster) < 1.2
    assert max(harder) < 1.72
    assert max(farther) < 0.02


def test_joint_states_that_lay_unread_for_long_take_no_robot_back_at_once() -> None:
    """A motion was over, and the last joint state that had been read was of its middle: the robot went back there
    within 0.1 s, at four times the velocity that is allowed."""
    moving = motion(0)
    now = START + round(1e9 * moving.duration)
    state = measured(moving, 0.5 * moving.duration, 0.01, now)
    state.late[:] = 0.6  # beyond what counts as its way
    stop = trajectory_from_message(brake_of(in_it(state, now), published(moving)))
    still = np.zeros((2, 7))
    back = np.array([moving.position[-1], stop.position[-1]])
    way = JointTrajectory(ARM, np.array([0.0, stop.duration]), back, still, still)
    _, velocity, acceleration = evaluate(way, np.linspace(0.0, stop.duration, 201))
    assert np.max(np.abs(velocity) / VELOCITY) < 1.001
    assert np.max(np.abs(acceleration) / ACCELERATION) < 1.001


def test_a_brake_that_took_long_to_make_is_made_anew() -> None:
    """Beside other work it came 0.1 to 0.3 s after the states that it was made from, and took the robot back there."""
    moving = motion(0)
    now = START + round(0.3e9 * moving.duration)
    reads: list[int] = []
    looks: list[int] = []

    def clock() -> int:
        late = 150_000_000 if len(reads) > 1 else 0  # asleep while the first one is made
        reads.append(now + late)
        return reads[-1]

    def look(robot: RobotModel) -> RobotState:
        looks.append(reads[-1])
        return measured(moving, (reads[-1] - START) / 1e9, 0.0, reads[-1])

    context = in_it(measured(moving, 0.3 * moving.duration, 0.0, now), now)
    context.now = clock
    context.joint_states = SimpleNamespace(of=look)
    stop = trajectory_from_message(brake_of(context, published(moving)))
    then = evaluate(moving, np.array([(reads[-1] - START) / 1e9]))
    assert looks == [now, now + 150_000_000]
    fastest = int(np.argmax(np.abs(then[1][0])))
    assert (stop.position[-1] - then[0][0])[fastest] * np.sign(then[1][0][fastest]) > 0.0


def test_a_robot_that_is_elsewhere_is_stopped_from_where_it_is() -> None:
    moving = motion(0)
    t = 0.5 * moving.duration
    away = JointTrajectory(
        ARM, moving.time, moving.position + 0.3, 0.5 * moving.velocity, 0.5 * moving.acceleration
    )
    now = START + round(t * 1e9)
    state = measured(away, t, 0.01, now)
    running = Published(trajectory_message(moving, "base"), PANDA, START)
    stop = trajectory_from_message(brake_of(in_it(state, now), running))
    way = stop.position[-1] - state.q[:7]
    assert (way * np.sign(state.velocity[:7]) >= 0.0).all()
    assert np.abs(way).max() < np.abs(stop.position[-1] - running.commanded(ARM).at(now).position).max()  # type: ignore[union-attr]


def test_a_joint_that_slows_down_at_its_limit_is_not_told_to_rest_beyond_it() -> None:
    """It was taken to go on through the limit as long as its state was old, and to be beyond it."""
    moving = motion(0)
    now = START + round(0.5e9 * moving.duration)
    state = measured(moving, 0.5 * moving.duration, 0.3, now)
    state.q[0], state.velocity[0] = PANDA.limits.upper[0] - 0.02, 0.5  # not in the motion
    running = Published(trajectory_message(moving, "base"), PANDA, START)
    stop = trajectory_from_message(brake_of(in_it(state, now), running))
    assert stop.position[-1][0] <= PANDA.limits.upper[0] + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_a_joint_whose_velocity_nobody_measures_is_not_told_to_rest_beyond_its_limit(seed: int) -> None:
    """The way lately is faster than a joint that slows down, so it was taken for an earlier time of its motion, and
    beyond its limit: by up to 35 mrad, from where every motion was refused."""
    rng = np.random.default_rng(seed)
    start, goal = PANDA.default_q.copy(), PANDA.default_q.copy()
    joint = int(rng.integers(7))
    goal[joint] = PANDA.limits.upper[joint]
    start[joint] = goal[joint] - 1.0
    moving = plan_joint_motion(PANDA, ARM, start, np.zeros(PANDA.nq), goal, 1.0, 1.0).trajectory
    for share in (0.85, 0.9, 0.95, 0.98):
        t = share * moving.duration
        now = START + round(t * 1e9)
        state = measured(moving, t, 0.0, now)
        before = measured(moving, t - 0.05, 0.0, now)
        state = replace(state, velocity=np.zeros(PANDA.nq), drift=(state.q - before.q) / 0.05)
        end = trajectory_from_message(brake_of(in_it(state, now), published(moving)))
        assert end.position[-1][joint] <= PANDA.limits.upper[joint] + 1e-3
        assert beyond(moving, end.position[-1:]) <= 1e-3


@pytest.mark.parametrize("scale", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("share", [0.4, 0.6, 0.75])
def test_a_robot_that_is_slowed_down_brakes_from_as_fast_as_it_is(scale: float, share: float) -> None:
    """It was taken to be as fast as its motion, and led up to three times as far."""
    moving = motion(3)
    t = share * moving.duration
    now = START + round(1e9 * t / scale) if t / scale - t < 0.4 else START + round(1e9 * (t + 0.4))
    state = measured(moving, t, 0.0, now)
    state = replace(state, velocity=scale * state.velocity)
    end = trajectory_from_message(brake_of(in_it(state, now), published(moving)))
    states = [
        np.array([state.q[:7], end.position[-1]]),
        np.array([state.velocity[:7], np.zeros(7)]),
        np.zeros((2, 7)),
    ]
    done = JointTrajectory(ARM, np.array([0.0, end.duration]), *states)
    _, velocity, acceleration = evaluate(done, np.linspace(0.0, end.duration, 201))
    assert (np.abs(velocity) <= 1.05 * np.abs(velocity[0]) + 0.05 * VELOCITY).all()
    assert (np.abs(acceleration) <= 1.7 * ACCELERATION).all()
    fastest = np.abs(state.velocity[:7] / VELOCITY).max()
    assert end.duration <= max(0.15, 2.5 * fastest * (VELOCITY / ACCELERATION).max())


def test_a_robot_that_passes_the_end_of_its_motion_is_not_stopped_within_no_time() -> None:
    """It was taken to be at rest there already: 20 times a limit of acceleration."""
    moving = motion(3)
    now = START + round(1e9 * moving.duration) + 200_000_000
    state = measured(moving, moving.duration, 0.0, now)
    state = replace(state, velocity=np.append(0.4 * VELOCITY, state.velocity[7:]))
    end = trajectory_from_message(brake_of(in_it(state, now), published(moving)))
    assert end.duration >= 0.4 * (VELOCITY / ACCELERATION).max() * 0.4
    assert end.duration > 0.05
