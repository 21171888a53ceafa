"""One damped least-squares step inside the joint limits.

``change = J^T (J J^T + damping I)^-1 error`` with a damping proportional to the squared error: T. Sugihara,
"Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method", IEEE Transactions on Robotics 27 (2011).
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from kinopt_ros.solvers.jax_lm.lanes import Component, add, dot, mul, sub
from kinopt_ros.solvers.jax_lm.rows import Residual

DAMPING = 0.05
MIN_DAMPING = 1e-9
LARGEST_ERROR2 = 10.0
"""Squared metres beyond which the damping does not grow."""


@dataclass(frozen=True)
class Bounds:
    """Per variable (rad or m), scalars."""

    lower: tuple[jax.Array, ...]
    upper: tuple[jax.Array, ...]
    most: tuple[jax.Array, ...]
    """Largest change per step."""


def step(
    at: Residual, bounds: Bounds, q: tuple[jax.Array, ...], active_set: bool, min_damping: float = MIN_DAMPING
) -> tuple[jax.Array, ...]:
    """q after one step.

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
    normal = _normal_matrix(at.jacobian, damping)
    change = _change(at.jacobian, _solve(normal, at.rows))
    if active_set:
        free = [
            ~(((d < 0.0) & (x <= low)) | ((d > 0.0) & (x >= high)))
            for d, x, low, high in zip(change, q, bounds.lower, bounds.upper, strict=True)
        ]
        jacobian = tuple(
            tuple(c if isinstance(c, float) and c == 0.0 else jnp.where(f, c, 0.0) for c in column)
            for f, column in zip(free, at.jacobian, strict=True)
        )
        change = _change(jacobian, _solve(_normal_matrix(jacobian, damping), at.rows))
    return tuple(
        jnp.clip(x + jnp.clip(d, -most, most), low, high)
        for x, d, most, low, high in zip(q, change, bounds.most, bounds.lower, bounds.upper, strict=True)
    )


def sum_of_squares(rows: tuple[jax.Array, ...]) -> jax.Array:
    """Squared length."""
    return jnp.asarray(dot(rows, rows))


def _normal_matrix(jacobian: tuple[tuple[Component, ...], ...], damping: jax.Array) -> list[list[Component]]:
    """Lower triangle of J J^T + damping I."""
    size = len(jacobian[0])
    return [
        [
            add(dot(tuple(c[i] for c in jacobian), tuple(c[j] for c in jacobian)), damping if i == j else 0.0)
            for j in range(i + 1)
        ]
        for i in range(size)
    ]


def _solve(a: list[list[Component]], b: tuple[jax.Array, ...]) -> list[Component]:
    """x of A x = b by A = L D L^T, unrolled; A is symmetric and positive definite, its lower triangle is given."""
    size = len(b)
    lower: list[list[Component]] = []
    inverse: list[Component] = []
    for i in range(size):
        row: list[Component] = []  # L D
        for j in range(i):
            value = a[i][j]
            for k in range(j):
                value = sub(value, mul(row[k], lower[j][k]))
            row.append(value)
        lower.append([mul(v, inverse[k]) for k, v in enumerate(row)])
        diagonal = a[i][i]
        for k in range(i):
            diagonal = sub(diagonal, mul(row[k], lower[i][k]))
        inverse.append(1.0 / diagonal)
    y: list[Component] = []
    for i in range(size):
        value = b[i]
        for k in range(i):
            value = sub(value, mul(lower[i][k], y[k]))
        y.append(value)
    x: list[Component] = [mul(v, d) for v, d in zip(y, inverse, strict=True)]
    for i in reversed(range(size)):
        for k in range(i + 1, size):
            x[i] = sub(x[i], mul(lower[k][i], x[k]))
    return x


def _change(jacobian: tuple[tuple[Component, ...], ...], y: list[Component]) -> tuple[jax.Array, ...]:
    return tuple(jnp.asarray(dot(column, tuple(y))) for column in jacobian)
