"""A move leaves the motion that runs: nothing jumps, whenever it is left."""

import numpy as np
import pytest

from kinopt_ros.planning.leaving import _eased, leaving
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.trajectory.braking import MotionState, planning_limits
from kinopt_ros.trajectory.jerk_phases import MotionLimits

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
START = PANDA.default_q
GOAL = START + np.array([1.0, 0.3, *[-0.4] * 5, *[0.0] * (PANDA.nq - 7)])
BACK = START + np.array([-0.5, *[0.1] * 6, *[0.0] * (PANDA.nq - 7)])
BEGIN, LEAD = 10**15, 100_000_000


@pytest.mark.parametrize("scaling", [1.0, 0.2])
@pytest.mark.parametrize("share", np.linspace(0.0, 1.1, 12))
def test_it_is_left_without_a_step(share: float, scaling: float) -> None:
    still = np.zeros(PANDA.nq)
    first = plan_joint_motion(PANDA, ARM, START, still, GOAL, 0.9, 0.9).trajectory
    runs = Commanded(first, BEGIN, BEGIN, BEGIN)
    now = BEGIN + round(share * 1e9 * first.time[-1])
    rows = (getattr(PANDA.limits, name)[:7] for name in ("velocity", "acceleration", "jerk"))
    velocity, acceleration, jerk = rows
    limits = planning_limits(MotionLimits(scaling * velocity, scaling * acceleration, jerk))
    left = leaving(runs, now, LEAD, limits)
    assert not np.abs(left.state.acceleration).any()
    start, speed = START.copy(), still.copy()
    start[:7], speed[:7] = left.state.position, left.state.velocity
    goal = BACK.copy()
    motion = plan_joint_motion(PANDA, ARM, start, speed, goal, scaling, scaling, leaving=left)
    assert motion.report.ok, motion.report.violations
    np.testing.assert_allclose(motion.trajectory.position[-1], BACK[:7], atol=1e-9)
    joined = Commanded(motion.trajectory, left.start, left.start, left.start)
    for time in range(now, left.leave, 5_000_000):
        before, then = runs.at(time), joined.at(time)
        np.testing.assert_allclose(then.position, before.position, atol=1e-9)
        np.testing.assert_allclose(then.velocity, before.velocity, atol=1e-7)


@pytest.mark.parametrize("left", np.linspace(2e-3, 20e-3, 10))
def test_one_that_is_nearly_over_is_left_as_fast_as_it_is(left: float) -> None:
    """Slow joints counted as resting: a step of velocity, which the check refused. One target of 55 was not reached."""
    still = np.zeros(PANDA.nq)
    first = plan_joint_motion(PANDA, ARM, START, still, GOAL, 0.3, 0.3).trajectory
    runs = Commanded(first, BEGIN, BEGIN, BEGIN)
    limits = planning_limits(
        MotionLimits(
            0.3 * PANDA.limits.velocity[:7], 0.3 * PANDA.limits.acceleration[:7], PANDA.limits.jerk[:7]
        )
    )
    leaves = leaving(runs, runs.end - LEAD - round(1e9 * left), LEAD, limits)
    start, speed = START.copy(), still.copy()
    start[:7], speed[:7] = leaves.state.position, leaves.state.velocity
    motion = plan_joint_motion(PANDA, ARM, start, speed, BACK, 0.3, 0.3, leaving=leaves)
    assert motion.report.ok, motion.report.violations


def test_a_slow_joint_does_not_wait_for_quick_ones() -> None:
    """It went on with its acceleration until theirs were back: beyond its limit of velocity, so the target was lost."""
    limits = MotionLimits(np.array([0.013, 2.0]), np.array([0.3, 5.0]), np.array([30.0, 25.0]))
    state = MotionState(np.zeros(2), np.array([0.011, 1.0]), np.array([0.3, 5.0]))
    pieces = _eased(state, limits)
    assert [piece[0] for piece in pieces] == [10_000_000, 190_000_000]
    first, last = (state for _, state in pieces)
    np.testing.assert_allclose(first.acceleration, [0.0, 5.0 * 0.95])
    np.testing.assert_allclose(last.acceleration, 0.0)
    np.testing.assert_allclose(last.velocity, [0.011 + 0.3 * 0.01 / 2, 1.0 + 5.0 * 0.2 / 2])
    assert last.velocity[0] <= limits.velocity[0]
    assert not _eased(MotionState(np.zeros(2), np.ones(2), np.zeros(2)), limits)


def test_joints_near_their_limits_are_left_within_them() -> None:
    """Times are rounded up, in which joints get faster: 6 of 2,400 targets were refused, up to 1 % beyond a limit."""
    random, still = np.random.default_rng(5), np.zeros(PANDA.nq)
    velocity, acceleration, jerk = (
        getattr(PANDA.limits, name)[:7] for name in ("velocity", "acceleration", "jerk")
    )
    limits = planning_limits(MotionLimits(velocity, acceleration, jerk))
    for _ in range(30):
        begin, goal = START.copy(), START.copy()
        begin[:7] += random.uniform(-0.3, 0.3, 7)
        goal[:7] = np.clip(
            begin[:7] + random.choice([0.2, 0.6, 1.5]) * random.uniform(-1.0, 1.0, 7),
            PANDA.limits.lower[:7] + 0.1,
            PANDA.limits.upper[:7] - 0.1,
        )
        first = plan_joint_motion(PANDA, ARM, begin, still, goal, 1.0, 1.0).trajectory
        runs = Commanded(first, BEGIN, BEGIN, BEGIN)
        for passed in random.uniform(0.0, first.duration, 40):
            left = leaving(runs, BEGIN + round(1e9 * passed), LEAD // 5, limits)
            assert (np.abs(left.state.velocity) <= velocity).all()
