"""kinopt bench mbm: figures, wrong problems, motions that the judge rejects, and peers."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.mbm_folder import write_folder

pytest.importorskip("numba")
pytest.importorskip("pinocchio")
pytest.importorskip("coal")
from kinopt_ros.bench.mbm import command
from kinopt_ros.bench.mbm.peers import ompl, roboplan
from kinopt_ros.bench.mbm.problems import families_of
from kinopt_ros.bench.mbm.rows import quantiles
from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("mbm"))


def arguments(folder, **more):
    given = {
        "folder": folder,
        "families": None,
        "every": 1,
        "solver": "cpu",
        "peers": "none",
        "seed": 0,
        "deadline": 60.0,
        "scaling": 1.0,
        "plot": None,
        "json": True,
    }
    return argparse.Namespace(**(given | more))


def test_figures_of_a_small_run(folder, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "mbm.png"
    assert command.main(arguments(folder, plot=str(picture))) == 0
    record = json.loads(capsys.readouterr().out)
    of_family, whole = record["rows"]
    assert (of_family["family"], whole["family"]) == ("post_arm", "all")
    assert (whole["problems"], whole["solved"], whole["rejected"]) == (2, 2, 0)
    assert whole["names"] == ["post_arm 2", "post_arm 4"]
    assert whole["codes"] == {"SUCCESS": 2}
    assert min(whole["lengths"]) > 2.4  # straight on is 2.4 rad, and the post is in the way
    assert whole["limit_share"] <= 1.000001
    assert {"optimization", "timing", "check"} <= set(whole["stages_ms"])
    [left_out] = record["left_out"]
    assert left_out.startswith("post_arm 10: the goal is in collision: rod")
    assert picture.stat().st_size > 1000


def test_motions_in_collision_are_rejected(folder, monkeypatch, capsys):
    """The solver is asked without the scene: what then runs into the post is no success."""
    plan = command.plan_trajectory
    monkeypatch.setattr(
        command, "plan_trajectory", lambda solver, problem: plan(solver, replace(problem, scene=None))
    )
    assert command.main(arguments(folder, json=False, every=2)) == 1
    shown = capsys.readouterr().out
    assert "post_arm 2: in collision at" in shown
    assert "left out: post_arm 10" in shown


@pytest.mark.parametrize("name", command.PEERS)
def test_peers_solve_the_same_problems(folder, name, capsys):
    pytest.importorskip("ompl" if name == "ompl" else "roboplan.core")
    assert command.main(arguments(folder, peers=name)) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["failures"] == []
    [row] = [
        row
        for row in record["rows"]
        if (row["planner"], row["timing"], row["family"]) == (name, "kinopt", "all")
    ]
    # How much of a path is shortened depends on the machine, and a rounded corner may touch the post: that is judged.
    assert row["codes"] == {"SUCCESS": 2}
    assert row["solved"] + row["rejected"] == row["problems"] == 2
    assert all("in collision" in objection for objection in row["objections"])
    assert row["version"]
    assert all(length > 2.4 for length in row["lengths"] if length is not None)


def test_peers_that_are_missing_are_named(folder, monkeypatch, capsys):
    monkeypatch.setattr(ompl, "missing_sampler", lambda: "no ompl here")
    monkeypatch.setattr(roboplan, "find_spec", lambda name: None)
    assert command.main(arguments(folder, peers="ompl,roboplan", every=2)) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["failures"] == [
        "arm: ompl is left out: no ompl here",
        "arm: roboplan is left out: RoboPlan is not installed (pip install roboplan)",
    ]
    assert {row["planner"] for row in record["rows"]} == {"kinopt"}


def test_bad_options_are_refused(folder, monkeypatch):
    for bad in ({"every": 0}, {"seed": -1}, {"deadline": 0.0}, {"deadline": float("nan")}, {"scaling": 1.5}):
        with pytest.raises(InvalidRequestError, match="allowed are"):
            command.main(arguments(folder, **bad))
    with pytest.raises(InvalidRequestError, match="families has 'bx'; allowed are post_arm"):
        command.main(arguments(folder, families="bx"))
    with pytest.raises(InvalidRequestError, match="peers has 'stomp'; allowed are ompl, roboplan"):
        command.main(arguments(folder, peers="stomp"))
    with pytest.raises(InvalidRequestError, match=r"ends in \.png"):
        command.main(arguments(folder, plot="picture.txt"))
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    [family] = families_of(folder)
    with pytest.raises(SolverUnavailableError, match="pip install pin"):
        command.MbmBench(family.robot, "cpu", (), None)


def test_quantiles_are_in_order():
    figures = quantiles(np.arange(101.0).tolist())
    assert figures == {"median": 50.0, "p95": 95.0, "max": 100.0}


def test_nothing_of_the_folder_is_changed(folder):
    assert sorted(path.name for path in Path(folder).iterdir()) == ["arm.srdf", "arm.urdf", "post_arm"]
