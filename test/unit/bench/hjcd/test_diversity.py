"""Rows of the table by algorithms."""

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.bench.hjcd import diversity, solution_sets
from kinopt_ros.bench.hjcd.arms import arm
from kinopt_ros.bench.hjcd.diversity import measure_diversity
from kinopt_ros.errors import SolverUnavailableError


@pytest.mark.slow
def test_few_targets_of_the_panda(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("warp")
    monkeypatch.setattr(solution_sets, "CANDIDATES", 60)
    rows = measure_diversity(arm("panda", 6, 0), ("screened_lm", "hjcd_ik"), 200, 20, "cpu")
    assert [row.algorithm for row in rows] == ["screened_lm", "hjcd_ik"]
    for r in rows:
        assert 0.0 < r.floor < r.floor_per_target
        assert r.floor < r.mmd < 0.5
        assert 0 < r.fewest <= 20
        assert (r.targets, r.seeds) == (6, 200)


def test_one_that_cannot_run_costs_no_other_and_targets_without_solutions_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*args: object) -> list[np.ndarray]:
        raise SolverUnavailableError("no jax here")

    def found(*args: object) -> list[np.ndarray]:
        generator = np.random.default_rng(0)
        return [generator.normal(size=(count, 7)) for count in (4, 0, 3)]

    monkeypatch.setattr(diversity, "beam_solutions", refused)
    monkeypatch.setattr(diversity, "hjcd_solutions", found)
    panda, told = arm("panda", 3, 0), []
    rows = measure_diversity(panda, ("ik_beam", "hjcd_ik"), 10, 5, "cpu", told.append)
    assert told == ["ik_beam: no jax here"]
    assert [row.algorithm for row in rows] == ["hjcd_ik"]
    assert rows[0].fewest == 0
    assert np.isfinite([rows[0].mmd, rows[0].mmd_per_target]).all()
    with pytest.raises(SolverUnavailableError, match="no jax here"):
        measure_diversity(panda, ("ik_beam",), 10, 5, "cpu")
