"""Instants at which a motion is looked at, however long it is."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.trajectory.interpolation import control_points
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory


def instants(trajectory: JointTrajectory, step: float, most: int) -> Annotated[Float64, "M"]:
    """Return instants from the begin to the end: evenly in time, and in long motions more where they are quick.

    A motion of an hour may begin with a second in which the robot brakes and comes back.

    Args:
        trajectory: the motion.
        step: time between two of them, s; longer where that would be more than ``most``.
        most: so many evenly, at most, and about so many besides where the motion is quick.
    """
    duration = trajectory.duration
    count = int(np.ceil(duration / step)) + 1
    evenly = np.linspace(0.0, duration, max(min(count, most), 2))
    if count <= most:
        return evenly
    # Each segment moves by no more than the polygon of its control points.
    moved = np.abs(np.diff(control_points(trajectory).position, axis=0)).max(axis=2).sum(axis=0)
    share = moved / max(float(moved.sum()), np.finfo(np.float64).tiny)
    length = np.diff(trajectory.time)
    pieces = np.maximum(np.ceil(np.minimum(share * most, length / step)), 1.0).astype(np.int64)
    spans = zip(trajectory.time[:-1].tolist(), length.tolist(), pieces.tolist(), strict=True)
    quick = [begin + span / count * np.arange(count) for begin, span, count in spans]
    return np.unique(np.concatenate([evenly, *quick]))
