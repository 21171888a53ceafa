"""kinopt bench beam with a stand-in for PyRoki: what it is given, how it is judged, what the rows say."""

import argparse
import ast
import json
import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("pinocchio")
from kinopt_ros.bench.beam import command, own_worker, process
from kinopt_ros.bench.beam.job import answers_file, with_fixed_joints, write_own_job, write_pyroki_job
from kinopt_ros.bench.beam.process import PYROKI_WORKER, Outcome, Variant
from kinopt_ros.bench.beam.rows import jacobian_table, rows_of, with_ratios
from kinopt_ros.bench.targets import ik_task
from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError, UnsupportedFeatureError
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import find_robot

PYROKI = Variant("pyroki", "analytic")
# Answers with the configurations that the targets come from, joints in reverse order.
STAND_IN = """
import json, sys
import numpy as np
from pathlib import Path
folder = Path(sys.argv[2])
job = json.loads((folder / "job.json").read_text())
q = np.load({q!r})
print("libraries print, too")
print(json.dumps(dict(joints={joints!r}[::-1], versions=dict(fake="1"))))
for size, calls in job["sizes"]:
    np.save(folder / f"answers_{{size}}.npy", q[: size * calls, ::-1])
    for _ in range(calls):
        print(json.dumps(dict(done=size)))
    seconds = 0.1 if job["analytic"] else 0.3
    print(json.dumps(dict(size=size, first_s=1.0, wall_s=[seconds] * calls, cpu_s=[seconds] * calls)))
{end}
"""


def stand_in(folder: Path, q: Any, joints: tuple[str, ...], end: str = "") -> Path:
    """An executable that takes the place of PyRoki's Python."""
    np.save(folder / "q.npy", q)
    script = folder / "stand_in.py"
    script.write_text(STAND_IN.format(q=str(folder / "q.npy"), joints=list(joints), end=end))
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    python.chmod(0o755)
    return python


def test_answers_are_judged_in_double_precision(tmp_path: Path) -> None:
    task = ik_task("panda", None, None, 20, "random", 0)
    q = random_configurations(task.robot, 20, 0)[:, task.variables]
    q[0, -1] += 2e-3  # solved loosely
    q[1, 0] = -q[1, 0]  # not solved
    q[2, -1] = task.upper[-1] + 5e-9  # just outside
    q[3] = np.nan
    seen: list[int] = []
    outcome = process.run_variant(
        PYROKI, "panda", task, [(1, 20), (10, 2)], "cpu", stand_in(tmp_path, q, task.names), seen.append
    )
    assert seen == [1] * 20 + [10] * 2
    assert outcome.restart_s is None
    single, ten = rows_of(PYROKI, outcome, task)
    assert (single.targets, single.calls, ten.targets, ten.calls) == (1, 20, 10, 2)
    for row in (single, ten):
        assert row.success_loose == 17 / 20
        assert row.success_tight == 16 / 20
        assert row.position_error_p98_m == np.inf
        assert row.outside_limits == 1 / 19
        assert row.outside_limits_1e6 == 0.0
        assert 0.0 < row.limit_violation_max < 1e-8
        assert row.ms == pytest.approx(100.0)
        assert row.compile_s == pytest.approx(0.9)
        assert row.device == "cpu"


def test_times_are_told_as_ratios_to_pyroki_and_between_jacobians(tmp_path: Path) -> None:
    task = ik_task("panda", None, None, 4, "random", 0)
    q = random_configurations(task.robot, 4, 0)[:, task.variables]
    python = stand_in(tmp_path, q, task.names)
    variants = [PYROKI, Variant("pyroki", "autodiff")]
    result = command.run_beam_bench(variants=variants, sizes=[2], targets=4, pyroki_python=python)
    analytic, autodiff = result["rows"]
    assert analytic["times_faster"] == 1.0
    assert autodiff["times_faster"] == pytest.approx(1 / 3)
    (line,) = result["jacobians"]
    assert line["ratio"] == pytest.approx(3.0)
    assert result["notes"] == {}
    assert result["gpu"] == "unmeasured"
    assert json.loads(json.dumps(result, allow_nan=False))["solvers"]["pyroki:analytic"]["versions"] == {
        "fake": "1"
    }


def test_without_pyroki_there_are_neither_rows_nor_ratios() -> None:
    assert with_ratios([]) == []
    assert jacobian_table([]) == []
    task = ik_task("panda", None, None, 1, "random", 0)
    assert rows_of(PYROKI, Outcome(), task) == []


def test_what_is_missing_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    given = [
        "--solver",
        "pyroki",
        "--sizes",
        "1",
        "--targets",
        "1",
        "--pyroki-python",
        str(tmp_path / "python"),
    ]
    assert command.main(parser.parse_args([*given, "--json"])) == 1
    note = json.loads(capsys.readouterr().out)["notes"]["pyroki:analytic"]
    assert "make bench-beam" in note
    assert command.main(parser.parse_args(given)) == 1
    assert "GPU: unmeasured" in capsys.readouterr().out


def test_no_graphics_card_is_an_error_not_a_table(tmp_path: Path) -> None:
    with pytest.raises(SolverUnavailableError, match="nothing was measured on a cuda device"):
        command.run_beam_bench(
            variants=[PYROKI], sizes=[1], targets=1, device="cuda", pyroki_python=tmp_path / "none"
        )


