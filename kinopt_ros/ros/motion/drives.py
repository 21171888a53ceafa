"""Whether joints are in a motion in time: where it has them, or where drives that lag would, though their controller is
farther. A controller that slows motions down, or began later, is behind itself."""

from collections.abc import Callable
from typing import Annotated, Protocol

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.planning.servo.session import LAG
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.ros.robot.joint_states import LEAST_SINCE, RobotState
from kinopt_ros.ros.robot.parameters import MOST_DELAY
from kinopt_ros.trajectory.braking import MotionState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

ALIKE = 2e-3
"""Difference between positions that measurements do not tell apart, rad or m."""
THERE = 5e-4
"""How far joints that are where their motion has them may be measured from there, rad or m: so far a robot that a speed
slider slows down may be moved on at once."""
_NOT_SLOWER = 0.02
"""Share of its velocity by which a motion may be done slower or faster that is done in time."""
_GOES_ALONG = 0.05
"""Share of a limit of velocity by which joints that are at their place in the motion may be slower or faster: else they
are beside it by the time that a stop has come."""
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
_LAG_ERROR = 2e-3
"""By how much a lag may be another one, s."""
_EVERY, _COUNT = 0.002, 120
"""Time between the places that say where drives of the first order are, s, and their number."""
_SAME = 3e-4
"""Difference between positions that does not tell two lags apart, rad or m."""
_WAS_ALIKE = 5e-3
"""As ALIKE, of what was measured up to 0.7 s before: no drive is exactly of the first order."""
_KNOWN = 100_000_000
"""Time from the begin of what was told from which on it says where drives are, ns."""


def _weights(lags: Annotated[Float64, "L"], count: int) -> Annotated[Float64, "L K"]:
    """Return how much each place counts that was told so long ago, for each lag: drives of the first order are at the
    mean of all, of which each counts by exp(-age / lag); between two they were told a straight line."""
    by = lags[:, None] / _EVERY
    age = np.arange(count) / by
    weights = by * (np.exp(1.0 / by) - 2.0 + np.exp(-1.0 / by)) * np.exp(-age)
    weights[:, :1] = 1.0 - by * (1.0 - np.exp(-1.0 / by))
    weights[:, -1] += 1.0 - weights.sum(axis=1)
    return np.asarray(weights)


_WEIGHTS = _weights(_LAGS, _COUNT)
_ANY_LAGS, _ANY_COUNT = np.arange(0.001, 0.151, 0.003), 300
_ANY_WEIGHTS = _weights(_ANY_LAGS, _ANY_COUNT)
"""The same of all lags that drives may have."""


class Told(Protocol):
    """What joints were told: a motion, or several, one after the other."""

    @property
    def start(self) -> int:
        """When it begins, ns."""

    @property
    def last_start(self) -> int:
        """When the last of them begins, ns."""

    def at(self, time: int) -> MotionState:
        """As of ``Commanded``."""

    def at_all(self, times: Annotated[Int64, "K"]) -> tuple[Annotated[Float64, "K n"], ...]:
        """As of ``Commanded``."""


def is_there(motion: Told, setup: ServoSetup, state: RobotState, now: int) -> bool:
    """Check whether joints are where a motion has them now, and about as fast: so what leaves the motion takes them
    along.

    Joints that are behind may lag by their drives, or be slowed down: what was measured lately cannot always tell the
    two apart, and a robot that is slowed down would jump into the motion. Arguments as of ``time_in``.
    """
    index, seen = setup.variables, state.seen(setup.variables, now)
    told = motion.at(seen)
    off = told.velocity - state.velocity[index]
    goes_along = not _measures(setup, state) or _fastest(off, setup) <= _GOES_ALONG
    return bool(goes_along and setup.away(state.q[index], told.position).max() <= THERE)


def time_in(
    motion: Told, setup: ServoSetup, state: RobotState, now: int, trusting: bool = False
) -> int | None:
    """Return the time in a motion (ns of the node's clock) up to which joints have got, if they are where that has them
    by now, or where drives that lag would: by a time, as joint states of filters are, or of the first order. Else None.

    Args:
        motion: the robot is in it, or was sent it; or several.
        setup: the robot and the motion's joints.
        state: as measured, of all these joints.
        now: ns of the node's clock.
        trusting: take joints for ones whose drives lag also where no driver's velocities say so.
    """
    seen, measured = state.seen(setup.variables, now), state.q[setup.variables]
    if is_there(motion, setup, state, now):
        return seen
    (earlier, since), measures = _earlier(setup, state), _measures(setup, state)
    for family in (_delayed, _lagging) if measures or trusting else (_delayed,):
        lags, position, speeds = family(motion, seen)
        away = setup.away(measured, position)
        if away.min(axis=0).max() > ALIKE:
            continue
        was = _was_off(motion, setup, state, seen, family, away) if trusting else np.zeros_like(away)
        rows = _lags_of_each(away, was) if trusting else np.full(len(measured), np.argmin(away.max(axis=1)))
        if _of(away, rows).max() > ALIKE:
            continue
        if not _is_as_fast(_of(speeds, rows), setup, state) and not (
            trusting and _was_as_fast(motion, setup, state, seen)
        ):
            continue
        if earlier is not None:  # one that is slowed down was less far behind
            _, place, speed = family(motion, seen - since)
            says = measures or _fastest(_of(speed, rows), setup) > _SLOWEST  # what stood then says nothing
            alike = says and setup.away(earlier, _of(place, rows)).max() <= ALIKE
        else:
            alike = family is _delayed
        if alike and _of(was, rows).max() <= _WAS_ALIKE:
            return seen - round(float(lags[rows].max()) * NANOSECONDS_PER_SECOND)
    return None


