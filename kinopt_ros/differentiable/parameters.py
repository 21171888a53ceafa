"""Parameters of a robot in which gradients can be taken: where its joints are, and their axes."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.se3 import matrix_to_rpy
from kinopt_ros.robot.model import RobotModel


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KinematicParameters:
    """Model parameters of J joints, in the order of ``robot.joints``, fixed ones included. A pytree of three arrays."""

    xyz: jax.Array
    """(J, 3): position of the joint in its parent link, m."""
    rpy: jax.Array
    """(J, 3): its rotation there as roll, pitch, yaw, rad: Rz(yaw) Ry(pitch) Rx(roll), as in URDF."""
    axis: jax.Array
    """(J, 3): direction of its axis in the joint frame, of any length but 0. Fixed and floating joints have none: what
    stands there counts for nothing."""

    @classmethod
    def of(cls, robot: RobotModel, dtype: Any = None) -> "KinematicParameters":
        """Return the parameters of a robot's description, in JAX's default precision unless ``dtype`` is given."""
        J = len(robot.joints)
        T = np.array([joint.T_parent_joint for joint in robot.joints]).reshape(J, 4, 4)
        axis = np.array([joint.axis for joint in robot.joints]).reshape(J, 3)
        return cls(
            xyz=jnp.asarray(T[:, :3, 3], dtype=dtype or float),
            rpy=jnp.asarray(matrix_to_rpy(T[:, :3, :3]), dtype=dtype or float),
            axis=jnp.asarray(axis, dtype=dtype or float),
        )

    def check(self, joints: int) -> None:
        """Raise InvalidRequestError unless all arrays are (joints, 3)."""
        for name in ("xyz", "rpy", "axis"):
            shape = jnp.shape(getattr(self, name))
            if shape != (joints, 3):
                raise InvalidRequestError(f"parameters.{name} must have shape ({joints}, 3), not {shape}")
