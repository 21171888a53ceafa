"""numba's files may be damaged, stale, or impossible to write: what runs is always what the source says."""

import fcntl
import importlib.util
import logging
import os
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

numba = pytest.importorskip("numba", reason="numba is not installed")

from kinopt_ros import numba_cache, source_stamp
from kinopt_ros.errors import MissingPackageError

SOURCE = """
from kinopt_ros.numba_cache import njit

@njit("float64(float64)", cache=True)
def eager(x):
    return x + {number}

@njit(cache=True)
def lazy(x):
    return x + {number}
"""
Load = Callable[[float], Any]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Import a module as a new process does: nothing is left but what lies on disk."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "compiled.py"
    stamps = iter(range(1_700_000_000, 1_800_000_000))

    def loaded(number: float) -> Any:
        text = SOURCE.format(number=number)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            stamp = next(stamps)
            os.utime(file, (stamp, stamp))
        spec = importlib.util.spec_from_file_location("compiled", file)
        assert spec is not None
        assert spec.loader is not None
        source_stamp.forget()
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return loaded


def kept(tmp_path: Path, suffix: str) -> list[Path]:
    files = sorted((tmp_path / "cache").rglob(f"*{suffix}"))
    assert len(files) == 2
    return files


def answers(module: Any) -> tuple[float, float]:
    return module.eager(1.0), module.lazy(1.0)


def hits(module: Any) -> int:
    return sum(sum(function.stats.cache_hits.values()) for function in (module.eager, module.lazy))


def test_code_is_kept_and_found_again(tmp_path: Path, load: Load) -> None:
    assert answers(load(1.0)) == (2.0, 2.0)
    again = load(1.0)
    assert answers(again) == (2.0, 2.0)
    assert hits(again) == 2
    for number in (2.0, 3.0, 4.0):
        assert answers(load(number)) == (1.0 + number, 1.0 + number)
    kept(tmp_path, ".nbc")  # nothing is left of older sources


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path, load: Load) -> None:
    """One file was left for each process that was killed as it saved, for ever."""
    answers(load(1.0))
    left, written = (Path(f"{code}.tmp.{number:016x}") for number, code in enumerate(kept(tmp_path, ".nbc")))
    foreign = left.parent / "another.tmp.0"
    for file in (left, written, foreign):
        file.write_bytes(b"half")
    for file in (left, foreign):
        os.utime(file, (time.time() - 3600.0,) * 2)
    answers(load(2.0))
    assert not left.exists()
    assert written.exists()
    assert foreign.exists()


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.99])
def test_damaged_files_are_made_anew(
    tmp_path: Path, load: Load, suffix: str, part: float, caplog: pytest.LogCaptureFixture
) -> None:
    answers(load(1.0))
    for file in kept(tmp_path, suffix):
        content = file.read_bytes()
        file.write_bytes(content[: int(part * len(content))])
    with caplog.at_level(logging.WARNING):
        assert answers(load(1.0)) == (2.0, 2.0)
    assert "is damaged, and made anew" in caplog.text
    again = load(1.0)
    assert answers(again) == (2.0, 2.0)
    assert hits(again) == 2


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As on a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Evil:
    """Unpickled, it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


SOMEBODY = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@pytest.mark.parametrize(
    ("change", "runs"),
    [
        pytest.param(lambda folder, file: None, True, id="what is ours is trusted"),
        pytest.param(lambda folder, file: file.chmod(0o666), False, id="file of mode 666"),
        pytest.param(lambda folder, file: file.chmod(0o664), False, id="file of mode 664"),
        pytest.param(lambda folder, file: folder.chmod(0o777), False, id="folder of mode 777"),
        pytest.param(lambda folder, file: folder.chmod(0o775), False, id="folder of mode 775"),
        pytest.param(lambda folder, file: linked(file), False, id="link"),
        pytest.param(
            lambda folder, file: os.chown(file, SOMEBODY, SOMEBODY), False, marks=as_root, id="foreign file"
        ),
        pytest.param(
            lambda folder, file: os.chown(folder, SOMEBODY, SOMEBODY),
            False,
            marks=as_root,
            id="foreign folder",
        ),
    ],
)
def test_what_others_could_have_written_is_not_unpickled(
    tmp_path: Path, load: Load, change: Callable[[Path, Path], None], runs: bool
) -> None:
    """The folder that NUMBA_CACHE_DIR names was looked at, what is in it was not."""
    assert answers(load(1.0)) == (2.0, 2.0)
    mark = tmp_path / "executed"
    for file in kept(tmp_path, ".nbi"):
        with file.open("rb") as content:
            version = pickle.load(content)
        file.write_bytes(pickle.dumps(version) + pickle.dumps(Evil(mark)))
        change(file.parent, file)
    assert answers(load(1.0)) == (2.0, 2.0)
    assert mark.exists() == runs


@pytest.mark.parametrize("of_folder", [True, False])
def test_what_others_may_write_to_is_said_once_with_a_remedy(
    tmp_path: Path, load: Load, of_folder: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder that was made with umask 002 was refused with every start, and nobody said what to do."""
    answers(load(1.0))
    folder = kept(tmp_path, ".nbi")[0].parent
    shared = folder if of_folder else kept(tmp_path, ".nbi")[0]
    shared.chmod(0o775)
    with caplog.at_level(logging.WARNING):
        assert answers(load(1.0)) == (2.0, 2.0)
    assert [record.getMessage().count(f"chmod go-w {shared}") for record in caplog.records] == [1]
    if of_folder:  # a file is replaced at once
        shared.chmod(0o755)
        answers(load(1.0))
    again = load(1.0)
    answers(again)
    assert hits(again) == 2


