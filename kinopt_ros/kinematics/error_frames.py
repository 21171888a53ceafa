"""Error of a pose from its target as six numbers, (v, w), m and rad, in one of three frames.

With T the pose of the tip in the base link (``T_base_actual``), G that of its target, and R, p their parts:

- ``body``: log(T^-1 G). The twist that brings the tip to the target in one unit of time, in the tip's own frame: it
  does not depend on where the base is.
- ``spatial``: log(G T^-1). The same motion as a twist of the base link's frame: v is the velocity of the point that
  passes through the base's origin, so that it grows with the distance from there.
- ``mixed``: (p_G - p_T, log(R_G R_T^T)). The way that the tip's origin has to go, straight, and the turn about it, both
  along the axes of the base link. It is not a logarithm of one motion.

All are 0 at the target alone; rotations are at most pi long, and jump where they are that long. The rotation part is
the same vector in all: along the tip's axes for ``body``, along the base's otherwise. (``pose_errors`` has errors axis
by axis in the target's frame, of which some may be free.)
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, UnknownNameError
from kinopt_ros.kinematics.lie_jacobians import se3_left_jacobian_inverse, so3_left_jacobian_inverse
from kinopt_ros.kinematics.se3 import inverse, se3_log, skew, so3_log

BODY, SPATIAL, MIXED = "body", "spatial", "mixed"
ERROR_FRAMES = (BODY, SPATIAL, MIXED)


class UnknownErrorFrameError(UnknownNameError):
    """A frame that errors of poses cannot be given in."""

    kind = "error frame"
    status = InvalidRequestError.status


def check_error_frame(frame: str) -> None:
    """Raise UnknownErrorFrameError for another frame than those of ``ERROR_FRAMES``."""
    if frame not in ERROR_FRAMES:
        raise UnknownErrorFrameError(frame, ERROR_FRAMES)


def pose_error_twist(
    T_base_actual: Annotated[Float64, "... 4 4"],
    T_base_target: Annotated[Float64, "... 4 4"],
    frame: str = BODY,
) -> Annotated[Float64, "... 6"]:
    """Compute errors (v, w), m and rad, in a frame: what has to be done to get from the actual pose to the target.

    Args:
        T_base_actual: poses of the tip.
        T_base_target: poses of the target, in the same link; leading dimensions broadcast.
        frame: ``body``, ``spatial`` or ``mixed``.

    Raises:
        UnknownErrorFrameError: another frame.
    """
    check_error_frame(frame)
    T, G = np.asarray(T_base_actual, dtype=np.float64), np.asarray(T_base_target, dtype=np.float64)
    if frame == BODY:
        return se3_log(inverse(T) @ G)
    if frame == SPATIAL:
        return se3_log(G @ inverse(T))
    turn = so3_log(G[..., :3, :3] @ np.swapaxes(T[..., :3, :3], -1, -2))
    return np.concatenate([np.broadcast_to(G[..., :3, 3] - T[..., :3, 3], turn.shape), turn], axis=-1)


def pose_error_jacobian(
    T_base_actual: Annotated[Float64, "... 4 4"],
    T_base_target: Annotated[Float64, "... 4 4"],
    frame: str = BODY,
) -> Annotated[Float64, "... 6 6"]:
    """Compute the derivative of ``pose_error_twist`` in the velocity of the tip; the target stands still.

    Columns: linear velocity of the tip's origin (m/s), then angular velocity (rad/s), both along the base link's axes,
    as the rows of ``geometric_jacobian``. So the derivative in joint values is the product of the two.

    Args:
        T_base_actual: poses of the tip.
        T_base_target: poses of the target, in the same link; leading dimensions broadcast.
        frame: ``body``, ``spatial`` or ``mixed``.

    Raises:
        UnknownErrorFrameError: another frame.
    """
    error = pose_error_twist(T_base_actual, T_base_target, frame)
    T = np.asarray(T_base_actual, dtype=np.float64)
    velocity = np.zeros((*T.shape[:-2], 6, 6))  # of the tip's origin, as the twist that the frame takes
    if frame == BODY:
        velocity[..., :3, :3] = velocity[..., 3:, 3:] = np.swapaxes(T[..., :3, :3], -1, -2)
        return np.asarray(-se3_left_jacobian_inverse(error) @ velocity)
    velocity[..., range(6), range(6)] = 1.0
    if frame == SPATIAL:
        velocity[..., :3, 3:] = skew(T[..., :3, 3])
        return np.asarray(-se3_left_jacobian_inverse(-error) @ velocity)
    J = np.zeros((*error.shape[:-1], 6, 6))
    J[..., :3, :3] = -np.eye(3)
    J[..., 3:, 3:] = -so3_left_jacobian_inverse(-error[..., 3:])
    return J
