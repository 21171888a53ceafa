"""Float64 bound of how fast a link turns by three angles along a motion: rigorous between points, too.

For ``R = Rx(a) Ry(b) Rz(c)`` the square of the angular velocity is ``a'^2 + b'^2 + c'^2 + 2 a' c' sin b``. On a part of
a segment each rate and b are within the hulls of their Bezier control points; parts are halved until that is enough.
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.trajectory.bounds import halve
from kinopt_ros.trajectory.interpolation import control_points, evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

EXACT = 1e-3
"""Part of the result by which it may be above the truth where that is above ``floor``."""
_MOST_HALVINGS, _MOST_PARTS = 30, 4000
"""Bounds of the work; a result that needed more is farther above the truth."""


def fastest_turn(
    trajectory: JointTrajectory, columns: Annotated[Int64, "3"], floor: float = 0.0
) -> tuple[float, float]:
    """Return an upper bound of the angular velocity (rad/s) along a motion, and the time (s) of the greatest one known.

    Below ``floor`` the bound may be loose, but never below the truth.

    Args:
        trajectory: of at least two points, finite and with increasing times.
        columns: of the angles a, b, c (rad).
        floor: what is slower than this (rad/s) is not looked at more closely.
    """
    control = control_points(trajectory)
    velocity, angle = control.velocity[..., columns], control.position[..., columns[1]]
    begin, length = trajectory.time[:-1].copy(), np.diff(trajectory.time)
    speeds = _speeds(*_at(trajectory, columns, trajectory.time))
    best, when, settled = float(speeds.max()), float(trajectory.time[int(speeds.argmax())]), 0.0
    for _ in range(_MOST_HALVINGS):
        hull = _most(velocity, angle)
        live = hull > max(floor, best * (1.0 + EXACT))
        settled = max(settled, float(hull[~live].max(initial=0.0)))
        if not live.any():
            return max(settled, best), when
        if live.sum() > _MOST_PARTS:
            break
        velocity, angle = _halved(velocity[:, live]), _halved(angle[:, live])
        middles = begin[live] + 0.5 * length[live]
        begin, length = np.concatenate([begin[live], middles]), np.tile(0.5 * length[live], 2)
        speeds = _speeds(*_at(trajectory, columns, middles))
        if speeds.max() > best:
            best, when = float(speeds.max()), float(middles[int(speeds.argmax())])
    return max(settled, best, float(hull.max())), when


def _most(velocity: Annotated[Float64, "5 M 3"], angle: Annotated[Float64, "6 M"]) -> Annotated[Float64, "M"]:
    """Return upper bounds of the angular velocity on parts of segments."""
    low, high = velocity.min(axis=0), velocity.max(axis=0)
    least, most = angle.min(axis=0), angle.max(axis=0)
    sine, wide = np.sin(0.5 * (least + most)), 0.5 * (most - least)
    sines = np.maximum(sine - wide, -1.0), np.minimum(sine + wide, 1.0)
    # The greatest value of a' c' sin b is at ends of the three ranges.
    rates = (low[:, 0], high[:, 0]), (low[:, 2], high[:, 2])
    crossed = np.max([a * c * s for a in rates[0] for c in rates[1] for s in sines], axis=0)
    squares = np.square(np.maximum(-low, high)).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares + 2.0 * crossed, 0.0)))


def _at(
    trajectory: JointTrajectory, columns: Annotated[Int64, "3"], times: Annotated[Float64, "M"]
) -> tuple[Annotated[Float64, "M 3"], Annotated[Float64, "M 3"]]:
    position, velocity, _ = evaluate(trajectory, times)
    return position[:, columns], velocity[:, columns]


def _speeds(angles: Annotated[Float64, "M 3"], rates: Annotated[Float64, "M 3"]) -> Annotated[Float64, "M"]:
    crossed = 2.0 * rates[:, 0] * rates[:, 2] * np.sin(angles[:, 1])
    return np.asarray(np.sqrt(np.maximum(np.square(rates).sum(axis=1) + crossed, 0.0)))


def _halved(control: Annotated[Float64, "d+1 M ..."]) -> Annotated[Float64, "d+1 2M ..."]:
    """Return control points of the first halves, and then of the second ones."""
    return np.concatenate(halve(control), axis=1)
