"""Pictures of a benchmark."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("pinocchio")
from kinopt_ros.bench import plots
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
