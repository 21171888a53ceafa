"""`kinopt objective`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kinopt_ros.cli import main
from kinopt_ros.commands import objective
from kinopt_ros.costs.registry import cost_names
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.registry import AUTO, create_solver

REACH = """
- cost: link_pose
  link: panda_hand
  T_base_target: {xyz: [0.4, 0.1, 0.5], rpy: [3.14159, 0, 0]}
  tolerance: 1e-4
"""
REST = "- {cost: rest, weight: 0.1}\n"


def written(folder: Path, text: str) -> str:
    (folder / "costs.yaml").write_text(text)
    return str(folder / "costs.yaml")


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["objective", "--list"]) == 0
    out = capsys.readouterr().out
    for name in cost_names():
        assert name in out


def test_the_list_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["objective", "--list", "--json"]) == 0
    kinds = json.loads(capsys.readouterr().out)["costs"]
    assert [kind["cost"] for kind in kinds] == list(cost_names())
    assert all(kind["units"] and kind["what it is"] for kind in kinds)


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("- {cost: nose}\n", [], "nose"),
        ("- {cost: rest, wieght: 1}\n", [], "weight"),
        (REST, ["--points", "0"], "num_points is 0"),
        (REST, ["--group", "nose"], "nose"),
        (REST, ["--lock", "nose"], "nose"),
        (REST, ["--seed-state", "nose"], "nose"),
        (REST, ["--solver", "cpu", "--points", "3"], "1 point, not of 3"),
        (REST, ["--robot", "nose"], "nose"),
        ("- {cost: least_jerk}\n", [], "4 neighbouring points"),
    ],
)
def test_mistakes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, arguments: list[str], said: str
) -> None:
    robot = [] if "--robot" in arguments else ["--robot", "panda"]
    assert main(["objective", *robot, written(tmp_path, text), *arguments]) not in (0, 3)
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["objective", "--robot", "panda", str(tmp_path / "nothing.yaml")]) not in (0, 3)
    assert "nothing.yaml" in capsys.readouterr().err
    assert main(["objective", "--robot", "panda"]) not in (0, 3)
    assert "--list" in capsys.readouterr().err


@pytest.mark.parametrize(("solver", "spared"), [("jax_lm", {"groups": ""}), ("cpu", {})])
def test_programs_of_plain_poses_are_not_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solver: str, spared: dict[str, object]
) -> None:
    if solver == "jax_lm":
        pytest.importorskip("jax")
    made = []

    def create(name: str, robot: RobotModel, options: dict[str, object] | None = None) -> Solver:
        made.append((name, options))
        return create_solver("cpu", robot)

    monkeypatch.setattr(objective, "create_solver", create)
    assert main(["objective", "--robot", "panda", written(tmp_path, REST), "--solver", solver]) == 3
    assert made == [(solver, spared), (AUTO, None)]


@pytest.mark.slow
def test_answers(
    tmp_path: Path, kept_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """0: all holds; 3: nothing had to; 2: something does not."""
    for package in ("jax", "jaxlie", "jaxls"):
        pytest.importorskip(package)
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept_folder))
    file = written(tmp_path, REACH + REST)
    assert main(["objective", "--robot", "panda", file, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "SUCCESS"
    assert [cost["title"] for cost in answer["costs"]] == ["link_pose", "rest"]
    assert answer["costs"][0]["met"]
    assert max(answer["costs"][0]["magnitude"]) <= 1e-4
    assert len(answer["variables"]) == np.shape(answer["q"])[1]
    assert answer["dt"] is None
    assert "every cost with a tolerance" in answer["checks"]

    assert main(["objective", "--robot", "panda", file]) == 0
    shown = capsys.readouterr().out
    for word in ("SUCCESS", "link_pose", "panda_joint7", "not checked"):
        assert word in shown

    far = written(tmp_path, (REACH + REST).replace("0.4, 0.1", "4.0, 0.1"))
    assert main(["objective", "--robot", "panda", far, "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "NO_IK_SOLUTION"
    assert "link_pose" in answer["message"]

    loose = written(tmp_path, REST)
    assert main(["objective", "--robot", "panda", loose, "--starts", "0"]) == 3
    assert "NEAREST" in capsys.readouterr().out
