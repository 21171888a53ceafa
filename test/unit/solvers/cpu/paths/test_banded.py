"""The compiled factorization against numpy's."""

import numpy as np
import pytest

from kinopt_ros.solvers.cpu.paths.kernels.banded import factorize, solve
from kinopt_ros.solvers.cpu.paths.kernels.vectors import CHUNK


@pytest.mark.parametrize(
    ("T", "n", "reach"), [(25, 7, 3), (25, 7, 6), (12, 6, 3), (9, 1, 2), (8, 13, 1), (1, 3, 0)]
)
def test_solution(T: int, n: int, reach: int) -> None:
    rng = np.random.default_rng(T * n)
    # Farther at both ends than in the middle.
    last = np.minimum(np.arange(T) + reach, T - 1)
    last[: T // 3] = np.maximum(last[: T // 3], min(reach + 2, T - 1))
    last = np.maximum.accumulate(last).astype(np.int64)
    dense = np.zeros((T * n, T * n))
    for t in range(T):
        dense[t * n : (t + 1) * n, t * n : (last[t] + 1) * n] = rng.normal(size=(n, (last[t] - t + 1) * n))
    dense = np.triu(dense)
    dense = dense + dense.T + 20.0 * n * np.eye(T * n)
    blocks = int((last - np.arange(T)).max()) + 1
    A = np.zeros((T, n, blocks * n + CHUNK))
    for t in range(T):
        width = (last[t] - t + 1) * n
        A[t, :, :width] = dense[t * n : (t + 1) * n, t * n : t * n + width]
    x = np.zeros(T * n + CHUNK)
    x[: T * n] = b = rng.normal(size=T * n)
    assert factorize(A, last)
    solve(A, last, x)
    np.testing.assert_allclose(x[: T * n], np.linalg.solve(dense, b), atol=1e-12)


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    A = np.zeros((2, 2, 4 + CHUNK))
    A[:, 0, 0], A[:, 1, 1] = 1.0, -1.0
    assert not factorize(A, np.array([1, 1]))
