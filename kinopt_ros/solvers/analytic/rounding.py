"""Axes of an arm as its description means them: exactly parallel, or meeting exactly, where they nearly do.

Descriptions round (``rpy="0 1.5708 0"``) and calibration moves axes a little; closed forms know exact relations only.
What is solved is the arm as it is: answers for the rounded axes are polished for the true ones.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.robot.chain import KinematicChain


@dataclass(frozen=True, eq=False)
class Axes:
    """Axes of n rotations one after the other, in the base link, where all angles are 0."""

    direction: Annotated[Float64, "n 3"]
    """Unit vectors."""
    point: Annotated[Float64, "n 3"]
    """A point of each axis, m."""


def axes_of(chain: KinematicChain) -> tuple[Axes, Annotated[Float64, "4 4"]]:
    """Return the axes of a chain of rotations, and the pose of its tip where all angles are 0."""
    directions, points = [], []
    T = chain.T_fixed[0]
    for axis, T_next in zip(chain.axis, chain.T_fixed[1:], strict=True):
        directions.append(T[:3, :3] @ axis)
        points.append(T[:3, 3])
        T = T @ T_next
    direction = np.array(directions)
    return Axes(direction / np.linalg.norm(direction, axis=1, keepdims=True), np.array(points)), T


def rounded(axes: Axes, tilt: float, gap: float) -> tuple[Axes, Annotated[Float64, "n"]]:
    """Return axes near to others, and per axis 1, or -1 if it was turned round.

    Neighbours that are parallel but for less than ``tilt`` (rad) become parallel, and point the same way. Neighbours
    that pass each other at less than ``gap`` (m) meet, three in one point where all three nearly do.
    """
    direction, sign = _parallel(axes.direction, tilt)
    return Axes(direction, _meeting(direction, axes.point, gap)), sign


def _parallel(
    given: Annotated[Float64, "n 3"], tilt: float
) -> tuple[Annotated[Float64, "n 3"], Annotated[Float64, "n"]]:
    direction, sign = given.copy(), np.ones(len(given))
    first = 0
    for i in range(1, len(given) + 1):
        if i < len(given) and np.linalg.norm(np.cross(given[i - 1], given[i])) <= tilt:
            sign[i] = sign[i - 1] * np.sign(given[i - 1] @ given[i])
            continue
        mean = (sign[first:i, None] * given[first:i]).sum(axis=0)
        direction[first:i] = mean / np.linalg.norm(mean)
        first = i
    return direction, sign


def _meeting(
    direction: Annotated[Float64, "n 3"], given: Annotated[Float64, "n 3"], gap: float
) -> Annotated[Float64, "n 3"]:
    point = given.copy()
    met: Float64 | None = None  # where the last two axes meet
    for i in range(1, len(point)):
        h, k = direction[i - 1], direction[i]
        if (h == k).all():
            met = None
            continue
        if met is not None:
            away = _from_line(met, point[i], k)
            if np.linalg.norm(away) <= gap:
                point[i] = met
                continue
        # Distances of the nearest points from both points, along the axes.
        between = point[i] - point[i - 1]
        normal = np.cross(h, k)
        along = np.cross(between, k) @ normal / (normal @ normal)
        nearest = point[i - 1] + along * h
        met = None
        if np.linalg.norm(_from_line(nearest, point[i], k)) <= gap:
            point[i] = met = nearest
    return point


def _from_line(
    point: Annotated[Float64, "3"], on_line: Annotated[Float64, "3"], direction: Annotated[Float64, "3"]
) -> Annotated[Float64, "3"]:
    """Return the way from a line to a point, at right angles to the line."""
    way = point - on_line
    return np.asarray(way - (way @ direction) * direction)
