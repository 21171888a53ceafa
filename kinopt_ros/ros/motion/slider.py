"""Whether a speed slider slows a motion down: then joints fall behind it more and more, and those whose drives lag do
not. Only where the first explains where joints were lately, and the second does not, it is said."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.ros.motion.drives import least_lag_error
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

_PACES = np.arange(0.5, 1.0025, 0.005)
"""Shares of its speed at which a motion may be done."""
_FASTEST = 0.99
"""Share from which on nobody minds."""
_LATEST, _COARSE, _FINE = 0.5, 0.002, 0.0001
"""How far joints may be behind, s, and the times between two looks at where they are."""
_EXPLAINED, _NOT_EXPLAINED = 1.5e-3, 3e-3
"""How far joints are, at most or at least, from where an explanation has them, rad or m."""
_SETTLED = 150_000_000
"""Time from the begin of a motion in which drives may still do what was before, ns."""
_BEHIND = 0.05
"""How far joints are behind a motion that is slowed down, at least, s: drives lag by less."""
_LEAST_SINCE, _MOST_SINCE = 0.03, 0.3
"""How long before joints were measured where they were says how fast they do it, s."""
_LEAST, _LEAST_SECONDS = 3, 0.15
"""Least number of places, and least time between the first and the last one, s, that say anything."""


def pace_of(motion: Commanded, setup: ServoSetup, state: RobotState, now: int) -> float | None:
    """Return the share of its speed at which joints do a motion that a speed slider slows down; None if they do it as
    it is, or nobody knows.

    Args:
        motion: the robot is in it.
        setup: the robot and the motion's joints.
        state: as measured, of all these joints.
        now: ns of the node's clock.
    """
    seen = state.seen(setup.variables, now)
    since, places = state.past(setup.variables)
    inside = seen - since * NANOSECONDS_PER_SECOND >= motion.start + _SETTLED
    since, places = since[inside], places[inside]
    if len(since) < _LEAST or since.max() < _LEAST_SECONDS:
        return None
    measured = state.q[setup.variables]
    late = 0.0
    for lates in (np.arange(0.0, _LATEST, _COARSE), np.arange(-_COARSE, _COARSE, _FINE)):
        tried = late + lates
        late = float(tried[np.argmin(setup.away(measured, _at(motion, seen, -tried)).max(axis=1))])
    errors = _errors(motion, setup, _PACES, since, places, seen, late)
    errors = np.maximum(errors, setup.away(measured, _at(motion, seen, np.array([-late]))).max())
    best = int(np.argmin(errors))
    if _PACES[best] > _FASTEST or errors[best] > _EXPLAINED or errors[-1] < _NOT_EXPLAINED:
        return None
    lagging = least_lag_error(motion, setup, np.append(since, 0.0), np.vstack([places, measured]), seen)
    return float(_PACES[best]) if lagging >= _NOT_EXPLAINED else None


def slowed_to(
    motion: Commanded, setup: ServoSetup, state: RobotState, measured: int
) -> tuple[int, float] | None:
    """Return when a motion leads to where joints were measured, ns of the node's clock, and at which share of its speed
    they have come there lately; None if they are not clearly behind it and slower.

    Args:
        motion: the motion.
        setup: the robot and the motion's joints.
        state: as measured, of all these joints, with stamps that tell when.
        measured: when that was, ns of the node's clock.
    """
    since, places = state.past(setup.variables)
    begun = (measured - motion.start) / NANOSECONDS_PER_SECOND
    inside = (since >= _LEAST_SINCE) & (since <= min(_MOST_SINCE, begun))
    if not inside.any():
        return None
    since, places = since[inside], places[inside]
    lates = np.arange(0.0, _LATEST, _COARSE)
    away = setup.away(state.q[setup.variables], _at(motion, measured, -lates)).max(axis=1)
    late = float(lates[np.argmin(away)])
    if away.min() > _EXPLAINED or late < _BEHIND:
        return None
    shares = np.arange(0.0, 1.01, 0.02)
    errors = _errors(motion, setup, shares, since, places, measured, late)
    best = int(np.argmin(errors))
    if errors[best] > _NOT_EXPLAINED or errors[-1] < errors[best] + _EXPLAINED:
        return None
    return measured - round(late * NANOSECONDS_PER_SECOND), float(shares[best])


def _errors(
    motion: Commanded,
    setup: ServoSetup,
    paces: Annotated[Float64, "P"],
    since: Annotated[Float64, "K"],
    places: Annotated[Float64, "K n"],
    seen: int,
    late: float,
) -> Annotated[Float64, "P"]:
    """Return how far joints were at most, rad or m, some times before they were seen (s), from where each pace has them
    that leads to where a motion was ``late`` s before that."""
    times = -late - paces[:, None] * since
    there = _at(motion, seen, times.ravel()).reshape(len(paces), len(since), -1)
    return np.asarray(setup.away(places, there).max(axis=(1, 2)))


def _at(motion: Commanded, seen: int, seconds: Annotated[Float64, "K"]) -> Annotated[Float64, "K n"]:
    """Return where a motion has joints at times around one, s."""
    return motion.at_all(seen + np.round(seconds * NANOSECONDS_PER_SECOND).astype(np.int64))[0]
