"""Emergency stop: the quickest way to end a motion."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.trajectory.braking import MotionState, braking_time, pieces_to_rest, planning_limits
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory
from kinopt_ros.verification.verify import VerifiedMotion

SOFTER = 1.5
"""Times the quickest brake that one by a single quintic takes: its acceleration has a peak, where that one is even."""
SHORTEST = 0.1
"""Least time of such a brake, s: what is measured may be a little beside where a controller has a joint."""
_NO_WAY = 5e-3
"""Way of a brake that hardly matters, s."""
_STEP = 1.1
"""Factor between two times that are tried for a brake."""
_HARDEST, _SLOWEST, _LONGEST = 0.6, 4.0, 1.0
"""Times the quickest brake from and up to which brakes are tried, and seconds up to which they are in any case."""
_PATIENCE = 6
"""Number of times that may be tried in vain, one after the other, before the best brake so far is taken."""
_WAYS = (0.5, 0.45, 0.4)
"""Shares of the way at the velocity of its begin that are tried for a brake; a shorter one turns back."""
_AHEAD = (0.5, 0.7, 1.0)
"""Shares of a brake's time at which, in the motion that it ends, the place is where it may come to rest."""
_FASTER = 5.0
"""How much worse it is to be beyond a limit of velocity than one of acceleration."""
_BESIDE = 3e-3
"""Distance beyond where the joints may go that is as bad as a limit of acceleration that is just kept, rad or m."""
_SAMPLES = 41
_KEPT = 1.0 + 1e-6
_PARTS = ("position", "velocity", "acceleration")
_ON_THE_WAY = 3
"""Number of times on its way that a brake is made for."""
LEAD = 10_000_000
"""Time until a brake begins, ns, as it has to arrive before."""


def quickest_stop(
    setup: ServoSetup, last: Commanded, now: int, q: Annotated[Float64, "nq"], lead: int = LEAD
) -> tuple[Commanded, VerifiedMotion]:
    """Plan and check a motion to rest, as fast as the robot's own limits allow, without scaling.

    Args:
        setup: the robot, and the joints that move.
        last: the motion that is to end.
        now: ns of the clock.
        q: the whole robot; values of the joints that move do not matter.
        lead: ns until it begins.
    """
    limits = planning_limits(setup.unscaled)
    leave = last.near_waypoint(now + lead)
    stop = last.going_on(now, leave, pieces_to_rest(last.at(leave), limits))
    return stop, setup.check(stop.trajectory, last.at(stop.start), q, braking=True)


def leads_beyond(stop: Commanded, motion: Commanded, now: int) -> float:
    """Return how far a stop goes beyond where what is left of its motion leads, rad or m; 0 if it stays inside.

    That of a joint that slows down already takes its acceleration back to zero first, and so goes on for longer.
    """
    allowed, places = _places(motion.rest(now)), _places(stop.trajectory)
    return max(0.0, _beyond(places, (allowed.min(axis=0), allowed.max(axis=0))))


def brake_from_measured(
    setup: ServoSetup,
    position: Annotated[Float64, "n"],
    velocity: Annotated[Float64, "n"],
) -> JointTrajectory:
    """Return a brake from a measured state, of two points: of a controller that gets the second one only, it does not
    matter what its clock says, or how long the message was on its way.

    Args:
        setup: the robot, and the joints.
        position: as measured, rad or m.
        velocity: as measured, rad/s or m/s.
    """
    still = np.zeros_like(velocity)
    quickest = braking_time(velocity, planning_limits(setup.unscaled), still)
    return _brake(setup, MotionState(position, velocity, still), max(SOFTER * quickest, SHORTEST))


def brake_on_the_way(
    setup: ServoSetup,
    position: Annotated[Float64, "n"],
    velocity: Annotated[Float64, "n"],
    way: float,
) -> JointTrajectory:
    """Return a brake from a measured state, as ``brake_from_measured``, that may come at once, or later.

    One for the longest way alone would have a controller that gets it sooner speed up to be there.

    Args:
        setup: the robot, and the joints.
        position: where the joints are now, rad or m.
        velocity: as measured, rad/s or m/s.
        way: the longest way, s.
    """
    still = np.zeros_like(velocity)
    states = [
        MotionState(gone_on(setup, position, velocity, seconds), velocity, still)
        for seconds in spread(0.0, way)
    ]
    if way < _NO_WAY:
        brake = brake_from_measured(setup, states[-1].position, velocity)
        # It comes to rest inside the limits, but the way to there may lead through one.
        if _badness(setup, states, brake.position[-1], brake.duration, _room(setup, states, None)) <= _KEPT:
            return brake
    return brake_from_any(setup, states)


def gone_on(
    setup: ServoSetup,
    position: Annotated[Float64, "n"],
    velocity: Annotated[Float64, "n"],
    seconds: float | Annotated[Float64, "n"],
) -> Annotated[Float64, "n"]:
    """Return where joints are after some time at a velocity (s, or one for each): no farther than their limits, unless
    they are beyond them already. One that slows down at its limit would be taken to go on through it, and be told to
    rest there."""
    limits, index = setup.robot.limits, setup.variables
    return np.clip(
        position + seconds * velocity,
        np.minimum(limits.lower[index], position),
        np.maximum(limits.upper[index], position),
    )


def spread(earliest: float, latest: float) -> list[float]:
    """Return the times between two for which a brake is made that keeps the limits in all of that time."""
    times: list[float] = np.linspace(earliest, latest, _ON_THE_WAY).tolist()
    return times


