"""The motion that was sent last: where the robot has to be from now until it is at rest."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.trajectory.braking import MotionState, Piece, pieces_to_rest
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.jerk_phases import MotionLimits
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory

_NEAR = 1_000_000
"""Least time between two waypoints of a motion, ns: coefficients of quintics suffer from shorter ones."""


@dataclass(frozen=True, eq=False)
class Commanded:
    """A motion in the time of a clock."""

    trajectory: JointTrajectory
    start: int
    """Time of the first waypoint, ns of the clock."""
    turn: int
    """Time until which the motion is what was wanted, ns of the clock; then it brakes."""
    leave: int
    """Time until which it is the motion before, ns of the clock; it has to be sent by then."""

    @cached_property
    def times(self) -> Annotated[Int64, "T"]:
        """Times of the waypoints, ns of the clock."""
        return self.start + self.trajectory.nanoseconds

    @property
    def last_start(self) -> int:
        """``start``; of several motions, one after the other, that of the last one."""
        return self.start

    @property
    def end(self) -> int:
        """Time at which it is at rest, ns of the clock."""
        return int(self.times[-1])

    def at(self, time: int) -> MotionState:
        """Return the state at a time (ns of the clock); before the start and after the end that at the nearest end."""
        if time >= self.end:
            still = np.zeros(len(self.trajectory.joint_names))
            return MotionState(self.trajectory.position[-1], still, still)
        row = int(np.searchsorted(self.times, time))
        if self.times[row] == time:
            return self._waypoint(row)
        return MotionState(*(rows[0] for rows in self.at_all(np.array([time]))))

    def at_all(self, times: Annotated[Int64, "K"]) -> tuple[Annotated[Float64, "K n"], ...]:
        """Return positions, velocities and accelerations at times (ns of the clock)."""
        return evaluate(self.trajectory, (times - self.start) / NANOSECONDS_PER_SECOND)

    def near_waypoint(self, time: int) -> int:
        """Return a time (ns of the clock), moved to a waypoint if one is within a millisecond.

        Beside one a part of a motion would begin or end a moment before its jerk changes.
        """
        nearest = int(self.times[np.argmin(np.abs(self.times - time))])
        return nearest if abs(nearest - time) < _NEAR else time

    def left_at(self, now: int, lead: int, way: int = 0) -> tuple[int, int]:
        """Return from when on this is part of what leaves it after so many ns, and when that is, ns of the clock.

        One that has not begun is left after its begin: until then its controller is on its way there, from wherever it
        holds the joints.

        Args:
            now: ns of the clock.
            lead: ns until it is left.
            way: ns that joint states are on their way, by their stamps. The robot's clock may be behind by as much:
                what begins later than that says lies ahead when it comes, and a controller that goes to its first point
                from where the robot is measured would set it back.
        """
        begin = max(now - way, self.start)
        return begin, self.near_waypoint(max(now + lead, begin + 2 * _NEAR))

    def going_on(self, now: int, leave: int, pieces: list[Piece]) -> "Commanded":
        """Return the motion that is this one from ``now`` until ``leave`` (ns of the clock), and other pieces after
        that.

        It begins with a part of this one because it arrives later than ``now``: a controller that replaces one by the
        other at any time before ``leave`` finds the same there, so that nothing jumps.

        Args:
            now: where it begins, to within a millisecond.
            leave: see ``near_waypoint``.
            pieces: what follows; the first one is what the next motion goes on from.
        """
        times, states = self._until(now, leave)
        for nanoseconds, state in pieces:
            times.append(times[-1] + nanoseconds)
            states.append(state)
        turn = leave + pieces[0][0] if pieces else leave
        return Commanded(_trajectory(self.trajectory.joint_names, times, states), times[0], turn, leave)

    def rest(self, now: int) -> JointTrajectory:
        """Return what is left of it, to within a millisecond."""
        times, states = self._until(now, max(self.end, now + 2 * _NEAR))
        return _trajectory(self.trajectory.joint_names, times, states)

    def _until(self, now: int, end: int) -> tuple[list[int], list[MotionState]]:
        """Return times and states from about now to a time, with the waypoints between."""
        begin = self.near_waypoint(now)
        times, states = [begin], [self.at(begin)]
        for row, time in enumerate(self.times.tolist()):
            if begin < time < end:
                times.append(time)
                states.append(self._waypoint(row))
        return [*times, end], [*states, self.at(end)]

    def _waypoint(self, row: int) -> MotionState:
        motion = self.trajectory
        return MotionState(motion.position[row], motion.velocity[row], motion.acceleration[row])


def begun(
    joints: tuple[str, ...], state: MotionState, now: int, lead: int, limits: MotionLimits
) -> Commanded:
    """Return a motion to begin with: on for ``lead`` ns as measured, then to rest.

    Args:
        joints: their names.
        state: as measured.
        now: ns of the clock.
        lead: ns.
        limits: see ``planning_limits``.
    """
    ahead = state.after(lead / NANOSECONDS_PER_SECOND, state.acceleration)
    pieces = [(lead, ahead), *pieces_to_rest(ahead, limits)]
    times, states = [now], [state]
    for nanoseconds, reached in pieces:
        times.append(times[-1] + nanoseconds)
        states.append(reached)
    return Commanded(_trajectory(joints, times, states), now, now + lead, now + lead)


def _trajectory(joints: tuple[str, ...], times: list[int], states: list[MotionState]) -> JointTrajectory:
    arrays: list[Annotated[Float64, "T n"]] = [
        np.array([getattr(state, name) for state in states])
        for name in ("position", "velocity", "acceleration")
    ]
    time = (np.array(times, dtype=np.int64) - times[0]) / NANOSECONDS_PER_SECOND
    return JointTrajectory(joints, time, *arrays)
