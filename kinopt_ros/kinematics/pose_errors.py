"""Errors of a pose from its target, axis by axis, where some axes may be free.

Errors are those of the tip seen in the target's frame: the position of the tip in it, and the rotation
``R_target_tip``. Which numbers describe that rotation depends on what is free:

- no axis free: its rotation vector;
- one free axis a, such as the axis of a drill: the swing, the rotation vector that turns the target's axis a to the
  tip's. The twist about a does not matter;
- two free axes: the twist about the third one, in [-pi, pi]; the swing does not matter;
- all free: nothing.

Source of the split R = swing twist: P. Dobrowolski, "Swing-twist decomposition in Clifford algebra",
arXiv:1506.05481 (2015).
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.se3 import matrix_to_quaternion, so3_log

Free = tuple[bool, bool, bool]
"""Which of the axes x, y, z are free."""
_NO_TWIST = 1e-12
"""Bound on half turns of swing, which leave the twist undefined; it then counts as half a turn."""


def axis_errors(
    T_base_target: Annotated[Float64, "... 4 4"],
    T_base_tip: Annotated[Float64, "... 4 4"],
    free_position: Free = (False, False, False),
    free_orientation: Free = (False, False, False),
) -> tuple[Annotated[Float64, "... 3"], Annotated[Float64, "... 3"]]:
    """Compute position errors (m) and orientation errors (rad) in the target's frame; 0 on free axes."""
    R_target_base = np.swapaxes(T_base_target[..., :3, :3], -1, -2)
    position = (R_target_base @ (T_base_tip[..., :3, 3] - T_base_target[..., :3, 3])[..., None])[..., 0]
    position[..., list(free_position)] = 0.0
    return position, orientation_errors(R_target_base @ T_base_tip[..., :3, :3], free_orientation)


def orientation_errors(R: Annotated[Float64, "... 3 3"], free: Free) -> Annotated[Float64, "... 3"]:
    """Compute orientation errors (rad) of rotations ``R_target_tip``; 0 on free axes."""
    count = sum(free)
    if count == 0:
        return so3_log(R)
    if count == 1:
        return _swing(R, free.index(True))
    errors = np.zeros(R.shape[:-1])
    if count == 2:
        axis = free.index(False)
        errors[..., axis] = _twist(R, axis)
    return errors


def _swing(R: Float64, axis: int) -> Float64:
    """Return the rotation vector, perpendicular to an axis, that turns the axis to where R brings it."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    turned = R[..., :, axis]
    # Cross product of the axis and where it goes.
    cross_i, cross_j = -turned[..., j], turned[..., i]
    sine = np.hypot(cross_i, cross_j)
    angle = np.arctan2(sine, turned[..., axis])
    safe = np.where(sine > 0.0, sine, 1.0)
    errors = np.zeros(R.shape[:-1])
    errors[..., i] = np.where(sine > 0.0, angle * cross_i / safe, angle)  # half a turn: any axis will do
    errors[..., j] = angle * cross_j / safe
    return errors


def _twist(R: Float64, axis: int) -> Float64:
    """Return the angle in [-pi, pi] of the part of R that turns about an axis."""
    quaternion = matrix_to_quaternion(R)
    w, v = quaternion[..., 0], quaternion[..., 1 + axis]
    angle = 2.0 * np.arctan2(v, w)
    angle -= 2.0 * np.pi * np.rint(angle / (2.0 * np.pi))
    return np.asarray(np.where(np.hypot(w, v) > _NO_TWIST, angle, np.pi))