def test_a_process_that_fails_says_why(tmp_path: Path) -> None:
    task = ik_task("panda", None, None, 2, "random", 0)
    q = np.zeros((2, 7))
    for end, said in (
        ('raise RuntimeError("no such device")', "RuntimeError: no such device"),
        ('import atexit; atexit.register(print, "a remark", file=sys.stderr); 1 / 0', "ZeroDivisionError"),
        ("sys.exit(3)", "status 3: it said nothing"),
        ('print(json.dumps(dict(error="a sentence")))', "a sentence"),
    ):
        python = stand_in(tmp_path, q, task.names, end)
        with pytest.raises(SolverUnavailableError, match=said):
            process.run_variant(PYROKI, "panda", task, [(1, 2)], "cpu", python, lambda count: None)


def test_pyroki_gets_a_description_with_nothing_but_the_chain_moving() -> None:
    text = find_robot("panda")[0].read_text()
    root = ElementTree.fromstring(with_fixed_joints(text, ["panda_joint1", "panda_joint2"]))
    types = {joint.get("name"): joint.get("type") for joint in root.findall("joint")}
    assert [name for name, kind in types.items() if kind != "fixed"] == ["panda_joint1", "panda_joint2"]
    assert len(types) == text.count("<joint ")
    assert not root.findall(".//visual")
    assert not root.findall(".//mimic")
    assert root.find("joint/limit") is not None


def test_pyroki_refuses_what_it_cannot_take(tmp_path: Path) -> None:
    task = ik_task("panda", "panda_link2", "panda_link8", 1, "random", 0)
    with pytest.raises(UnsupportedFeatureError, match="root link only"):
        write_pyroki_job(tmp_path, task, [(1, 1)], True)
    task = ik_task("panda", None, "panda_rightfinger", 1, "random", 0)
    with pytest.raises(UnsupportedFeatureError, match="mimic"):
        write_pyroki_job(tmp_path, task, [(1, 1)], True)


def test_pyrokis_process_imports_nothing_of_ours() -> None:
    tree = ast.parse(PYROKI_WORKER.read_text())
    froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert "pyroki" in plain
    assert not [name for name in froms | plain if name and name.startswith("kinopt_ros")]


def test_pyrokis_starts_fill_the_range_of_every_joint() -> None:
    tree = ast.parse(PYROKI_WORKER.read_text())  # it cannot be imported here
    (function,) = (node for node in tree.body if getattr(node, "name", "") == "roberts_sequence")
    names: dict[str, Any] = {"np": np, "Any": Any}
    exec(compile(ast.Module([function], []), "worker", "exec"), names)
    points = names["roberts_sequence"](64, 7)
    assert points.shape == (64, 7)
    for column in points.T:
        gaps = np.diff(np.sort(np.append(column, [0.0, 1.0])))
        assert gaps.max() < 0.1
    # In one dimension the golden ratio's multiples.
    np.testing.assert_allclose(names["roberts_sequence"](3, 1)[:, 0], [0.0, 0.381966, 0.763932], atol=1e-6)


def test_our_process_answers_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = ik_task("panda", None, None, 6, "random", 0)
    more: dict[str, Any] = {"device": "cpu", "joints": task.names}
    monkeypatch.setattr(sys, "argv", ["own_worker", str(tmp_path)])
    write_own_job(tmp_path, "panda", task, [(3, 2)], solver="cpu", options={}, **more)
    own_worker.main()
    about, *done, record = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert about["ready_s"] > 0.0
    assert about["device"] == "cpu"
    assert done == [{"done": 3}] * 2
    assert record["solvers"] == ["cpu"]
    assert record["solved_by_beam"] is None
    assert len(record["wall_s"]) == len(record["cpu_s"]) == 2
    outcome = Outcome(about, [process.Batches(3, np.load(answers_file(tmp_path, 3)), record)])
    (row,) = rows_of(Variant("cpu"), outcome, task)
    assert row.success_tight == 1.0
    assert row.outside_limits == 0.0
    assert row.compile_s == about["ready_s"]

    write_own_job(tmp_path, "panda", task, [], solver="cpu", options={"jacobian": "autodiff"}, **more)
    own_worker.main()
    assert "jacobian" in json.loads(capsys.readouterr().out)["error"]


@pytest.mark.slow
def test_our_process_is_started_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_environment", lambda folder: dict(os.environ))  # numba's cache is kept
    task = ik_task("panda", None, None, 4, "random", 0)
    outcome = process.run_variant(
        Variant("cpu"), "panda", task, [(2, 2)], "cpu", Path("none"), lambda count: None
    )
    assert outcome.restart_s is not None
    assert outcome.restart_s > 0.0
    assert len(outcome.batches[0].q) == 4


def test_bad_arguments() -> None:
    assert command.calls_of([1, 10, 1000], 25) == [(1, 25), (10, 3), (1000, 2)]
    for sizes, targets in (([], 1), ([0], 1), ([1], 0)):
        with pytest.raises(InvalidRequestError, match="allowed"):
            command.calls_of(sizes, targets)
    assert command.parse_variants("cpu, pyroki") == [Variant("cpu"), PYROKI]
    for text in ("", "cpuu", "cpu:numeric"):
        with pytest.raises(InvalidRequestError, match="allowed"):
            command.parse_variants(text)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(InvalidRequestError, match="numbers and commas"):
        command.main(parser.parse_args(["--sizes", "many"]))
