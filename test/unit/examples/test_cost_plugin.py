"""A cost in a package of its own, installed beside kinopt_ros, is there in Python, in files and on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.pages import ROOT

from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot

EXAMPLE = ROOT / "examples" / "cost_plugin"

IN_PYTHON = """
import numpy as np
import kinopt_ros as ko
from kinopt_ros.costs.registry import cost_kind
from kinopt_ros.objectives.evaluation import evaluate
from kinopt_ros.objectives.reading import objective_from_text
from kinopt_example_cost import AboveFloor
robot = ko.load_robot("panda")
assert cost_kind("above_floor") is AboveFloor
read = objective_from_text(robot, "[{cost: above_floor, link: panda_hand, height: 2, tolerance: 0.01}]")
term = evaluate(robot, read, robot.default_q[None], 0.1)[0]
shipped = objective_from_text(robot, open("examples/cost_plugin/above_floor.yaml").read())
assert [type(cost).name for cost in shipped] == ["link_pose", "above_floor"]
assert shipped.costs[1].tolerance == 1e-6
T = ko.forward_kinematics(robot, robot.default_q, ["panda_hand"])[0]
np.testing.assert_allclose(term.residual, [[2.0 - T[2, 3]]])
assert not term.met
for wrong in (AboveFloor(link="nose"), AboveFloor(link="panda_hand", weight=(1.0, 2.0))):
    try:
        wrong.check(robot)
    except ko.KinoptError as error:
        assert "above_floor" in str(error)
    else:
        raise SystemExit("not refused")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment in which the example is installed, in a folder of its own."""
    folder = tmp_path_factory.mktemp("cost_plugin")
    source = folder / "source"
    # A copy: building writes into the source folder.
    subprocess.run(["cp", "-r", str(EXAMPLE), str(source)], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder / "site")]
    subprocess.run([*pip, *options, str(source)], check=True)
    paths = [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def ran(installed: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=installed, capture_output=True, text=True, check=False, cwd=ROOT)


def test_it_is_short() -> None:
    assert len((EXAMPLE / "kinopt_example_cost.py").read_text(encoding="utf-8").splitlines()) <= 40


def test_in_python_and_in_files(installed: dict[str, str]) -> None:
    result = ran(installed, "-c", IN_PYTHON)
    assert result.returncode == 0, result.stderr


def test_it_is_in_the_list(installed: dict[str, str]) -> None:
    result = ran(installed, "-m", "kinopt_ros.cli", "objective", "--list")
    assert "above_floor" in result.stdout
    assert "How far a link" in result.stdout


@pytest.mark.slow
def test_it_is_solved_for(installed: dict[str, str], kept_folder: Path, tmp_path: Path) -> None:
    """A floor above the hand: with a pose, as in the file of the example, programs take four times as long."""
    for package in ("jax", "jaxlie", "jaxls"):
        pytest.importorskip(package)
    file = tmp_path / "floor.yaml"
    file.write_text(
        "- {cost: above_floor, link: panda_hand, height: 0.8, tolerance: 1.0e-6}\n- {cost: rest, weight: 0.1}\n"
    )
    environment = {**installed, "XDG_CACHE_HOME": str(kept_folder)}
    # From the default configuration alone: a search takes a program that takes as long to compile as all others.
    asked = ("objective", str(file), "--robot", "panda", "--starts", "0", "--json")
    result = ran(environment, "-m", "kinopt_ros.cli", *asked)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    floor, rest = answer["costs"]
    assert floor["met"]
    assert max(rest["magnitude"]) > 0.1
    robot = load_robot("panda")
    ((hand,),) = forward_kinematics(robot, np.array(answer["q"]).reshape(1, -1), ["panda_hand"])
    assert hand[2, 3] == pytest.approx(
        0.8, abs=1e-5
    )  # it is lower by default, and goes no higher than it must
