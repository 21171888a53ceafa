"""The picture of accuracy and latency."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
from kinopt_ros.bench.hjcd import command
from kinopt_ros.bench.hjcd.plot import plot_accuracy
from kinopt_ros.bench.hjcd.scaling import ScalingRow
from kinopt_ros.cli import main
from kinopt_ros.errors import InvalidRequestError

ROW = ScalingRow("panda", 7, "hjcd_ik", 1, 10, 5, 0.9, 2.0, 3.0, 1e-3, 1e-9, 0.1, 1e-3, 0.0, 0.1)
MORE = replace(ROW, seeds=100, median_ms=9.0, position_error_mean_m=1e-9)


def test_a_row_of_panels_per_robot(tmp_path: Path) -> None:
    import matplotlib.image

    rows = [ROW, MORE, replace(ROW, algorithm="screened_lm")]
    plot_accuracy(rows, "one", tmp_path / "one.png")
    plot_accuracy([*rows, replace(ROW, robot="fetch")], "two", tmp_path / "two.png")
    one, two = (matplotlib.image.imread(tmp_path / f"{name}.png").shape for name in ("one", "two"))
    assert one[1] == two[1] > 1000
    assert two[0] == 2 * one[0]


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="nothing to draw"):
        plot_accuracy([], "none", tmp_path / "x.png")
    folder = tmp_path / "folder.png"
    folder.mkdir()
    with pytest.raises(InvalidRequestError, match="cannot be written"):
        plot_accuracy([ROW], "one", folder)


def test_the_command_draws_the_table_by_seeds_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("warp")
    made, drawn = [], []

    def measured(here: object, algorithm: str, seeds: int, targets: int, *rest: object) -> ScalingRow:
        made.append(replace(ROW, robot=here.name, algorithm=algorithm, seeds=seeds))  # type: ignore[attr-defined]
        return made[-1]

    monkeypatch.setattr(command, "measure", measured)
    monkeypatch.setattr(command, "plot_accuracy", lambda rows, title, file: drawn.append((rows, title, file)))
    arguments = ["bench", "hjcd", "--targets", "3", "--device", "cpu", "--robots", "panda", "--seeds", "5,9"]
    arguments += ["--tables", "seeds,joints", "--joints", "8", "--plot", str(tmp_path / "x.png")]
    assert main(arguments) == 0
    ((rows, title, file),) = drawn
    assert {row.robot for row in made} == {"panda", "panda_8"}
    assert {(row.robot, row.seeds) for row in rows} == {("panda", 5), ("panda", 9)}
    assert "3 Halton targets" in title
    assert "CPU" in title
    assert file == tmp_path / "x.png"
    assert main(["bench", "hjcd", "--tables", "joints", "--plot", str(tmp_path / "x.png")]) == 1
    assert "--plot draws the table seeds" in capsys.readouterr().out


def test_a_bad_name_costs_no_measurement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "measure", lambda *args: pytest.fail("was measured"))
    assert main(["bench", "hjcd", "--tables", "seeds", "--plot", "x.jpg"]) == 1
    assert "png" in capsys.readouterr().out
