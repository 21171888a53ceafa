"""docs/objectives.md: its table is the registry's, and what users paste works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cost_table import cost_table
from support.pages import page

from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.objectives.evaluation import evaluate
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.reading import objective_from_text
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.status import Status

PAGE = page("objectives")


def block(language: str, holding: str) -> str:
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if holding in text]
    assert len(found) == 1
    return str(found[0])


def test_the_table_is_that_of_the_registry() -> None:
    """``PYTHONPATH=test python -m support.cost_table`` prints it."""
    assert cost_table() in PAGE


def test_statuses_are_those_that_exist() -> None:
    rows = PAGE[PAGE.index("## Statuses") : PAGE.index("## What is verified")]
    named = re.findall(r"\b[A-Z]{5,}(?:_[A-Z]+)*\b", rows)
    assert set(named) <= {status.name for status in Status}
    assert "NEAREST" in named


def test_the_file_is_read() -> None:
    robot = load_robot("panda")
    objective = objective_from_text(robot, block("yaml", "link_pose"))
    objective.check(robot, 1)
    assert objective.titles == ("reach", "rest", "manipulability")


def test_the_cost_works() -> None:
    names: dict[str, Any] = {"__name__": "builtins"}  # as where somebody types it: no file
    exec(compile(block("python", "class Height"), "pasted", "exec", dont_inherit=True), names)
    robot = load_robot("panda")
    objective = Objective([names["Height"](link="panda_hand", wanted=0.5, tolerance=1e-6)])
    objective.check(robot, 1)
    (term,) = evaluate(robot, objective, robot.default_q[None], 0.1)
    assert term.residual.shape == (1, 1)
    assert not term.met


@pytest.mark.slow
def test_the_python_runs(kept_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("numba", "jax", "jaxlie", "jaxls"):
        pytest.importorskip(package)
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept_folder))
    names: dict[str, Any] = {}
    exec(block("python", "load_robot"), names)
    assert names["result"].success[0]
    assert np.isfinite(names["q"]).all()
    names["target"] = names["target"].copy()
    names["target"][:3, 3] = 0.5, 0.0, 0.4
    exec(block("python", "with_objectives"), names)
    assert names["result"].success[0]
    found = forward_kinematics(names["robot"], names["result"].q[0], ("panda_hand",))[0, 0]
    np.testing.assert_allclose(found, names["target"], atol=1e-3)
    names["solver"].close()
