"""What a joint_trajectory_controller commands between points that carry positions, velocities and accelerations.

Written down once more, in powers of time, so that the benchmark's judge shares nothing with what it judges.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory


@dataclass(frozen=True, eq=False)
class Commands:
    """States at K times: steps of the controller, and both ends of every segment."""

    time: Annotated[Float64, "K"]
    """Time of every state, s."""
    segment: Annotated[np.ndarray, "K"]
    length: Annotated[Float64, "K"]
    """Duration of the segment that each state is in, s."""
    states: Annotated[Float64, "4 K n"]
    """Position, velocity, acceleration, jerk."""


def commands(trajectory: JointTrajectory, step: float) -> Commands:
    """Return states every ``step`` (s) from the first point on and at both ends of every segment, by time."""
    knots = np.round(np.asarray(trajectory.time) * 1e9) / 1e9  # as a message carries them
    p, v, a = trajectory.position, trajectory.velocity, trajectory.acceleration
    T = np.diff(knots)[:, None]
    p0, p1, v0, v1, a0, a1 = p[:-1], p[1:], v[:-1], v[1:], a[:-1], a[1:]
    move = p1 - p0
    coefficients = np.stack(
        [
            p0,
            v0,
            a0 / 2,
            (20 * move - (12 * v0 + 8 * v1) * T - (3 * a0 - a1) * T**2) / (2 * T**3),
            (-30 * move + (16 * v0 + 14 * v1) * T + (3 * a0 - 2 * a1) * T**2) / (2 * T**4),
            (12 * move - 6 * (v0 + v1) * T - (a0 - a1) * T**2) / (2 * T**5),
        ]
    )
    ticks = np.arange(knots[0], knots[-1], step)
    rows = np.clip(np.searchsorted(knots, ticks, side="right") - 1, 0, len(T) - 1)
    every = np.arange(len(T))
    time = np.concatenate([ticks, knots[:-1], knots[1:]])
    segment = np.concatenate([rows, every, every])
    order = np.lexsort((segment, time))
    time, segment = time[order], segment[order]
    t = (time - knots[segment])[:, None]
    powers = np.stack([t**k for k in range(6)])
    states = []
    c = coefficients[:, segment]
    for _ in range(4):
        states.append((c * powers[: len(c)]).sum(axis=0))
        c = c[1:] * np.arange(1, len(c))[:, None, None]
    return Commands(time, segment, T[segment, 0], np.stack(states))


def straight_commands(path: Annotated[Float64, "T n"], gap: float, step: float) -> Commands:
    """Return the states for points that carry positions alone, ``gap`` (s) apart.

    A controller then goes in a straight line from one point to the next.
    """
    knots = gap * np.arange(len(path))
    ticks = np.union1d(np.arange(0.0, knots[-1], step), knots)
    segment = np.clip(np.searchsorted(knots, ticks, side="right") - 1, 0, len(path) - 2)
    position = np.stack([np.interp(ticks, knots, column) for column in path.T], axis=-1)
    velocity = np.diff(path, axis=0)[segment] / gap
    nothing = np.zeros_like(position)
    return Commands(
        ticks, segment, np.full(len(ticks), gap), np.stack([position, velocity, nothing, nothing])
    )
