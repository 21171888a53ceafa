"""kinopt bench trajectory: what can be solved, and figures."""

import argparse
import json
from dataclasses import replace

import pytest

pytest.importorskip("numba")
pytest.importorskip("pinocchio")
pytest.importorskip("coal")
from kinopt_ros.bench.trajectory import command, feasible
from kinopt_ros.bench.trajectory.command import TrajectoryBench
from kinopt_ros.bench.trajectory.feasible import Feasibility
from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError


@pytest.fixture(scope="module")
def bench():
    made = TrajectoryBench("panda", "cpu", 0, Feasibility(None), 0.5)
    yield made
    made.close()


def arguments(**more):
    given = {
        "robot": "panda",
        "family": "wall",
        "solver": "cpu",
        "problems": 2,
        "seed": 5,
        "deadline": 60.0,
        "scaling": 0.5,
        "sampling_time": 0.0,
        "feasible": None,
        "pyroki": 0,
        "pyroki_python": "python-of-pyroki",
        "json": True,
    }
    return argparse.Namespace(**(given | more))


def test_what_was_found_out_is_kept(bench, tmp_path, monkeypatch):
    pytest.importorskip("ompl")
    task = next(iter(bench.maker.tasks("wall", 1, 0)))
    file = tmp_path / "folder" / "feasible.json"
    first = Feasibility(file)
    first.save()
    assert not file.exists()  # nothing to say yet
    found = first.find(bench.maker, task, bench.problem(task), bench.solver, 30.0)
    assert found.length > 1.0
    assert found.problem == "panda wall 0"
    first.save()
    monkeypatch.setattr(feasible, "sampled_path", lambda *given, **more: pytest.fail("it was known"))
    assert Feasibility(file).find(bench.maker, task, bench.problem(task), bench.solver, 30.0) == found
    monkeypatch.undo()
    never = Feasibility(None)
    never._known[task.digest] = replace(found, length=None, seconds=1.0)
    assert never.known(task, 1.0).length is None
    assert never.known(task, 2.0) is None  # more time was not tried


def test_without_ompl_nothing_is_found_out(bench, monkeypatch):
    task = next(iter(bench.maker.tasks("wall", 1, 0)))
    monkeypatch.setattr(feasible, "missing_sampler", lambda: "not here")
    assert Feasibility(None).find(bench.maker, task, bench.problem(task), bench.solver, 1.0) is None


def test_figures_of_a_small_run(capsys):
    assert command.main(arguments()) == 0
    record = json.loads(capsys.readouterr().out)
    [row] = record["rows"]
    assert record["failures"] == []
    assert (row["problems"], row["rejected"], row["sampled"]) == (2, 0, 0)
    assert row["solved"] == row["feasible"] >= 1
    assert row["share"] == 1.0
    assert row["straight_collides"] == 1.0
    assert row["poses"] == 0.5
    assert 0.0 < row["wall_ms"]["median"] <= row["wall_ms"]["p95"] <= row["wall_ms"]["max"]
    assert {"optimization", "timing", "check"} <= set(row["stages_ms"])
    assert row["clearance_min_m"] >= 0.0
    assert row["length_rad"] > 0.3
    assert sum(row["codes"].values()) == 2


def test_motions_in_collision_are_rejected(monkeypatch, capsys):
    """The solver is asked without the scene: what then runs into walls is no success."""
    plan = command.plan_trajectory
    monkeypatch.setattr(
        command, "plan_trajectory", lambda solver, problem: plan(solver, replace(problem, scene=None))
    )
    assert command.main(arguments(json=False)) == 1
    shown = capsys.readouterr().out
    assert "in collision" in shown
    assert "were not given to the sampling planner" in shown


def test_bad_numbers_and_missing_packages_are_refused(monkeypatch):
    for bad in ({"problems": 0}, {"seed": -1}, {"deadline": 0.0}, {"scaling": 1.5}, {"sampling_time": -1.0}):
        with pytest.raises(InvalidRequestError, match="allowed are"):
            command.main(arguments(**bad))
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    with pytest.raises(SolverUnavailableError, match="pip install pin"):
        TrajectoryBench("panda", "cpu", 0, Feasibility(None), 0.1)
