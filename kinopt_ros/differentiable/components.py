"""Arithmetic on components of which some are known to be zero or one when a function is traced.

A component is a float, known and exact, or a JAX array: a model parameter, or a value per lane (a lane is one
configuration of a batch). Robots are full of right angles and straight offsets, which need no operation at all.
"""

from collections.abc import Sequence
from typing import TypeAlias

import jax

Component: TypeAlias = "jax.Array | float"
Triple: TypeAlias = tuple[Component, Component, Component]

_EXACT = 1e-14
"""Numbers as near as this to 0, 1 or -1 come from right angles and are taken as such."""


def exact(value: float) -> float:
    """A number of a description, freed of the rounding errors of sines and cosines."""
    return next((whole for whole in (-1.0, 0.0, 1.0) if abs(value - whole) < _EXACT), float(value))


def mul(a: Component, b: Component) -> Component:
    """a b"""
    if isinstance(b, float):
        a, b = b, a
    if isinstance(a, float):
        if a == 0.0:
            return 0.0
        if a == 1.0:
            return b
        if a == -1.0:
            return -b
    return a * b


def add(a: Component, b: Component) -> Component:
    """a + b"""
    if isinstance(a, float) and a == 0.0:
        return b
    if isinstance(b, float) and b == 0.0:
        return a
    return a + b


def sub(a: Component, b: Component) -> Component:
    """a - b"""
    if isinstance(a, float) and a == 0.0:
        return -b
    if isinstance(b, float) and b == 0.0:
        return a
    return a - b


def dot(a: Sequence[Component], b: Sequence[Component]) -> Component:
    """Sum of products."""
    total: Component = 0.0
    for x, y in zip(a, b, strict=True):
        total = add(total, mul(x, y))
    return total
