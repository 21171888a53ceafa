"""kinopt ik --demo updown."""

import json

import pytest

pytest.importorskip("numba")
from kinopt_ros.cli import main


def test_every_target_is_reached_in_few_iterations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ik", "--demo", "updown", "--cycles", "20", "--period", "0", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["targets"] == record["successes"] == 40
    assert record["median_iterations"] <= 5
    for name in ("position_error", "m"), ("orientation_error", "rad"):
        worst = max(step["_".join(name)] for step in record["steps"])
        assert record[f"{name[0]}_max_{name[1]}"] == worst < 1e-3
    assert record["largest_joint_step"] < 0.5
    assert len(record["steps"]) == 40


def test_targets_out_of_reach_are_called_failed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["ik", "--demo", "updown", "--cycles", "1", "--period", "0", "--amplitude", "3"]
    assert main(arguments) == 2
    output = capsys.readouterr().out
    assert output.count("Failed") == 2
    assert "out of reach" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--cycles", "0"], "cycles"), (["--amplitude", "-1"], "amplitude"), (["--period", "nan"], "period")],
)
def test_bad_arguments_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ik", "--demo", "updown", *arguments]) == 1
    assert words in capsys.readouterr().err


def test_a_position_is_needed_without_a_demonstration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ik"]) == 1
    assert "--xyz" in capsys.readouterr().err
