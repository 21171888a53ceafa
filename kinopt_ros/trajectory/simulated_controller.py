"""Simulated joint_trajectory_controller, without a robot: checks, interpolation, holding.

Follows ros2_controllers (joint_trajectory_controller, default parameters): a trajectory replaces the one before as a
whole; until its first point counts, the way leads there from where the joints were; points of positions only are joined
by lines, of positions and velocities by cubics, with accelerations, too, by quintics; after the last point the joints
stay. No clock is read here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, quoted, shortened
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory

AT_REST = 1e-7
"""Largest velocity of the last point, rad/s or m/s."""


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


class SimulatedController:
    """Follows trajectories for some joints. Times are ns of any one clock."""

    def __init__(self, joints: Sequence[str], start: Annotated[Float64, "n"]) -> None:
        """``start``: where the joints are, rad or m."""
        if not joints or len(set(joints)) != len(joints) or len(start) != len(joints):
            raise InvalidRequestError(
                f"a controller has joints, each once, and a position for each of them, not "
                f"{shortened(list(joints)) or 'none'} and {len(start)} positions"
            )
        self.joints = tuple(joints)
        self._knots = [_Knot(0, JointsState.at_rest(start), 2)]

    @property
    def end(self) -> int:
        """Time at which the motion is over."""
        return self._knots[-1].time

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
        before = _Knot(now, self.state(now), 2)
        self._knots = [before, *knots] if not over else knots[over - 1 :]

    def hold(self, now: int) -> None:
        """Stay where the joints are, at once: what the controller does when a motion is cancelled."""
        self._knots = [_Knot(now, JointsState.at_rest(self.state(now).position), 2)]

    def set_back(self, last: int, now: int) -> None:
        """The clock was set back from ``last``, as simulations that begin anew do. A motion that is over, or begins
        later than now, is not done again: the joints stay where they were."""
        if now < self._knots[0].time or last >= self.end:
            self._knots = [_Knot(now, JointsState.at_rest(self.state(last).position), 2)]

    def state(self, now: int) -> JointsState:
        """Return where the joints are at a time that is not before the last ``take``."""
        knots = self._knots
        if now >= knots[-1].time or len(knots) == 1:
            return JointsState.at_rest(knots[-1].state.position)
        row = max(sum(knot.time <= now for knot in knots) - 1, 0)
        return _between(knots[row], knots[row + 1], max(now, knots[row].time))

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


def _knot(begin: int, point: Waypoint, order: Sequence[int]) -> _Knot:
    rows = [
        np.array(values, dtype=np.float64)[list(order)] if len(values) else np.zeros(len(order))
        for values in (point.positions, point.velocities, point.accelerations)
    ]
    known = 0 if not len(point.velocities) else 1 if not len(point.accelerations) else 2
    return _Knot(begin + point.nanoseconds, JointsState(*rows), known)


def _between(a: _Knot, b: _Knot, now: int) -> JointsState:
    """Interpolate between two knots, by what is known of both."""
    h = (b.time - a.time) / NANOSECONDS_PER_SECOND
    s = (now - a.time) / NANOSECONDS_PER_SECOND
    p, q = a.state, b.state
    order = min(a.order, b.order)
    if order == 0:
        velocity = (q.position - p.position) / h
        return JointsState(p.position + s * velocity, velocity, np.zeros_like(velocity))
    if order == 1:
        slope = (q.position - p.position) / h
        c2 = (3.0 * slope - 2.0 * p.velocity - q.velocity) / h
        c3 = (p.velocity + q.velocity - 2.0 * slope) / (h * h)
        return JointsState(
            p.position + s * (p.velocity + s * (c2 + s * c3)),
            p.velocity + s * (2.0 * c2 + s * 3.0 * c3),
            2.0 * c2 + 6.0 * s * c3,
        )
    rows = (
        np.stack([getattr(p, name), getattr(q, name)]) for name in ("position", "velocity", "acceleration")
    )
    piece = JointTrajectory(("",) * len(p.position), np.array([0.0, h]), *rows)
    return JointsState(*(row[0] for row in evaluate(piece, np.array([s]))))
