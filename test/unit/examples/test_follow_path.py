"""examples/follow_path_upright.py, as a user runs it."""

import csv
import runpy
from pathlib import Path

import numpy as np
import pytest
from support.pages import ROOT

import kinopt_ros as ko

pytest.importorskip("coal")
EXAMPLE = ROOT / "examples" / "follow_path_upright.py"


def test_the_tool_stays_upright(tmp_path: Path) -> None:
    example = runpy.run_path(str(EXAMPLE))
    file = tmp_path / "path.csv"
    assert example["main"](str(file)) == 0
    with file.open(encoding="utf-8") as rows:
        head, *values = csv.reader(rows)
    table = np.array(values, dtype=np.float64)
    assert head[0] == "time"
    np.testing.assert_allclose(np.diff(table[:-1, 0]), 0.01, atol=1e-6)  # the last row is the end
    robot = ko.load_robot("panda")
    q = np.repeat(robot.default_q[None], len(table), axis=0)
    q[:, [robot.variable_index[name] for name in head[1:]]] = table[:, 1:]
    T = ko.forward_kinematics(robot, q, links=["panda_hand"])[:, 0]
    tilt = np.arccos(np.clip(-T[:, 2, 2], -1.0, 1.0))
    # About two axes by TILT each.
    assert tilt.max() <= np.sqrt(2.0) * example["TILT"] + 1e-6
    for place in example["PLACES"]:
        assert np.linalg.norm(T[:, :3, 3] - place, axis=1).min() < 5e-3
