"""What is loaded as code comes from files that nobody else can have written, whatever lies in their place."""

import logging
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kinopt_ros.private_files import (
    ForeignFileError,
    PrivateFolder,
    cache_folder,
    others_hand,
    private_folder,
)

HEADER = b"ours\n"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")
SOMEBODY = 12345


@pytest.fixture
def folder(tmp_path: Path) -> PrivateFolder:
    return PrivateFolder(tmp_path / "kinopt_ros" / "programs", ".program", HEADER, 1000)


def test_what_was_written_comes_back(folder: PrivateFolder) -> None:
    with pytest.raises(FileNotFoundError):
        folder.read("a")
    folder.write("a", b"first")
    folder.write("a", b"second")
    assert folder.read("a") == b"second"
    with pytest.raises(FileNotFoundError):
        folder.read("b")
    assert [path.name for path in folder.path.iterdir()] == ["a.program"]
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert (folder.path / "a.program").stat().st_mode & 0o777 == 0o600


def test_looking_for_a_file_makes_no_folder(folder: PrivateFolder) -> None:
    with pytest.raises(FileNotFoundError):
        folder.read("a")
    assert not folder.path.parent.exists()


def test_a_folder_that_only_others_may_look_into_is_closed(folder: PrivateFolder) -> None:
    folder.write("a", b"1")
    folder.path.chmod(0o755)
    assert folder.read("a") == b"1"
    assert folder.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(folder: PrivateFolder, mode: int) -> None:
    folder.write("a", b"1")
    folder.path.chmod(mode)
    for call in (
        lambda: folder.read("a"),
        lambda: folder.write("a", b"2"),
        lambda: folder.prune(0, 0),
        lambda: private_folder(folder.path),
    ):
        with pytest.raises(ForeignFileError, match="other users may write to it"):
            call()


def test_so_is_one_below_such_a_folder(folder: PrivateFolder, tmp_path: Path) -> None:
    folder.write("a", b"1")
    (tmp_path / "kinopt_ros").chmod(0o777)
    with pytest.raises(ForeignFileError, match=f"other users may write to {tmp_path}/kinopt_ros"):
        folder.read("a")
    (tmp_path / "kinopt_ros").chmod(0o1777)  # as /tmp: anybody may add the folder, if we have not
    with pytest.raises(ForeignFileError, match="other users may write"):
        folder.write("a", b"1")


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_folders_that_it_makes_are_good_enough_whatever_umask_says(tmp_path: Path, umask: int) -> None:
    """A user who has no ~/.cache yet."""
    folder = PrivateFolder(tmp_path / ".cache" / "kinopt_ros" / "x", ".program", b"header\n", 1000)
    before = os.umask(umask)
    try:
        folder.write("a", b"content")
    finally:
        os.umask(before)
    assert folder.read("a") == b"content"
    for made in (folder.path, *folder.path.parents[:2]):
        assert made.stat().st_mode & 0o777 == 0o700


