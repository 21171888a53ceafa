"""One damped least-squares step inside the joint limits.

``change = J^T (J J^T + damping I)^-1 error`` with a damping proportional to the squared error: T. Sugihara,
"Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method", IEEE Transactions on Robotics 27 (2011).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from kinopt_ros.solvers.jax_lm.lanes import Component, add, chosen, dot, mul, negative, plain, sub
from kinopt_ros.solvers.jax_lm.rows import Residual

DAMPING = 0.05
MIN_DAMPING = 1e-9
LARGEST_ERROR2 = 10.0
"""Squared metres beyond which the damping does not grow."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of each variable (rad or m), scalars."""

    lower: tuple[jax.Array, ...]
    upper: tuple[jax.Array, ...]
    least: tuple[jax.Array, ...]
    """Largest change backwards per step, negative."""
    most: tuple[jax.Array, ...]
    """Largest change forwards per step."""


def step(
    at: Residual, bounds: Bounds, q: tuple[jax.Array, ...], active_set: bool, min_damping: float = MIN_DAMPING
) -> tuple[jax.Array, ...]:
    """Return q after one step.

    Args:
        at: rows at q.
        bounds: limits of the variables.
        q: variables, each of shape (lanes,).
        active_set: whether variables at their limits that are pushed outwards are taken out and the rest is solved
            again, so that the others make up for them. Twice the work, and what reaches targets at limits.
        min_damping: damping where the error is zero.
    """
    # Errors of many metres, as of a long rail, shall not stop all progress.
    damping = DAMPING * jnp.minimum(sum_of_squares(at.rows), LARGEST_ERROR2) + min_damping
    change = _change(at, damping)
    if active_set:
        held = (
            ((d < 0.0) & (x <= low)) | ((d > 0.0) & (x >= high))
            for d, x, low, high in zip(change, q, bounds.lower, bounds.upper, strict=True)
        )
        jacobian = tuple(
            tuple(chosen(~h, c) for c in column) for h, column in zip(held, at.jacobian, strict=True)
        )
        change = _change(replace(at, jacobian=jacobian), damping)
    return tuple(
        jnp.clip(x + jnp.clip(d, least, most), low, high)
        for x, d, least, most, low, high in zip(
            q, change, bounds.least, bounds.most, bounds.lower, bounds.upper, strict=True
        )
    )


def sum_of_squares(rows: tuple[Component, ...]) -> jax.Array:
    """Return the squared length."""
    return jnp.asarray(plain(dot(rows, rows)))


def _change(at: Residual, damping: jax.Array) -> tuple[jax.Array, ...]:
    columns, size = at.jacobian, len(at.rows)
    rows = [[column[i] for column in columns] for i in range(size)]
    normal = [
        [add(dot(rows[i], rows[j]), damping if i == j else 0.0) for j in range(i + 1)] for i in range(size)
    ]
    y = _solve(normal, at.rows)
    return tuple(jnp.asarray(plain(dot(column, y))) for column in columns)


def _solve(a: list[list[Component]], b: Sequence[Component]) -> list[Component]:
    """Solve A x = b by block elimination, unrolled; A is symmetric and positive definite, its lower triangle is given.

    Blocks of two: XLA makes loops of what does not depend on one another, and these are half as many as of Cholesky's.
    """
    size = min(2, len(b))
    inverse = _inverse([row[:size] for row in a[:size]])
    first = [dot(row, b[:size]) for row in inverse]
    if len(b) == size:
        return first
    below = [row[:size] for row in a[size:]]
    factors = [[dot(row, column) for column in inverse] for row in below]
    schur = [
        [sub(a[size + i][size + j], dot(factors[i], below[j])) for j in range(i + 1)]
        for i in range(len(below))
    ]
    rest = _solve(schur, [sub(b[size + i], dot(factors[i], b[:size])) for i in range(len(below))])
    return [sub(first[k], dot([row[k] for row in factors], rest)) for k in range(size)] + rest


def _inverse(a: list[list[Component]]) -> list[list[Component]]:
    """Invert a symmetric matrix of one or two rows, of which the lower triangle is given."""
    if len(a) == 1:
        return [[1.0 / jnp.asarray(plain(a[0][0]))]]
    (p, *_), (r, s, *_) = a
    factor = 1.0 / jnp.asarray(plain(sub(mul(p, s), mul(r, r))))
    return [[mul(factor, s), negative(mul(factor, r))], [negative(mul(factor, r)), mul(factor, p)]]
