"""Residual between a pose and its target: Sec. II-A, eqs. (4) and (5)."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.se3 import so3_log

METRES_PER_RADIAN = 0.3
"""Length that a radian counts as where both errors are compared by one number, m; the paper gives none."""


def residual(
    T_target: Annotated[Float64, "4 4"], T: Annotated[Float64, "... 4 4"]
) -> Annotated[Float64, "... 6"]:
    """Compute the distance in m, and the rotation vector (rad, shortest way, base frame) of q_t * conj(q), eqs. (4),
    (5).

    Eq. (5) takes the absolute value of w, but not the sign of v with it, so rotations of more than half a turn would be
    undone the wrong way; here q and -q give the same, and the angle is in [0, pi].
    """
    distance = T_target[:3, 3] - T[..., :3, 3]
    rotation = so3_log(T_target[:3, :3] @ np.swapaxes(T[..., :3, :3], -1, -2))
    return np.concatenate([distance, rotation], axis=-1)


def norms(r: Annotated[Float64, "... 6"]) -> tuple[Annotated[Float64, "..."], Annotated[Float64, "..."]]:
    """Return the lengths of both parts of a residual: m and rad."""
    return np.linalg.norm(r[..., :3], axis=-1), np.linalg.norm(r[..., 3:], axis=-1)


def score(r: Annotated[Float64, "... 6"]) -> Annotated[Float64, "..."]:
    """Return one number to rank by, m: distance, and METRES_PER_RADIAN times the angle."""
    distance, angle = norms(r)
    return np.asarray(distance + METRES_PER_RADIAN * angle)
