"""Rotation conversions at the ROS border, in ROS order: quaternions xyzw, Euler angles static-frame xyz (rpy).

tf_transformations does them where it is installed; otherwise transforms3d, on which it is built. Both work on
one rotation at a time (17 us each); arrays of poses go through kinematics.se3 instead (see conversions.py).
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64

try:
    import tf_transformations as _tf

    BACKEND = "tf_transformations"
except ImportError:
    import transforms3d as _t3d

    _tf = None
    BACKEND = "transforms3d"


def matrix_from_quaternion(xyzw: Annotated[Float64, "4"]) -> Annotated[Float64, "3 3"]:
    """Return the rotation matrix of a unit quaternion."""
    if _tf is not None:
        return np.asarray(_tf.quaternion_matrix(xyzw), dtype=np.float64)[:3, :3]
    return np.asarray(_t3d.quaternions.quat2mat(np.roll(xyzw, 1)), dtype=np.float64)


def quaternion_from_matrix(R: Annotated[Float64, "3 3"]) -> Annotated[Float64, "4"]:
    """Return the unit quaternion of a rotation matrix."""
    if _tf is not None:
        T = np.eye(4)
        T[:3, :3] = R
        return np.asarray(_tf.quaternion_from_matrix(T), dtype=np.float64)
    return np.roll(np.asarray(_t3d.quaternions.mat2quat(R), dtype=np.float64), -1)


def quaternion_from_rpy(roll: float, pitch: float, yaw: float) -> Annotated[Float64, "4"]:
    """Return the unit quaternion of Rz(yaw) Ry(pitch) Rx(roll), rad: URDF's rpy."""
    if _tf is not None:
        return np.asarray(_tf.quaternion_from_euler(roll, pitch, yaw, axes="sxyz"), dtype=np.float64)
    return np.roll(np.asarray(_t3d.euler.euler2quat(roll, pitch, yaw, axes="sxyz"), dtype=np.float64), -1)


def rpy_from_matrix(R: Annotated[Float64, "3 3"]) -> tuple[float, float, float]:
    """Return roll, pitch, yaw (rad) of a rotation matrix; at pitch = +-pi/2 yaw is chosen to be 0."""
    if _tf is not None:
        T = np.eye(4)
        T[:3, :3] = R
        roll, pitch, yaw = _tf.euler_from_matrix(T, axes="sxyz")
    else:
        roll, pitch, yaw = _t3d.euler.mat2euler(R, axes="sxyz")
    return float(roll), float(pitch), float(yaw)
