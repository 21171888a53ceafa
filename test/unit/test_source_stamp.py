"""A digest changes with every file that may be compiled in, and with no other."""

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kinopt_ros
from kinopt_ros import source_stamp as source_stamp_module
from kinopt_ros.source_stamp import (
    _read,
    changed_since_start,
    forget,
    own_source_stamp,
    package_stamp,
    source_stamp,
)

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


def test_files_of_other_packages_count_unless_their_versions_are_known(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = folder / "elsewhere" / "foreign.py"
    other.parent.mkdir()
    other.write_text("X = 1")
    (folder / "own" / "other.py").write_text("import foreign")
    monkeypatch.syspath_prepend(str(other.parent))
    before, own = stamp(folder), own_source_stamp(folder / "own" / "kernel.py")
    other.write_text("X = 2")
    assert stamp(folder) != before
    assert own_source_stamp(folder / "own" / "kernel.py") == own
    (folder / "own" / "deep" / "far.py").write_text("")
    forget()
    assert own_source_stamp(folder / "own" / "kernel.py") != own


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
        assert len(found) < 25, file


WAYS = {
    "from . import number": "own/kernel.py",
    "from .number import X": "own/kernel.py",
    "from .. import number": "own/deep/kernel.py",
    "from own import other, \\\n    number": "own/kernel.py",
    "from own \\\n    import number": "own/kernel.py",
    "from own import (  # as said (there)\n    number,\n)": "own/kernel.py",
    "import math; import own.number": "own/kernel.py",
    "if True: import own.number": "own/kernel.py",
    "try: from own.number import X\nexcept ImportError: pass": "own/kernel.py",
    "from own.number import *": "own/kernel.py",
    "\fimport own.number as it": "own/kernel.py",
    "import importlib\nit = importlib.import_module('own.number')": "own/kernel.py",
}
"""Ways to import own.number, and files that do it."""


@pytest.mark.parametrize("is_package", [True, False], ids=["package", "namespace"])
@pytest.mark.parametrize("text", WAYS)
def test_it_changes_whatever_way_a_number_is_imported(tmp_path: Path, text: str, is_package: bool) -> None:
    kernel, number = tmp_path / WAYS[text], tmp_path / "own" / "number.py"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(text)
    for folder in {kernel.parent, number.parent} if is_package else ():
        (folder / "__init__.py").touch()
    digests = set()
    for value in (1, 2):
        number.write_text(f"X = {value}")
        forget()
        digests.add(source_stamp(kernel))
    assert len(digests) == 2


def test_packages_that_an_import_passes_count(tmp_path: Path) -> None:
    """``import a.b.c`` makes numbers of a.b known, too."""
    for name in ("own", "own/deep"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "own" / "deep" / "far.py").touch()
    (tmp_path / "own" / "kernel.py").write_text("import own.deep.far")
    before = stamp(tmp_path)
    (tmp_path / "own" / "deep" / "__init__.py").write_text("X = 1")
    assert stamp(tmp_path) != before


@pytest.mark.parametrize(
    ("text", "name"),
    [("from other.deep import number", "other/deep/number.py"), ("from other import X", "other.py")],
)
def test_numbers_of_other_packages_count(
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    name: str,
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.syspath_prepend(str(elsewhere))
    (folder / "own" / "kernel.py").write_text(text)
    file = elsewhere / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("X = 1")
    before = stamp(folder)
    file.write_text("X = 2")
    assert stamp(folder) != before


def test_what_changes_while_a_process_runs_is_noticed(folder: Path) -> None:
    kernel, number = folder / "own" / "kernel.py", folder / "own" / "deep" / "far.py"
    forget()
    assert not changed_since_start(kernel)
    time.sleep(0.05)  # files are stamped by the tick
    times = number.stat()
    number.write_text("FAR = 2")
    os.utime(number, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert changed_since_start(kernel)
    forget()
    assert not changed_since_start(kernel)


def test_it_is_known_when_a_process_began() -> None:
    asked = (
        "import time; time.sleep(1); from kinopt_ros import source_stamp as s; print(s._uptime() - s._began)"
    )
    begin = time.time()
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert 0.9 <= float(done.stdout) <= time.time() - begin + 0.1


def test_a_clock_that_was_not_set_yet_changes_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines without a battery begin in the past."""
    kernel = folder / "own" / "kernel.py"
    now = time.time()
    forget()
    monkeypatch.setattr(source_stamp_module, "_began", source_stamp_module._uptime() - 3600.0)
    monkeypatch.setattr(time, "time", lambda: now + 1.0)
    assert changed_since_start(kernel)
    monkeypatch.setattr(time, "time", lambda: now - 1e8)
    assert not changed_since_start(kernel)
    monkeypatch.setattr(time, "time", lambda: now + 1e8)
    assert not changed_since_start(kernel)


def test_all_files_of_packages_count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    old = time.time() - 3600.0
    monkeypatch.setattr(source_stamp_module, "_changed", lambda files: False)

    def stamped() -> bytes | None:
        forget()
        return package_stamp("own")

    before = stamped()
    assert before is not None
    assert stamped() == before
    for name in ("own/unused.py", "own/deep/near.py"):
        (folder / name).write_text("X = 2")
        os.utime(folder / name, (old, old))
        assert stamped() != before
        before = stamped()
    monkeypatch.undo()


def test_packages_that_changed_since_the_start_have_no_stamp(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    forget()
    monkeypatch.setattr(source_stamp_module, "_began", source_stamp_module._uptime() - 3600.0)
    assert package_stamp("own") is None
