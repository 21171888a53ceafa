"""Jerk-limited moves from one configuration to another, timed by ruckig.

ruckig's motion has piecewise constant jerk. Waypoints are put where the jerk of any joint switches, so that
the quintic a controller interpolates between two waypoints is ruckig's cubic itself and keeps its limits.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError, KinoptError
from kinopt_ros.robot.turns import turned_near
from kinopt_ros.status import Status
from kinopt_ros.trajectory.inputs import check_scaling, limit_vector, start_velocity_vector, state_vector
from kinopt_ros.trajectory.jerk_phases import JerkPhases, MotionLimits, plan_phases
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory

MINIMUM_DURATION = 0.01
"""Shortest move (s), also of one that goes nowhere: a controller needs two different times."""

SHORTEST_RAMP = 1e-3
"""Least time (s) in which acceleration may reach its limit. Higher jerk gains nothing at the rate of a
controller, and would put waypoints microseconds apart."""

_LIMIT_TOLERANCE, _LAST_TOLERANCE = 2e-7, 5e-7
"""Relative excess accepted from rounding, and where no attempt keeps that: below the 1e-6 of
verification.trajectory."""

_ATTEMPTS = (
    (1.0 - 1e-5, 1e-4, 1.0),
    (1.0 - 1e-5, 1e-5, 1.0),
    (1.0 - 1e-4, 1e-5, 1.0),
    (1.0 - 1e-4, 1e-5, 1.01),
    (1.0 - 1e-4, 1e-5, 1.1),
    (0.99, 1e-5, 1.0),
    (0.9, 1e-5, 1.0),
)
"""Factor on the limits, gap (s) below which two waypoints become one, factor on the duration. Rounding a switch
to whole nanoseconds costs up to 1e-5 of the limits, dropping one costs more: first with few waypoints, then with
more, then slower. The last four serve rare many-joint moves that start fast, where ruckig needs help."""


class TimingError(KinoptError):
    """There is no motion within the limits for input that is valid in itself."""

    status = Status.PLANNING_FAILED


def point_to_point(
    joint_names: Sequence[str],
    start: Annotated[Float64, "n"],
    goal: Annotated[Float64, "n"],
    velocity_limit: Annotated[Float64, "n"],
    acceleration_limit: Annotated[Float64, "n"],
    jerk_limit: Annotated[Float64, "n"],
    start_velocity: Annotated[Float64, "n"] | None = None,
    *,
    straight: bool = True,
    minimum_duration: float = MINIMUM_DURATION,
    largest_gap: float | None = None,
) -> JointTrajectory:
    """Plan a time-optimal, jerk-limited motion that ends at rest; all joints start and end together.

    From rest and with ``straight``, the path is the straight line in joint space, timed as fast as its
    slowest joint allows. Otherwise, and always when the robot already moves (its velocity rarely points at
    the goal), each joint takes its own course and only the end is common: a few percent faster from rest,
    with more waypoints. Joints may then pass beyond start or goal: position limits are for
    ``verification.trajectory`` to check.

    Positions in rad or m. Velocity limits may be infinite, acceleration and jerk limits may not: a
    controller's quintic has continuous acceleration and cannot reproduce an unlimited one. Continuous joints
    go to the goal as given; see ``nearest_equivalent``. A move from a configuration at rest to itself has two
    waypoints, ``minimum_duration`` apart. No two waypoints are further apart than ``largest_gap`` (s;
    infinity: only where jerk switches; None: 0.1 s, or a hundredth of a move of more than 10 s).

    Times are whole nanoseconds, the first and the last position are the given numbers, final velocity and
    acceleration are exactly zero. Jerk stays so low that acceleration takes at least ``SHORTEST_RAMP`` (1 ms)
    to reach its limit. To make up for the rounding of times, limits are kept by a margin of 1e-5,
    more only where waypoints fall very close together.

    Raises InvalidRequestError, InvalidStateError (start), InvalidGoalError, StartStateError (start faster
    than the limit), SolverUnavailableError (no ruckig), TimingError (no solution found).
    """
    names = tuple(joint_names)
    n = len(names)
    start, goal = state_vector(names, start, "start"), state_vector(names, goal, "goal")
    limits = MotionLimits(
        limit_vector(names, velocity_limit, "velocity", may_be_infinite=True),
        limit_vector(names, acceleration_limit, "acceleration"),
        limit_vector(names, jerk_limit, "jerk"),
    )
    limits = replace(limits, jerk=np.minimum(limits.jerk, limits.acceleration / SHORTEST_RAMP))
    velocity = start_velocity_vector(names, start_velocity, limits.velocity)
    if not (np.isfinite(minimum_duration) and minimum_duration >= 1e-3):
        raise InvalidRequestError(f"minimum_duration is {minimum_duration} s; it must be at least 0.001 s")
    if largest_gap is not None and not largest_gap >= 1e-3:
        raise InvalidRequestError(f"largest_gap is {largest_gap} s; it must be at least 0.001 s")

    move = goal - start
    at_rest = not velocity.any()
    if at_rest and not move.any():
        time = np.array([0.0, _whole_nanoseconds(minimum_duration) / NANOSECONDS_PER_SECOND])
        still = np.zeros((2, n))
        return JointTrajectory(names, time, np.stack([start, goal]), still, still.copy())

    if straight and at_rest:
        # One coordinate: the way of the joint that moves furthest; ``direction`` is at most 1 everywhere.
        length = float(np.abs(move).max())
        direction = (move / length)[None, :]
        moving = move != 0.0
        slowness = np.abs(direction[0, moving])
        along = MotionLimits(
            *(
                np.array([(limit[moving] / slowness).min()])
                for limit in (limits.velocity, limits.acceleration, limits.jerk)
            )
        )
        nanoseconds, motion = _solve(np.array([length]), np.zeros(1), along, minimum_duration, largest_gap)
        displacement, speed, acceleration = (values @ direction for values in motion)
    else:
        nanoseconds, motion = _solve(move, velocity, limits, minimum_duration, largest_gap)
        displacement, speed, acceleration = motion

    position = start + displacement
    position[-1] = goal
    speed[0], speed[-1] = velocity, 0.0
    acceleration[0], acceleration[-1] = 0.0, 0.0
    return JointTrajectory(names, nanoseconds / NANOSECONDS_PER_SECOND, position, speed, acceleration)


def nearest_equivalent(
    goal: Annotated[Float64, "n"], start: Annotated[Float64, "n"], continuous: Annotated[Any, "n"]
) -> Annotated[Float64, "n"]:
    """Move the goal (rad) by whole turns to within half a turn of the start where ``continuous`` holds."""
    goal, start = np.asarray(goal, dtype=np.float64), np.asarray(start, dtype=np.float64)
    mask = np.asarray(continuous, dtype=np.bool_)
    if goal.ndim != 1 or not goal.shape == start.shape == mask.shape:
        raise InvalidRequestError(
            f"goal, start and continuous must have one value per joint; shapes: "
            f"{goal.shape}, {start.shape}, {mask.shape}"
        )
    return turned_near(goal, start, mask)


def scaled_limits(
    velocity_limit: Annotated[Float64, "n"],
    acceleration_limit: Annotated[Float64, "n"],
    velocity_scaling: float = 0.1,
    acceleration_scaling: float = 0.1,
) -> tuple[Annotated[Float64, "n"], Annotated[Float64, "n"]]:
    """Return velocity and acceleration limits times their scaling factors, each in (0, 1].

    As in MoveIt the default is 0.1. Unlike MoveIt, which silently takes 1.0 for a factor out of range, that
    is an InvalidRequestError: a slip must not make a robot fast. Jerk limits are not scaled: they say what
    the drives and the structure bear, and lower acceleration already makes their phases shorter.
    """
    check_scaling("velocity_scaling", velocity_scaling)
    check_scaling("acceleration_scaling", acceleration_scaling)
    velocity = np.asarray(velocity_limit, dtype=np.float64) * velocity_scaling
    acceleration = np.asarray(acceleration_limit, dtype=np.float64) * acceleration_scaling
    return velocity, acceleration


_Motion = tuple[Annotated[Float64, "T m"], Annotated[Float64, "T m"], Annotated[Float64, "T m"]]


def _solve(
    move: Annotated[Float64, "m"],
    start_velocity: Annotated[Float64, "m"],
    limits: MotionLimits,
    minimum_duration: float,
    largest_gap: float | None,
) -> tuple[Annotated[Int64, "T"], _Motion]:
    """Return waypoint times (ns) with displacement, velocity and acceleration of m coordinates."""
    fastest, least_excess, best = 0.0, _LAST_TOLERANCE, None
    for (factor, merge, stretch), natural_units in product(_ATTEMPTS, (True, False)):
        least = max(minimum_duration, fastest * stretch if stretch > 1.0 else 0.0)
        planned = plan_phases(move, start_velocity, limits.times(factor), least, natural_units)
        if planned is None:
            continue
        fastest = fastest or planned.duration
        gap = max(0.1, planned.duration / 100.0) if largest_gap is None else largest_gap
        nanoseconds = _waypoint_times(planned, gap, min(merge, 1e-3 * planned.duration))
        motion, excess = _sample(planned, nanoseconds, move, start_velocity, limits)
        if excess <= _LIMIT_TOLERANCE:
            return nanoseconds, motion
        if excess <= least_excess:
            least_excess, best = excess, (nanoseconds, motion)
    if best is not None:
        return best
    raise TimingError(
        f"no jerk-limited motion found for displacement {move.tolist()} from velocity "
        f"{start_velocity.tolist()} within the limits on velocity {limits.velocity.tolist()}, "
        f"acceleration {limits.acceleration.tolist()}, jerk {limits.jerk.tolist()}"
    )


def _whole_nanoseconds(seconds: float) -> int:
    """Round up, so that no limit is exceeded; less 1e-4 ns of float noise."""
    return int(np.ceil(seconds * NANOSECONDS_PER_SECOND - 1e-4))


def _waypoint_times(planned: JerkPhases, largest_gap: float, merge: float) -> Annotated[Int64, "T"]:
    """Return all times (ns) where the jerk of any coordinate switches, merged, and the gaps filled evenly."""
    switches = np.unique(np.rint(planned.ends * NANOSECONDS_PER_SECOND).astype(np.int64))
    last = _whole_nanoseconds(planned.duration)
    least = max(int(merge * NANOSECONDS_PER_SECOND), 1)
    kept = [0]
    for switch in switches.tolist():
        if switch - kept[-1] >= least and last - switch >= least:
            kept.append(switch)
    times = [0]
    for knot in (*kept[1:], last):
        gap = knot - times[-1]
        parts = max(int(np.ceil(gap / (largest_gap * NANOSECONDS_PER_SECOND))), 1)
        first = times[-1]
        times.extend(first + gap * part // parts for part in range(1, parts + 1))
    return np.array(times, dtype=np.int64)


def _sample(
    planned: JerkPhases,
    nanoseconds: Annotated[Int64, "T"],
    move: Annotated[Float64, "m"],
    start_velocity: Annotated[Float64, "m"],
    limits: MotionLimits,
) -> tuple[_Motion, float]:
    """Return displacement, velocity and acceleration at the waypoints, and by what part a limit is exceeded.

    ruckig's accelerations are joined by constant jerk and integrated anew. Jerk of a segment is then the mean
    of ruckig's, never more, even if a rounded or merged time leaves a switch inside the segment. What that
    lets drift at the end is taken back by one quintic over the whole duration, which every segment's own
    quintic reproduces exactly.
    """
    at = nanoseconds / NANOSECONDS_PER_SECOND
    h = (np.diff(nanoseconds) / NANOSECONDS_PER_SECOND)[:, None]
    acceleration = planned.acceleration_at(at)
    acceleration[0] = acceleration[-1] = 0.0
    a0, a1 = acceleration[:-1].copy(), acceleration[1:].copy()
    velocity = np.empty_like(acceleration)
    velocity[0] = start_velocity
    velocity[1:] = start_velocity + np.cumsum(h * (a0 + a1) / 2.0, axis=0)
    displacement = np.zeros_like(acceleration)
    displacement[1:] = np.cumsum(h * velocity[:-1] + h * h * (2.0 * a0 + a1) / 6.0, axis=0)
    jerk = np.abs(a1 - a0) / h

    duration = at[-1]
    tau = (at / duration)[:, None]
    lacking, drift = move - displacement[-1], velocity[-1] * duration
    c3, c4, c5 = 10.0 * lacking + 4.0 * drift, -15.0 * lacking - 7.0 * drift, 6.0 * lacking + 3.0 * drift
    displacement += tau**3 * (c3 + tau * (c4 + tau * c5))
    velocity += tau**2 * (3.0 * c3 + tau * (4.0 * c4 + tau * 5.0 * c5)) / duration
    acceleration += tau * (6.0 * c3 + tau * (12.0 * c4 + tau * 20.0 * c5)) / duration**2

    # Peaks of the cubics (jerk and acceleration at their ends, velocity where acceleration changes sign),
    # plus the most that the quintic can add for what was lacking and for the drift.
    turns = a0 * a1 < 0.0
    turning = np.where(turns, a0 * a0 / (2.0 * np.where(turns, jerk, 1.0)), 0.0)
    peak_velocity = np.abs(velocity[:-1] + np.sign(a0) * turning).max(axis=0)
    most = np.array([[1.875, 1.0], [5.774, 4.1], [60.0, 36.0]])
    share = most @ np.abs([lacking, drift]) / duration ** np.array([[1.0], [2.0], [3.0]])
    peaks = np.stack([peak_velocity, np.abs(acceleration).max(axis=0), jerk.max(axis=0)])
    allowed = np.stack([limits.velocity, limits.acceleration, limits.jerk])
    excess = float(((peaks + share) / allowed).max()) - 1.0
    return (displacement, velocity, acceleration), excess
