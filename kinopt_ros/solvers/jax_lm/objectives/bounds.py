"""Position limits of the directions that move."""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.tangent import Directions
from kinopt_ros.solvers.jax_lm.objectives.layout import Layout
from kinopt_ros.solvers.jax_lm.objectives.manifold import clipped, moved

_AT = 1e-12
"""Distance from a limit, rad or m, that counts as standing there."""


class Bounds(NamedTuple):
    """Limits of d free directions at each point."""

    known: Directions
    columns: Annotated[Int64, "d"]
    """The free directions."""
    variable: Annotated[Int64, "d"]
    """Index in q of each direction; of rotations any."""
    lower: Annotated[Float64, "d"]
    upper: Annotated[Float64, "d"]

    @classmethod
    def of(cls, layout: Layout) -> "Bounds":
        """Return the limits of a structure's free directions."""
        known, columns = layout.known, layout.columns
        variable = np.zeros(known.nv, dtype=np.int64)
        variable[known.scalar_directions] = known.scalar_variables
        return cls(known, columns, variable[columns], known.lower[columns], known.upper[columns])

    def clipped(self, q: jax.Array) -> jax.Array:
        """Return a trajectory (T, nq) within the limits; what is held stays where it is."""
        free = np.isin(np.arange(self.known.nv), self.columns)
        return jax.vmap(lambda one: clipped(self.known, free, one))(q)

    def moved(self, q: jax.Array, step: jax.Array) -> jax.Array:
        """Return a trajectory after a step (T d,), within the limits."""
        full = jnp.zeros((q.shape[0], self.known.nv), q.dtype)
        full = full.at[:, self.columns].set(step.reshape(q.shape[0], -1))
        return self.clipped(jax.vmap(lambda one, by: moved(self.known, one, by))(q, full))

    def held(self, q: jax.Array, gradient: jax.Array) -> jax.Array:
        """Return which of the (T d) directions stand at a limit, and would go beyond it against the gradient."""
        values = q[:, self.variable]
        pulled = gradient.reshape(values.shape)
        at_lower = (values <= self.lower + _AT) & (pulled > 0.0)
        at_upper = (values >= self.upper - _AT) & (pulled < 0.0)
        return (at_lower | at_upper).reshape(-1)
