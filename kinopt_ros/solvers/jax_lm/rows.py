"""Errors of a target as rows of a least-squares problem, and their Jacobian.

The tip is seen in the target's frame, so that rows are components: three of position (m), three of orientation, which
are measured by 2 sin(angle / 2) (rad for small angles). Which rows exist is fixed when a program is compiled; free
axes have none. Definitions: ``kinematics.pose_errors``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from kinopt_ros.kinematics.pose_errors import Free
from kinopt_ros.solvers.jax_lm.chain import ChainShape
from kinopt_ros.solvers.jax_lm.forward import Frame, MotionAxis, forward
from kinopt_ros.solvers.jax_lm.lanes import (
    Component,
    Vector,
    add,
    chosen,
    cross,
    dot,
    magnitude,
    minus,
    mul,
    negative,
    plain,
    scaled,
    sub,
)
from kinopt_ros.solvers.jax_lm.shapes import RowShape

ORIENTATION_WEIGHT = 0.4
"""Length that a radian counts as, m."""
_STILL: Vector = (0.0, 0.0, 0.0)
_LEAST_COSINE = 0.02
"""Below this cosine of half the angle, rows of a step are shorter than they should be, not infinite."""


@dataclass(frozen=True)
class Residual:
    """Rows, weighted, and what the answer is judged by."""

    rows: tuple[Component, ...]
    """Errors from tip to target that count, orientation in metres by ``ORIENTATION_WEIGHT``."""
    jacobian: tuple[tuple[Component, ...], ...]
    """Per variable the derivative of the tip's motion along each row."""
    values: dict[int, Component]
    """Errors by row, neither weighted nor shortened."""
    lengths2: tuple[Component, Component]
    """Squared lengths of position and orientation error (of 2 sin(angle / 2))."""


def residual(
    shape: ChainShape,
    rows: RowShape,
    numbers: jax.Array,
    start: Frame,
    slack: jax.Array,
    q: tuple[jax.Array, ...],
) -> Residual:
    """Compute rows at q.

    Args:
        shape: the chain's.
        rows: which rows exist, and what they are.
        numbers: of the chain.
        start: frame before the first motion in the target's frame.
        slack: errors up to here do not count, (6,); where a length is bounded, the first of three.
        q: variables, each of shape (lanes,).
    """
    tip, axes = forward(shape, numbers, start, q)
    values, lengths2 = _errors(rows, tip)
    if rows.autodiff:
        jacobian = _autodiff_columns(
            lambda p: {
                i: jnp.asarray(plain(value))
                for i, value in _errors(rows, forward(shape, numbers, start, p)[0])[0].items()
            },
            q,
            rows,
        )
    else:
        jacobian = _columns(shape, rows, tip, axes)
    weighted = {i: value if i < 3 else mul(ORIENTATION_WEIGHT, value) for i, value in values.items()}
    if rows.slack:
        weighted, jacobian = _without_slack(rows, weighted, values, lengths2, slack, jacobian)
    return Residual(
        tuple(weighted[i] for i in rows.rows),
        tuple(tuple(column[i] for i in rows.rows) for column in jacobian),
        values,
        lengths2,
    )


def worst(rows: RowShape, at: Residual, allowed: jax.Array) -> jax.Array:
    """Return the largest error in units of what is allowed, (6,), squared: at most 1 if all is."""
    largest: jax.Array | float = 0.0
    for group, per_axis in enumerate((rows.per_axis_position, rows.per_axis_orientation)):
        first = 3 * group
        mine = [i for i in range(first, first + 3) if i in at.values]
        if per_axis:
            parts = [(magnitude(at.values[i]) / allowed[i]) ** 2 for i in mine]
        else:
            parts = [plain(at.lengths2[group]) / allowed[first] ** 2] if mine else []
        for part in parts:
            largest = part if isinstance(largest, float) else jnp.maximum(largest, part)
    return jnp.asarray(largest)


def _errors(rows: RowShape, tip: Frame) -> tuple[dict[int, Component], tuple[Component, Component]]:
    """Return errors from tip to target by row, and squared lengths of position and orientation error."""
    values: dict[int, Component] = {i: sub(0.0, tip.p[i]) for i in range(3) if not rows.free_position[i]}
    position2: Component = 0.0
    for value in values.values():
        position2 = add(position2, mul(value, value))
    orientation, orientation2 = _orientation_errors(rows.free_orientation, tip)
    values |= orientation
    like = jnp.zeros_like(magnitude(tip.p[0])) + jnp.zeros_like(magnitude(tip.x[0]))
    return {i: value + like if isinstance(value, float) else value for i, value in values.items()}, (
        position2,
        orientation2,
    )


