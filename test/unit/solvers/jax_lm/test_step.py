"""The step's linear algebra against numpy's."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.usefixtures("compiled_once")


@pytest.mark.parametrize("rows", range(1, 7))
def test_a_step_is_the_damped_least_squares_one(rows: int) -> None:
    from kinopt_ros.solvers.jax_lm.rows import Residual
    from kinopt_ros.solvers.jax_lm.step import DAMPING, MIN_DAMPING, Bounds, step

    lanes, n = 50, 7
    rng = np.random.default_rng(rows)
    J, e, q = (
        rng.normal(size=(rows, n, lanes)),
        0.1 * rng.normal(size=(rows, lanes)),
        rng.normal(size=(n, lanes)),
    )
    wide = tuple(np.full((), 100.0) for _ in range(n))
    narrow = tuple(np.full((), -100.0) for _ in range(n))
    with jax.enable_x64(True):
        asarray = jax.numpy.asarray
        at = Residual(
            rows=tuple(asarray(row) for row in e),
            jacobian=tuple(tuple(asarray(J[i, k]) for i in range(rows)) for k in range(n)),
            values={},
            lengths2=(0.0, 0.0),
        )
        moved = step(
            at, Bounds(narrow, wide, narrow, wide), tuple(asarray(row) for row in q), active_set=False
        )
    for lane in range(lanes):
        A, b = J[:, :, lane], e[:, lane]
        damping = DAMPING * (b @ b) + MIN_DAMPING
        expected = q[:, lane] + A.T @ np.linalg.solve(A @ A.T + damping * np.eye(rows), b)
        np.testing.assert_allclose([float(x[lane]) for x in moved], expected, atol=1e-10)
