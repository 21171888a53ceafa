"""Emergency stop: the quickest way to end a motion whose time is known."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.brake import brake_from_any
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.trajectory.braking import MotionState, Piece, braking_time, pieces_to_rest, planning_limits
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND
from kinopt_ros.verification.verify import VerifiedMotion

LEAD = 10_000_000
"""Time until a stop begins, ns, as it has to arrive before."""
_BEYOND = 1e-3
"""How far a stop may go beyond where its motion leads before it is made along the motion instead, rad or m."""
_RAMP = 0.2
"""Share of the time of a stop along its motion in which its deceleration rises, and in which it falls."""
_SHORTEST, _LONGER = 0.05, 1.07
"""Least time of such a stop, s, and the factor between two that are tried."""
_SOON = 2.0
"""How many times as long as the stop of each joint by itself one along the motion may take; beyond that a harder one is
tried."""
_MUCH_LONGER = 1.5
"""How many times as long it may take before a quintic is tried, too."""
_SHARES = (1.0, 1.25, 1.5)
"""Shares of the limits of acceleration that such a stop may take, in the order of trial. One from a motion that slows
down as fast as it may needs more than that to be at rest sooner."""
_FASTER = 1.0 + 1e-3
_HARDLY, _STILL = 1.02, 1e-3
"""Factor of its speed by which a motion that only slows down may become faster, and share of a velocity limit that is
rest."""
_PIECES, _LOOKS = 24, 48
_LOOK_EVERY, _MOST_LOOKS = 0.005, 2000
"""s between two looks at where a motion leads, and how many there are at most."""


def quickest_stop(
    setup: ServoSetup,
    last: Commanded,
    now: int,
    q: Annotated[Float64, "nq"],
    lead: int = LEAD,
    inside: bool = True,
    way: int = 0,
) -> tuple[Commanded, VerifiedMotion]:
    """Plan and check a motion to rest, as fast as ``setup.stopping`` allows: the robot's own limits, without scaling.

    Each joint brakes where it goes; if one would go on through where the motion leads, the stop is made along the
    motion.

    Args:
        setup: the robot, and the joints that move.
        last: the motion that is to end.
        now: ns of the clock.
        q: the whole robot; values of the joints that move do not matter.
        lead: ns until it begins, besides its way.
        inside: off for each joint to brake where it goes, wherever that is.
        way: ns that it is on its way; as of ``Commanded.left_at``, too.
    """
    limits = planning_limits(setup.stopping)
    now, leave = last.left_at(now, lead + way, way)
    stop = last.going_on(now, leave, pieces_to_rest(last.at(leave), limits))
    if inside and leads_beyond(stop, last, now) > _BEYOND:
        stop = _stop_inside(setup, last, now, leave, (stop.end - leave) / NANOSECONDS_PER_SECOND)
    return stop, setup.check(stop.trajectory, last.at(stop.start), q, braking=True)


def _stop_inside(setup: ServoSetup, last: Commanded, now: int, leave: int, seconds: float) -> Commanded:
    """Return a stop that goes no farther than its motion leads: along it, unless that takes much longer than
    ``seconds`` or gets faster on its way; then by one quintic if that ends sooner, even a little beyond."""
    along = last.going_on(now, leave, _pieces_along(setup, last, leave, seconds))
    long = along.end - leave > _MUCH_LONGER * seconds * NANOSECONDS_PER_SECOND
    if not long and only_slows(setup, along, leave):
        return along
    brake = brake_from_any(setup, [last.at(leave)], (last, leave, leave), soon=_MUCH_LONGER)
    still = np.zeros(len(setup.joints))
    rest = MotionState(brake.position[-1], still, still)
    straight = last.going_on(now, leave, [(int(brake.nanoseconds[-1]), rest)])
    return min(along, straight, key=lambda stop: stop.end)


def is_at_rest_sooner(setup: ServoSetup, motion: Commanded, stop: Commanded, now: int) -> bool:
    """Check whether a motion that only slows down is at rest no later than its stop would be."""
    return stop.end >= motion.end and only_slows(setup, motion, now)


def only_slows(setup: ServoSetup, motion: Commanded, now: int) -> bool:
    """Check whether what is left of a motion is nowhere faster than it is now."""
    share = np.abs(_looks(motion, now, motion.end)[1]) / setup.unscaled.velocity
    fastest = share.max(axis=1)
    return bool((fastest <= _HARDLY * fastest[0] + _STILL).all())


def leads_beyond(stop: Commanded, motion: Commanded, now: int) -> float:
    """Return how far a stop goes beyond where what is left of its motion leads, rad or m; 0 if it stays inside.

    That of a joint that slows down already takes its acceleration back to zero first, and so goes on for longer.
    """
    allowed, places = _places(motion, now, motion.end), _places(stop, now, stop.end)
    lower, upper = allowed.min(axis=0), allowed.max(axis=0)
    return float(max(0.0, np.maximum(places - upper, lower - places).max()))


def _places(motion: Commanded, begin: int, end: int) -> Annotated[Float64, "T n"]:
    """Return where a motion goes between two times."""
    inside = (motion.times >= begin) & (motion.times <= end)
    return np.concatenate([_looks(motion, begin, end)[0], motion.trajectory.position[inside]])


def _looks(motion: Commanded, begin: int, end: int) -> tuple[Annotated[Float64, "T n"], ...]:
    """Return positions, velocities and accelerations of a motion between two times."""
    seconds = max(0.0, (end - begin) / NANOSECONDS_PER_SECOND)
    first = (begin - motion.start) / NANOSECONDS_PER_SECOND
    return evaluate(
        motion.trajectory,
        first + np.linspace(0.0, seconds, min(_MOST_LOOKS, 2 + int(seconds / _LOOK_EVERY))),
    )


def _pieces_along(setup: ServoSetup, motion: Commanded, leave: int, seconds: float) -> list[Piece]:
    """Return the pieces of the quickest stop that stays on the way of a motion: its time slows down to nothing.

    At time t of the stop the joints are where the motion has them at s(t), so q' = dq/ds s' and
    q'' = d2q/ds2 s'^2 + dq/ds s''. s' goes from 1 to 0, and s'' has the shape of a trapezoid.
    """
    begin = (leave - motion.start) / NANOSECONDS_PER_SECOND
    left = (motion.end - leave) / NANOSECONDS_PER_SECOND
    still = np.zeros(len(setup.joints))
    quickest = braking_time(motion.at(leave).velocity, planning_limits(setup.stopping), still)
    shortest = max(_SHORTEST, min(quickest, left))
    # One that takes twice as long as what is left is not quicker than that.
    count = 1 + int(np.ceil(np.log(max(2.0 * left / shortest, 2.0)) / np.log(_LONGER)))
    lengths: Annotated[Float64, "L"] = np.asarray(shortest * _LONGER ** np.arange(count), dtype=np.float64)
    hardest = _hardest(setup, _states(motion, begin, lengths, _LOOKS))
    firsts = [int(np.argmax(hardest <= share)) for share in _SHARES if (hardest <= share).any()]
    soon = [first for first in firsts if lengths[first] <= _SOON * seconds]
    best = (soon or firsts[-1:] or [int(np.argmin(hardest))])[0]
    rows = zip(*(values[0] for values in _states(motion, begin, lengths[best, None], _PIECES)), strict=True)
    ends = np.round(np.linspace(0.0, lengths[best], _PIECES + 1) * NANOSECONDS_PER_SECOND).astype(np.int64)
    states = [MotionState(*row) for row in rows]
    return list(zip(np.diff(ends).tolist(), states[1:], strict=True))


_States = tuple[Annotated[Float64, "L T n"], Annotated[Float64, "L T n"], Annotated[Float64, "L T n"]]


def _hardest(setup: ServoSetup, states: _States) -> Annotated[Float64, "L"]:
    """Return the largest shares of a limit of acceleration that stops take; infinity for those in which a joint is
    faster than it may be."""
    _, velocity, acceleration = states
    limits = setup.unscaled
    speed = np.abs(velocity)
    too_fast = (speed > _FASTER * np.maximum(limits.velocity, speed[:, :1])).any(axis=(1, 2))
    share = (np.abs(acceleration) / limits.acceleration).max(axis=(1, 2))
    return np.where(too_fast, np.inf, share)


def _states(motion: Commanded, begin: float, lengths: Annotated[Float64, "L"], pieces: int) -> _States:
    """Return positions, velocities and accelerations of stops along a motion that take so long, evenly from their
    begin to their end."""
    x = np.linspace(0.0, 1.0, pieces + 1)
    rise, fall = np.minimum(x, _RAMP), np.maximum(x - (1.0 - _RAMP), 0.0)
    rest = x - rise
    most = 1.0 / (1.0 - _RAMP)
    # A trapezoid of area one over [0, 1], its integral, and the integral of that.
    steep = most * np.minimum(np.minimum(x, 1.0 - x) / _RAMP, 1.0)
    slowed = most * (rise**2 / (2.0 * _RAMP) + rest - fall**2 / (2.0 * _RAMP))
    lost = most * (rise**3 / (6.0 * _RAMP) + 0.5 * rest * (_RAMP + rest) - fall**3 / (6.0 * _RAMP))
    times = begin + lengths[:, None] * (x - lost)
    shape = (len(lengths), len(x), -1)
    q, rate, bend = (values.reshape(shape) for values in evaluate(motion.trajectory, times.ravel()))
    over = times[..., None] >= motion.trajectory.time[-1]
    rate, bend = np.where(over, 0.0, rate), np.where(over, 0.0, bend)
    pace = (1.0 - slowed)[:, None]
    velocity = rate * pace
    acceleration = bend * pace**2 - rate * steep[:, None] / lengths[:, None, None]
    velocity[:, -1], acceleration[:, -1] = 0.0, 0.0
    return q, velocity, acceleration
