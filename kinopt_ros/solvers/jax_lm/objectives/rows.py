"""All residuals of a trajectory as one vector, with their derivatives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kinopt_ros.array import Bool
from kinopt_ros.costs.base import Cost
from kinopt_ros.solvers.jax_lm.objectives.layout import (
    Group,
    Layout,
    RawWindow,
    group_residuals,
    window_step,
    windows,
)


class Rows(NamedTuple):
    """R residuals, unweighted, of all costs at all their points."""

    r: jax.Array
    """(R,)"""
    J: jax.Array
    """(R, T d): derivatives along the free directions of all points."""


@dataclass(frozen=True, eq=False)
class RowPlan:
    """Which rows are whose."""

    blocks: tuple[tuple[int, int, int], ...]
    """Number of the cost, of its points P, and of its residual's components m, in the order of the rows."""
    holds: Annotated[Bool, "R"]
    """Rows of costs that have to hold."""
    one_sided: Annotated[Bool, "R"]

    def weights(self, costs: Sequence[Cost]) -> jax.Array:
        """Return the weights (R,) of all rows: 1 or 0 for those that have to hold."""
        parts = []
        for number, P, m in self.blocks:
            weight = jnp.asarray(costs[number].weight)
            if costs[number].holds:
                weight = jnp.where(weight != 0.0, 1.0, 0.0)
            parts.append(jnp.broadcast_to(weight, (P, m)).reshape(-1))
        return jnp.concatenate(parts)

    def by_cost(self, values: jax.Array, count: int) -> tuple[jax.Array, ...]:
        """Return values (R,) cost by cost, each (P, m); costs without any row get (0, 0)."""
        found: list[jax.Array] = [jnp.zeros((0, 0), values.dtype)] * count
        at = 0
        for number, P, m in self.blocks:
            found[number] = values[at : at + P * m].reshape(P, m)
            at += P * m
        return tuple(found)


def row_plan(layout: Layout, costs: Sequence[Cost], dt: jax.Array) -> RowPlan:
    """Return which rows are whose, found by tracing each group once."""
    blocks: list[tuple[int, int, int]] = []
    q = jnp.zeros((layout.num_points, layout.known.nq)).at[:].set(layout.robot.default_q)
    for group in layout.groups:
        first = jax.tree.map(lambda leaf: leaf[0], windows(group, q))
        shapes = jax.eval_shape(
            lambda window, group=group: group_residuals(layout, group, costs, dt, window), first
        )
        blocks += [
            (number, len(group.index), shape.shape[0])
            for number, shape in zip(group.costs, shapes, strict=True)
        ]

    def per_row(values: Sequence[bool]) -> np.ndarray:
        return np.concatenate([np.full(P * m, values[number]) for number, P, m in blocks])

    return RowPlan(
        tuple(blocks),
        per_row([cost.holds for cost in costs]),
        per_row([cost.one_sided for cost in costs]),
    )


def rows_at(layout: Layout, costs: Sequence[Cost], dt: jax.Array, q: jax.Array) -> Rows:
    """Compute all rows of a trajectory (T, nq), and their derivatives, window by window."""
    T, d = layout.num_points, len(layout.columns)
    r, J = [], []
    for group in layout.groups:
        values, derivatives = jax.vmap(
            lambda window, group=group: _of_window(layout, group, costs, dt, window)
        )(windows(group, q))
        at = group.first[:, None] + np.arange(group.width)
        for value, derivative in zip(values, derivatives, strict=True):
            P, m = value.shape
            r.append(value.reshape(-1))
            if T == 1:
                J.append(derivative.reshape(P * m, d))
                continue
            full = jnp.zeros((P, m, T, d), q.dtype)
            rows, components = np.arange(P)[:, None, None], np.arange(m)[None, :, None]
            J.append(full.at[rows, components, at[:, None, :]].set(derivative).reshape(P * m, T * d))
    return Rows(jnp.concatenate(r), jnp.concatenate(J))


def residuals_at(layout: Layout, costs: Sequence[Cost], dt: jax.Array, q: jax.Array) -> jax.Array:
    """Compute all residuals (R,) of a trajectory (T, nq), without derivatives."""
    parts = []
    for group in layout.groups:
        values = jax.vmap(lambda window, group=group: group_residuals(layout, group, costs, dt, window))(
            windows(group, q)
        )
        parts += [value.reshape(-1) for value in values]
    return jnp.concatenate(parts)


def _of_window(
    layout: Layout, group: Group, costs: Sequence[Cost], dt: jax.Array, window: RawWindow
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    """Return residuals (m,) of the costs of a group at one window, and their derivatives (m, W, d)."""

    def twice(step: jax.Array) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
        after = RawWindow(window_step(layout, window.q, step), window.here, window.index, window.stencils)
        found = group_residuals(layout, group, costs, dt, after)
        return found, found

    zero = jnp.zeros((group.width, len(layout.columns)), window.q.dtype)
    derivatives, values = jax.jacfwd(twice, has_aux=True)(zero)
    return values, derivatives
