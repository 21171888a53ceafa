"""Conversion of what is given to the arrays that the functions of this package need."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from kinopt_ros.errors import InvalidRequestError, InvalidStateError


def as_lanes(q: Any, nq: int) -> tuple[jax.Array, tuple[int, ...]]:
    """Return configurations (..., nq) as (nq, lanes), and their leading dimensions.

    Raises:
        InvalidStateError: another last dimension.
    """
    states = jnp.asarray(q)
    if states.ndim == 0 or states.shape[-1] != nq:
        raise InvalidStateError(f"q must have shape (..., {nq}), not {states.shape}")
    if not jnp.issubdtype(states.dtype, jnp.floating):
        states = states.astype(float)
    leading = states.shape[:-1]
    return states.reshape(math.prod(leading), nq).T, leading


def as_floats(given: Any, tail: tuple[int, ...], what: str) -> jax.Array:
    """Return numbers as an array of a floating type that ends in some dimensions.

    Raises:
        InvalidRequestError: other last dimensions; the message has ``what``.
    """
    array = jnp.asarray(given)
    if array.shape[array.ndim - len(tail) :] != tail:
        raise InvalidRequestError(
            f"{what} must have shape (..., {', '.join(map(str, tail))}), not {array.shape}"
        )
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)
