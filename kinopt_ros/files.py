"""Files that others wrote: opened without waiting, of ordinary kind only, of bounded size.

A pipe would keep its reader waiting for ever, a device answers without end or does something when it is opened, and
files of the kernel hold more than they say. Whoever reads a file that a user, a message or another file names calls
this. What others may read while it is written is ``written`` as a whole.
"""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kinopt_ros.errors import InvalidRequestError, KinoptError, quoted, shown

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def path_of(given: Any, what: str, error: type[KinoptError] = InvalidRequestError) -> Path:
    """Return the path that somebody gives, as text or as a path.

    Raises:
        KinoptError: of the type given, if no file can have that name.
    """
    if not isinstance(given, str | Path):
        raise error(f"{what} is given as {shown(given)}; allowed is the name of a file, as text or as a Path")
    text = str(given)
    try:
        usable = bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # half of a surrogate pair
        usable = False
    if not usable:
        raise error(f"{what} is given as {quoted(text)}, which is no name of a file")
    return Path(given)


def is_file(path: str | Path) -> bool:
    """Check whether ``path`` is an ordinary file; False for names that no file can have."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_folder(path: str | Path) -> bool:
    """Check whether ``path`` is a folder; False for names that no folder can have."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def read_bytes(
    path: str | Path, most: int, what: str, error: type[KinoptError] = InvalidRequestError
) -> bytes:
    """Read an ordinary file of bounded size.

    Args:
        path: the file.
        most: bytes that it may have.
        what: what it is called in messages.
        error: type of what is raised.

    Raises:
        KinoptError: of the type given, if it is not there, not an ordinary file, or larger.
    """
    path = path_of(path, what, error)
    try:
        _require_ordinary(os.stat(path), most, what, error)  # before it is opened, which may do something
        # Does not wait for the other end, should a pipe have taken its place.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            status = os.fstat(descriptor)
            _require_ordinary(status, most, what, error)
            return _content(descriptor, status.st_size, what, error)
        finally:
            os.close(descriptor)
    except OSError as cause:
        raise error(f"{what} cannot be read: {cause.strerror or cause}") from None


def read_text(path: str | Path, most: int, what: str, error: type[KinoptError] = InvalidRequestError) -> str:
    """Read an ordinary file as UTF-8 text, without a byte order mark. Arguments and errors as in ``read_bytes``."""
    try:
        return read_bytes(path, most, what, error).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"{what} is not UTF-8 text") from None


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Open a file that takes the place of ``path`` when it is closed.

    Whoever reads meanwhile, or after a full disk, finds the old file or the whole new one.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _require_ordinary(status: os.stat_result, most: int, what: str, error: type[KinoptError]) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no file")
        raise error(f"{what} cannot be read: it is {kind}; allowed is an ordinary file")
    if status.st_size > most:
        raise error(f"{what} has {status.st_size} bytes; at most {most} are read")


def _content(descriptor: int, size: int, what: str, error: type[KinoptError]) -> bytes:
    parts: list[bytes] = []
    left = size + 1
    while left > 0:
        part = os.read(descriptor, min(left, 2**20))
        if not part:
            return b"".join(parts)
        parts.append(part)
        left -= len(part)
    # Files of the kernel say that they are empty; those that grow are not whole yet.
    raise error(f"{what} cannot be read: it holds more than the {size} bytes that it is said to have")
