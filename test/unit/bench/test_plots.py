"""Pictures of a benchmark."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("pinocchio")
from kinopt_ros.bench import ik, plots
from kinopt_ros.cli import main
from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError


def test_the_command_draws_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "ik.png"
    arguments = ["bench", "ik", "--robot", "panda", "--solver", "cpu", "--targets", "50", "--json"]
    assert main([*arguments, "--plot", str(picture)]) == 0
    capsys.readouterr()
    assert picture.read_bytes().startswith(b"\x89PNG")
    import matplotlib.image

    height, width, _ = matplotlib.image.imread(picture).shape
    assert height > 500
    assert width > 500


def test_what_is_missed_is_drawn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    run = plots.SolverRun("x", rng.uniform(1, 10, 40), rng.random(40) < 0.8, rng.normal(size=(40, 3)))
    none = plots.SolverRun("y", np.full(40, 3.0), np.zeros(40, dtype=bool), rng.normal(size=(40, 3)))
    plots.plot_runs([run, none], "title", tmp_path / "both.png")
    plots.plot_runs([run], "title", tmp_path / "one.png")
    assert (tmp_path / "both.png").stat().st_size > (tmp_path / "one.png").stat().st_size > 5000


@pytest.mark.parametrize("name", ["picture.jpg", "nowhere/picture.png"])
def test_bad_names_are_refused_before_anything_is_measured(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="png"):
        plots.check_plot(str(tmp_path / name))


def test_without_matplotlib_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    with pytest.raises(SolverUnavailableError, match="pip install matplotlib"):
        plots.check_plot("x.png")


def test_nothing_measured_and_places_that_cannot_be_written_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="no solver could be measured"):
        plots.plot_runs([], "title", tmp_path / "x.png")
    run = plots.SolverRun("x", np.full(4, 3.0), np.ones(4, dtype=bool), np.zeros((4, 3)))
    folder = tmp_path / "folder.png"
    folder.mkdir()
    with pytest.raises(InvalidRequestError, match=r"folder\.png.*cannot be written"):
        plots.plot_runs([run], "title", folder)


def test_a_bad_name_costs_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*arguments: object) -> None:
        raise AssertionError("measured, though the picture cannot be kept")

    monkeypatch.setattr(ik, "run_ik_bench", measured)
    for name in ("x.jpg", ""):
        assert main(["bench", "ik", "--targets", "5", "--plot", name]) == 1


def test_cells_show_the_share_that_was_solved() -> None:
    from matplotlib.figure import Figure

    # Three targets in one cell, one of them missed; one target far away in another cell.
    position = np.array([[0.0, 0.0, 0.0], [0.01, 0.0, 0.0], [0.0, 0.0, 0.01], [1.0, 0.0, 0.5]])
    run = plots.SolverRun("x", np.full(4, 3.0), np.array([True, False, True, True]), position)
    axes = Figure().subplots()
    mesh = plots._map(axes, run, 0, 2, plots._edges(position, 4))
    shares = mesh.get_array().compressed()
    assert sorted(shares) == pytest.approx([200 / 3, 100.0])
    (crosses,) = [artist for artist in axes.collections if artist is not mesh]
    ((x, z),) = crosses.get_offsets()
    assert (x, z) == (0.01, 0.0)
    column, row = (np.searchsorted(edge, at) - 1 for edge, at in zip(_cells(mesh), (x, z), strict=True))
    assert mesh.get_array()[row, column] == pytest.approx(200 / 3)


def _cells(mesh: Any) -> tuple[Any, Any]:
    """Edges of the drawn cells along both axes."""
    corners = mesh.get_coordinates()
    return corners[0, :, 0], corners[:, 0, 1]


def test_the_slowest_call_is_in_the_histogram_and_p50_and_p99_are_marked() -> None:
    from matplotlib.figure import Figure

    times = np.linspace(10.0, 5000.0, 101)
    run = plots.SolverRun("x", times, np.ones(101, dtype=bool), np.zeros((101, 3)))
    axes = Figure().subplots()
    plots._histogram(axes, [run])
    assert sum(line.get_xdata()[0] for line in axes.lines) == pytest.approx(
        np.percentile(times, 50) + np.percentile(times, 99)
    )
    assert axes.get_xlim()[1] >= 5000.0
    (entry,) = axes.get_legend().get_texts()
    assert entry.get_text() == "x: p50 2.50 ms, p99 4.95 ms"
