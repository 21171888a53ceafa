"""Configurations as points of a manifold, for JAX: what ``kinematics/tangent.py`` says, by jaxlie."""

from typing import Annotated

import jax
import jax.numpy as jnp
import jaxlie
import numpy as np

from kinopt_ros.array import Bool
from kinopt_ros.kinematics.tangent import Directions


def moved(known: Directions, q: jax.Array, step: jax.Array) -> jax.Array:
    """Return a configuration (nq,) after a step (nv,), rad or m."""
    after = q.at[known.scalar_variables].add(step[known.scalar_directions])
    for i, v in known.quaternions:
        turned = jaxlie.SO3(q[i : i + 4]).multiply(jaxlie.SO3.exp(step[v : v + 3]))
        after = after.at[i : i + 4].set(turned.wxyz)
    return after


def difference(known: Directions, a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the step (nv,) that leads from configuration a to b, each (nq,)."""
    scalars = known.scalar_variables
    step = jnp.zeros(known.nv, jnp.result_type(a, b)).at[known.scalar_directions].set(b[scalars] - a[scalars])
    for i, v in known.quaternions:
        turn = jaxlie.SO3(a[i : i + 4]).inverse().multiply(jaxlie.SO3(b[i : i + 4]))
        step = step.at[v : v + 3].set(turn.log())
    return step


def clipped(known: Directions, free: Annotated[Bool, "nv"], q: jax.Array) -> jax.Array:
    """Return a configuration (nq,) whose free directions are within their position limits, with quaternions of length
    1."""
    scalars, column = known.scalar_variables, known.scalar_directions
    lower = np.where(free, known.lower, -np.inf)[column]
    upper = np.where(free, known.upper, np.inf)[column]
    inside = q.at[scalars].set(jnp.clip(q[scalars], lower, upper))
    for i, _ in known.quaternions:
        inside = inside.at[i : i + 4].set(q[i : i + 4] / jnp.linalg.norm(q[i : i + 4]))
    return inside