@as_root
def test_a_folder_above_that_somebody_makes_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a place where anybody may make folders."""
    tmp_path.chmod(0o1777)
    folder = PrivateFolder(tmp_path / "kinopt_ros" / "x", ".program", b"header\n", 1000)
    make = Path.mkdir

    def somebody_first(path: Path, *args: int, **kwargs: bool) -> None:
        if path == tmp_path / "kinopt_ros":
            make(path)
            os.chown(path, SOMEBODY, SOMEBODY)
        make(path, *args, **kwargs)

    monkeypatch.setattr(Path, "mkdir", somebody_first)
    with pytest.raises(ForeignFileError, match="another user"):
        folder.write("a", b"content")


def test_links_are_not_followed(folder: PrivateFolder, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(HEADER + b"evil")
    folder.write("b", b"1")
    (folder.path / "a.program").symlink_to(target)
    with pytest.raises(ForeignFileError, match="is a link"):
        folder.read("a")
    folder.prune(0, 0)
    assert (folder.path / "a.program").is_symlink()
    folder.write("a", b"ours")  # takes the place of the link
    assert target.read_bytes() == HEADER + b"evil"
    assert folder.read("a") == b"ours"


def test_nor_is_a_folder_that_is_a_link(folder: PrivateFolder, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir(mode=0o700)
    folder.path.parent.mkdir()
    folder.path.symlink_to(tmp_path / "other")
    for call in (
        lambda: folder.read("a"),
        lambda: folder.write("a", b"1"),
        lambda: private_folder(folder.path),
    ):
        with pytest.raises(ForeignFileError, match="it is a link, or no folder"):
            call()
    assert not list((tmp_path / "other").iterdir())


def test_a_dangling_link_is_no_folder(folder: PrivateFolder, tmp_path: Path) -> None:
    folder.path.parent.mkdir()
    folder.path.symlink_to(tmp_path / "nothing")
    with pytest.raises(ForeignFileError):
        folder.write("a", b"1")
    assert not (tmp_path / "nothing").exists()


def second_name(file: Path) -> None:
    os.link(file, file.with_suffix(".other"))


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda file: file.chmod(0o660), "can be written by other users"),
        (lambda file: file.chmod(0o602), "can be written by other users"),
        (second_name, "has a second name"),
        (pipe, "is no plain file"),
        (lambda file: os.truncate(file, 10**9), "is larger than 1000 bytes"),
        (lambda file: file.write_bytes(b"theirs"), "is not a file of this program"),
        (lambda file: file.write_bytes(b""), "is not a file of this program"),
    ],
)
def test_a_file_that_others_may_have_written_is_refused(
    folder: PrivateFolder, harm: Callable[[Path], None], said: str
) -> None:
    folder.write("a", b"1")
    file = folder.path / "a.program"
    harm(file)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ForeignFileError, match=said):
        folder.read("a")
    folder.prune(0, 0)
    assert file.exists(), "what is not ours is not removed"
    assert len(os.listdir("/proc/self/fd")) == before


@as_root
@pytest.mark.parametrize("place", ["programs/a.program", "programs", ".", ".."])
def test_nothing_of_another_user_is_read_or_written(tmp_path: Path, place: str) -> None:
    folder = PrivateFolder(tmp_path / "cache" / "kinopt_ros" / "programs", ".program", HEADER, 1000)
    folder.write("a", b"1")
    os.chown(tmp_path / "cache" / "kinopt_ros" / place, SOMEBODY, SOMEBODY)
    with pytest.raises(ForeignFileError, match=f"belongs to another user \\(number {SOMEBODY}\\)"):
        folder.read("a")
    if place != "programs/a.program":
        with pytest.raises(ForeignFileError, match="belongs to another user"):
            folder.write("a", b"2")


@as_root
def test_two_users_do_not_meet() -> None:
    """Both are given the same cache folder: the second one reads nothing of the first, nor writes."""
    with tempfile.TemporaryDirectory() as shared:  # where another user can enter
        os.chmod(shared, 0o755)
        refused_to_somebody(PrivateFolder(Path(shared) / "kinopt_ros", ".program", HEADER, 1000))


def refused_to_somebody(folder: PrivateFolder) -> None:
    folder.write("a", b"1")
    folder.path.chmod(0o755)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setresuid(SOMEBODY, SOMEBODY, SOMEBODY)
            refusals = 0
            for call in (lambda: folder.read("a"), lambda: folder.write("a", b"2")):
                try:
                    call()
                except ForeignFileError:
                    refusals += 1
            code = 0 if refusals == 2 else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_only_own_files_are_pruned_the_longest_unused_first(folder: PrivateFolder) -> None:
    for age, name in enumerate("abcd"):
        folder.write(name, b"x" * 95)
        os.utime(folder.path / f"{name}.program", (1e9 - age, 1e9 - age))
    foreign = {
        "notes.program": b"of the user",
        "a.txt": HEADER,
        "a.bin": b"firmware",
        "my thesis.program": HEADER + b"x",
    }
    for name, content in foreign.items():
        (folder.path / name).write_bytes(content)
        (folder.path / name).chmod(0o600)
        os.utime(folder.path / name, (1e8, 1e8))
    folder.read("d")
    folder.prune(2, 10**6)
    assert {path.name for path in folder.path.iterdir()} == {"a.program", "d.program", *foreign}
    folder.prune(2, 150)
    assert {path.name for path in folder.path.iterdir()} == {"d.program", *foreign}


def test_a_file_that_is_replaced_while_it_is_opened_is_read(
    folder: PrivateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It seemed to have a second name, as it had none."""
    folder.write("a", b"old")
    fstat = os.fstat

    def late(file: int) -> os.stat_result:
        monkeypatch.setattr(os, "fstat", fstat)
        folder.write("a", b"new")
        return fstat(file)

    opened = os.open

    def open_then(name: Any, *given: Any, **more: Any) -> int:
        file = opened(name, *given, **more)
        if name == "a.program":
            monkeypatch.setattr(os, "open", opened)
            monkeypatch.setattr(os, "fstat", late)
        return file

    monkeypatch.setattr(os, "open", open_then)
    assert folder.read("a") == b"old"
    assert folder.read("a") == b"new"


