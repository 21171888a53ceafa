"""Errors of poses in body, spatial and mixed frames as functions of JAX; ``kinematics.error_frames`` explains them."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from kinopt_ros.differentiable.lie import inverse, se3_log, so3_exp, so3_log
from kinopt_ros.differentiable.matrices import product, transposed
from kinopt_ros.differentiable.states import as_floats
from kinopt_ros.kinematics.error_frames import BODY, SPATIAL, check_error_frame


def pose_error_twist(T_base_actual: Any, T_base_target: Any, frame: str = BODY) -> jax.Array:
    """Compute errors (v, w), (..., 6), m and rad: what has to be done to get from the actual pose to the target.

    Gradients are finite for all poses, also at the target; see ``lie``.

    Args:
        T_base_actual: poses of the tip, (..., 4, 4).
        T_base_target: poses of the target, in the same link; leading dimensions broadcast.
        frame: ``body``, ``spatial`` or ``mixed``.

    Raises:
        UnknownErrorFrameError: another frame.
        InvalidRequestError: other last dimensions than 4, 4.
    """
    check_error_frame(frame)
    error: jax.Array = _twist(T_base_actual, T_base_target, frame)
    return error


def pose_error_jacobian(T_base_actual: Any, T_base_target: Any, frame: str = BODY) -> jax.Array:
    """Compute the derivative (..., 6, 6) of ``pose_error_twist`` in the velocity of the tip; the target stands still.

    Columns: linear velocity of the tip's origin (m/s), then angular velocity (rad/s), both along the base link's axes,
    as the rows of ``jacobian``. So the derivative in joint values is the product of the two.

    Args:
        T_base_actual: poses of the tip, (..., 4, 4).
        T_base_target: poses of the target, in the same link; leading dimensions broadcast.
        frame: ``body``, ``spatial`` or ``mixed``.

    Raises:
        UnknownErrorFrameError: another frame.
        InvalidRequestError: other last dimensions than 4, 4.
    """
    check_error_frame(frame)
    J: jax.Array = _jacobian(T_base_actual, T_base_target, frame)
    return J


@partial(jax.jit, static_argnames="frame")
def _twist(T_base_actual: Any, T_base_target: Any, frame: str) -> Any:
    T, G = (
        as_floats(T_base_actual, (4, 4), "T_base_actual"),
        as_floats(T_base_target, (4, 4), "T_base_target"),
    )
    if frame == BODY:
        return se3_log(product(inverse(T), G))
    if frame == SPATIAL:
        return se3_log(product(G, inverse(T)))
    turn = so3_log(product(G[..., :3, :3], transposed(T[..., :3, :3])))
    return jnp.concatenate([jnp.broadcast_to(G[..., :3, 3] - T[..., :3, 3], turn.shape), turn], -1)


@partial(jax.jit, static_argnames="frame")
def _jacobian(T_base_actual: Any, T_base_target: Any, frame: str) -> Any:
    T = as_floats(T_base_actual, (4, 4), "T_base_actual")

    def after(motion: jax.Array) -> Any:
        """Return errors after a small motion (v, w)."""
        R = product(so3_exp(motion[3:]), T[..., :3, :3])
        moved = T.at[..., :3, :3].set(R).at[..., :3, 3].add(motion[:3])
        return _twist(moved, T_base_target, frame)

    return jax.jacfwd(after)(jnp.zeros(6, T.dtype))
