"""The bench of objectives: a higher weight of manipulability does not lower the index."""

from __future__ import annotations

import pytest

pytest.importorskip("numba")

from kinopt_ros.bench.objective.index import WEIGHTS, run_index_bench


def test_a_higher_weight_does_not_lower_the_index() -> None:
    steps = 4 * (len(WEIGHTS) - 1)
    [row] = run_index_bench("cpu", [128], cases=steps, seed=3)
    assert row.steps == steps
    assert row.falls == 0
    assert row.mean_rise > 0.01
