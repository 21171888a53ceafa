"""Brakes from where a robot is measured, which a controller gets some time after that."""

from dataclasses import replace
from typing import Annotated

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.planning.servo.brake import brake_from_any, brake_on_the_way, spread
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.trajectory.braking import MotionState, braking_time, pieces_to_rest, planning_limits
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

PANDA = load_robot("panda")
JOINTS = tuple(f"panda_joint{i + 1}" for i in range(7))
READY = np.array([0.0, -0.7, 0.0, -2.0, 0.0, 1.5, 0.7])
SPENT = (0.0, 0.5, 1.0)
"""Shares of the longest way that a brake is on its way."""
WAYS = (0.0, 0.003, 0.03, 0.1, 0.13)
KEPT = 1.001
"""Share of a limit that a brake may come to."""


def done(
    setup: ServoSetup,
    brake: JointTrajectory,
    begun: Annotated[Float64, "n"],
    velocity: Annotated[Float64, "n"],
) -> tuple[float, float]:
    """What a controller does that goes to the end from where it has the joints: greatest shares of the limits of
    velocity and acceleration. It ends at rest."""
    motion = quintic(brake, MotionState(begun, velocity, np.zeros_like(velocity)))
    _, velocities, accelerations = evaluate(motion, np.linspace(0.0, brake.duration, 401))
    np.testing.assert_allclose(velocities[-1], 0.0, atol=1e-9)
    np.testing.assert_allclose(accelerations[-1], 0.0, atol=1e-6)
    limits = setup.unscaled
    return (np.abs(velocities) / limits.velocity).max(), (np.abs(accelerations) / limits.acceleration).max()


def any_limits(rng: np.random.Generator) -> ServoSetup:
    """A Panda with other limits, each up to ten times less or three times more."""
    names = ("velocity", "acceleration", "jerk")
    scaled = {n: getattr(PANDA.limits, n) * 10.0 ** rng.uniform(-1.0, 0.5, PANDA.nq) for n in names}
    robot = replace(PANDA, limits=replace(PANDA.limits, **scaled))
    return servo_setup(robot, robot.root_link, robot.root_link, JOINTS)


@pytest.mark.parametrize("room", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_whichever_way_a_brake_takes_it_keeps_the_limits_from_any_state(seed: int, room: bool) -> None:
    """Of position, too, and so of acceleration only where the joints have room to stop."""
    rng = np.random.default_rng(seed)
    setup = any_limits(rng)
    limits = setup.robot.limits
    lower, upper = limits.lower[:7], limits.upper[:7]
    velocity = rng.uniform(-1.0, 1.0, 7) if seed % 2 else rng.choice([-1.0, 1.0], 7)  # as fast as they may be
    velocity *= limits.velocity[:7]
    way = WAYS[seed % len(WAYS)]
    needed = np.zeros(7)
    if room:
        seconds = max(1.5 * braking_time(velocity, planning_limits(setup.unscaled), np.zeros(7)), 0.1)
        needed = (0.5 * seconds + way) * np.abs(velocity)
        velocity[2.0 * needed > upper - lower] = 0.0
        needed[velocity == 0.0] = 0.0
    position = rng.uniform(lower + needed, upper - needed)
    brake = brake_on_the_way(setup, position, velocity, way)
    assert ((brake.position[-1] >= lower - 1e-9) & (brake.position[-1] <= upper + 1e-9)).all()
    for spent in (*SPENT, *rng.random(5)):
        faster, harder = done(setup, brake, position + spent * way * velocity, velocity)
        # What goes on at speed just before its limit goes through it, and is not torn back more than is needed to stay
        # within 0.1 rad of it.
        assert faster < (KEPT if room else 2.5)
        assert harder < (KEPT if room else 4.6)


def test_a_joint_that_is_too_fast_to_stop_in_time_does_not_go_far_through_its_limit() -> None:
    """It was let swing by 3 rad beyond that, and back, so as to keep its limit of acceleration."""
    robot = replace(PANDA, limits=replace(PANDA.limits, acceleration=np.ones(PANDA.nq)))
    setup = servo_setup(robot, robot.root_link, robot.root_link, JOINTS)
    velocity, position = np.zeros(7), READY.copy()
    velocity[4], position[4] = -2.06, -1.09
    brake = brake_on_the_way(setup, position, velocity, 0.03)
    motion = quintic(brake, MotionState(position, velocity, np.zeros(7)))
    q = evaluate(motion, np.linspace(0.0, brake.duration, 401))[0]
    assert q[:, 4].min() > PANDA.limits.lower[4] - 0.1
    assert done(setup, brake, position, velocity)[1] < 2.1


@pytest.mark.parametrize("speed", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("way", [0.0, 0.03, 0.1])
def test_a_brake_keeps_the_limits_whenever_it_comes(speed: float, way: float) -> None:
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, JOINTS)
    velocity = np.zeros(7)
    velocity[0] = speed
    brake = brake_on_the_way(setup, READY, velocity, way)
    for spent in SPENT:
        faster, harder = done(setup, brake, READY + spent * way * velocity, velocity)
        assert max(faster, harder) < 1.02


@pytest.mark.parametrize("seed", range(30))
def test_a_brake_that_comes_at_once_does_not_lead_through_a_limit(seed: int) -> None:
    """With a way below 5 ms only its end was inside: by up to 0.08 rad it went through a limit, and came back."""
    rng = np.random.default_rng(seed)
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, JOINTS)
    lower, upper = PANDA.limits.lower[:7], PANDA.limits.upper[:7]
    joint, sign, way = int(rng.integers(7)), float(rng.choice([-1.0, 1.0])), (0.0, 0.003)[seed % 2]
    velocity, alone, still = rng.uniform(-1.0, 1.0, 7) * setup.unscaled.velocity, np.zeros(7), np.zeros(7)
    velocity[joint] = alone[joint] = sign * rng.uniform(0.05, 1.0) * setup.unscaled.velocity[joint]
    quickest = pieces_to_rest(MotionState(still, alone, still), planning_limits(setup.unscaled))
    needed = abs(float(quickest[-1][1].position[joint]))  # so it is just possible to stop in time
    position = 0.5 * (lower + upper)
    position[joint] = (upper if sign > 0.0 else lower)[joint] - sign * needed * rng.uniform(1.0, 1.5)
    brake = brake_on_the_way(setup, position, velocity, way)
    for spent in SPENT:
        motion = quintic(brake, MotionState(position + spent * way * velocity, velocity, still))
        q = evaluate(motion, np.linspace(0.0, brake.duration, 401))[0]
        assert np.maximum(q - upper, lower - q).max() < 0.015


