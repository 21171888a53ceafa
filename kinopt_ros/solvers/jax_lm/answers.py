"""Choice of the answer among the lanes that a target's beam ends with."""

import math

import jax
import jax.numpy as jnp

from kinopt_ros.solvers.turns import FARTHEST_TURN


def answers(
    q: tuple[jax.Array, ...],
    error: jax.Array,
    exact: jax.Array,
    state: jax.Array,
    lower: tuple[jax.Array, ...],
    upper: tuple[jax.Array, ...],
    turns: tuple[bool, ...],
) -> tuple[jax.Array, jax.Array]:
    """Return for every target the exact solution that is nearest to the state, else the best attempt.

    Args:
        q: per variable the values of all lanes, shape (keep * B,), ordered by start, then by target.
        error: (keep, B); at most 1 for solutions.
        exact: which lanes met the aims, (keep, B).
        state: (B, n), rad or m.
        lower: limit per variable.
        upper: limit per variable.
        turns: variables that take the turn nearest to the state.

    Returns:
        q (n, B), error (B,).
    """
    keep, B = error.shape
    turned = []
    away = jnp.zeros((keep, B), state.dtype)
    for k, (values, low, high, turn) in enumerate(zip(q, lower, upper, turns, strict=True)):
        lanes = values.reshape(keep, B)
        if turn:
            other = lanes + 2.0 * math.pi * jnp.rint((state[:, k] - lanes) / (2.0 * math.pi))
            allowed = (low <= other) & (other <= high) & (jnp.abs(other) < FARTHEST_TURN)
            lanes = jnp.where(allowed, other, lanes)
        turned.append(lanes)
        away = away + (lanes - state[:, k]) ** 2
    error = jnp.where(jnp.isfinite(error), error, jnp.inf)
    # Exact lanes come first, all below 0.
    best = jnp.argmin(jnp.where(exact, -1.0 / (1.0 + away), error), axis=0)
    chosen = best == jnp.arange(keep)[:, None]
    # Sums with one term that is not 0: quicker than gathering.
    answer = jnp.where(chosen, jnp.stack([*turned, error]), 0.0).sum(axis=1)
    return answer[:-1], answer[-1]
