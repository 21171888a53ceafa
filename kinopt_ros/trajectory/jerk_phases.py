"""Phases of constant jerk from ruckig (Berscheid and Kroeger, Jerk-limited Real-time Trajectory Generation
with Arbitrary Target States, RSS 2021)."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.trajectory.ruckig_module import ruckig_module


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Largest velocity, acceleration and jerk of m coordinates (rad or m; per s, s^2, s^3), all positive."""

    velocity: Annotated[Float64, "m"]
    acceleration: Annotated[Float64, "m"]
    jerk: Annotated[Float64, "m"]

    def times(self, factor: float) -> "MotionLimits":
        """Return all limits times a factor."""
        return MotionLimits(self.velocity * factor, self.acceleration * factor, self.jerk * factor)


@dataclass(frozen=True, eq=False)
class JerkPhases:
    """Acceleration of m coordinates over time: linear between the ends of nine phases each."""

    duration: float
    """Duration of the motion, s."""
    ends: Annotated[Float64, "m 10"]
    """Times of the start, then of the end of each phase (s): two of braking into the limits, seven of the move."""
    acceleration: Annotated[Float64, "m 10"]
    """Accelerations at ``ends`` (rad/s^2 or m/s^2)."""

    def acceleration_at(self, times: Annotated[Float64, "T"]) -> Annotated[Float64, "T m"]:
        """Return the acceleration at any times (s)."""
        columns = [np.interp(times, *phases) for phases in zip(self.ends, self.acceleration, strict=True)]
        return np.stack(columns, axis=-1)


def plan_phases(
    move: Annotated[Float64, "m"],
    start_velocity: Annotated[Float64, "m"],
    limits: MotionLimits,
    minimum_duration: float,
    natural_units: bool = True,
) -> JerkPhases | None:
    """Plan the time-optimal motion by ``move`` to rest, all coordinates ending together; None if ruckig finds none.

    ruckig compares with absolute thresholds. Given rad and s it fails at some moves of 1e-8 rad; given units in
    which move and duration are about 1 (``natural_units``), at some that bring very different joints together.

    Raises SolverUnavailableError if there is no Python module of ruckig.
    """
    ruckig = ruckig_module()
    length, second = _natural_units(move, start_velocity, limits) if natural_units else (1.0, 1.0)
    m = len(move)
    request = ruckig.InputParameter(m)
    request.current_position = [0.0] * m
    request.current_velocity = (start_velocity * (second / length)).tolist()
    request.target_position = (move / length).tolist()
    request.max_velocity = (limits.velocity * (second / length)).tolist()
    request.max_acceleration = (limits.acceleration * (second**2 / length)).tolist()
    request.max_jerk = (limits.jerk * (second**3 / length)).tolist()
    request.minimum_duration = minimum_duration / second
    planned = ruckig.Trajectory(m)
    try:
        result = ruckig.Ruckig(m).calculate(request, planned)
    except (
        ruckig.RuckigError,
        ValueError,
    ):  # its binding raises ValueError for results that it has no name for
        return None
    if result not in (ruckig.Result.Working, ruckig.Result.Finished) or not np.isfinite(planned.duration):
        return None
    profiles: list[Any] = planned.profiles[0]
    ends = np.zeros((m, 10))
    np.cumsum([(*profile.brake.t, *profile.t) for profile in profiles], axis=1, out=ends[:, 1:])
    acceleration = np.array([(*profile.brake.a, *profile.a) for profile in profiles])
    return JerkPhases(planned.duration * second, ends * second, acceleration * (length / second**2))


def _natural_units(move: Float64, start_velocity: Float64, limits: MotionLimits) -> tuple[float, float]:
    """Return units of length and time in which size and duration of the motion are about 1."""
    way = np.maximum(np.abs(move), start_velocity**2 / limits.acceleration)
    slowest = (way / limits.velocity, np.sqrt(way / limits.acceleration), np.cbrt(way / limits.jerk))
    return float(way.max()), float(np.max(slowest))
