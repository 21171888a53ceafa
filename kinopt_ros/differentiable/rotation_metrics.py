"""Distances between orientations as functions of JAX: Phi1 to Phi5 of ``kinematics.rotation_metrics``.

One number per sample; inputs broadcast; the same conventions as there. Gradients are finite for all rotations. Where a
metric has none, they are these:

- equal rotations: 0. Phi1, Phi2, Phi3 and Phi5 have the tip of a cone there, and 0 is one of its subgradients; Phi4 is
  smooth and has the gradient 0.
- half a turn, where Phi2, Phi3 and Phi4 change from one way round to the other: the mean of the gradients of both ways.
- differences of half a turn in one of Phi1's angles: the gradient of the positive difference.
"""

from typing import Any

import jax
import jax.numpy as jnp

from kinopt_ros.differentiable.matrices import root
from kinopt_ros.differentiable.states import as_floats


@jax.jit
def phi1_euler(rpy_a: Any, rpy_b: Any) -> jax.Array:
    """Compute Phi1 of roll, pitch and yaw (..., 3), rad: the distance, each difference wrapped; (...), rad.

    Raises:
        InvalidRequestError: another last dimension than 3.
    """
    difference = as_floats(rpy_a, (3,), "rpy_a") - as_floats(rpy_b, (3,), "rpy_b")
    wrapped = jnp.pi - (jnp.pi - difference) % (2.0 * jnp.pi)
    return root((wrapped * wrapped).sum(-1))


@jax.jit
def phi2_quaternion(a: Any, b: Any) -> jax.Array:
    """Compute Phi2 of quaternions (..., 4), wxyz of any length but 0: ``min(|a - b|, |a + b|)``; (...).

    Raises:
        InvalidRequestError: another last dimension than 4.
    """
    return root(jnp.minimum(*_squared_chords(a, b)))


@jax.jit
def phi3_angle(a: Any, b: Any) -> jax.Array:
    """Compute Phi3 of quaternions (..., 4), wxyz of any length but 0: half the geodesic angle; (...), rad.

    Raises:
        InvalidRequestError: another last dimension than 4.
    """
    minus, plus = _squared_chords(a, b)
    return 2.0 * jnp.arctan2(root(jnp.minimum(minus, plus)), root(jnp.maximum(minus, plus)))


@jax.jit
def phi4_dot(a: Any, b: Any) -> jax.Array:
    """Compute Phi4 of quaternions (..., 4), wxyz of any length but 0: ``1 - |a . b|``; (...).

    Raises:
        InvalidRequestError: another last dimension than 4.
    """
    return 0.5 * jnp.minimum(*_squared_chords(a, b))


@jax.jit
def phi5_matrix(R_a: Any, R_b: Any) -> jax.Array:
    """Compute Phi5 of rotation matrices (..., 3, 3): the Frobenius norm of I - R_a R_b^T; (...).

    Raises:
        InvalidRequestError: other last dimensions than 3, 3.
    """
    difference = as_floats(R_a, (3, 3), "R_a") - as_floats(R_b, (3, 3), "R_b")
    return root((difference * difference).sum((-2, -1)))


def _squared_chords(a: Any, b: Any) -> tuple[jax.Array, jax.Array]:
    """Return |a - b|^2 and |a + b|^2, for a and b of length 1."""
    a, b = _unit(as_floats(a, (4,), "a")), _unit(as_floats(b, (4,), "b"))
    return ((a - b) ** 2).sum(-1), ((a + b) ** 2).sum(-1)


def _unit(quaternion: jax.Array) -> jax.Array:
    return quaternion / jnp.sqrt((quaternion * quaternion).sum(-1, keepdims=True))
