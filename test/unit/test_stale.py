"""Compiled code on disk goes when a file that it was compiled from changes, and only then."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kinopt_ros.stale import forget_stale


@pytest.fixture
def compiled(tmp_path: Path) -> tuple[Any, Path, Path]:
    """A function as numba describes it, the index of its code on disk, and a file compiled into it."""
    index, dependency = tmp_path / "own.solve-1.py311.nbi", tmp_path / "other.py"
    for number, path in enumerate((dependency, index)):
        path.touch()
        os.utime(path, (1000 + number, 1000 + number))
    code = SimpleNamespace(co_filename=str(tmp_path / "own.py"))
    function = SimpleNamespace(
        stats=SimpleNamespace(cache_path=str(tmp_path)), py_func=SimpleNamespace(__code__=code)
    )
    return function, index, dependency


def test_code_newer_than_its_sources_stays(compiled: tuple[Any, Path, Path]) -> None:
    function, index, dependency = compiled
    forget_stale(function, str(dependency))
    assert index.exists()


def test_code_older_than_a_source_goes(compiled: tuple[Any, Path, Path]) -> None:
    function, index, dependency = compiled
    foreign = index.with_name("another.solve-1.py311.nbi")
    foreign.touch()
    os.utime(dependency, (2000, 2000))
    os.utime(foreign, (1000, 1000))
    forget_stale(function, str(dependency))
    assert not index.exists()
    assert foreign.exists()


@pytest.mark.parametrize(
    "error", [OSError(30, "Read-only file system"), PermissionError(), FileNotFoundError()]
)
def test_what_cannot_be_removed_is_left(
    compiled: tuple[Any, Path, Path], monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    function, index, dependency = compiled
    os.utime(dependency, (2000, 2000))

    def refuse(path: Path) -> None:
        raise error

    monkeypatch.setattr(Path, "unlink", refuse)
    forget_stale(function, str(dependency))
    assert index.exists()