def _orientation_errors(free: Free, tip: Frame) -> tuple[dict[int, Component], Component]:
    count = sum(free)
    columns = (tip.x, tip.y, tip.z)
    if count == 3:
        return {}, 0.0
    if count == 0:
        trace = plain(add(add(tip.x[0], tip.y[1]), tip.z[2]))
        # The antisymmetric part is sin(angle) axis; near half a turn it vanishes, and only the trace tells.
        v = (sub(tip.y[2], tip.z[1]), sub(tip.z[0], tip.x[2]), sub(tip.x[1], tip.y[0]))
        f = -0.5 / jnp.maximum(0.5 * jnp.sqrt(jnp.maximum(1.0 + trace, 0.0)), _LEAST_COSINE)
        e = scaled(f, v)
        length2 = jnp.where(trace > 0.0, plain(dot(e, e)), 3.0 - trace)
        return {3 + i: e[i] for i in range(3)}, length2
    if count == 1:
        a = free.index(True)
        i, j = (a + 1) % 3, (a + 2) % 3
        # Swing from the tip's axis to the target's: their cross product, of length sin(angle).
        swung = columns[a]
        cosine = plain(swung[a])
        f = 1.0 / jnp.maximum(jnp.sqrt(jnp.maximum(0.5 + 0.5 * cosine, 0.0)), _LEAST_COSINE)
        e_i, e_j = mul(f, swung[j]), negative(mul(f, swung[i]))
        length2 = jnp.where(cosine > 0.0, plain(dot((e_i, e_j), (e_i, e_j))), 2.0 - 2.0 * cosine)
        return {3 + i: e_i, 3 + j: e_j}, length2
    a = free.index(False)
    i, j = (a + 1) % 3, (a + 2) % 3
    # Twist: w and v are its quaternion up to a factor, w not negative.
    w = jnp.asarray(plain(add(1.0, add(add(tip.x[0], tip.y[1]), tip.z[2]))))
    difference = jnp.asarray(plain(sub(columns[i][j], columns[j][i])))
    length = jnp.sqrt(w * w + difference * difference)
    e_a = jnp.where(length > 1e-6, -2.0 * difference / jnp.maximum(length, 1e-6), 2.0)
    return {3 + a: e_a}, e_a * e_a


def _columns(
    shape: ChainShape, rows: RowShape, tip: Frame, axes: list[MotionAxis]
) -> list[dict[int, Component]]:
    """Compute the geometric Jacobian in the target's frame, orientation weighted."""
    columns: list[dict[int, Component]] = [dict.fromkeys(range(6), 0.0) for _ in range(shape.variables)]
    for translation, column, axis in zip(shape.translation, shape.column, axes, strict=True):
        if translation:
            linear, angular = axis.direction, _STILL
        else:
            linear = cross(axis.direction, minus(tip.p, axis.origin))
            angular = scaled(ORIENTATION_WEIGHT, _turning(rows.free_orientation, tip, axis.direction))
        for i, part in enumerate((*linear, *angular)):
            columns[column][i] = add(columns[column][i], part)
    return columns


def _turning(free: Free, tip: Frame, direction: Vector) -> Vector:
    """Return how fast each orientation row changes by a turn about a direction."""
    if sum(free) != 2:
        return direction
    a = free.index(False)
    axis = (tip.x, tip.y, tip.z)[a]
    f = 1.0 / jnp.maximum(plain(add(1.0, axis[a])), 0.1)
    along = mul(f, add(dot(axis, direction), direction[a]))
    return tuple(along if i == a else 0.0 for i in range(3))  # type: ignore[return-value]


def _autodiff_columns(
    errors: Callable[[tuple[jax.Array, ...]], dict[int, jax.Array]], q: tuple[jax.Array, ...], rows: RowShape
) -> list[dict[int, Component]]:
    _, push = jax.linearize(errors, q)
    columns = []
    for k in range(len(q)):
        tangent = tuple(jnp.ones_like(x) if i == k else jnp.zeros_like(x) for i, x in enumerate(q))
        rates = push(tangent)
        columns.append({i: -rates[i] if i < 3 else -ORIENTATION_WEIGHT * rates[i] for i in rows.rows})
    return columns


def _without_slack(
    rows: RowShape,
    weighted: dict[int, Component],
    values: dict[int, Component],
    lengths2: tuple[Component, Component],
    slack: jax.Array,
    jacobian: list[dict[int, Component]],
) -> tuple[dict[int, Component], list[dict[int, Component]]]:
    """Shorten rows by the slack; those inside it become 0, and nothing holds the variables there."""
    for group, per_axis in enumerate((rows.per_axis_position, rows.per_axis_orientation)):
        first = 3 * group
        for i in range(first, first + 3):
            if i not in values:
                continue
            allowed = slack[i] if per_axis else slack[first]
            size = jnp.abs(magnitude(values[i])) if per_axis else jnp.sqrt(plain(lengths2[group]))
            part = jnp.maximum(0.0, 1.0 - allowed / jnp.maximum(size, 1e-30))
            counts = jnp.where(allowed > 0.0, part > 0.0, True)
            weighted[i] = chosen(counts, mul(part, weighted[i]))
            for column in jacobian:
                column[i] = chosen(counts, column[i])
    return weighted, jacobian