def brake_from_any(
    setup: ServoSetup, states: Sequence[MotionState], ahead: tuple[Commanded, int] | None = None
) -> JointTrajectory:
    """Return a brake of two points, as ``brake_from_measured``, that keeps the limits of velocity and acceleration from
    whichever of some states a controller has the joints in when it comes, and goes no farther than the joints may: to
    their limits and, if they are in a motion, to where that would have led. It is as quick as that allows; if nothing
    does, it breaks them the least.

    Args:
        setup: the robot, and the joints.
        states: in which the joints may be; the one in the middle is the most likely.
        ahead: the motion that the joints are in, and the time in it (ns of its clock) of the state in the middle. The
            brake comes to rest on its way, which was looked at.
    """
    middle = states[len(states) // 2]
    still = np.zeros_like(middle.velocity)
    quickest = max(braking_time(middle.velocity, planning_limits(setup.unscaled), still), SHORTEST)
    room = _room(setup, states, ahead)
    seconds, end = max(_HARDEST * quickest, SHORTEST), max(_SLOWEST * quickest, _LONGEST)
    best, least, worse = _brake(setup, middle, quickest), np.inf, 0
    while seconds <= end and worse < _PATIENCE:
        worse += 1
        for rest in _rests(middle, seconds, room, ahead):
            brake = _to_rest(setup, middle, rest, seconds)
            badness = _badness(setup, states, brake.position[-1], seconds, room)
            if badness < least:
                best, least, worse = brake, badness, 0
        if least <= _KEPT:
            break
        seconds *= _STEP
    return best


_Room = tuple[Annotated[Float64, "n"], Annotated[Float64, "n"]]
"""Lowest and highest places of joints, rad or m."""


def _room(setup: ServoSetup, states: Sequence[MotionState], ahead: tuple[Commanded, int] | None) -> _Room:
    """Return where joints may go: inside their limits or, in a motion, where what is left of it goes; and where they
    may be already."""
    at = np.array([state.position for state in states])
    if ahead is None:
        limits, index = setup.robot.limits, setup.variables
        places = np.array([limits.lower[index], limits.upper[index]])
    else:
        motion, time = ahead
        places = _places(motion.rest(time))
    places = np.concatenate([places, at])
    return places.min(axis=0), places.max(axis=0)


def _places(motion: JointTrajectory) -> Annotated[Float64, "T n"]:
    """Return where a motion goes."""
    return evaluate(motion, np.linspace(0.0, motion.duration, _SAMPLES))[0]


def _beyond(places: Annotated[Float64, "T n"], room: _Room) -> float:
    """Return how far places are beyond a room, rad or m; negative if all are inside."""
    lower, upper = room
    return float(np.maximum(places - upper, lower - places).max())


def _rests(
    state: MotionState, seconds: float, room: _Room, ahead: tuple[Commanded, int] | None
) -> list[Annotated[Float64, "n"]]:
    """Return places at which a brake from a state may come to rest after so many seconds."""
    rests = [np.clip(_gently(state, seconds, way), *room) for way in _WAYS]
    if ahead is not None:
        motion, time = ahead
        rests += [
            motion.at(time + round(share * seconds * NANOSECONDS_PER_SECOND)).position for share in _AHEAD
        ]
    return rests


def _gently(state: MotionState, seconds: float, way: float) -> Annotated[Float64, "n"]:
    """Return where a brake ends that takes so long, and such a share of the way at the velocity of its begin.

    Half of it is where a quintic ends whose acceleration ends as gently as it can.
    """
    return np.asarray(
        state.position + way * seconds * state.velocity + seconds * seconds / 12.0 * state.acceleration
    )


def _brake(setup: ServoSetup, state: MotionState, seconds: float) -> JointTrajectory:
    """Return a brake of two points that takes so long, and ends gently."""
    return _to_rest(setup, state, _gently(state, seconds, 0.5), seconds)


def _to_rest(
    setup: ServoSetup, state: MotionState, rest: Annotated[Float64, "n"], seconds: float
) -> JointTrajectory:
    """Return a brake of two points to a place inside the limits; a joint that is measured outside stays there."""
    limits, index = setup.robot.limits, setup.variables
    position, velocity = state.position, state.velocity
    rest = np.clip(rest, np.minimum(limits.lower[index], position), np.maximum(limits.upper[index], position))
    still = np.zeros_like(velocity)
    return JointTrajectory(
        setup.joints,
        np.array([0.0, seconds]),
        np.array([position, rest]),
        np.array([velocity, still]),
        np.array([still, still]),
    )


def _badness(
    setup: ServoSetup,
    states: Sequence[MotionState],
    rest: Annotated[Float64, "n"],
    seconds: float,
    room: _Room,
) -> float:
    """Return how bad the quintics from some states to rest are; at most 1 if nothing is wrong.

    It is the largest share of a limit of acceleration or, weighed, of velocity, where who is faster than that already
    need not be slower at once, or the largest distance beyond the room as a share of ``_BESIDE``.
    """
    begin = [np.concatenate([getattr(state, name) for state in states]) for name in _PARTS]
    end = np.tile(rest, len(states))
    still = np.zeros_like(end)
    ways = JointTrajectory(
        tuple(map(str, range(len(end)))),
        np.array([0.0, seconds]),
        *(np.array(rows) for rows in zip(begin, (end, still, still), strict=True)),
    )
    position, velocity, acceleration = evaluate(ways, np.linspace(0.0, seconds, _SAMPLES))
    lower, upper = (np.tile(side, len(states)) for side in room)
    beyond = _beyond(position, (lower, upper))
    limits = setup.unscaled
    most = [np.tile(limit, len(states)) for limit in (limits.velocity, limits.acceleration)]
    faster, harder = (
        float((np.abs(values) / np.maximum(limit, np.abs(values[0]))).max())
        for values, limit in zip((velocity, acceleration), most, strict=True)
    )
    return max(beyond / _BESIDE, 1.0 + _FASTER * (faster - 1.0), harder)
