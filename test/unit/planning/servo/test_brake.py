"""Brakes from where a robot is measured, which a controller gets some time after that."""

from dataclasses import replace
from typing import Annotated

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.brake import brake_on_the_way, leads_beyond
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
    still = np.zeros_like(velocity)
    ends, moves = np.array([begun, brake.position[-1]]), np.array([velocity, still])
    motion = JointTrajectory(setup.joints, brake.time, ends, moves, np.zeros_like(ends))
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
        assert faster < (KEPT if room else 1.1)
        assert harder < KEPT or not room


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
        begun = position + spent * way * velocity
        ends, moves = np.array([begun, brake.position[-1]]), np.array([velocity, still])
        motion = JointTrajectory(JOINTS, brake.time, ends, moves, np.zeros_like(ends))
        q = evaluate(motion, np.linspace(0.0, brake.duration, 401))[0]
        assert np.maximum(q - upper, lower - q).max() < 0.015


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