def test_writers_at_the_same_time_leave_one_whole_file(folder: PrivateFolder) -> None:
    def work(number: int) -> int:
        for _ in range(20):
            folder.write("a", bytes([number]) * 900)
            assert len(set(folder.read("a"))) == 1
        return number

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [0, 1, 2, 3]
    assert [path.name for path in folder.path.iterdir()] == ["a.program"]


def test_the_cache_folder_is_chosen_by_who_starts_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("x") == tmp_path / "kinopt_ros" / "x"
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert cache_folder("x") == Path.home() / ".cache" / "kinopt_ros" / "x"


def test_a_chosen_folder_is_looked_at_up_to_the_root(tmp_path: Path) -> None:
    assert others_hand(tmp_path / "new" / "folder") == ""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert str(shared) in others_hand(shared / "below")
    (tmp_path / "link").symlink_to(shared)
    assert str(shared) in others_hand(tmp_path / "link" / "below")
    shared.chmod(0o755)
    assert others_hand(tmp_path / "link" / "below") == ""


class TestNumba:
    @pytest.fixture(autouse=True)
    def _needs_numba(self) -> None:
        pytest.importorskip("numba")

    @pytest.fixture
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        package = tmp_path / "package"
        (package / "part" / "__pycache__").mkdir(parents=True)
        (package / "part" / "kernel.py").write_text("")
        return package

    def test_compiled_code_lies_beside_the_sources(self, package: Path) -> None:
        from kinopt_ros.numba_cache import trusted_folder

        assert trusted_folder("", package) == ""

    def test_but_not_where_more_people_may_write(self, package: Path, tmp_path: Path) -> None:
        from kinopt_ros.numba_cache import trusted_folder

        own = str(tmp_path / "cache" / "kinopt_ros" / "numba")
        cache = package / "part" / "__pycache__"
        cache.chmod(0o777)
        assert trusted_folder("", package) == own
        cache.chmod(0o755)
        assert trusted_folder("", package) == ""
        cache.rmdir()
        cache.symlink_to(tmp_path)
        assert trusted_folder("", package) == own

    @as_root
    def test_nor_where_somebody_else_owns_it(self, package: Path, tmp_path: Path) -> None:
        from kinopt_ros.numba_cache import trusted_folder

        os.chown(package / "part" / "__pycache__", SOMEBODY, SOMEBODY)
        assert trusted_folder("", package) == str(tmp_path / "cache" / "kinopt_ros" / "numba")

    def test_a_chosen_folder_counts_if_it_is_safe(
        self, package: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        from kinopt_ros.numba_cache import trusted_folder

        chosen = tmp_path / "chosen"
        assert trusted_folder(str(chosen), package) == str(chosen)
        chosen.chmod(0o777)
        with caplog.at_level(logging.WARNING):
            assert trusted_folder(str(chosen), package) == str(tmp_path / "cache" / "kinopt_ros" / "numba")
        assert f"NUMBA_CACHE_DIR is not used: other users may write to {chosen}" in caplog.text

    @pytest.mark.parametrize("chosen", ["file", "file/below", "loop/below", "a" * 300])
    def test_so_is_one_that_cannot_be_used(self, package: Path, tmp_path: Path, chosen: str) -> None:
        from kinopt_ros.numba_cache import trusted_folder

        (tmp_path / "file").write_text("")
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        own = str(tmp_path / "cache" / "kinopt_ros" / "numba")
        assert trusted_folder(str(tmp_path / chosen), package) == own

    def test_without_any_folder_code_is_not_kept(
        self, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from kinopt_ros import numba_cache

        def full() -> Path:
            raise OSError("no space left")

        (package / "part" / "__pycache__").chmod(0o777)
        (tmp_path / "cache").write_text("")
        monkeypatch.setattr(numba_cache, "temporary_folder", full)
        assert numba_cache.trusted_folder("", package) is None
        monkeypatch.setattr(numba_cache, "_folder", None)
        assert numba_cache.njit(cache=True)(lambda x: x + 1)(1) == 2

    def test_without_any_safe_folder_it_is_a_temporary_one(self, package: Path, tmp_path: Path) -> None:
        from kinopt_ros.numba_cache import trusted_folder

        (package / "part" / "__pycache__").chmod(0o777)
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache").chmod(0o777)
        found = Path(trusted_folder("", package))
        assert tmp_path not in found.parents
        assert found.stat().st_mode & 0o777 == 0o700
