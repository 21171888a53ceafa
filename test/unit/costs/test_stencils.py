"""Finite differences of paths, one-sided at the ends."""

import numpy as np
import pytest

from kinopt_ros.costs.stencils import derivative_matrix, stencil


def test_the_published_stencils() -> None:
    np.testing.assert_allclose(12.0 * stencil(1, (-2, -1, 0, 1, 2)), [1, -8, 0, 8, -1], atol=1e-12)
    np.testing.assert_allclose(12.0 * stencil(2, (-2, -1, 0, 1, 2)), [-1, 16, -30, 16, -1], atol=1e-12)
    seven = stencil(3, (-3, -2, -1, 0, 1, 2, 3))
    np.testing.assert_allclose(8.0 * seven, [1, -8, 13, 0, -13, 8, -1], atol=1e-12)


@pytest.mark.parametrize(("order", "degree"), [(1, 4), (2, 5), (3, 6)])
def test_exact_for_polynomials_at_every_point_in_the_middle(order: int, degree: int) -> None:
    s = np.linspace(0.0, 1.0, 20)
    for power in range(degree + 1):
        polynomial = np.polynomial.Polynomial.basis(power)
        found = derivative_matrix(order, 20) @ polynomial(s)
        np.testing.assert_allclose(found[3:-3], polynomial.deriv(order)(s)[3:-3], atol=1e-7)


@pytest.mark.parametrize(("order", "degree"), [(1, 4), (2, 4), (3, 6)])
def test_exact_for_polynomials_at_the_ends(order: int, degree: int) -> None:
    s = np.linspace(0.0, 1.0, 20)
    for power in range(degree + 1):
        polynomial = np.polynomial.Polynomial.basis(power)
        found = derivative_matrix(order, 20) @ polynomial(s)
        np.testing.assert_allclose(found, polynomial.deriv(order)(s), atol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_fourth_order_everywhere(order: int) -> None:
    """The error is a sixteenth when the spacing halves."""
    errors = []
    for T in (81, 161):
        s = np.linspace(0.0, 1.0, T)
        x = np.sin(5.0 * s + 0.3)
        exact = 5.0**order * np.sin(5.0 * s + 0.3 + order * np.pi / 2.0)
        error = np.abs(derivative_matrix(order, T) @ x - exact)
        errors.append((error[3:-3].max(), error[0], error[-1]))
    inner, first, last = np.array(errors[0]) / np.array(errors[1])
    assert 15.0 < inner < 17.0
    assert 13.0 < first < 20.0
    assert 13.0 < last < 20.0


def test_few_points() -> None:
    s = np.linspace(0.0, 1.0, 4)
    np.testing.assert_allclose(derivative_matrix(3, 4) @ s**3, 6.0, atol=1e-10)
    assert not derivative_matrix(3, 3).any()
