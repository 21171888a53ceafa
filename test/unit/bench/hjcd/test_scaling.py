"""Rows of the tables by seeds and joints, and the command."""

import json

import pytest

pytest.importorskip("warp")
from kinopt_ros.bench.hjcd.arms import arm
from kinopt_ros.bench.hjcd.scaling import measure
from kinopt_ros.cli import main
from kinopt_ros.errors import InvalidRequestError


def test_other_arms_are_refused() -> None:
    for name in ("panda_", "panda_x", "spot"):
        with pytest.raises(InvalidRequestError, match=name):
            arm(name, 1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["screened_lm", "hjcd_ik"])
def test_a_row_counts_targets_seeds_and_calls(algorithm: str) -> None:
    told = []
    row = measure(arm("panda", 10, 0), algorithm, 20, 4, "cpu", lambda text, done: told.append(done))
    assert (row.robot, row.joints, row.algorithm) == ("panda", 7, algorithm)
    assert (row.targets, row.seeds, row.calls) == (4, 20, 3)
    assert sum(told) == 3
    assert row.success >= 0.8
    assert 0.0 < row.median_ms <= row.p99_ms
    assert row.position_error_median_m < 1e-7
    assert row.position_error_median_m <= row.position_error_max_m


@pytest.mark.slow
def test_the_command_names_the_device_and_what_it_could_not_measure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = [
        "--tables",
        "seeds",
        "--robots",
        "panda,spot",
        "--seeds",
        "20",
        "--targets",
        "3",
        "--device",
        "cpu",
    ]
    assert main(["bench", "hjcd", *arguments, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert "CPU" in record["device"]
    assert [row["algorithm"] for row in record["scaling"]] == ["screened_lm", "hjcd_ik"]
    assert len(record["failures"]) == 1
    assert "spot" in record["failures"][0]


def test_a_device_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "hjcd", "--device", "cuda:99", "--targets", "1"]) == 1
    assert "cuda:99" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong", [["--tables", "time"], ["--seeds", "0"], ["--algorithms", "lm"], ["--targets", "x"]]
)
def test_wrong_arguments_are_named(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "hjcd", *wrong])
    assert wrong[1] in capsys.readouterr().err


def test_nothing_to_measure_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "hjcd", "--tables", "seeds", "--algorithms", "ik_beam", "--device", "cpu"]) == 1
    assert "no rows of ik_beam" in capsys.readouterr().out


@pytest.mark.parametrize("algorithm", ["screened_lm_graphs", "hjcd_ik_graphs"])
def test_graphs_need_a_device_that_has_them(algorithm: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "hjcd", "--algorithms", algorithm, "--device", "cpu", "--targets", "1"]) == 1
    assert f"{algorithm} needs a CUDA device" in capsys.readouterr().out
