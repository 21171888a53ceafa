"""Starts: spread, inside the ranges, the same for the same seed."""

import numpy as np

from kinopt_ros.solvers.jax_lm.seeds import quasi_random, starts

LOW, HIGH = np.array([-1.0, 2.0, -3.0]), np.array([1.0, 2.5, 3.0])


def test_starts_are_inside_and_reproducible() -> None:
    q = starts(LOW, HIGH, 0, 64, 7)
    assert q.dtype == np.float32
    assert (q >= LOW[:, None]).all()
    assert (q <= HIGH[:, None]).all()
    np.testing.assert_array_equal(q, starts(LOW, HIGH, 0, 64, 7))
    assert (q != starts(LOW, HIGH, 0, 64, 8)).any()


def test_later_starts_continue_the_sequence() -> None:
    whole = quasi_random(0, 128, 3, 5)
    np.testing.assert_allclose(np.hstack([quasi_random(0, 64, 3, 5), quasi_random(64, 64, 3, 5)]), whole)


def test_points_are_spread_more_evenly_than_random_ones() -> None:
    def emptiest(points: np.ndarray) -> int:
        cells = np.floor(points[:2] * 8).astype(int)
        return int(np.bincount(cells[0] * 8 + cells[1], minlength=64).min())

    assert emptiest(quasi_random(0, 1024, 2, 1)) >= 10
    assert emptiest(np.random.default_rng(1).random((2, 1024))) < 10
