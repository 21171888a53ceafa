"""Brakes for controllers whose time is not known: one quintic to rest, from wherever they have the joints.

The quintic of one joint from position p, velocity v and acceleration a to rest at r, T seconds later, is
p + v T f1(x) + a T^2 f2(x) + (r - p) f3(x), x = t / T. It and its derivatives are linear in r. So what a joint may do
on its way says, for each T, in which interval r has to be: nothing has to be searched but T.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.trajectory.braking import MotionState, braking_time, planning_limits
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory

_SHORTEST = 0.1
"""Least time of such a brake, s: what is measured may be a little beside where a controller has a joint."""
_LONGEST_BACK, _FAST, _HARD, _BESIDE = 2.0, 1.05, 1.5, 1e-3
"""Longest time of one to where joints seem to stand, s; the shares of the limits of velocity and acceleration that it
may use before it takes longer; and how far beyond position limits it may lead, rad or m."""
_ENDING = 0.03
"""Least time of one from a motion that ends sooner than that, s."""
_LONGER, _HARDEST, _SLOWEST, _LONGEST = 1.08, 0.6, 4.0, 1.0
"""Factor between two times that are tried, times the quickest brake from and up to which they are, and seconds up to
which they are in any case."""
SOON = 2.5
"""Times the quickest brake that one may take before one is preferred that is less kind."""
_LATER = 0.02
"""Seconds that a brake may take beyond the end of its motion."""
_ON_THE_WAY = 5
"""Number of times on its way that a brake is made for."""
_LOOK_EVERY = 0.01
"""s between two looks at where a motion leads."""
_GOOD = (
    (0.985, 1.0, 1e-3),
    (1.14, 1.03, 1e-3),
    (1.3, 1.05, 2e-3),
    (1.4, 1.09, 5e-3),
    (1.5, 1.09, 0.02),
    (1.7, 1.09, 0.02),
)
"""What brakes may do, in the order of trial: shares of the limits of acceleration and velocity, and distances beyond
where their motion leads (rad or m). From a motion that slows down as fast as it may, no quintic to its end keeps its
limit of acceleration."""
_LEAST_BAD = ((1.5, 1.09), (2.0, 1.3), (4.0, 2.0), (np.inf, np.inf))
"""The same, without regard to where joints go on their way. What goes on at speed just before its limit cannot stay
inside: it is torn back no more than ``_OUTSIDE`` asks for."""
_OUTSIDE, _HARDEST_OF_ALL = 0.1, 4.0
"""How far beyond position limits such a brake may go, rad or m, rather than pull harder; and the share of a limit of
acceleration that is enough in any case."""
_KEPT = 1.0 + 1e-6
_SAME = 1e-9
_X = np.linspace(0.0, 1.0, 21)[1:, None]
_POSITION = np.array([_X - 6 * _X**3 + 8 * _X**4 - 3 * _X**5,
                      0.5 * _X**2 - 1.5 * _X**3 + 1.5 * _X**4 - 0.5 * _X**5,
                      10 * _X**3 - 15 * _X**4 + 6 * _X**5])  # fmt: skip
_VELOCITY = np.array([1 - 18 * _X**2 + 32 * _X**3 - 15 * _X**4,
                      _X - 4.5 * _X**2 + 6 * _X**3 - 2.5 * _X**4,
                      30 * _X**2 - 60 * _X**3 + 30 * _X**4])  # fmt: skip
_ACCELERATION = np.array([-36 * _X + 96 * _X**2 - 60 * _X**3,
                          1 - 9 * _X + 18 * _X**2 - 10 * _X**3,
                          60 * _X - 180 * _X**2 + 120 * _X**3])  # fmt: skip
"""f1, f2 and f3 on the way of a brake, and their derivatives."""


def brake_on_the_way(
    setup: ServoSetup,
    position: Annotated[Float64, "n"],
    velocity: Annotated[Float64, "n"],
    way: float,
) -> JointTrajectory:
    """Return a brake from a measured state, of two points, that may come at once, or later: of a controller that gets
    the second one only, it does not matter what its clock says, or how long the message was on its way.

    One for the longest way alone would have a controller that gets it sooner speed up to be there.

    Args:
        setup: the robot, and the joints.
        position: where the joints are now, rad or m.
        velocity: as measured, rad/s or m/s.
        way: the longest way, s.
    """
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
    """Return where joints are after some time at a velocity (s, or one for each), ``inside_limits``."""
    return inside_limits(setup, position + seconds * velocity, position)


def inside_limits(
    setup: ServoSetup, position: Annotated[Float64, "n"], measured: Annotated[Float64, "n"]
) -> Annotated[Float64, "n"]:
    """Return where joints are taken to be that were measured before: no farther than their limits, unless they were
    beyond them. One that slows down at its limit would be taken to go on through it, and be told to rest there."""
    limits, index = setup.robot.limits, setup.variables
    lower, upper = np.minimum(limits.lower[index], measured), np.maximum(limits.upper[index], measured)
    return np.clip(position, lower, upper)


def spread(earliest: float, latest: float) -> list[float]:
    """Return the times between two for which a brake is made that keeps the limits in all of that time."""
    times: list[float] = np.linspace(earliest, latest, _ON_THE_WAY).tolist()
    return times


def brake_from_any(
    setup: ServoSetup,
    states: Sequence[MotionState],
    ahead: tuple[Commanded, int, int] | None = None,
    soon: float = SOON,
) -> JointTrajectory:
    """Return a brake of two points, as ``brake_on_the_way``, that keeps the limits of velocity and acceleration from
    whichever of some states a controller has the joints in when it comes, and goes no farther than the joints may: to
    their limits and, if they are in a motion, to where that would have led meanwhile. It is as quick as that allows.
    Where nothing does, it may do what ``_GOOD`` says, in that order; else it goes the least too far, and rather goes on
    than pulls harder.

    Args:
        setup: the robot, and the joints.
        states: in which the joints may be; the one in the middle is the most likely.
        ahead: the motion that the joints are in, and the earliest and the latest time in it (ns of its clock) of the
            states. The brake comes to rest on its way, which was looked at, and hardly later than the motion would.
        soon: times the quickest brake that one may take before one is preferred that is less kind.
    """
    ways = _Ways.from_states(setup, states, ahead, soon)
    later: JointTrajectory | None = None
    for harder, faster, beyond in _GOOD:
        lower, upper = ways.kept(harder, faster)
        least, most = ways.inside(beyond)
        lower, upper = np.maximum(lower, least), np.minimum(upper, most)
        good = (lower <= upper + _SAME).all(axis=1)
        if not good.any():
            continue
        best = int(np.argmax(good))
        brake = ways.brake(best, ways.on_the_way(lower[best], upper[best]))
        if ways.soon[best]:
            return brake
        later = later or brake
    return later or _least_bad(ways)


def brake_to(
    setup: ServoSetup, place: Annotated[Float64, "n"], states: Sequence[MotionState]
) -> JointTrajectory:
    """Return a brake of two points to a place where joints seem to stand, that also suits some other states in which a
    controller may have the joints: it stays inside the position limits, and pulls no harder than need be. For that it
    may take longer, which costs joints nothing that do stand there.

    Args:
        setup: the robot, and the joints.
        place: rad or m.
        states: in which the joints may be instead.
    """
    p, v, a = (
        np.array([getattr(state, name) for state in states])[:, None]
        for name in ("position", "velocity", "acceleration")
    )
    limits, index, own, still = setup.robot.limits, setup.variables, setup.unscaled, np.zeros_like(place)
    lower = np.minimum(np.minimum(limits.lower[index], place), p)
    upper = np.maximum(np.maximum(limits.upper[index], place), p)
    fastest = _FAST * np.maximum(own.velocity, np.abs(v))
    hardest = _HARD * np.maximum(own.acceleration, np.abs(a))
    lengths = _between_lengths(_SHORTEST, _LONGEST_BACK)
    used, outside = np.empty(len(lengths)), np.empty(len(lengths))
    for k, T in enumerate(lengths):
        position, velocity, acceleration = (
            (v * T * f1 + a * T**2 * f2 + (place - p) * f3) / T**power
            for power, (f1, f2, f3) in enumerate((_POSITION, _VELOCITY, _ACCELERATION))
        )
        used[k] = max((np.abs(velocity) / fastest).max(), (np.abs(acceleration) / hardest).max())
        outside[k] = np.maximum(lower - p - position, p + position - upper).max()
    inside = outside <= max(_BESIDE, outside.min())
    good = inside & (used <= 1.0)
    T = lengths[good.argmax() if good.any() else np.where(inside, used, np.inf).argmin()]
    return JointTrajectory(
        setup.joints,
        np.array([0.0, T]),
        np.array([place, place]),
        np.array([still, still]),
        np.array([still, still]),
    )


def _between_lengths(shortest: float, longest: float) -> Annotated[Float64, "G"]:
    """Return lengths of brakes to try, s."""
    return np.geomspace(shortest, longest, 2 + int(np.log(longest / shortest) / np.log(_LONGER)))


def _least_bad(ways: "_Ways") -> JointTrajectory:
    """Return the brake that goes the least too far of those that pull no harder than has to be."""
    found: tuple[float, JointTrajectory] | None = None
    for harder, faster in _LEAST_BAD:
        lower, upper = ways.kept(harder, faster)
        lower, upper = np.maximum(lower, ways.lower), np.minimum(upper, ways.upper)
        possible = (lower <= upper + _SAME).all(axis=1)
        if not possible.any():
            continue
        rests = np.clip(ways.inside_most(), lower, upper)
        best = int(np.argmin(np.where(possible, ways.too_far(rests), np.inf)))
        outside = float(ways.outside(rests)[best])
        if found is None or outside < found[0]:
            found = outside, ways.brake(best, rests[best])
        if outside <= _OUTSIDE or harder >= _HARDEST_OF_ALL:
            break
    assert found is not None  # the last ones do anything
    return found[1]


@dataclass(frozen=True, eq=False)
class _Ways:
    """Quintics to rest from K states of n joints that take G different times."""

    setup: ServoSetup
    lengths: Annotated[Float64, "G"]
    """Seconds, rising."""
    soon: Annotated[np.typing.NDArray[np.bool_], "G"]
    """Whether they are not much longer than the quickest brake."""
    p: Annotated[Float64, "K 1 n"]
    v: Annotated[Float64, "K 1 n"]
    a: Annotated[Float64, "K 1 n"]
    middle: MotionState
    lower: Annotated[Float64, "n"]
    """Lowest places of joints: their limits, or where they may be already."""
    upper: Annotated[Float64, "n"]
    lowest: Annotated[Float64, "G n"]
    """Lowest places that the motion would have led to meanwhile."""
    highest: Annotated[Float64, "G n"]
    places: Annotated[Float64, "M n"]
    """Places on the way of the motion, or of joints that slow down, where they may come to rest."""

    @staticmethod
    def from_states(
        setup: ServoSetup,
        states: Sequence[MotionState],
        ahead: tuple[Commanded, int, int] | None,
        soon: float,
    ) -> "_Ways":
        middle = states[len(states) // 2]
        p, v, a = (
            np.array([getattr(state, name) for state in states])
            for name in ("position", "velocity", "acceleration")
        )
        still = np.zeros_like(middle.velocity)
        quickest = max(braking_time(middle.velocity, planning_limits(setup.stopping), still), _SHORTEST)
        shortest, longest = max(_HARDEST * quickest, _SHORTEST), max(_SLOWEST * quickest, _LONGEST)
        limits, index = setup.robot.limits, setup.variables
        lower = np.minimum(limits.lower[index], p.min(axis=0))
        upper = np.maximum(limits.upper[index], p.max(axis=0))
        if ahead is None:
            lengths = _between_lengths(shortest, longest)
            lowest, highest = (np.tile(side, (len(lengths), 1)) for side in (lower, upper))
            places = middle.position + np.linspace(0.0, longest, 41)[:, None] * middle.velocity
        else:
            motion, earliest, last = ahead
            left = max((motion.end - earliest) / NANOSECONDS_PER_SECOND, _ENDING)
            latest = min(max(left + _LATER, quickest), longest)
            lengths = _between_lengths(min(shortest, left), latest)
            lengths = np.unique(np.append(lengths, left)) if left < latest else lengths
            begin = (earliest - motion.start) / NANOSECONDS_PER_SECOND
            later = (last - earliest) / NANOSECONDS_PER_SECOND
            seconds = np.linspace(0.0, later + latest, 2 + int((later + latest) / _LOOK_EVERY))
            places = evaluate(motion.trajectory, begin + seconds)[0]
            until = np.searchsorted(seconds, later + lengths, side="right") - 1
            lowest = np.minimum(np.minimum.accumulate(places)[until], p.min(axis=0))
            highest = np.maximum(np.maximum.accumulate(places)[until], p.max(axis=0))
        are_soon = (lengths <= max(soon * quickest, lengths[0])) | (ahead is None)
        p, v, a = p[:, None], v[:, None], a[:, None]
        return _Ways(setup, lengths, are_soon, p, v, a, middle, lower, upper, lowest, highest, places)

    @cached_property
    def _parts(self) -> list[tuple[Annotated[Float64, "G K X n"], Annotated[Float64, "G 1 X 1"]]]:
        """Positions, velocities and accelerations on the ways: what does not depend on where they come to rest, and
        what each unit of that adds."""
        T = self.lengths[:, None, None, None]
        parts = []
        for power, (f1, f2, f3) in enumerate((_POSITION, _VELOCITY, _ACCELERATION)):
            given = self.v * T * f1 + self.a * T**2 * f2 - self.p * f3
            if power == 0:
                given = given + self.p
            parts.append((given / T**power, f3 / T**power))
        return parts

    def kept(
        self, harder: float, faster: float
    ) -> tuple[Annotated[Float64, "G n"], Annotated[Float64, "G n"]]:
        """Return between which places joints have to come to rest to keep shares of their limits of acceleration and
        velocity; who is faster than that already need not be slower at once."""
        own, now = self.setup.unscaled, np.abs(self.v)
        velocity = np.maximum(faster * _KEPT * own.velocity, _KEPT * now)
        acceleration = np.maximum(harder * _KEPT * own.acceleration, _KEPT * np.abs(self.a))
        slow, gentle = (
            _between(part, -most, most)
            for part, most in zip(self._parts[1:], (velocity, acceleration), strict=True)
        )
        return np.maximum(slow[0], gentle[0]), np.minimum(slow[1], gentle[1])

    def inside(self, beyond: float) -> tuple[Annotated[Float64, "G n"], Annotated[Float64, "G n"]]:
        """Return between which places joints have to come to rest to go nowhere but where they may, or so far beyond
        where the motion leads."""
        lowest, highest = (
            np.maximum(self.lowest - beyond, self.lower),
            np.minimum(self.highest + beyond, self.upper),
        )
        least, most = _between(self._parts[0], lowest[:, None, None], highest[:, None, None])
        return np.maximum(least, lowest), np.minimum(most, highest)

    def inside_most(self) -> Annotated[Float64, "G n"]:
        """Return the places nearest to where joints have to come to rest to go nowhere but where they may."""
        least, most = self.inside(0.0)
        with np.errstate(invalid="ignore"):  # joints without limits have no middle, and need none
            wanted = np.where(least <= most, np.clip(self._gently(), least, most), 0.5 * (least + most))
        return np.clip(wanted, self.lower, self.upper)

    def too_far(self, rests: Annotated[Float64, "G n"]) -> Annotated[Float64, "G"]:
        """Return how far the ways to some places go beyond where joints may go, rad or m."""
        lower, upper = np.maximum(self.lowest, self.lower), np.minimum(self.highest, self.upper)
        return self._beyond(rests, lower[:, None, None], upper[:, None, None])

    def outside(self, rests: Annotated[Float64, "G n"]) -> Annotated[Float64, "G"]:
        """Return how far the ways to some places go beyond position limits, rad or m."""
        return self._beyond(rests, self.lower, self.upper)

    def _beyond(
        self,
        rests: Annotated[Float64, "G n"],
        lower: Annotated[Float64, "... n"],
        upper: Annotated[Float64, "... n"],
    ) -> Annotated[Float64, "G"]:
        given, slope = self._parts[0]
        position = given + slope * rests[:, None, None]
        beyond = np.maximum(position - upper, lower - position)
        return np.asarray(np.maximum(beyond.max(axis=(1, 2, 3)), 0.0))

    def _gently(self) -> Annotated[Float64, "G n"]:
        """Return where the quintics end whose accelerations end as gently as they can."""
        T, one = self.lengths[:, None], self.middle
        return np.asarray(one.position + 0.5 * T * one.velocity + T * T / 12.0 * one.acceleration)

    def on_the_way(
        self, lower: Annotated[Float64, "n"], upper: Annotated[Float64, "n"]
    ) -> Annotated[Float64, "n"]:
        """Return the place between two that is nearest to the way of a motion, or of joints that slow down together."""
        away = np.maximum(np.maximum(lower - self.places, self.places - upper), 0.0).max(axis=1)
        near = np.flatnonzero(away <= away.min() + _SAME)
        # Of several, the one in the middle: all of them can be reached.
        return np.asarray(np.clip(self.places[near[len(near) // 2]], np.minimum(lower, upper), upper))

    def brake(self, which: int, rest: Annotated[Float64, "n"]) -> JointTrajectory:
        """Return a brake of two points to a place."""
        still = np.zeros_like(rest)
        state = self.middle
        return JointTrajectory(
            self.setup.joints,
            np.array([0.0, self.lengths[which]]),
            np.array([state.position, rest]),
            np.array([state.velocity, still]),
            np.array([still, still]),
        )


def _between(
    part: tuple[Annotated[Float64, "G K X n"], Annotated[Float64, "G 1 X 1"]],
    least: Annotated[Float64, "... n"],
    most: Annotated[Float64, "... n"],
) -> tuple[Annotated[Float64, "G n"], Annotated[Float64, "G n"]]:
    """Return between which values r has to be for least <= given + slope r <= most everywhere."""
    given, slope = part
    flat = np.abs(slope) < 1e-6 * np.abs(slope).max(axis=2, keepdims=True)
    by = np.where(flat, 1.0, slope)
    one, other = (least - given) / by, (most - given) / by
    lower = np.where(flat, -np.inf, np.minimum(one, other)).max(axis=(1, 2))
    upper = np.where(flat, np.inf, np.maximum(one, other)).min(axis=(1, 2))
    return lower, upper
