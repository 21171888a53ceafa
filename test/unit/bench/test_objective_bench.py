"""The bench of objectives: a higher weight of manipulability does not lower the index."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba")

from kinopt_ros.bench.objective import command
from kinopt_ros.bench.objective.index import WEIGHTS, run_index_bench
from kinopt_ros.errors import SolverUnavailableError


def test_a_higher_weight_does_not_lower_the_index() -> None:
    steps = 4 * (len(WEIGHTS) - 1)
    [row] = run_index_bench("cpu", [128], cases=steps, seed=3)
    assert row.steps == steps
    assert row.falls == 0
    assert row.mean_rise > 0.01


@pytest.mark.parametrize("device", command.DEVICES)
def test_all_compute_on_the_device_that_was_asked_for(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    seen: list[object] = []

    def run(*_: Any, env: Mapping[str, str], **__: Any) -> subprocess.CompletedProcess[str]:
        seen.append(env["JAX_PLATFORMS"])
        return subprocess.CompletedProcess([], 0, stdout='{"joints": []}\n')

    def create(name: str, robot: object, options: object = None) -> None:
        seen.append((name, options))
        if len(seen) == 3:
            raise SolverUnavailableError("seen enough")

    monkeypatch.setattr(command.subprocess, "run", run)
    monkeypatch.setattr(command, "create_solver", create)
    for solver, given in (("jax_lm", {"device": device}), ("cpu", None)):
        seen.clear()
        with pytest.raises(SolverUnavailableError, match="seen enough"):
            command.run_objective_bench(
                command.TASKS[:1], [1], 1, Path(sys.executable), solvers=[solver], device=device
            )
        assert seen == [device, (solver, given), ("cpu", None)]
