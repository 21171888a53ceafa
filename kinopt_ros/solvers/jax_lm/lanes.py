"""Vectors of components over lanes (a lane is one start of one target).

What is known to be 0 or 1 when a program is traced leaves nothing to compute: that halves the operations of a step.
"""

from typing import TypeAlias

from kinopt_ros.differentiable.components import Component, add, dot, mul, sub

Vector: TypeAlias = tuple[Component, Component, Component]


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


__all__ = ["Component", "Vector", "add", "cross", "dot", "minus", "mul", "plus", "scaled", "sub"]
