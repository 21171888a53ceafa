"""The examples of `kinopt plan` have motions around what is in their way."""

import json
from pathlib import Path

import pytest

from kinopt_ros.cli import main

PLANS = Path(__file__).parents[3] / "examples" / "plan"


@pytest.mark.parametrize("name", ["wall", "table", "shelf", "cup", "two_arms"])
def test_example(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "plan.png"
    assert (
        main(["plan", str(PLANS / f"{name}.yaml"), "--json", "--timeout", "60", "--plot", str(picture)]) == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "SUCCESS"
    assert answer["attempts"] >= 1  # the straight line is in collision
    assert "collisions on the way" in answer["checks"]
    assert len(answer["positions"]) == len(answer["time_s"])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_does_not_fit_together_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(PLANS / "wall.yaml"), "--clearance", "0.1"]) == 1
    assert "--clearance is said by the file" in capsys.readouterr().err
    assert main(["plan"]) == 1
    assert "give a FILE, or one goal" in capsys.readouterr().err
    assert main(["plan", "--to-state", "ready", "--timeout", "0"]) == 1
    assert "--timeout is 0" in capsys.readouterr().err


def test_a_goal_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--to-xyz", "0.4", "0.2", "0.5", "--to-rpy", "3.14159265", "0", "0"]
    assert main(["plan", *place, "--velocity-scaling", "0.5", "--acceleration-scaling", "0.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "SUCCESS"
    assert main(["plan", "--to-xyz", "3", "0", "0", "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "NO_IK_SOLUTION"
    assert answer["positions"] == []
