"""Vectors of components over lanes (a lane is one start of one target).

What is known to be 0 or 1 when a program is traced leaves nothing to compute: that halves the operations of a step.
"""

import math
from typing import TypeAlias

import jax
import jax.numpy as jnp

from kinopt_ros.differentiable.components import Component, add, dot, mul, sub

_HALF_PI = (1.5703125, 4.837512969970703125e-4, 7.549789948768648e-8)
"""Parts whose products with small whole numbers are exact."""
_SINE = (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4)
_COSINE = (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5)
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


def cosine_and_sine(angle: Component) -> tuple[jax.Array, jax.Array]:
    """Of an angle in rad; XLA has the C library's for CPUs, which take lanes one by one, so here are our own in
    float32.

    Source: polynomials and parts of pi / 2 of S. L. Moshier's Cephes library (sinf.c), good to 1 unit in the last
    place for angles of some turns.
    """
    x = jnp.asarray(angle)
    if x.dtype != jnp.float32:
        return jnp.cos(x), jnp.sin(x)
    quarters = jnp.rint(x * (2.0 / math.pi))
    r = x
    for part in _HALF_PI:
        r = r - quarters * part
    r2 = r * r
    sine = r + r * r2 * (_SINE[0] + r2 * (_SINE[1] + r2 * _SINE[2]))
    cosine = 1.0 - 0.5 * r2 + r2 * r2 * (_COSINE[0] + r2 * (_COSINE[1] + r2 * _COSINE[2]))
    quarter = quarters.astype(jnp.int32)
    swapped = (quarter & 1) != 0
    c, s = jnp.where(swapped, sine, cosine), jnp.where(swapped, cosine, sine)
    return jnp.where(((quarter + 1) & 2) != 0, -c, c), jnp.where((quarter & 2) != 0, -s, s)


__all__ = ["Component", "Vector", "add", "cosine_and_sine", "cross", "dot", "minus", "mul", "plus", "scaled", "sub"]
