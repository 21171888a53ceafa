"""Files of others: ordinary ones of bounded size, opened without waiting; all else is a sentence."""

import os
from pathlib import Path

import pytest

from kinopt_ros.errors import InvalidRequestError, RobotDescriptionError
from kinopt_ros.files import is_file, path_of, read_bytes, read_text


def test_ordinary_files_are_read_whole(tmp_path: Path) -> None:
    content = bytes(range(256)) * 20_000
    (tmp_path / "file").write_bytes(content)
    assert read_bytes(tmp_path / "file", len(content), "it") == content
    (tmp_path / "text").write_bytes("\ufeffé".encode())
    assert read_text(str(tmp_path / "text"), 10, "it") == "é"


def test_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**41)
    with pytest.raises(InvalidRequestError, match=f"it has {2**41} bytes; at most 100 are read"):
        read_bytes(tmp_path / "sparse", 100, "it")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("pipe", "it is a pipe; allowed is an ordinary file"),
        ("folder", "it is a folder"),
        ("to_device", "it is a device"),
        ("loop", "symbolic links"),
        ("none", "No such file"),
        ("x" * 300, "File name too long"),
        ("latin", "is not UTF-8 text"),
    ],
)
def test_what_is_no_ordinary_file_is_refused_without_waiting(tmp_path: Path, name: str, why: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to_device").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(RobotDescriptionError, match=f"^the file .*{why}"):
        read_text(tmp_path / name, 100, "the file", RobotDescriptionError)
    assert is_file(tmp_path / name) == (name == "latin")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there are no such files here")
def test_files_that_hold_more_than_they_say_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="holds more than the 0 bytes"):
        read_bytes("/proc/self/maps", 2**20, "it")


@pytest.mark.parametrize("given", ["", "a\0b", "a\ud800b", 5, None, b"x", ["a"], 10**5000], ids=range(8))
def test_what_names_no_file_is_refused(given: object) -> None:
    with pytest.raises(InvalidRequestError, match="a scene is given as") as caught:
        path_of(given, "a scene")
    str(caught.value).encode()


def test_names_of_files_that_are_no_text_in_utf8_are_names(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9")
    path.write_text("a")
    assert read_text(path, 10, "it") == "a"
