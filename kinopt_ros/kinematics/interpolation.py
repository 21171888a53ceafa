"""Poses between two poses, by shares of the way s: the first one at 0, the second one at 1, others beyond.

Along a geodesic, R_a exp(s log(R_a^T R_b)), a rotation turns at a constant rate about one axis, the shorter way round
(K. Shoemake, "Animating rotation with quaternion curves", 1985); for half a turn, which has two, about the axis that
``se3.so3_log`` names. A pose moves along a screw, T_a exp(s log(T_a^-1 T_b)): its twist is constant in its own frame,
and its origin draws a helix, not a straight line. Both depend on the two ends alone, not on the frame that they are
given in.
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.se3 import inverse, se3_exp, se3_log, so3_exp, so3_log


def so3_interpolate(
    R_a: Annotated[Float64, "... 3 3"],
    R_b: Annotated[Float64, "... 3 3"],
    s: Annotated[Float64, "..."] | float,
) -> Annotated[Float64, "... 3 3"]:
    """Return rotations at shares s of the way from R_a to R_b; all broadcast."""
    R_a, R_b = np.asarray(R_a, dtype=np.float64), np.asarray(R_b, dtype=np.float64)
    turn = so3_log(np.swapaxes(R_a, -1, -2) @ R_b)
    R: Float64 = R_a @ so3_exp(np.asarray(s, dtype=np.float64)[..., None] * turn)
    return R


def se3_interpolate(
    T_a: Annotated[Float64, "... 4 4"],
    T_b: Annotated[Float64, "... 4 4"],
    s: Annotated[Float64, "..."] | float,
) -> Annotated[Float64, "... 4 4"]:
    """Return poses at shares s of the screw motion from T_a to T_b; all broadcast."""
    T_a, T_b = np.asarray(T_a, dtype=np.float64), np.asarray(T_b, dtype=np.float64)
    twist = se3_log(inverse(T_a) @ T_b)
    T: Float64 = T_a @ se3_exp(np.asarray(s, dtype=np.float64)[..., None] * twist)
    return T
