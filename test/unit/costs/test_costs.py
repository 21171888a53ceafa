"""Formulas of costs, by hand and with both array modules."""

import math
from typing import Annotated, Any, TypeVar

import numpy as np
import pytest

from kinopt_ros.collision.activation import activation
from kinopt_ros.costs.excess import excess_residual
from kinopt_ros.costs.fields import allowed, fits, takes_arrays
from kinopt_ros.costs.nearness import nearness_residual
from kinopt_ros.costs.rest import rest_residual
from kinopt_ros.costs.smoothness import derivative_residual, length_residual
from kinopt_ros.costs.velocity import velocity_residual


def test_a_straight_even_path_costs_its_length_only() -> None:
    q = np.linspace(0.0, 1.0, 30)[:, None] * np.array([1.0, -2.0])
    np.testing.assert_allclose(length_residual(np, q), [[1.0, -2.0]] * 29)
    for order in (2, 3):
        np.testing.assert_allclose(derivative_residual(np, q, order), 0.0, atol=1e-8)


def test_velocity_counts_beyond_the_limit_only() -> None:
    q = np.linspace(0.0, 1.0, 30)[:, None] * np.array([1.0, -2.0])
    found = velocity_residual(np, q, 0.5, np.array([2.5, 2.5]))
    np.testing.assert_allclose(found, [[0.0, 1.5]] * 30, atol=1e-9)  # 2 and 4 rad/s


def test_nearness_is_a_hinge_and_activation_its_smooth_kin() -> None:
    d = np.array([-0.02, 0.0, 0.025, 0.05])
    np.testing.assert_allclose(nearness_residual(np, d, 0.05), [0.07, 0.05, 0.025, 0.0])
    np.testing.assert_allclose(activation(d, 0.05)[0], [0.045, 0.025, 0.00625, 0.0])


def test_excess_by_axis_and_by_length() -> None:
    errors = np.array([0.3, -0.4, 2.0])
    np.testing.assert_allclose(excess_residual(np, errors, (0.1, 0.1, math.inf)), [0.2, 0.3, 0.0])
    np.testing.assert_allclose(excess_residual(np, np.array([0.3, -0.4, 0.0]), 0.1), [0.4])


def test_the_same_with_jax() -> None:
    jnp = pytest.importorskip("jax.numpy")
    q = np.sin(np.linspace(0.0, 3.0, 20))[:, None] * np.array([1.0, 0.5])
    limit = np.array([0.5, 0.5])
    for residual in (
        lambda xp, x: length_residual(xp, x),
        lambda xp, x: derivative_residual(xp, x, 2),
        lambda xp, x: velocity_residual(xp, x, 2.0, limit),
        lambda xp, x: rest_residual(xp, x, limit),
    ):
        np.testing.assert_allclose(residual(jnp, jnp.asarray(q)), residual(np, q), rtol=1e-3, atol=1e-3)


def test_types_of_arrays_are_known_by_any_name() -> None:
    """numpy's NDArray is a named type since 2.5: no cost with a pose could be read from a file."""
    extensions = pytest.importorskip("typing_extensions", reason="named types are not in Python 3.11")
    T = TypeVar("T", bound=np.generic)
    named: Any = extensions.TypeAliasType("named", np.ndarray[Any, np.dtype[T]], type_params=(T,))
    for hint in (named, named[np.float64], Annotated[named[np.float64], "4 4"], named[np.float64] | None):
        assert takes_arrays(hint)
        assert fits(hint, np.eye(4))
        assert not fits(hint, "a text")
        assert "an array of numbers" in allowed(hint)
