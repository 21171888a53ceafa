"""Pieces of constant jerk: limits kept, at rest at the end, at the wanted velocity hardly overshooting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinopt_ros.trajectory.braking import (
    MotionState,
    braking_time,
    piece_towards,
    pieces_to_rest,
    planning_limits,
)
from kinopt_ros.trajectory.jerk_phases import MotionLimits
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.trajectory import TrajectoryLimits, verify_trajectory

PERIOD = 20_000_000
NAMES = ("a", "b", "c")
FAST = MotionLimits(
    np.array([2.0, 1.0, 3.0]), np.array([15.0, 7.5, 10.0]), np.array([7500.0, 3750.0, 5000.0])
)
SOFT = MotionLimits(np.array([2.0, 1.0, 3.0]), np.array([1.0, 0.5, 1.0]), np.array([10.0, 10.0, 4.0]))


def assert_keeps(start: MotionState, pieces: list[tuple[int, MotionState]], limits: MotionLimits) -> None:
    """Check limits with ``verify_trajectory``, which every trajectory has to pass."""
    states = [start, *(state for _, state in pieces)]
    times = np.cumsum([0, *(nanoseconds for nanoseconds, _ in pieces)]) / 1e9
    trajectory = JointTrajectory(
        NAMES,
        times,
        np.array([state.position for state in states]),
        np.array([state.velocity for state in states]),
        np.array([state.acceleration for state in states]),
    )
    free = np.full(3, np.inf)
    report = verify_trajectory(
        trajectory,
        TrajectoryLimits(-free, free, limits.velocity, limits.acceleration, limits.jerk),
        start=start.position,
        start_velocity=start.velocity,
    )
    assert report.ok, report.violations


@settings(max_examples=60, deadline=None)
@given(
    limits=st.sampled_from([FAST, SOFT]),
    parts=st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6),
    seed=st.integers(0, 100),
)
def test_brakes_keep_the_limits_and_end_at_rest(limits: MotionLimits, parts: list[float], seed: int) -> None:
    acceleration = np.array(parts[3:]) * limits.acceleration * 0.99
    # What acceleration still adds until it is back at zero must fit into the limit, too.
    room = limits.velocity - np.abs(acceleration) * np.max(np.abs(acceleration) / limits.jerk) - 0.01
    velocity = np.array(parts[:3]) * np.maximum(room, 0.0)
    start = MotionState(np.random.default_rng(seed).uniform(-2, 2, 3), velocity, acceleration)
    pieces = pieces_to_rest(start, planning_limits(limits))
    if start.at_rest:
        assert not pieces
        return
    assert pieces[-1][1].at_rest
    assert_keeps(start, pieces, limits)
    took = sum(nanoseconds for nanoseconds, _ in pieces) / 1e9
    assert took == braking_time(start.velocity, planning_limits(limits), start.acceleration)
    # At most the slowest joint's own time, and ramps.
    ramp = np.max(limits.acceleration / limits.jerk)
    assert took <= np.max(limits.velocity / limits.acceleration) + 4.0 * ramp + 0.01


@pytest.mark.parametrize("limits", [FAST, SOFT])
def test_any_sequence_of_wanted_velocities_keeps_the_limits_and_can_brake(limits: MotionLimits) -> None:
    rng = np.random.default_rng(3)
    plan = planning_limits(limits)
    state = MotionState(np.zeros(3), np.zeros(3), np.zeros(3))
    wanted = np.zeros(3)
    for k in range(300):
        if k % 15 == 0:
            wanted = rng.uniform(-0.98, 0.98, 3) * limits.velocity
        piece = piece_towards(state, wanted, plan, PERIOD)
        assert_keeps(state, [piece, *pieces_to_rest(piece[1], plan)], limits)
        state = piece[1]


@pytest.mark.parametrize(("limits", "most"), [(FAST, 40), (SOFT, 250)])
def test_a_wanted_velocity_is_reached_and_stays(limits: MotionLimits, most: int) -> None:
    plan = planning_limits(limits)
    wanted = np.array([0.9, -0.5, 1.0]) * limits.velocity
    state = MotionState(np.zeros(3), np.zeros(3), np.zeros(3))
    highest = np.zeros(3)
    for _ in range(most):
        state = piece_towards(state, wanted, plan, PERIOD)[1]
        highest = np.maximum(highest, np.abs(state.velocity))
    np.testing.assert_allclose(state.velocity, wanted, atol=1e-9)
    np.testing.assert_allclose(state.acceleration, 0.0, atol=1e-7)
    assert (highest <= np.abs(wanted) * (1 + 1e-3)).all()
