"""The elementary motions of a robot as arrays: constants of the description, or functions of the model parameters.

Behind its origin F, a rotation by v about an axis with skew matrix K is F (I + K^2) + F K sin v - F K^2 cos v.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.differentiable.frames import FramePlan, Step
from kinopt_ros.differentiable.matrices import product
from kinopt_ros.differentiable.matrices import skew as matrix_skew
from kinopt_ros.differentiable.parameters import KinematicParameters
from kinopt_ros.kinematics.se3 import skew
from kinopt_ros.robot.chain import Motion
from kinopt_ros.robot.model import JointType

Array: TypeAlias = "jax.Array | Float64"


@dataclass(frozen=True)
class Geometry:
    """m elementary motions, numpy arrays if they are constants, else JAX arrays."""

    constant: Any
    """Part of the rotation behind the origin that does not depend on the value, (m, 3, 3)."""
    sine: Any
    """Part of the rotation that goes with the sine of the value, (m, 3, 3)."""
    cosine: Any
    """Part of the rotation that goes with the cosine of the value, (m, 3, 3)."""
    shift: Any
    """Position of the origin, (m, 3)."""
    along: Any
    """Displacement of a translation per unit of its value, (m, 3)."""
    axis: Any
    """(m, 3): unit axes in the frame behind the motion (and before)."""

    @property
    def depends(self) -> bool:
        """Whether the geometry depends on parameters."""
        return not isinstance(self.axis, np.ndarray)


@dataclass(frozen=True)
class Values:
    """Values of m motions, each array of shape (m, lanes)."""

    value: jax.Array
    sine: jax.Array
    cosine: jax.Array


def motion_of(step: Step) -> Motion | None:
    """Return what kind of motion a step makes."""
    return None if step.motion is None else step.motion.motion


def geometry(plan: FramePlan, parameters: KinematicParameters | None) -> Geometry:
    """Compute the geometry of all steps from the robot's description, or from ``parameters`` if they are given."""
    steps, m = plan.steps, len(plan.steps)
    begins = np.array([step.part == 0 for step in steps])
    rotates = np.array([motion_of(step) is Motion.ROTATION for step in steps])
    moves = np.array([motion_of(step) is Motion.TRANSLATION for step in steps])
    index = np.array([step.index for step in steps], dtype=np.int64)
    fixed_axis = np.array([step.motion.axis if step.motion else (1.0, 0.0, 0.0) for step in steps]).reshape(
        m, 3
    )
    R: Any
    shift: Any
    axis: Any
    K: Any
    if parameters is None:
        T = np.array([step.joint.T_parent_joint if step.part == 0 else np.eye(4) for step in steps])
        T = T.reshape(m, 4, 4)
        R, shift, axis, K = T[:, :3, :3], T[:, :3, 3], fixed_axis, skew(fixed_axis)
    else:
        R = jnp.where(begins[:, None, None], _from_rpy(parameters.rpy)[index], jnp.eye(3))
        shift = jnp.where(begins[:, None], parameters.xyz[index], 0.0)
        axis = _axes(plan, parameters, fixed_axis, index)
        K = matrix_skew(axis)
    RK = product(R, K)
    RKK = product(RK, K)
    turn, move = rotates[:, None, None], moves[:, None]
    return Geometry(
        constant=R + RKK * turn,
        sine=RK * turn,
        cosine=-RKK * turn,
        shift=shift,
        along=(R * axis[:, None, :]).sum(-1) * move,
        axis=axis,
    )


def values(plan: FramePlan, q: jax.Array) -> Values:
    """Return values of all motions for configurations (nq, lanes); 0 where nothing moves."""
    driven = [step.motion for step in plan.steps]
    variable = np.array([motion.variable if motion else 0 for motion in driven], dtype=np.int64)
    multiplier = np.array([motion.multiplier if motion else 0.0 for motion in driven])
    offset = np.array([motion.offset if motion else 0.0 for motion in driven])
    if plan.nq == 0 or not driven:
        value = jnp.zeros((len(driven), q.shape[1]), q.dtype)
    elif (multiplier == 1.0).all() and not offset.any():
        value = q[variable]
    else:
        value = q[variable] * jnp.asarray(multiplier[:, None], q.dtype)
        value = value + jnp.asarray(offset[:, None], q.dtype)
    return Values(value, jnp.sin(value), jnp.cos(value))


def quaternion_rotation(step: Step, q: jax.Array) -> jax.Array:
    """Return rotation matrices (3, 3, lanes) of a floating joint; NaN for a zero quaternion."""
    assert step.motion is not None
    w, x, y, z = q[step.motion.variable : step.motion.variable + 4]
    s = 2.0 / (w * w + x * x + y * y + z * z)
    return jnp.stack(
        [
            jnp.stack([1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)]),
            jnp.stack([s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)]),
            jnp.stack([s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)]),
        ]
    )


def _axes(plan: FramePlan, parameters: KinematicParameters, fixed_axis: Float64, index: Any) -> jax.Array:
    given = parameters.axis[index]
    unit = given / jnp.sqrt((given * given).sum(-1, keepdims=True))
    floating = np.array([step.joint.type in (JointType.FLOATING, JointType.FIXED) for step in plan.steps])
    axes = jnp.where(floating[:, None], jnp.asarray(fixed_axis, unit.dtype), unit)
    for i, step in enumerate(plan.steps):
        if step.joint.type is JointType.PLANAR and step.part == 0:
            x, y = _in_plane(unit[i])
            axes = axes.at[i].set(x).at[i + 1].set(y)
    return axes


def _in_plane(normal: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Compute ``robot.chain.in_plane_axes`` as a function to be differentiated; it has no derivative at normal -z."""
    a, b, c = normal
    squared = a * a + b * b
    upper, level = c > -0.5, squared == 0.0
    # 1 / (1 + c) loses its digits near -z, where it is better as (1 - c) / (a^2 + b^2).
    k = jnp.where(upper, 1.0 / jnp.where(upper, 1.0 + c, 1.0), (1.0 - c) / jnp.where(level, 1.0, squared))
    y_of_y = jnp.where(level & ~upper, -1.0, 1.0 - k * b * b)
    return jnp.stack([1.0 - k * a * a, -k * a * b, -a]), jnp.stack([-k * a * b, y_of_y, -b])


def _from_rpy(rpy: jax.Array) -> jax.Array:
    """Return Rz(yaw) Ry(pitch) Rx(roll), (J, 3, 3)."""
    (sr, sp, sy), (cr, cp, cy) = jnp.sin(rpy).T, jnp.cos(rpy).T
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)
