"""Simulated joint_trajectory_controller, without a robot: checks, interpolation, holding.

Follows ros2_controllers (joint_trajectory_controller): a trajectory replaces the one before as a whole; until its first
point counts, the way leads there from where the joints were told to be, or, as by default there, from where they are
measured; points of positions only are joined by lines, of positions and velocities by cubics, with
accelerations, too, by quintics; after the last point the joints stay. A speed scaling slows motions down, as the speed
slider of a robot does: the time of a motion goes on more slowly, from when that came. No clock is read here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError, quoted, shortened
from kinopt_ros.trajectory.interpolation import quintics
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND
from kinopt_ros.trajectory.simulated_drive import LONGEST_LAG, STEP, SimulatedDrive

AT_REST = 1e-7
"""Largest velocity of the last point, rad/s or m/s."""
SLOWEST = 0.01
"""Least speed scaling."""
_LAST = 3
"""Order of what follows the last knot."""
FORGOTTEN = 40.0
"""Number of lags after which drives are where they would be whatever they were told before."""


@dataclass(frozen=True)
class Waypoint:
    """A point of a trajectory as it was given: empty lists for what it does not say."""

    nanoseconds: int
    """Time from start, ns."""
    positions: Sequence[float]
    velocities: Sequence[float] = ()
    accelerations: Sequence[float] = ()
    effort: Sequence[float] = ()


@dataclass(frozen=True, eq=False)
class JointsState:
    """Positions and velocities of joints."""

    position: Annotated[Float64, "n"]
    velocity: Annotated[Float64, "n"]
    acceleration: Annotated[Float64, "n"]

    @staticmethod
    def at_rest(position: Annotated[Float64, "n"]) -> "JointsState":
        """Whether the joints are at rest."""
        still = np.zeros(len(position))
        return JointsState(np.array(position, dtype=np.float64), still, still.copy())


@dataclass(frozen=True, eq=False)
class _Knot:
    """A state at a time of the clock, with what is known of it: its order is 0 (position) to 2 (acceleration, too)."""

    time: int
    state: JointsState
    order: int


class _Motion:
    """A way through knots: a line, cubic or quintic between two of them, by what is known of both; then rest."""

    def __init__(self, knots: list[_Knot]) -> None:
        self.knots = knots
        self._times = np.array([knot.time for knot in knots], dtype=np.int64)
        states = [(knot.state.position, knot.state.velocity, knot.state.acceleration) for knot in knots]
        self._states = np.array(states).transpose(1, 0, 2)
        self._orders = np.array([min(a.order, b.order) for a, b in pairwise(knots)] + [_LAST])

    def at(self, times: Annotated[Int64, "K"]) -> tuple[Annotated[Float64, "K n"], ...]:
        """Return positions, velocities and accelerations at times of the knots; before the first it is as there."""
        rows = np.maximum(np.searchsorted(self._times, times, side="right") - 1, 0)
        orders = self._orders[rows]
        if (orders == orders[0]).all():
            return self._between(int(orders[0]), rows, times)
        found = np.empty((3, len(times), self._states.shape[2]))
        for order in np.unique(orders).tolist():
            there = orders == order
            found[:, there] = self._between(order, rows[there], times[there])
        return found[0], found[1], found[2]

    def _between(
        self, order: int, rows: Annotated[Int64, "K"], times: Annotated[Int64, "K"]
    ) -> tuple[Annotated[Float64, "K n"], ...]:
        """Interpolate between knots, the first of them in these rows."""
        p0, v0, a0 = self._states[:, rows]
        if order == _LAST:
            return p0, np.zeros_like(p0), np.zeros_like(p0)
        p1, v1, a1 = self._states[:, rows + 1]
        h = ((self._times[rows + 1] - self._times[rows]) / NANOSECONDS_PER_SECOND)[:, None]
        s = (np.maximum(times - self._times[rows], 0) / NANOSECONDS_PER_SECOND)[:, None]
        if order == 2:
            return quintics((p0, v0, a0), (p1, v1, a1), h, np.minimum(s, h) / h)
        slope = (p1 - p0) / h
        if order == 0:
            return p0 + s * slope, slope, np.zeros_like(slope)
        c2 = (3.0 * slope - 2.0 * v0 - v1) / h
        c3 = (v0 + v1 - 2.0 * slope) / (h * h)
        return p0 + s * (v0 + s * (c2 + s * c3)), v0 + s * (2.0 * c2 + s * 3.0 * c3), 2.0 * c2 + 6.0 * s * c3


class SimulatedController:
    """Follows trajectories for some joints. Times are ns of any one clock."""

    def __init__(
        self,
        joints: Sequence[str],
        start: Annotated[Float64, "n"],
        drive_lag: float | Annotated[Float64, "n"] = 0.0,
        speed_scaling: float = 1.0,
        from_desired: bool = True,
    ) -> None:
        """
        Args:
            joints: their names.
            start: where they are, rad or m.
            drive_lag: how far the joints, or each of them, are behind what the controller tells them, s.
            speed_scaling: share of their speed with which motions are done.
            from_desired: parameter interpolate_from_desired_state: whether what replaces a motion begins where the
                joints were told to be; else where they are measured.
        """
        if not joints or len(set(joints)) != len(joints) or len(start) != len(joints):
            raise InvalidRequestError(
                f"a controller has joints, each once, and a position for each of them, not "
                f"{shortened(list(joints)) or 'none'} and {len(start)} positions"
            )
        check_faults(drive_lag, speed_scaling)
        self.joints = tuple(joints)
        self._scaling = speed_scaling
        self._from_desired = from_desired
        self._drive = SimulatedDrive(drive_lag, start)
        self._driven = 0
        """Up to when the drives have gone on."""
        self._begun = 0
        """When the motion came: from then on its time goes on at its own pace."""
        self._motion = _Motion([_Knot(0, JointsState.at_rest(start), 2)])

    @property
    def end(self) -> int:
        """Time at which the motion is over."""
        left = self._motion.knots[-1].time - self._begun
        return self._begun + (left if self._scaling == 1.0 else math.ceil(left / self._scaling))

    def take(self, names: Sequence[str], points: Sequence[Waypoint], start: int, now: int) -> None:
        """Follow a trajectory from now on, in place of the one before.

        Args:
            names: its joints, in any order.
            points: its points.
            start: when its first point's time counts from; 0: now.
            now: the present time.

        Raises:
            InvalidRequestError: the controller would refuse it; what is done goes on.
        """
        self.check(names, points, start, now)
        order = [list(names).index(name) for name in self.joints]
        begin = start or now
        knots = [_knot(begin, point, order) for point in points]
        # A part of it may be over: then it counts from the point that is the last one of these.
        over = sum(knot.time <= now for knot in knots)
        self._replace([self._there(now), *knots] if not over else knots[over - 1 :], now)

    def hold(self, now: int) -> None:
        """Stay where the joints are told to be, at once: what the controller does when a motion is cancelled."""
        self._replace([_Knot(now, JointsState.at_rest(self._there(now).state.position), 2)], now)

    def set_back(self, last: int, now: int) -> None:
        """The clock was set back from ``last``, as simulations that begin anew do. A motion that is over, or begins
        later than now, is not done again: the joints stay where they were."""
        if self._motion_times(np.array([now]))[0] < self._motion.knots[0].time or last >= self.end:
            self._motion = _Motion([_Knot(now, JointsState.at_rest(self.state(last).position), 2)])
            self._begun = now
        self._driven = now

    def state(self, now: int) -> JointsState:
        """Return where the joints are told to be at a time that is not before the last ``take``."""
        return JointsState(*(rows[0] for rows in self.states(np.array([now]))))

    def states(self, times: Annotated[Int64, "K"]) -> tuple[Annotated[Float64, "K n"], ...]:
        """Return positions, velocities and accelerations that the joints are told, as ``state``."""
        pace = self._scaling
        position, velocity, acceleration = self._motion.at(self._motion_times(times))
        return position, pace * velocity, pace * pace * acceleration

    def measured(self, now: int) -> JointsState:
        """Return where the joints are, and how they move, at a time that is not before the last one asked for."""
        if self._drive.exact:
            return self.state(now)
        self.drive_on(np.array([now]))
        return JointsState(self._drive.position, self._drive.velocity, np.zeros(len(self.joints)))

    def drive_on(self, times: Annotated[Int64, "K"]) -> Annotated[Float64, "K n"]:
        """Let the joints go on; return where they are at some times, rising, from the last ``take`` on."""
        parts = [self._steps(int(before), int(time)) for before, time in pairwise((self._driven, *times))]
        steps = np.concatenate(parts)
        places = self._drive.follow(self._driven, steps, self.states(steps)[0])
        self._driven = int(steps[-1])
        return np.asarray(places[np.cumsum([len(part) for part in parts]) - 1])

    def _steps(self, before: int, now: int) -> Annotated[Int64, "K"]:
        """Return times from one to another at which drives are told where to be: what is long ago has no effect."""
        since = min(
            max((now - before) / NANOSECONDS_PER_SECOND, 0.0), FORGOTTEN * float(self._drive.lags.max())
        )
        if since <= STEP:  # linspace takes most of the time then
            back = np.array([since, 0.0] if since else [0.0]) * NANOSECONDS_PER_SECOND
        else:
            back = np.linspace(since, 0.0, 1 + math.ceil(since / STEP)) * NANOSECONDS_PER_SECOND
        return np.asarray(now - back.round().astype(np.int64))

    def _there(self, now: int) -> _Knot:
        """Return the state in which what comes now finds the joints."""
        if self._from_desired:
            told = self._motion.at(self._motion_times(np.array([now])))
            return _Knot(now, JointsState(*(rows[0] for rows in told)), 2)
        there = self.measured(now)  # no driver measures accelerations
        return _Knot(now, JointsState(there.position.copy(), there.velocity.copy(), there.acceleration), 1)

    def _replace(self, knots: list["_Knot"], now: int) -> None:
        """Do something else from now on."""
        self.drive_on(np.array([now]))
        self._motion, self._begun = _Motion(knots), now

    def _motion_times(self, times: Annotated[Int64, "K"]) -> Annotated[Int64, "K"]:
        """Return how far the motion is at some times, in the time of its knots."""
        if self._scaling == 1.0:
            return times
        passed = self._scaling * (times - self._begun)
        return np.asarray(self._begun + passed.round().astype(np.int64))

    def check(self, names: Sequence[str], points: Sequence[Waypoint], start: int, now: int) -> None:
        """Raise InvalidRequestError if ``take`` would."""
        if sorted(names) != sorted(self.joints):
            raise InvalidRequestError(
                f"the trajectory's joints are {shortened(list(names)) or 'none'}; the controller's are "
                f"{shortened(list(self.joints))}"
            )
        if not points:
            raise InvalidRequestError("the trajectory has no points")
        if start and start + points[-1].nanoseconds < now:
            raise InvalidRequestError("the trajectory ends in the past")
        before = -1
        for k, point in enumerate(points):
            if point.nanoseconds <= before:
                raise InvalidRequestError(
                    f"the time of point {k} is not after that of the one before (or is negative)"
                )
            before = point.nanoseconds
            if len(point.effort):
                raise InvalidRequestError(f"point {k} has efforts, which the controller does not take")
            for what in ("positions", "velocities", "accelerations"):
                values = getattr(point, what)
                if len(values) != len(names) and (len(values) or what == "positions"):
                    raise InvalidRequestError(f"point {k} has {len(values)} {what} for {len(names)} joints")
                if not np.isfinite(np.array(values)).all():
                    raise InvalidRequestError(f"the {what} of point {k} are not finite")
        for name, velocity in zip(names, points[-1].velocities, strict=False):
            if abs(velocity) > AT_REST:
                raise InvalidRequestError(
                    f"the velocity of the last point of joint {quoted(name)} is {velocity:g}; allowed is 0"
                )


def check_faults(drive_lag: float | Annotated[Float64, "n"], speed_scaling: float) -> None:
    """Raise InvalidRequestError if no controller can have these."""
    lags = np.atleast_1d(drive_lag)
    for lag in lags.tolist():
        if not 0.0 <= lag <= LONGEST_LAG:
            raise InvalidRequestError(f"drive_lag is {lag:g}; allowed is 0 to {LONGEST_LAG:g} s")
    if lags.any() and not lags.all():
        raise InvalidRequestError("drive_lag is 0 for some joints; allowed is 0 for all of them or for none")
    if not SLOWEST <= speed_scaling <= 1.0:
        raise InvalidRequestError(f"speed_scaling is {speed_scaling:g}; allowed is {SLOWEST:g} to 1")


def _knot(begin: int, point: Waypoint, order: Sequence[int]) -> _Knot:
    rows = [
        np.array(values, dtype=np.float64)[list(order)] if len(values) else np.zeros(len(order))
        for values in (point.positions, point.velocities, point.accelerations)
    ]
    known = 0 if not len(point.velocities) else 1 if not len(point.accelerations) else 2
    return _Knot(begin + point.nanoseconds, JointsState(*rows), known)
