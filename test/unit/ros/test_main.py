"""Programs tell how they are called, without ROS."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from kinopt_ros.ros import main


@pytest.mark.parametrize("word", ["-h", "--help"])
@pytest.mark.parametrize(
    ("program", "name"),
    [
        (main.main, "kinopt_node"),
        (main.circles, "kinopt_circles"),
        (main.simulated_robot, "kinopt_simulated_robot"),
    ],
)
def test_help(
    program: Callable[[], int],
    name: str,
    word: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [name, word, "--ros-args", "-r", "__ns:=/arm"])
    monkeypatch.setattr(main, "missing", lambda: pytest.fail("nothing is to be started"))
    assert program() == 0
    assert capsys.readouterr().out.startswith(f"usage: {name} ")


def test_what_comes_after_ros_args_is_for_ros(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "missing", lambda: "it would start")
    assert main.main(["kinopt_node", "--ros-args", "--help"]) == 1