def _lags_of_each(away: Annotated[Float64, "L n"], was: Annotated[Float64, "L n"]) -> Annotated[Int64, "n"]:
    """Return the lag (its row) of each joint: that of all of them, or one as near to that as its drive, which may lag
    by another one, allows.

    Args:
        away: how far each joint is from where each lag would have it, rad or m.
        was: how far it was from there lately, at most. Joints that have just begun to move do not tell lags apart.
    """
    together = int(np.argmin(away.max(axis=1)))
    distance = np.abs(np.arange(len(away)) - together)[:, None]
    near = away <= away.min(axis=0) + _SAME
    near &= was <= np.where(near, was, np.inf).min(axis=0) + _SAME
    return np.asarray(np.where(near, distance, len(away)).argmin(axis=0))


def _of(values: Annotated[Float64, "L n"], rows: Annotated[Int64, "n"]) -> Annotated[Float64, "n"]:
    """Return the value of each joint in its own row."""
    return np.asarray(values[rows, np.arange(len(rows))])


def _was_as_fast(motion: Told, setup: ServoSetup, state: RobotState, seen: int) -> bool:
    """Check whether joints are measured to be as fast as they were to be at another moment lately: drives that are not
    of the first order, and velocities that a driver filters, say so while joints get faster or slower.

    So does a speed slider, which has slowed them down since the motion came: not where that explains how far they are
    behind, and were before. Arguments as of ``time_in``, and when they were measured.
    """
    lags, position, speeds = _delayed(motion, seen)
    row = int(np.argmin(setup.away(state.q[setup.variables], position).max(axis=1)))
    slower = 1.0 - share_of(speeds[row], setup, state, _SLOWEST_OF_ALL)
    begun = (seen - motion.last_start) / NANOSECONDS_PER_SECOND
    least, most = slower * begun - _LAG_ERROR, slower * (begun + MOST_DELAY) + _LAG_ERROR
    if np.isnan(slower) or (
        least <= lags[row] <= most and _was_slower(motion, setup, state, seen, slower, lags[row])
    ):
        return False
    return any(_is_as_fast(speed, setup, state) for speed in speeds)


def _was_slower(
    motion: Told, setup: ServoSetup, state: RobotState, seen: int, slower: float, lag: float
) -> bool:
    """Check whether joints may have fallen behind by a share of the time (``slower``) since their motion came, as far
    as is known, to where they are behind by a lag, s."""
    since, places = state.past(setup.variables)
    told = seen - _nanoseconds(since) >= motion.last_start + _KNOWN
    behind = np.maximum(lag - slower * since[told], 0.0)
    wanted = motion.at_all(seen - _nanoseconds(since[told] + behind))[0]
    return bool((setup.away(places[told], wanted) <= _WAS_ALIKE).all())


def _was_off(
    motion: Told,
    setup: ServoSetup,
    state: RobotState,
    seen: int,
    family: "_Kind",
    away: Annotated[Float64, "L n"],
) -> Annotated[Float64, "L n"]:
    """Return how far each joint was, at most, from where each lag of a family would have had it, for as long as is
    known, rad or m: where a speed slider slows joints down they fall behind more and more. ``away``: how far it is."""
    since, places = state.past(setup.variables)
    told = seen - _nanoseconds(since) >= motion.start + _KNOWN
    errors = _lag_errors(motion, setup, since[told], places[told], seen, family)
    return np.asarray(np.max([np.zeros_like(away), *errors], axis=0))


def least_lag_error(
    motion: Told,
    setup: ServoSetup,
    since: Annotated[Float64, "K"],
    places: Annotated[Float64, "K n"],
    seen: int,
    most: float = np.inf,
) -> float:
    """Return how far joints were from where one lag, of any kind, would have had them, at the least, rad or m.

    Args:
        motion: what they were told.
        setup: the robot and the motion's joints.
        since: times before ``seen``, s.
        places: where they were then.
        seen: ns of the node's clock.
        most: longest lag that counts, s.
    """
    kinds = ((_delayed, _DELAYS), (_lagging_by_any, _ANY_LAGS))
    errors = [
        np.max(_lag_errors(motion, setup, since, places, seen, kind), axis=(0, 2))[lags <= most].min()
        for kind, lags in kinds
    ]
    return float(min(errors))


