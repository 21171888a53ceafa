"""The quadratic part of the cost against the formulas in ``costs/``."""

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.costs.smoothness import derivative_residual, length_residual
from kinopt_ros.solvers.cpu.paths.quadratic import quadratic_cost


def dense(bands: Float64) -> Float64:
    T = len(bands)
    matrix = np.zeros((T, T))
    for k in range(min(bands.shape[1], T)):
        matrix += np.diag(bands[: T - k, k], k) + (np.diag(bands[: T - k, k], -k) if k else 0.0)
    return matrix


@pytest.mark.parametrize("T", [8, 25, 64])
def test_cost(T: int) -> None:
    q = np.random.default_rng(T).normal(size=(T, 3)).cumsum(axis=0) / T
    exact, _, _ = quadratic_cost(T, 1.0, 0.1, 0.01)
    expected = (length_residual(np, q) ** 2).sum() / (T - 1)
    expected += 0.1 * (derivative_residual(np, q, 2) ** 2).sum() / T
    expected += 0.01 * (derivative_residual(np, q, 3) ** 2).sum() / T
    assert np.einsum("tj,ts,sj->", q, dense(exact), q) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("weights", [(1.0, 0.1, 0.01), (1.0, 0.1, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)])
def test_matrix_of_steps_is_larger_and_like_the_exact_one_for_smooth_paths(
    weights: tuple[float, float, float],
) -> None:
    """The exact matrix never exceeds it, so that its steps do not overshoot, and steps of smooth changes are the right
    ones."""
    T = 40
    exact, step, _ = (np.asarray(array) for array in quadratic_cost(T, *weights))
    A, B = dense(exact)[1:-1, 1:-1], dense(step)[1:-1, 1:-1]
    scale = np.linalg.inv(np.linalg.cholesky(B + 1e-9 * np.trace(B) * np.eye(T - 2)))
    assert np.linalg.eigvalsh(scale @ A @ scale.T).max() < 1.0 + 1e-6
    smooth = np.sin(np.pi * np.arange(1, T - 1) / (T - 1)) ** 4
    ratio = (smooth @ A @ smooth) / (smooth @ B @ smooth)
    assert 0.8 < ratio <= 1.0 + 1e-9
