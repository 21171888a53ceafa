"""Maximum mean discrepancy."""

import numpy as np
import pytest

from kinopt_ros.bench.hjcd.mmd import Sample, bandwidth


def mmd(x: np.ndarray, y: np.ndarray, h: float) -> float:
    return Sample(x, h).mmd(Sample(y, h))


def test_it_is_the_sum_over_all_pairs() -> None:
    """Computed in pieces of 500, so more than these."""
    generator = np.random.default_rng(0)
    x, y, h = generator.normal(size=(620, 2)), generator.normal(size=(30, 2)) + 0.5, 1.3

    def whole(a: np.ndarray, b: np.ndarray) -> float:
        squared = np.sum((a[:, None] - b[None]) ** 2, axis=2)
        return float(np.exp(-squared / (2 * h * h)).mean())

    wanted = np.sqrt(whole(x, x) + whole(y, y) - 2.0 * whole(x, y))
    assert mmd(x, y, h) == pytest.approx(wanted, rel=1e-9)


def test_equal_samples_have_none_and_distant_ones_all() -> None:
    x = np.random.default_rng(1).normal(size=(40, 3))
    assert mmd(x, x, 1.0) == pytest.approx(0.0, abs=1e-7)
    point = np.zeros((5, 3))
    assert mmd(point, point + 100.0, 1.0) == pytest.approx(np.sqrt(2.0))


def test_samples_of_one_distribution_are_near_and_of_others_are_not() -> None:
    generator = np.random.default_rng(2)
    a, b, c = generator.normal(size=(3, 500, 4))
    assert mmd(a, b, 2.0) < 0.07
    assert mmd(a, c * 0.5, 2.0) > 0.15


def test_the_bandwidth_is_the_median_distance() -> None:
    points = np.array([[0.0], [1.0], [3.0]])
    assert bandwidth(points) == pytest.approx(2.0)
