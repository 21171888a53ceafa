"""Arithmetic on components of which some are known to be zero or one when a program is traced.

A component is a float, known and exact, or an array over lanes (a lane is one start of one target). Robots are full of
right angles and straight offsets: leaving out what they make zero halves the operations of a step.
"""

from typing import TypeAlias

import jax

Component: TypeAlias = "jax.Array | float"
Vector: TypeAlias = tuple[Component, Component, Component]


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


def dot(a: tuple[Component, ...], b: tuple[Component, ...]) -> Component:
    """Sum of products."""
    total: Component = 0.0
    for x, y in zip(a, b, strict=True):
        total = add(total, mul(x, y))
    return total


def cross(a: Vector, b: Vector) -> Vector:
    """a x b"""
    return (
        sub(mul(a[1], b[2]), mul(a[2], b[1])),
        sub(mul(a[2], b[0]), mul(a[0], b[2])),
        sub(mul(a[0], b[1]), mul(a[1], b[0])),
    )


def scaled(f: Component, a: Vector) -> Vector:
    """f a"""
    return mul(f, a[0]), mul(f, a[1]), mul(f, a[2])


def plus(a: Vector, b: Vector) -> Vector:
    """a + b"""
    return add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2])


def minus(a: Vector, b: Vector) -> Vector:
    """a - b"""
    return sub(a[0], b[0]), sub(a[1], b[1]), sub(a[2], b[2])
