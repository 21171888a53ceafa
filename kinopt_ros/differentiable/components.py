"""Arithmetic on components of which some are known to be zero or one when a function is traced.

A component is a float, known and exact, or a JAX array, perhaps with a minus sign: a model parameter, or a value per
lane (a lane is one configuration of a batch). Robots are full of right angles and straight offsets, which need no
operation at all; signs are carried along until a sum or a difference takes them in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import jax


@dataclass(frozen=True, eq=False)
class Negative:
    """An array with a minus sign."""

    of: jax.Array


Component: TypeAlias = "jax.Array | Negative | float"
Triple: TypeAlias = tuple[Component, Component, Component]

_EXACT = 1e-14
"""Distance from 0, 1 or -1 up to which numbers are taken to come from right angles, and to be exact."""


def exact(value: float) -> float:
    """Return a number of a description, freed of the rounding errors of sines and cosines."""
    return next((whole for whole in (-1.0, 0.0, 1.0) if abs(value - whole) < _EXACT), float(value))


def negative(a: Component) -> Component:
    """Return -a."""
    if isinstance(a, float):
        return -a
    return a.of if isinstance(a, Negative) else Negative(a)


def plain(a: Component) -> "jax.Array | float":
    """Return a with its sign taken in."""
    return -a.of if isinstance(a, Negative) else a


def magnitude(a: Component) -> "jax.Array | float":
    """Return a or -a, whichever costs nothing."""
    return a.of if isinstance(a, Negative) else a


def mul(a: Component, b: Component) -> Component:
    """Return a b."""
    if isinstance(b, float):
        a, b = b, a
    if isinstance(a, float):
        if a == 0.0:
            return 0.0
        if a == 1.0:
            return b
        if a == -1.0:
            return negative(b)
    product = magnitude(a) * magnitude(b)
    if isinstance(a, Negative) is isinstance(b, Negative):
        return product
    return negative(product)


def add(a: Component, b: Component) -> Component:
    """Return a + b."""
    if isinstance(a, float) and a == 0.0:
        return b
    if isinstance(b, float) and b == 0.0:
        return a
    if isinstance(a, Negative):
        return negative(a.of + b.of) if isinstance(b, Negative) else b - a.of
    return a - b.of if isinstance(b, Negative) else a + b


def sub(a: Component, b: Component) -> Component:
    """Return a - b."""
    return add(a, negative(b))


def dot(a: Sequence[Component], b: Sequence[Component]) -> Component:
    """Return the sum of products."""
    total: Component = 0.0
    for x, y in zip(a, b, strict=True):
        total = add(total, mul(x, y))
    return total
