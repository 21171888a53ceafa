"""Vectors of components over lanes (a lane is one start of one target).

What is known to be 0 or 1 when a program is traced leaves nothing to compute: that halves the operations of a step.
"""

import math
from typing import TypeAlias

import jax
import jax.numpy as jnp

from kinopt_ros.differentiable.components import (
    Component,
    Negative,
    add,
    dot,
    magnitude,
    mul,
    negative,
    plain,
    sub,
)

_PI = (3.140625, 9.67502593994140625e-4, 1.509957990978376e-7)
"""Pi in parts whose products with small whole numbers are exact."""
_TAYLOR = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(1, 6))
"""Taylor coefficients of the sine; up to a quarter turn what they leave out is less than float32 resolves."""
Vector: TypeAlias = tuple[Component, Component, Component]


def cross(a: Vector, b: Vector) -> Vector:
    """Return a x b."""
    return (
        sub(mul(a[1], b[2]), mul(a[2], b[1])),
        sub(mul(a[2], b[0]), mul(a[0], b[2])),
        sub(mul(a[0], b[1]), mul(a[1], b[0])),
    )


def scaled(f: Component, a: Vector) -> Vector:
    """Return f a."""
    return mul(f, a[0]), mul(f, a[1]), mul(f, a[2])


def plus(a: Vector, b: Vector) -> Vector:
    """Return a + b."""
    return add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2])


def minus(a: Vector, b: Vector) -> Vector:
    """Return a - b."""
    return sub(a[0], b[0]), sub(a[1], b[1]), sub(a[2], b[2])


def chosen(condition: jax.Array, a: Component) -> Component:
    """Return a where a condition holds, else 0."""
    if isinstance(a, float) and a == 0.0:
        return a
    kept = jnp.where(condition, magnitude(a), 0.0)
    return negative(kept) if isinstance(a, Negative) else kept


def cosine_and_sine(angle: Component) -> tuple[jax.Array, Component]:
    """Compute cosine and sine of an angle, rad.

    On CPUs XLA calls the C library lane by lane, so float32 has a polynomial, which processors take many lanes of at
    once; good to 2e-7 up to 1e5 rad.
    """
    if isinstance(angle, Negative):
        cosine, sine = cosine_and_sine(angle.of)
        return cosine, negative(sine)
    x = jnp.asarray(angle)
    if x.dtype != jnp.float32:
        return jnp.cos(x), jnp.sin(x)
    # Nothing in common but the angle, or else XLA makes several loops of the two.
    quarter = 0.5 * math.pi
    return (
        _sine_beyond(jnp.rint((x + quarter) * (1.0 / math.pi)), -0.5, x),
        _sine_beyond(jnp.rint(x * (1.0 / math.pi)), 0.0, x),
    )


def _sine_beyond(halves: jax.Array, part: float, x: jax.Array) -> jax.Array:
    """Return the sine of the angle from (halves + part) half turns to x, negative where ``halves`` is odd."""
    r, half_turns = x, halves + part
    for factor in _PI:
        r = r - half_turns * factor
    r2 = r * r
    series = jnp.full_like(r, _TAYLOR[-1])
    for coefficient in reversed(_TAYLOR[:-1]):
        series = series * r2 + coefficient
    sine = r + r * r2 * series
    return jnp.where((halves.astype(jnp.int32) & 1) != 0, -sine, sine)


__all__ = [
    "Component",
    "Negative",
    "Vector",
    "add",
    "chosen",
    "cosine_and_sine",
    "cross",
    "dot",
    "magnitude",
    "minus",
    "mul",
    "negative",
    "plain",
    "plus",
    "scaled",
    "sub",
]
