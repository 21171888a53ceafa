"""Tests that known zeros and ones, and signs, change no result when a function is traced."""

import operator
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

jax = pytest.importorskip("jax")

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

VALUES = (2.0, -0.5, 3.25)


def forms() -> list[tuple[Component, float]]:
    """Components of every form, and their values."""
    known = [(value, value) for value in (0.0, 1.0, -1.0, 0.25)]
    arrays = [(jax.numpy.float32(value), value) for value in VALUES]
    return [*known, *arrays, *((Negative(array), -value) for array, value in arrays)]


@pytest.mark.parametrize(
    ("ours", "plainly"), [(add, operator.add), (sub, operator.sub), (mul, operator.mul)], ids=["+", "-", "*"]
)
def test_two_components(
    ours: Callable[[Component, Component], Component], plainly: Callable[[float, float], float]
) -> None:
    for (a, x), (b, y) in product(forms(), forms()):
        assert float(plain(ours(a, b))) == plainly(x, y), (a, b)


def test_one_component() -> None:
    for a, x in forms():
        assert float(plain(negative(a))) == -x
        assert abs(float(magnitude(a))) == abs(x)
        assert not isinstance(plain(a), Negative)


def test_sums_of_products() -> None:
    rng = np.random.default_rng(0)
    known = forms()
    for _ in range(50):
        left, right = (rng.integers(0, len(known), 5) for _ in range(2))
        found = dot([known[i][0] for i in left], [known[j][0] for j in right])
        expected = sum(known[i][1] * known[j][1] for i, j in zip(left, right, strict=True))
        assert float(plain(found)) == pytest.approx(expected, abs=1e-6)


def test_zeros_and_ones_cost_nothing() -> None:
    array = jax.numpy.float32(2.0)
    assert mul(0.0, array) == 0.0
    assert mul(1.0, array) is array
    assert add(0.0, array) is array
    assert mul(-1.0, mul(-1.0, array)) is array
