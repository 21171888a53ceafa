"""Small products without a matrix unit, which may round to fewer digits, and norms with finite gradients."""

from typing import Any

import jax
import jax.numpy as jnp


def product(A: Any, B: Any) -> Any:
    """Multiply stacked matrices, (..., a, b) and (..., b, c)."""
    return (A[..., :, :, None] * B[..., None, :, :]).sum(-2)


def applied(A: Any, v: Any) -> Any:
    """Multiply stacked matrices (..., a, b) and vectors (..., b)."""
    return (A * v[..., None, :]).sum(-1)


def transposed(A: jax.Array) -> jax.Array:
    """Return transposes of stacked matrices."""
    return jnp.swapaxes(A, -1, -2)


def skew(w: jax.Array) -> jax.Array:
    """Return matrices K (..., 3, 3) with K v = w x v."""
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    zero = jnp.zeros_like(x)
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def root(squared: jax.Array) -> jax.Array:
    """Return square roots whose gradient at 0 is 0."""
    positive = squared > 0.0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1.0)), 0.0)
