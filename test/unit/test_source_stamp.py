"""A digest changes with every file that may be compiled in, and with no other."""

import ast
import os
from pathlib import Path

import pytest

import kinopt_ros
from kinopt_ros.source_stamp import _read, forget, source_stamp

PACKAGE = Path(kinopt_ros.__file__).parent
FILES = {
    "own/__init__.py": "",
    "own/kernel.py": "import math\nfrom own.deep import (  # far below\n    FAR,\n    near,\n)\nfrom own import other",
    "own/other.py": "X = 1",
    "own/unused.py": "X = 1",
    "own/deep/__init__.py": "def f():\n    from own.deep.far import FAR",
    "own/deep/far.py": "import own.deep.farther as it, math",
    "own/deep/farther.py": "FAR = 1",
    "own/deep/near.py": "X = 1",
    "math.py": "X = 1",
}
REACHED = {
    "__init__.py",
    "kernel.py",
    "other.py",
    "deep/__init__.py",
    "deep/far.py",
    "deep/farther.py",
    "deep/near.py",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def stamp(folder: Path) -> bytes:
    forget()
    return source_stamp(folder / "own" / "kernel.py")


@pytest.mark.parametrize("name", FILES)
def test_it_changes_with_what_is_imported_whatever_the_times_say(folder: Path, name: str) -> None:
    before, file = stamp(folder), folder / name
    assert stamp(folder) == before
    times = file.stat()
    file.write_text(f"{FILES[name]}\n# changed")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (stamp(folder) != before) == (name.removeprefix("own/") in REACHED)


def compiled() -> list[Path]:
    """Files with compiled functions."""
    return [file for file in sorted(PACKAGE.rglob("*.py")) if "numba_cache import njit" in file.read_text()]


def test_it_does_not_depend_on_where_the_files_lie(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    moved = tmp_path_factory.mktemp("moved") / "own"
    before = stamp(folder)
    (folder / "own").rename(moved)
    assert stamp(moved.parent) == before


@pytest.mark.parametrize("file", compiled(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_every_import_of_compiled_files_is_found(file: Path) -> None:
    """As Python reads them."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level
            modules |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    paths = [PACKAGE.parent.joinpath(*name.split(".")) for name in modules if name.startswith("kinopt_ros.")]
    files = {
        file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()
    }
    assert PACKAGE / "numba_cache.py" in files
    assert _read(file)[1] == files


def test_few_files_are_compiled_in() -> None:
    """Else a change anywhere compiles everything anew."""
    for file in compiled():
        found, waiting = {file}, [file]
        while waiting:
            more = _read(waiting.pop())[1] - found
            found |= more
            waiting += more
        assert len(found) < 15, file
