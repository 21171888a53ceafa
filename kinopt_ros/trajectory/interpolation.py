"""Interpolation between waypoints: one quintic per segment and joint, as in joint_trajectory_controller.

A quintic is fixed by position, velocity and acceleration at both ends. Where the true motion has constant
jerk on the segment it is that cubic, exactly. Derivatives are kept as Bernstein control points: a polynomial
lies inside the hull of its control points and takes the first and the last of them as its end values, which
makes every bound derived from them rigorous (G. Farin, Curves and Surfaces for CAGD, ch. 5-6).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class ControlPoints:
    """Bernstein control points of all segments (K = T - 1) and joints, over each segment's own duration.

    The control points come first: numpy takes the largest along the first of the axes fastest.
    """

    duration: Annotated[Float64, "K"]
    """Length of each segment (s), from times rounded to nanoseconds."""
    position: Annotated[Float64, "6 K n"]
    velocity: Annotated[Float64, "5 K n"]
    acceleration: Annotated[Float64, "4 K n"]
    jerk: Annotated[Float64, "3 K n"]


def control_points(trajectory: JointTrajectory) -> ControlPoints:
    """Compute control points of position (rad or m) and its first three derivatives.

    Expects finite arrays of matching shapes and strictly increasing times; anything else gives numbers
    without meaning, not an error.
    """
    # Differences of whole nanoseconds: differences of float seconds would lose up to 1e-9 of a 1 us segment.
    h = np.diff(trajectory.nanoseconds) / NANOSECONDS_PER_SECOND
    width = h[:, None]
    p0, p1 = trajectory.position[:-1], trajectory.position[1:]
    v0, v1 = trajectory.velocity[:-1], trajectory.velocity[1:]
    a0, a1 = trajectory.acceleration[:-1], trajectory.acceleration[1:]

    middle = 5.0 * (p1 - p0) / width - 2.0 * (v0 + v1) + width * (a1 - a0) / 4.0
    velocity = np.stack([v0, v0 + width * a0 / 4.0, middle, v1 - width * a1 / 4.0, v1])
    position = np.stack(
        [
            p0,
            p0 + width * v0 / 5.0,
            p0 + width * (2.0 * v0 / 5.0 + width * a0 / 20.0),
            p1 - width * (2.0 * v1 / 5.0 - width * a1 / 20.0),
            p1 - width * v1 / 5.0,
            p1,
        ]
    )
    acceleration = np.stack(
        [a0, 4.0 * (velocity[2] - velocity[1]) / width, 4.0 * (velocity[3] - velocity[2]) / width, a1]
    )
    jerk = 3.0 * (acceleration[1:] - acceleration[:-1]) / width
    return ControlPoints(h, position, velocity, acceleration, jerk)


def rounding(
    trajectory: JointTrajectory, duration: Annotated[Float64, "K"]
) -> tuple[Annotated[Float64, "K n"], ...]:
    """Bound how far the rounding of the waypoints' numbers can move position and its derivatives in a segment.

    Positions are known to half a unit in the last place of the joint's largest; their difference enters the
    inner control points of velocity, acceleration and jerk with the factors 5/h, 20/h^2 and 120/h^3, doubled
    here for the arithmetic.
    """
    h = duration[:, None]
    position, velocity = (np.abs(array).max(axis=0) for array in (trajectory.position, trajectory.velocity))
    unit = _EPSILON * (position / h + velocity)
    parts = 4.0 * unit * h, 10.0 * unit, 40.0 * unit / h, 240.0 * unit / (h * h)
    # What overflows is granted nothing.
    return tuple(np.where(np.isfinite(part), part, 0.0) for part in parts)


def evaluate(
    trajectory: JointTrajectory, times: Annotated[Float64, "M"]
) -> tuple[Annotated[Float64, "M n"], Annotated[Float64, "M n"], Annotated[Float64, "M n"]]:
    """Compute position, velocity and acceleration at any times (s); times outside give the nearest end point."""
    knots = trajectory.time
    if knots.size < 2:
        rows = np.zeros(np.shape(times), dtype=np.int64)
        return trajectory.position[rows], trajectory.velocity[rows], trajectory.acceleration[rows]
    clipped = np.clip(np.asarray(times, dtype=np.float64), knots[0], knots[-1])
    row = np.clip(np.searchsorted(knots, clipped, side="right") - 1, 0, knots.size - 2)
    h = (knots[row + 1] - knots[row])[:, None]
    tau = (clipped - knots[row])[:, None] / h
    start, end = (
        (trajectory.position[at], trajectory.velocity[at], trajectory.acceleration[at])
        for at in (row, row + 1)
    )
    return quintics(start, end, h, tau)


def quintics(
    start: Sequence[Annotated[Float64, "M n"]],
    end: Sequence[Annotated[Float64, "M n"]],
    h: Annotated[Float64, "M 1"],
    tau: Annotated[Float64, "M 1"],
) -> tuple[Annotated[Float64, "M n"], Annotated[Float64, "M n"], Annotated[Float64, "M n"]]:
    """Compute position, velocity and acceleration within segments.

    Args:
        start: position, velocity and acceleration where the segment of each row begins.
        end: the same where it ends.
        h: its length, s.
        tau: share of it that has passed, 0 to 1.
    """
    p0, v0, a0 = start[0], start[1] * h, start[2] * h * h
    v1, a1 = end[1] * h, end[2] * h * h
    # What the end state lacks after constant acceleration from the start state; c3..c5 make up for it.
    dp = end[0] - p0 - v0 - a0 / 2.0
    dv = v1 - v0 - a0
    da = a1 - a0
    c3 = 10.0 * dp - 4.0 * dv + da / 2.0
    c4 = -15.0 * dp + 7.0 * dv - da
    c5 = 6.0 * dp - 3.0 * dv + da / 2.0
    position = p0 + tau * (v0 + tau * (a0 / 2.0 + tau * (c3 + tau * (c4 + tau * c5))))
    velocity = (v0 + tau * (a0 + tau * (3.0 * c3 + tau * (4.0 * c4 + tau * 5.0 * c5)))) / h
    acceleration = (a0 + tau * (6.0 * c3 + tau * (12.0 * c4 + tau * 20.0 * c5))) / (h * h)
    return position, velocity, acceleration
