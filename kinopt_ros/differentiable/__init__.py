"""Kinematics as functions of JAX: batched, differentiable in joint values and in model parameters.

    import kinopt_ros as ko
    from kinopt_ros import differentiable as kd

    robot = ko.load_robot("panda")
    fk = kd.forward_kinematics(robot, links=["panda_link8"])
    T = fk(q)                                                     # (..., nq) -> (..., 1, 4, 4)

Conventions are those of the rest of kinopt_ros (``robot.model``). The precision is that of the arrays given: float32,
unless JAX's x64 mode has been enabled, which nothing here does. Needs ``pip install kinopt_ros[jax]``.
"""

try:
    import jax as _jax  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"kinopt_ros.differentiable needs jax ({error}): pip install 'kinopt_ros[jax]'"
    ) from error

from kinopt_ros.differentiable.error_frames import pose_error_jacobian, pose_error_twist
from kinopt_ros.differentiable.forward import ForwardKinematics, forward_kinematics
from kinopt_ros.differentiable.jacobian import Jacobian, jacobian
from kinopt_ros.differentiable.layer import KinematicsLayer, kinematics_layer
from kinopt_ros.differentiable.lie import (
    se3_exp,
    se3_interpolate,
    se3_log,
    so3_exp,
    so3_interpolate,
    so3_log,
)
from kinopt_ros.differentiable.parameters import KinematicParameters
from kinopt_ros.differentiable.rotation_metrics import (
    phi1_euler,
    phi2_quaternion,
    phi3_angle,
    phi4_dot,
    phi5_matrix,
)
from kinopt_ros.differentiable.torch_layer import torch_layer

__all__ = [
    "ForwardKinematics",
    "Jacobian",
    "KinematicParameters",
    "KinematicsLayer",
    "forward_kinematics",
    "jacobian",
    "kinematics_layer",
    "phi1_euler",
    "phi2_quaternion",
    "phi3_angle",
    "phi4_dot",
    "phi5_matrix",
    "pose_error_jacobian",
    "pose_error_twist",
    "se3_exp",
    "se3_interpolate",
    "se3_log",
    "so3_exp",
    "so3_interpolate",
    "so3_log",
    "torch_layer",
]
