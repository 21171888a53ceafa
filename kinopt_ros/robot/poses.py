"""Poses as URDF writes them."""

from collections.abc import Sequence
from math import cos, sin

import numpy as np

from kinopt_ros.array import Float64


def pose_of_xyz_rpy(xyz: Sequence[float], rpy: Sequence[float]) -> Float64:
    """Return the transform of a URDF origin, (4, 4): Rz(yaw) Ry(pitch) Rx(roll) and translation."""
    (sr, sp, sy), (cr, cp, cy) = (sin(a) for a in rpy), (cos(a) for a in rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr, xyz[0]],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr, xyz[1]],
            [-sp, cp * sr, cp * cr, xyz[2]],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )
