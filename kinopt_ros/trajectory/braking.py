"""Motions towards a velocity, and to rest, by pieces of constant jerk that all joints have in common.

Few points, which a controller's quintics reproduce exactly, and one duration for all joints: a motion of ten points can
be made, checked and sent a hundred times a second, and its brake keeps the direction of the motion.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.trajectory.jerk_phases import MotionLimits
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND
from kinopt_ros.trajectory.timing import SHORTEST_RAMP

_ROUNDING = 1.0 - 1e-5
"""Share of the limits that is used, as pieces are whole nanoseconds."""


@dataclass(frozen=True, eq=False)
class MotionState:
    """Positions, velocities and accelerations of n joints (rad or m; per s, s^2)."""

    position: Annotated[Float64, "n"]
    velocity: Annotated[Float64, "n"]
    acceleration: Annotated[Float64, "n"]

    @property
    def at_rest(self) -> bool:
        """Whether no joint moves."""
        return not (self.velocity.any() or self.acceleration.any())

    def after(self, duration: float, acceleration: Annotated[Float64, "n"]) -> "MotionState":
        """Return the state ``duration`` seconds later, if until then the acceleration changes evenly to the given
        one."""
        a0, a1 = self.acceleration, acceleration
        velocity = self.velocity + duration * (a0 + a1) / 2.0
        position = self.position + duration * self.velocity + duration * duration * (2.0 * a0 + a1) / 6.0
        return MotionState(position, velocity, np.array(acceleration))


Piece = tuple[int, MotionState]
"""Duration (ns) and the state at its end."""


def planning_limits(limits: MotionLimits) -> MotionLimits:
    """Return limits a little tighter than given; acceleration takes at least ``SHORTEST_RAMP`` to reach its own."""
    tighter = limits.times(_ROUNDING)
    return MotionLimits(
        tighter.velocity,
        tighter.acceleration,
        np.minimum(tighter.jerk, tighter.acceleration / SHORTEST_RAMP),
    )


def piece_towards(
    state: MotionState, wanted: Annotated[Float64, "n"], limits: MotionLimits, nanoseconds: int
) -> Piece:
    """Return one piece of a given duration towards a velocity, such that pieces to come end there.

    They overshoot by less than a thousandth.

    Args:
        state: where the piece begins.
        wanted: velocity, inside the limits.
        limits: see ``planning_limits``.
        nanoseconds: duration.
    """
    dt = nanoseconds / NANOSECONDS_PER_SECOND
    jerk = limits.jerk
    lacking = wanted - state.velocity - 0.5 * dt * state.acceleration
    # To end at the wanted velocity, acceleration goes back to zero in the next piece, or as fast as jerk allows:
    # lacking = a dt / 2 + a max(dt, |a| / jerk) / 2, with a at the end of this piece.
    linear = lacking / dt
    ramp = np.sign(lacking) * jerk * (np.sqrt(dt * dt / 4.0 + 2.0 * np.abs(lacking) / jerk) - dt / 2.0)
    acceleration = np.where(np.abs(linear) <= jerk * dt, linear, ramp)
    # All joints take the same time for that.
    back = max(dt, float(np.max(np.minimum(np.abs(acceleration), limits.acceleration) / jerk)))
    acceleration = np.clip(2.0 * lacking / (dt + back), -limits.acceleration, limits.acceleration)
    reach = jerk * dt
    acceleration = np.clip(acceleration, state.acceleration - reach, state.acceleration + reach)
    return nanoseconds, state.after(dt, acceleration)


def pieces_to_rest(state: MotionState, limits: MotionLimits) -> list[Piece]:
    """Return the pieces of a brake: acceleration to zero, then down to rest; none for a state at rest.

    Args:
        state: where it begins; an acceleration above its limit is taken back as jerk allows.
        limits: see ``planning_limits``.
    """
    pieces: list[Piece] = []
    still = np.zeros_like(state.velocity)
    if state.acceleration.any():
        back = max(SHORTEST_RAMP, float(np.max(np.abs(state.acceleration) / limits.jerk)))
        nanoseconds, seconds = _up(back)
        state = state.after(seconds, still)
        pieces.append((nanoseconds, state))
    speed = np.abs(state.velocity)
    if not speed.any():
        return pieces
    own = np.minimum(np.sqrt(speed / limits.jerk), limits.acceleration / limits.jerk)
    ramp_ns, ramp = _up(max(SHORTEST_RAMP, float(np.max(own))))
    most = np.minimum(limits.acceleration, limits.jerk * ramp)
    even = max(0.0, float(np.max(speed / most)) - ramp)
    even_ns, even = _up(max(SHORTEST_RAMP, even)) if even > 0.0 else (0, 0.0)
    braking = -state.velocity / (ramp + even)
    state = state.after(ramp, braking)
    pieces.append((ramp_ns, state))
    if even_ns:
        state = state.after(even, braking)
        pieces.append((even_ns, state))
    state = state.after(ramp, still)
    pieces.append((ramp_ns, MotionState(state.position, still, still)))
    return pieces


def braking_time(
    velocity: Annotated[Float64, "n"], limits: MotionLimits, acceleration: Annotated[Float64, "n"]
) -> float:
    """Return the seconds to rest from a velocity, if acceleration is as given (n,) at first."""
    state = MotionState(np.zeros_like(velocity), velocity, acceleration)
    return sum(nanoseconds for nanoseconds, _ in pieces_to_rest(state, limits)) / NANOSECONDS_PER_SECOND


def _up(seconds: float) -> tuple[int, float]:
    """Round up to whole nanoseconds; return them, and the same in seconds."""
    nanoseconds = int(np.ceil(seconds * NANOSECONDS_PER_SECOND))
    return nanoseconds, nanoseconds / NANOSECONDS_PER_SECOND