def linked(file: Path) -> None:
    file.rename(file.with_suffix(".moved"))
    file.symlink_to(file.with_suffix(".moved"))


@pytest.mark.parametrize("umask", [0o000, 0o002])
def test_only_we_can_write_to_what_we_keep_whatever_umask_says(
    tmp_path: Path, load: Load, umask: int
) -> None:
    before = os.umask(umask)
    try:
        assert answers(load(1.0)) == (2.0, 2.0)
    finally:
        os.umask(before)
    for path in (*kept(tmp_path, ".nbi"), *kept(tmp_path, ".nbc"), kept(tmp_path, ".nbi")[0].parent):
        assert path.stat().st_mode & 0o022 == 0, path
    again = load(1.0)
    assert answers(again) == (2.0, 2.0)
    assert hits(again) == 2


@pytest.mark.parametrize("size", [300, 3000])
def test_a_full_disk_is_no_error_and_leaves_no_stale_code(
    load: Load, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """3,000 bytes are enough for an index but not for code."""
    assert answers(load(1.0)) == (2.0, 2.0)
    with files_of_at_most(size):
        assert answers(load(2.0)) == (3.0, 3.0)
    assert "cannot be kept" in caplog.text
    after = load(2.0)
    assert answers(after) == (3.0, 3.0)
    assert hits(after) == 0


def test_code_of_another_signature_is_not_taken(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that gave it the same name."""
    monkeypatch.setattr(numba_cache._Files, "_data_name", lambda files, number: f"{files._index_name}.nbc")
    module = load(1.0)
    assert (module.lazy(1.0), module.lazy(1)) == (2.0, 2.0)
    again = load(1.0)
    assert (again.lazy(1.0), again.lazy(1)) == (2.0, 2.0)


def test_it_works_without_compiling(monkeypatch: pytest.MonkeyPatch, load: Load) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    assert answers(load(1.0)) == (2.0, 2.0)


def test_code_that_another_version_kept_is_replaced_once(
    tmp_path: Path, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as other:
        other.setattr(numba_cache, "source_stamp", lambda file: (file.stat().st_mtime, file.stat().st_size))
        answers(load(1.0))
    before = kept(tmp_path, ".nbc")
    assert hits(load(1.0)) == 0
    answers(load(1.0))
    assert not set(kept(tmp_path, ".nbc")) & set(before)
    again = load(1.0)
    answers(again)
    assert hits(again) == 2


OUTER = """
from inner import OFFSET, inner
from kinopt_ros.numba_cache import njit

@njit(cache=True)
def outer(x):
    return inner(x) + OFFSET

print(outer(0.0), sum(outer.stats.cache_hits.values()))
"""
INNER = """
from kinopt_ros.numba_cache import njit

OFFSET = {offset}

@njit()
def inner(x):
    return x + {number}
"""


def test_what_is_compiled_in_from_other_files_is_never_an_old_one(tmp_path: Path) -> None:
    """Sources keep their times where they are copied, and a newer one may be older."""
    (tmp_path / "outer.py").write_text(OUTER)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}

    def write(offset: float, number: float, time: int) -> None:
        (tmp_path / "inner.py").write_text(INNER.format(offset=offset, number=number))
        os.utime(tmp_path / "inner.py", (time, time))

    def answers_of(processes: int) -> list[str]:
        running = [
            subprocess.Popen(
                [sys.executable, "outer.py"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
            )
            for _ in range(processes)
        ]
        return [process.communicate()[0].strip() for process in running]

    write(10.0, 1.0, 1_700_000_000)
    assert answers_of(1) == ["11.0 0"]
    assert answers_of(1) == ["11.0 1"]
    write(10.0, 2.0, 1_600_000_000)  # the function
    assert {answer.split()[0] for answer in answers_of(3)} == {"12.0"}
    assert answers_of(1) == ["12.0 1"]
    write(20.0, 2.0, 1_600_000_000)  # the number
    assert answers_of(1) == ["22.0 0"]


@pytest.mark.parametrize("is_kept", [True, False])
def test_who_may_not_compile_is_told_at_once(
    load: Load, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    if not is_kept:
        monkeypatch.setattr(numba_cache, "_folder", None)
    module = load(1.0)
    with pytest.raises(numba_cache.NotCompiledError, match="lazy"), numba_cache.without_compiling():
        module.lazy(1.0)
    assert module.lazy(1.0) == 2.0
    with numba_cache.without_compiling():
        assert module.lazy(1.0) == 2.0
    again = load(1.0)
    with (
        nullcontext() if is_kept else pytest.raises(numba_cache.NotCompiledError),
        numba_cache.without_compiling(),
    ):
        assert again.lazy(1.0) == 2.0


def lock_of(folder: Path) -> int:
    """Take the lock of a folder, as another process does, and return what holds it.

    Raises:
        BlockingIOError: somebody else has it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    return descriptor


def test_nobody_else_saves_between_code_and_index(
    tmp_path: Path, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process would remove code that no index names yet."""
    write_index = numba_cache._Files._save_index
    refused = []

    def look(self: Any, overloads: Any) -> None:
        with pytest.raises(BlockingIOError):
            lock_of(Path(self._cache_path))
        refused.append(self)
        write_index(self, overloads)

    monkeypatch.setattr(numba_cache._Files, "_save_index", look)
    answers(load(1.0))
    assert len(refused) >= 2
    (folder,) = {file.parent for file in kept(tmp_path, ".nbi")}
    os.close(lock_of(folder))


def test_who_holds_the_lock_for_ever_is_not_waited_for(
    tmp_path: Path, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba_cache, "_OTHERS_SAVE", 0.01)
    answers(load(1.0))
    (folder,) = {file.parent for file in kept(tmp_path, ".nbi")}
    held = lock_of(folder)
    try:
        answers(load(2.0))
        again = load(2.0)
        answers(again)
        assert hits(again) == 2
    finally:
        os.close(held)


LATE = """
import importlib, pathlib, time
from inner import OFFSET

time.sleep(0.05)
inner = pathlib.Path("inner.py")
inner.write_text(inner.read_text().replace("OFFSET = 10.0", "OFFSET = 20.0"))
import outer
"""


def test_code_of_what_was_changed_after_it_was_imported_is_not_kept(tmp_path: Path) -> None:
    """As when the package is updated while a node runs: its solver, imported later, has numbers of both."""
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(offset=10.0, number=1.0))
    (tmp_path / "late.py").write_text(LATE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    answers = [
        subprocess.check_output([sys.executable, file], cwd=tmp_path, env=environment, text=True).strip()
        for file in ("late.py", "outer.py", "outer.py")
    ]
    assert answers == ["11.0 0", "21.0 0", "21.0 1"]


def test_functions_without_a_file_are_compiled() -> None:
    """Of a notebook, or of an archive."""
    names: dict[str, Any] = {}
    exec(compile(SOURCE.format(number=1.0), "<input>", "exec"), names)
    assert (names["eager"](1.0), names["lazy"](1.0)) == (2.0, 2.0)


def test_a_compiler_that_was_told_to_compile_nothing_is_named(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load(1.0)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    with pytest.raises(MissingPackageError, match="NUMBA_DISABLE_JIT"):
        numba_cache.loaded_or_compiled(module.lazy, (numba.float64,), may_compile=True)
