"""Compiled kernels, which Warp loads as code, lie where nobody else can enter."""

import os
from pathlib import Path

import pytest

pytest.importorskip("warp")

from kinopt_ros.solvers.hjcd.runtime import _kernel_folder


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_nobody_else_can_enter_the_folder_below_the_chosen_one(tmp_path: Path, umask: int) -> None:
    """Warp makes its own files as umask says: in a folder that others can enter they could write to them."""
    chosen = tmp_path / "chosen"
    chosen.mkdir(mode=0o755)
    before = os.umask(umask)
    try:
        folder = _kernel_folder(str(chosen))
    finally:
        os.umask(before)
    assert folder == chosen / "kinopt_ros"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    chosen.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert _kernel_folder(str(chosen)) == tmp_path / "cache" / "kinopt_ros" / "warp"