def led_aside(
    motion: Told,
    setup: ServoSetup,
    state: RobotState,
    since: Annotated[Float64, "K"],
    places: Annotated[Float64, "K n"],
    seen: int,
) -> float:
    """Return how much farther joints are from where their drives would have them than they mostly were lately, rad or
    m: somebody else has just begun to move them. Each may lag by its own. Arguments as of ``least_lag_error``."""
    found = []
    for kind in (_delayed, _lagging_by_any):
        was = np.median(_lag_errors(motion, setup, since, places, seen, kind), axis=0)
        now = setup.away(state.q[setup.variables], kind(motion, seen)[1])
        near = was <= was.min(axis=0) + _SAME  # joints that stood do not tell lags apart
        found.append(float(np.where(near, now - was, np.inf).min(axis=0).max()))
    return min(found)


def _lag_errors(
    motion: Told,
    setup: ServoSetup,
    since: Annotated[Float64, "K"],
    places: Annotated[Float64, "K n"],
    seen: int,
    family: "_Kind",
) -> list[Annotated[Float64, "L n"]]:
    """Return how far joints were at each of K times from where each lag of a family would have had them, rad or m;
    arguments as of ``least_lag_error``."""
    times = seen - _nanoseconds(since)
    return [
        setup.away(place, family(motion, int(time))[1]) for place, time in zip(places, times, strict=True)
    ]


_Family = tuple[Annotated[Float64, "L"], Annotated[Float64, "L n"], Annotated[Float64, "L n"]]
"""Lags (s), and where joints of each would be, and how fast."""
_Kind = Callable[[Told, int], _Family]


def _delayed(motion: Told, seen: int) -> _Family:
    """Return joints whose joint states are older than they say."""
    position, velocity, _ = motion.at_all(seen - _nanoseconds(_DELAYS))
    return _DELAYS, position, velocity


def _lagging(motion: Told, seen: int) -> _Family:
    """Return joints behind drives of the first order."""
    return _behind(motion, seen, _LAGS, _WEIGHTS)


def _lagging_by_any(motion: Told, seen: int) -> _Family:
    return _behind(motion, seen, _ANY_LAGS, _ANY_WEIGHTS)


def _behind(
    motion: Told, seen: int, lags: Annotated[Float64, "L"], weights: Annotated[Float64, "L K"]
) -> _Family:
    told = motion.at_all(seen - _nanoseconds(_EVERY * np.arange(weights.shape[1], dtype=np.float64)))[0]
    position = weights @ told
    return lags, position, (told[0] - position) / lags[:, None]


def _nanoseconds(seconds: Annotated[Float64, "K"]) -> Annotated[Int64, "K"]:
    return np.asarray(np.round(seconds * NANOSECONDS_PER_SECOND).astype(np.int64))


def _earlier(setup: ServoSetup, state: RobotState) -> tuple[Annotated[Float64, "n"] | None, int]:
    """Return where joints were measured some time before, and that time, ns; None if nobody knows, or these were
    measured at different times."""
    if state.earlier is None:
        return None, 0
    since, position = (values[setup.variables] for values in state.earlier)
    if since.min() < LEAST_SINCE or np.ptp(since) > _EVERY:
        return None, 0
    return position, round(float(since[0]) * NANOSECONDS_PER_SECOND)


def _measures(setup: ServoSetup, state: RobotState) -> bool:
    """Return whether the driver measures velocities; where it measures none, joints that stand are known by having
    stood."""
    index = setup.variables
    stands = _earlier(setup, state)[0] is not None and not state.seen_velocity[index].any()
    return bool(state.velocity[index].any() or stands)


def _is_as_fast(velocity: Annotated[Float64, "n"], setup: ServoSetup, state: RobotState) -> bool:
    """Check whether joints are measured to be as fast as they would be, as far as they are quick enough to say so."""
    share = share_of(velocity, setup, state, _SLOWEST_OF_ALL)
    fastest = _fastest(velocity, setup)
    return bool(abs(share - 1.0) * fastest <= _NOT_SLOWER * fastest + _NOISE)


def _fastest(velocity: Annotated[Float64, "n"], setup: ServoSetup) -> float:
    """Return the largest share of a limit of velocity."""
    return float((np.abs(velocity) / setup.unscaled.velocity).max())


def share_of(
    wanted: Annotated[Float64, "n"], setup: ServoSetup, state: RobotState, slowest: float = _SLOWEST
) -> float:
    """Return how fast joints are measured, as a share of velocities that are wanted: NaN where these are too low to
    say (a share of the limits), 1 where nobody measures velocities, as the way lately is no measure of the moment."""
    limits, measured = setup.unscaled.velocity, state.velocity[setup.variables]
    if not measured.any() and state.seen_velocity[setup.variables].any():
        return 1.0
    one, other = wanted / limits, measured / limits
    return float(one @ other / (one @ one)) if _fastest(wanted, setup) > slowest else np.nan
