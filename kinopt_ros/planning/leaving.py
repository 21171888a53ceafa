"""How a move leaves the motion that the robot is in, without a step of position, velocity or acceleration."""

from dataclasses import dataclass

import numpy as np

from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.trajectory.braking import MotionState, Piece
from kinopt_ros.trajectory.jerk_phases import MotionLimits
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory

_STEP = 0.005
"""Unit of the times in which accelerations go back to zero, s: quintics suffer from pieces that are much shorter."""
_ROUNDING = 1e-6
"""Share of a limit that rounding errors are below."""
_LATER = 8
"""Most steps by which a motion is left later, where joints would get beyond a limit of velocity else."""


@dataclass(frozen=True, eq=False)
class Leaving:
    """A motion that goes on until some time; then its acceleration goes back to zero, and another one begins."""

    motion: Commanded
    now: int
    """Time from which on it is part of the next one, ns of the clock."""
    leave: int
    """Time until which it goes on, ns of the clock; the next one has to be sent by then."""
    ease: tuple[Piece, ...]
    """Its end."""

    @property
    def start(self) -> int:
        """Time of the first point of what is joined, ns of the clock."""
        return self.motion.near_waypoint(self.now)

    @property
    def state(self) -> MotionState:
        """Where the next motion begins; no acceleration is left."""
        return self.ease[-1][1] if self.ease else self.motion.at(self.leave)

    def joined(self, move: JointTrajectory) -> Commanded:
        """Return it and the next motion in one."""
        rows = zip(move.position, move.velocity, move.acceleration, strict=True)
        states = [MotionState(*row) for row in rows]
        steps = (move.nanoseconds[1:] - move.nanoseconds[:-1]).tolist()
        return self.motion.going_on(self.now, self.leave, [*self.ease, *zip(steps, states[1:], strict=True)])


def leaving(motion: Commanded, now: int, lead: int, limits: MotionLimits, way: int = 0) -> Leaving:
    """Leave a motion.

    Args:
        motion: the one that the robot is in.
        now: ns of the clock.
        lead: ns until it is left, as long as it takes to plan what follows, besides its way.
        limits: see ``planning_limits``.
        way: ns that it is on its way; as of ``Commanded.left_at``, too.
    """
    begin, leave = motion.left_at(now, lead + way, way)
    left = first = Leaving(motion, begin, leave, tuple(_eased(motion.at(leave), limits)))
    # Steps round the times up, in which joints get faster: those near their limits are soon through.
    for step in range(1, _LATER + 1):
        if (np.abs(left.state.velocity) <= (1.0 + _ROUNDING) * limits.velocity).all():
            return left
        leave = motion.near_waypoint(first.leave + round(step * _STEP * NANOSECONDS_PER_SECOND))
        if leave >= motion.end:
            break
        left = Leaving(motion, begin, leave, tuple(_eased(motion.at(leave), limits)))
    return first


def _eased(state: MotionState, limits: MotionLimits) -> list[Piece]:
    """Return the pieces in which accelerations go back to zero, each in its own time: all together a joint of little
    acceleration and velocity would go on to more than its limit of velocity."""
    own = np.ceil(np.abs(state.acceleration) / limits.jerk / _STEP).astype(np.int64)
    begin, pieces, passed = state.acceleration, list[Piece](), 0
    for steps in np.unique(own[own > 0]).tolist():
        left = np.where(own > steps, 1.0 - steps / np.maximum(own, 1), 0.0)
        state = state.after((steps - passed) * _STEP, left * begin)
        pieces.append((round((steps - passed) * _STEP * NANOSECONDS_PER_SECOND), state))
        passed = steps
    return pieces
