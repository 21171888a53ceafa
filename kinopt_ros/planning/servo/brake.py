"""Emergency stop: the quickest way to end a motion."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.trajectory.braking import MotionState, braking_time, pieces_to_rest, planning_limits
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.verify import VerifiedMotion

SOFTER = 1.5
"""Times the quickest brake that one by a single quintic takes: its acceleration has a peak, where that one is even."""
SHORTEST = 0.1
"""Least time of such a brake, s: what is measured may be a little beside where a controller has a joint."""
_NO_WAY = 5e-3
"""Way of a brake that does not matter, s."""
_STEP = 1.1
"""Factor between two times that are tried for a brake."""
_SLOWEST, _LONGEST = 4.0, 1.0
"""Times the quickest brake, and seconds, up to which longer ones are tried."""
_WAYS = (0.5, 0.45, 0.4)
"""Shares of the way at the velocity of its begin that are tried for a brake; a shorter one turns back."""
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
    if way < _NO_WAY:
        return brake_from_measured(setup, gone_on(setup, position, velocity, way), velocity)
    still = np.zeros_like(velocity)
    return brake_from_any(
        setup,
        [
            MotionState(gone_on(setup, position, velocity, seconds), velocity, still)
            for seconds in spread(0.0, way)
        ],
    )


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


def brake_from_any(setup: ServoSetup, states: Sequence[MotionState]) -> JointTrajectory:
    """Return a brake of two points, as ``brake_from_measured``, that keeps the limits of velocity and acceleration from
    whichever of some states a controller has the joints in when it comes. It is as quick as that allows; if nothing
    does, it breaks them the least.

    Args:
        setup: the robot, and the joints.
        states: in which the joints may be; the one in the middle is the most likely.
    """
    middle = states[len(states) // 2]
    still = np.zeros_like(middle.velocity)
    seconds = max(braking_time(middle.velocity, planning_limits(setup.unscaled), still), SHORTEST)
    end = max(_SLOWEST * seconds, _LONGEST)
    best, least = _brake(setup, middle, seconds), np.inf
    while seconds <= end:
        for way in _WAYS:
            brake = _brake(setup, middle, seconds, way)
            share = _share_of_limits(setup, states, brake.position[-1], seconds)
            if share < least:
                best, least = brake, share
        if least <= _KEPT:
            break
        seconds *= _STEP
    return best


def _brake(setup: ServoSetup, state: MotionState, seconds: float, way: float = 0.5) -> JointTrajectory:
    """Return a brake of two points that takes so long, and such a share of the way at the velocity of its begin."""
    limits, index = setup.robot.limits, setup.variables
    position, velocity = state.position, state.velocity
    # Half the way is where a quintic ends whose acceleration ends as gently as it can; one that is measured outside its
    # limits stays there.
    rest = np.clip(
        position + way * seconds * velocity + seconds * seconds / 12.0 * state.acceleration,
        np.minimum(limits.lower[index], position),
        np.maximum(limits.upper[index], position),
    )
    still = np.zeros_like(velocity)
    return JointTrajectory(
        setup.joints,
        np.array([0.0, seconds]),
        np.array([position, rest]),
        np.array([velocity, still]),
        np.array([still, still]),
    )


def _share_of_limits(
    setup: ServoSetup, states: Sequence[MotionState], rest: Annotated[Float64, "n"], seconds: float
) -> float:
    """Return the largest share of a limit of velocity or acceleration on the quintics from some states to rest; who is
    faster than that already need not be slower at once."""
    begin = [np.concatenate([getattr(state, name) for state in states]) for name in _PARTS]
    end = np.tile(rest, len(states))
    still = np.zeros_like(end)
    ways = JointTrajectory(
        tuple(map(str, range(len(end)))),
        np.array([0.0, seconds]),
        *(np.array(rows) for rows in zip(begin, (end, still, still), strict=True)),
    )
    _, velocity, acceleration = evaluate(ways, np.linspace(0.0, seconds, _SAMPLES))
    limits = setup.unscaled
    most = [np.tile(limit, len(states)) for limit in (limits.velocity, limits.acceleration)]
    shares = (
        np.abs(values) / np.maximum(limit, np.abs(values[0]))
        for values, limit in zip((velocity, acceleration), most, strict=True)
    )
    return max(float(share.max()) for share in shares)
