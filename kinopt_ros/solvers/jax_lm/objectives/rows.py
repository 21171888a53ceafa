"""All residuals of a trajectory as one vector, with their derivatives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kinopt_ros.array import Bool, Int64
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
    """R residuals, unweighted, of all costs at all their points, and what they depend on."""

    r: jax.Array
    """(R,)"""
    J: tuple[jax.Array, ...]
    """Per block (P, m, W d): derivatives along the free directions of the W points that each window looks at."""


@dataclass(frozen=True, eq=False)
class RowPlan:
    """Which rows are whose."""

    blocks: tuple[tuple[int, int, int], ...]
    """Number of the cost, of its points P, and of its residual's components m, in the order of the rows."""
    columns: tuple[Annotated[Int64, "P Wd"], ...]
    """Per block which of the T d unknowns each window looks at."""
    unknowns: int
    """T d"""
    holds: Annotated[Bool, "R"]
    """Rows of costs that have to hold."""
    one_sided: Annotated[Bool, "R"]

    def times(self, J: tuple[jax.Array, ...], step: jax.Array) -> jax.Array:
        """Return J step, (R,), for a step (T d,)."""
        parts = [
            (own * step[at][:, None]).sum(-1).reshape(-1) for own, at in zip(J, self.columns, strict=True)
        ]
        return jnp.concatenate(parts)

    def pulled(self, J: tuple[jax.Array, ...], rows: jax.Array) -> jax.Array:
        """Return J^T rows, (T d,), for rows (R,)."""
        total = jnp.zeros(self.unknowns, rows.dtype)
        for own, at, part in zip(J, self.columns, self._split(rows), strict=True):
            total = total.at[at].add((own * part[..., None]).sum(1))
        return total

    def gram(self, J: tuple[jax.Array, ...], weights: jax.Array) -> jax.Array:
        """Return J^T diag(weights) J, (T d, T d): window by window, as most of J is zeros."""
        total = jnp.zeros((self.unknowns, self.unknowns), weights.dtype)
        for own, at, part in zip(J, self.columns, self._split(weights), strict=True):
            squares = jnp.einsum("pmi,pmj->pij", own * part[..., None], own)
            total = (
                total + squares[0]
                if self._whole(at)
                else total.at[at[:, :, None], at[:, None, :]].add(squares)
            )
        return total

    def _whole(self, at: Annotated[Int64, "P Wd"]) -> bool:
        """Return whether a block has one window, which looks at everything."""
        return at.shape == (1, self.unknowns)

    def _split(self, rows: jax.Array) -> list[jax.Array]:
        """Return rows (R,) block by block, each (P, m)."""
        parts, start = [], 0
        for _, P, m in self.blocks:
            parts.append(rows[start : start + P * m].reshape(P, m))
            start += P * m
        return parts

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
        for (number, _, _), part in zip(self.blocks, self._split(values), strict=True):
            found[number] = part
        return tuple(found)


def row_plan(layout: Layout, costs: Sequence[Cost], dt: jax.Array) -> RowPlan:
    """Return which rows are whose, found by tracing each group once."""
    blocks: list[tuple[int, int, int]] = []
    columns: list[Int64] = []
    d = len(layout.columns)
    q = jnp.zeros((layout.num_points, layout.known.nq)).at[:].set(layout.robot.default_q)
    for group in layout.groups:
        first = jax.tree.map(lambda leaf: leaf[0], windows(group, q))
        shapes = jax.eval_shape(
            lambda window, group=group: group_residuals(layout, group, costs, dt, window), first
        )
        P = len(group.index)
        at = (group.first[:, None] + np.arange(group.width))[:, :, None] * d + np.arange(d)
        blocks += [(number, P, shape.shape[0]) for number, shape in zip(group.costs, shapes, strict=True)]
        columns += [at.reshape(P, group.width * d)] * len(group.costs)

    def per_row(values: Sequence[bool]) -> Bool:
        return np.concatenate([np.full(P * m, values[number]) for number, P, m in blocks])

    return RowPlan(
        tuple(blocks),
        tuple(columns),
        layout.num_points * d,
        per_row([cost.holds for cost in costs]),
        per_row([cost.one_sided for cost in costs]),
    )


def rows_at(layout: Layout, costs: Sequence[Cost], dt: jax.Array, q: jax.Array) -> Rows:
    """Compute all rows of a trajectory (T, nq), and their derivatives, window by window."""
    r, J = [], []
    for group in layout.groups:
        values, derivatives = jax.vmap(
            lambda window, group=group: _of_window(layout, group, costs, dt, window)
        )(windows(group, q))
        r += [value.reshape(-1) for value in values]
        J += [part.reshape(*part.shape[:2], group.width * len(layout.columns)) for part in derivatives]
    # Else XLA computes kinematics anew in each loop that reads some of it.
    found: Rows = jax.lax.optimization_barrier(Rows(jnp.concatenate(r), tuple(J)))  # type: ignore[no-untyped-call]
    return found


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