def test_a_brake_of_a_long_motion_sees_each_of_its_turns() -> None:
    """Where a motion of 40 s goes was looked at once a second: a joint in a stroke out and back was told to rest where
    it was, at five times its acceleration."""
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, JOINTS)
    time = np.linspace(0.0, 40.0, 1601)
    position = np.tile(READY, (len(time), 1))
    velocity, acceleration = np.zeros_like(position), np.zeros_like(position)
    turning = 2.0 * np.pi
    position[:, 6] += 0.35 * np.sin(turning * time)
    velocity[:, 6] = 0.35 * turning * np.cos(turning * time)
    acceleration[:, 6] = -0.35 * turning**2 * np.sin(turning * time)
    motion = Commanded(JointTrajectory(JOINTS, time, position, velocity, acceleration), 0, 40 * 10**9, 0)
    for second in np.arange(0.02, 39.0, 0.93):
        times = [round(1e9 * (second + later)) for later in spread(0.0, 0.03)]
        states = [motion.at(time) for time in times]
        brake = brake_from_any(setup, states, (motion, times[0], times[-1]))
        assert brake.duration < 1.0
        for state in states:
            way = quintic(brake, state)
            p, _, a = evaluate(way, np.linspace(0.0, way.duration, 101))
            assert (np.abs(a) <= 1.05 * setup.unscaled.acceleration).all()
            assert (np.abs(p - READY)[:, 6] < 0.352).all()


@pytest.mark.parametrize("seed", range(12))
def test_a_brake_of_a_motion_to_a_limit_ends_inside_and_hardly_later(seed: int) -> None:
    """It went through the limit by up to 9 mrad, and took up to twice as long as what was left of the motion."""
    rng = np.random.default_rng(seed)
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, JOINTS)
    start, goal = PANDA.default_q.copy(), PANDA.default_q.copy()
    goal[:7] += rng.uniform(-0.5, 0.5, 7)
    side = PANDA.limits.upper if seed % 2 else PANDA.limits.lower
    goal[seed % 7] = side[seed % 7]
    goal[:7] = np.clip(goal[:7], PANDA.limits.lower[:7], PANDA.limits.upper[:7])
    planned = plan_joint_motion(PANDA, JOINTS, start, np.zeros(PANDA.nq), goal, 1.0, 1.0).trajectory
    motion = Commanded(planned, 0, round(1e9 * planned.duration), 0)
    for share in np.linspace(0.1, 0.99, 15):
        now = round(share * motion.end)
        times = [now + round(1e9 * later) for later in spread(0.0, 0.03)]
        states = [motion.at(time) for time in times]
        brake = brake_from_any(setup, states, (motion, times[0], times[-1]))
        velocity = states[2].velocity
        quickest = braking_time(velocity, planning_limits(setup.unscaled), np.zeros(7))
        assert brake.duration <= max((motion.end - now) / 1e9, quickest, 0.03) + 0.021
        for state in states:
            way = quintic(brake, state)
            p, v, a = evaluate(way, np.linspace(0.0, way.duration, 101))
            beyond = np.maximum(p - PANDA.limits.upper[:7], PANDA.limits.lower[:7] - p)
            assert beyond.max() < 1e-3
            assert (np.abs(v) <= 1.12 * setup.unscaled.velocity).all()
            assert (np.abs(a) <= 1.72 * setup.unscaled.acceleration).all()


def quintic(brake: JointTrajectory, begin: MotionState) -> JointTrajectory:
    """What a controller does that gets a brake in a state."""
    still = np.zeros_like(begin.velocity)
    rows = (
        [begin.position, brake.position[-1]],
        [begin.velocity, still],
        [begin.acceleration, still],
    )
    return JointTrajectory(brake.joint_names, brake.time, *map(np.array, rows))
