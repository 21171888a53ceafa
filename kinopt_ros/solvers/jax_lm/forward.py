"""Forward kinematics of one chain for many lanes at once, component by component.

Arrays of components with the lanes last are what XLA makes quick code of, on CPUs and GPUs: no small matrices, no
gathers. The start may be any frame; solvers start in the target's, so that the result is the error itself.
"""

from dataclasses import dataclass

import jax

from kinopt_ros.kinematics.refold import (
    COS_FIXED,
    COS_TWIST,
    MOTION_SIZE,
    MULTIPLIER,
    OFFSET,
    SHIFT_X,
    SHIFT_Y,
    SHIFT_Z,
    SIN_FIXED,
    SIN_TWIST,
)
from kinopt_ros.solvers.jax_lm.chain import ChainShape
from kinopt_ros.solvers.jax_lm.lanes import Component, Vector, add, cosine_and_sine, minus, mul, plus, scaled


@dataclass(frozen=True)
class Frame:
    """Position and columns of the rotation."""

    p: Vector
    x: Vector
    y: Vector
    z: Vector


@dataclass(frozen=True)
class MotionAxis:
    """Axis of a motion, times its multiplier, and a point on it."""

    direction: Vector
    origin: Vector


def forward(
    shape: ChainShape, numbers: jax.Array, start: Frame, q: tuple[jax.Array, ...]
) -> tuple[Frame, list[MotionAxis]]:
    """Compute the pose of the tip, and the axes of all motions, in the frame in which ``start`` is given.

    Args:
        shape: the chain's.
        numbers: of the chain, (9m + 12,).
        start: frame before the first motion; lanes.
        q: variables, each of shape (lanes,), rad or m.
    """

    def number(i: int) -> Component:
        exact = shape.exact[i]
        return numbers[i] if exact is None else exact

    p, x, y, z = start.p, start.x, start.y, start.z
    axes = []
    for i, (translation, column) in enumerate(zip(shape.translation, shape.column, strict=True)):
        k = MOTION_SIZE * i
        p = _moved(p, x, y, z, (number(k + SHIFT_X), number(k + SHIFT_Y), number(k + SHIFT_Z)))
        y, z = _turned(y, z, number(k + COS_TWIST), number(k + SIN_TWIST))
        multiplier = number(k + MULTIPLIER)
        value = add(mul(multiplier, q[column]), number(k + OFFSET))
        if translation:
            p = plus(p, scaled(value, z))
            cosine, sine = number(k + COS_FIXED), number(k + SIN_FIXED)
        else:
            cosine, sine = cosine_and_sine(value)
        axes.append(MotionAxis(scaled(multiplier, z), p))
        x, y = _turned(x, y, cosine, sine)
    t = MOTION_SIZE * len(shape.column)
    p = _moved(p, x, y, z, (number(t), number(t + 1), number(t + 2)))
    columns = (
        _combined(x, y, z, (number(t + 3 + c), number(t + 6 + c), number(t + 9 + c))) for c in range(3)
    )
    return Frame(p, *columns), axes


def _moved(p: Vector, x: Vector, y: Vector, z: Vector, shift: Vector) -> Vector:
    return plus(p, _combined(x, y, z, shift))


def _combined(x: Vector, y: Vector, z: Vector, factors: Vector) -> Vector:
    return plus(plus(scaled(factors[0], x), scaled(factors[1], y)), scaled(factors[2], z))


def _turned(a: Vector, b: Vector, cosine: Component, sine: Component) -> tuple[Vector, Vector]:
    """Return a turned towards b, and b away from a."""
    first = plus(scaled(cosine, a), scaled(sine, b))
    return first, minus(scaled(cosine, b), scaled(sine, a))
