"""The example that draws the README's picture works as the README says."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed: nothing can be drawn")

EXAMPLE = Path(__file__).parents[3] / "examples" / "plot_motion.py"


def test_it_draws_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "motion.png"
    subprocess.run([sys.executable, str(EXAMPLE), str(picture)], check=True)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000
