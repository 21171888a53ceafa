"""Whether joints are in a motion in time, behind drives that lag: where these have them, and as fast, though their
controller is farther. A controller that slows motions down, or began later, is behind itself."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.session import LAG
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

ALIKE = 2e-3
"""Difference between positions that measurements do not tell apart, rad or m."""
_NOT_SLOWER = 0.02
"""Share of its velocity by which a motion may be done slower or faster that is done in time."""
_NOISE = 0.003
"""Share of a limit of velocity by which it may be measured wrongly."""
_SLOWEST, _SLOWEST_OF_ALL = 0.1, 0.02
"""Shares of a limit from which velocities say whether joints are slower; and from which they say so at all. A robot
that is slower than that, and beside its motion, may be anything: who takes a speed slider for a drive makes it jump."""
_DELAYS = np.arange(0.001, LAG / NANOSECONDS_PER_SECOND, 0.001)
"""Times by which joint states may be older than they say, s."""
_LAGS = np.arange(0.001, 0.041, 0.001)
"""Lags that drives of the first order may have, s. Those of more than that come to rest sooner if what they are told
goes back to where they are."""
_EVERY, _COUNT = 0.002, 120
"""Time between the places that say where drives of the first order are, s, and their number."""


def _weights() -> Annotated[Float64, "L K"]:
    """Return how much each place counts that was told so long ago, for each lag: drives of the first order are at the
    mean of all, of which each counts by exp(-age / lag); between two they were told a straight line."""
    by = _LAGS[:, None] / _EVERY
    age = np.arange(_COUNT) / by
    weights = by * (np.exp(1.0 / by) - 2.0 + np.exp(-1.0 / by)) * np.exp(-age)
    weights[:, :1] = 1.0 - by * (1.0 - np.exp(-1.0 / by))
    weights[:, -1] += 1.0 - weights.sum(axis=1)
    return np.asarray(weights)


_WEIGHTS = _weights()


def is_in_time(motion: Commanded, setup: ServoSetup, state: RobotState, now: int) -> bool:
    """Check whether joints are in a motion in time, as ``time_in``."""
    return time_in(motion, setup, state, now) is not None


def time_in(motion: Commanded, setup: ServoSetup, state: RobotState, now: int) -> int | None:
    """Return the time in a motion (ns of the node's clock) up to which joints have got, if they are where that has them
    by now, or where drives that lag would: by a time, as joint states of filters are, or of the first order. Else None.

    Args:
        motion: the robot is in it, or was sent it.
        setup: the robot and the motion's joints.
        state: as measured, of all these joints.
        now: ns of the node's clock.
    """
    index, seen = setup.variables, state.seen(setup.variables, now)
    measured = state.q[index]
    told = motion.at(seen).position
    beside = float(setup.away(measured, told).max())
    if beside <= ALIKE:
        return seen
    late = seen - np.round(_DELAYS * NANOSECONDS_PER_SECOND).astype(np.int64)
    before = seen - np.round(np.arange(_COUNT) * _EVERY * NANOSECONDS_PER_SECOND).astype(np.int64)
    delayed, speed, _ = motion.at_all(late)
    lagging = _WEIGHTS @ motion.at_all(before)[0]
    behind = (told - lagging) / _LAGS[:, None]
    for lags, position, velocity in ((_DELAYS, delayed, speed), (_LAGS, lagging, behind)):
        away = setup.away(measured, position).max(axis=1)
        best = int(np.argmin(away))
        share = share_of(velocity[best], setup, state, _SLOWEST_OF_ALL)
        fastest = float((np.abs(velocity[best]) / setup.unscaled.velocity).max())
        if away[best] <= ALIKE and abs(share - 1.0) * fastest <= _NOT_SLOWER * fastest + _NOISE:
            return seen - round(lags[best] * NANOSECONDS_PER_SECOND)
    return None


def share_of(
    wanted: Annotated[Float64, "n"], setup: ServoSetup, state: RobotState, slowest: float = _SLOWEST
) -> float:
    """Return how fast joints are measured, as a share of velocities that are wanted: NaN where these are too low to
    say (a share of the limits), 1 where nobody measures velocities, as the way lately is no measure of the moment."""
    limits, measured = setup.unscaled.velocity, state.velocity[setup.variables]
    if not measured.any() and state.seen_velocity[setup.variables].any():
        return 1.0
    one, other = wanted / limits, measured / limits
    fastest = float(np.abs(one).max())
    return float(one @ other / (one @ one)) if fastest > slowest else np.nan
