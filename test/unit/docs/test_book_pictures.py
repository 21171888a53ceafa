"""What pictures of the book show is so."""

from pathlib import Path
from typing import Any

import book_pictures
import numpy as np
import pytest
from matplotlib.figure import Figure


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Lines of the last picture by their labels."""
    pytest.importorskip("coal")
    lines: dict[str, Any] = {}

    def keep(figure: Figure, panels: Any, file: Path) -> None:
        for axes in panels:
            lines.update({line.get_label(): np.asarray(line.get_ydata()) for line in axes.get_lines()})

    monkeypatch.setattr(book_pictures, "saved", keep)
    return lines


def test_points_keep_a_limit_that_the_curve_breaks(drawn: dict[str, Any], tmp_path: Path) -> None:
    book_pictures.between_samples(tmp_path / "between_samples.png")
    limit = drawn["limit"].max()
    assert drawn["points of the message"].max() < limit
    assert np.nanmax(drawn["too fast"]) > 1.1 * limit


def test_servo_stops_before_the_wall(drawn: dict[str, Any], tmp_path: Path) -> None:
    book_pictures.servo_before_a_wall(tmp_path / "servo.png")
    assert drawn["tip towards the wall"].max() == pytest.approx(drawn["wanted"].max(), rel=0.02)
    assert drawn["tip towards the wall"][-1] == pytest.approx(0.0, abs=1e-9)
    distance, clearance = drawn["least distance, between links, too"], drawn["clearance"].max()
    assert clearance <= distance.min() < clearance + 0.005


def test_times_of_arms_are_drawn(tmp_path: Path) -> None:
    book_pictures.arms(tmp_path / "arms.png")
    assert (tmp_path / "arms.png").stat().st_size > 10_000
