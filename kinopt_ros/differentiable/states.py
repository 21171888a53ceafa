"""Conversion of configurations to the layout that the functions of this package need."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from kinopt_ros.errors import InvalidStateError


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
