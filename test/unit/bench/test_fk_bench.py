"""kinopt bench fk: all ways compute the same poses, and what cannot run says so."""

import argparse
import json
from importlib.util import find_spec

import pytest

pytest.importorskip("pinocchio")
from kinopt_ros.bench import fk
from kinopt_ros.errors import InvalidRequestError, UnsupportedFeatureError
from kinopt_ros.robot.sources import robot_names


@pytest.fixture
def without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fk, "find_spec", lambda name: None)
    monkeypatch.setattr(fk, "ROUND_SECONDS", 0.001)


@pytest.mark.usefixtures("without_jax")
def test_rows_agree_with_pinocchio() -> None:
    seen: list[int] = []
    rows = fk.run_fk_bench(batches=(1, 20), rounds=2, report=lambda what, count: seen.append(count))
    measured = [row for row in rows if "note" not in row]
    assert [(row["batch"], row["way"]) for row in measured] == [
        (batch, way) for batch in (1, 20) for way in ("numpy", "pinocchio_loop", "pinocchio")
    ]
    for row in measured:
        assert row["per_second"] > 0.0
        assert row["pose_difference_max"] < 1e-12
    assert rows[-1]["way"] == "differentiable"
    assert "pip install jax" in rows[-1]["note"]
    assert sum(seen) == 12


@pytest.mark.usefixtures("without_jax")
def test_continuous_joints_and_other_bases_agree_too() -> None:
    if "kinova" not in robot_names():
        pytest.skip("needs example-robot-data")
    for robot, base, tip in (
        ("kinova", "j2s6s200_link_base", "j2s6s200_end_effector"),
        ("panda", "panda_hand", "panda_leftfinger"),
    ):
        rows = fk.run_fk_bench(robot, base, tip, batches=(20,), rounds=1)
        assert [row["pose_difference_max"] < 1e-12 for row in rows[:-1]] == [True] * 3


@pytest.mark.skipif(find_spec("jax") is None, reason="needs jax")
def test_the_differentiable_functions_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fk, "ROUND_SECONDS", 0.001)
    row = fk.run_fk_bench(batches=(8,), rounds=1)[0]
    assert row["way"] == "differentiable"
    assert 0.0 < row["pose_difference_max"] < 1e-5  # float32


@pytest.mark.usefixtures("without_jax")
def test_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    fk.add_arguments(parser)
    short = ["--batches", "2", "--rounds", "1"]
    assert fk.main(parser.parse_args([*short, "--json"])) == 1  # jax is missing
    assert len(json.loads(capsys.readouterr().out)) == 4
    fk.main(parser.parse_args(short))
    assert "differentiable: the package jax" in capsys.readouterr().out


def test_bad_arguments() -> None:
    with pytest.raises(InvalidRequestError, match="rounds is 0"):
        fk.run_fk_bench(rounds=0)
    with pytest.raises(InvalidRequestError, match="batches are"):
        fk.run_fk_bench(batches=(0,))
    parser = argparse.ArgumentParser()
    fk.add_arguments(parser)
    with pytest.raises(InvalidRequestError, match="numbers and commas"):
        fk.main(parser.parse_args(["--batches", "many"]))
    with pytest.raises(UnsupportedFeatureError, match="mimic"):
        fk.run_fk_bench(tip="panda_rightfinger")
