"""Files that are as trusted as the code itself: compiled programs, and results that collision checks rest on.

They lie in folders that only this user can write to. Nobody chooses these but who starts the process.
"""

import atexit
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NAME = re.compile(r"[0-9A-Za-z]{1,64}\.[a-z]+")


class ForeignFileError(OSError):
    """Somebody else made a file or folder, or could have; the message says which."""


def cache_folder(name: str) -> Path:
    """Return a folder below the user's cache folder.

    Raises:
        RuntimeError: the user has no home.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "kinopt_ros" / name


def others_hand(path: Path) -> str:
    """Return why others could have put something into a folder, in a few words; empty if they could not.

    Looks at all folders above it, too, by its name and where links lead; what is missing is for us to make.
    """
    for place in dict.fromkeys((Path(os.path.abspath(path)), Path(os.path.realpath(path)))):
        for part in (*reversed(place.parents), place):
            try:
                status = part.lstat()
            except FileNotFoundError:
                break
            # The owner of "/" can do anything; inside of containers it need not be number 0.
            if status.st_uid not in (os.geteuid(), 0, os.stat("/").st_uid):
                return f"{part} belongs to another user (number {status.st_uid})"
            if stat.S_ISLNK(status.st_mode):
                continue
            # Sticky folders (/tmp) leave alone what is there, but anybody may add to them.
            sticky = status.st_mode & stat.S_ISVTX and part != place
            if status.st_mode & 0o022 and not sticky:
                mode = stat.S_IMODE(status.st_mode)
                return f"other users may write to {part} (mode {mode:o}; chmod go-w would end that)"
    return ""


def temporary_folder() -> Path:
    """Make a private folder that lasts as long as the process."""
    folder = tempfile.mkdtemp(prefix="kinopt_ros-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, for this user alone.

    Raises:
        OSError: that cannot be done.
    """
    # One by one: of several at a time, all but the last would get what umask allows.
    for part in (*reversed(path.parents), path):
        if not part.is_dir():
            part.mkdir(exist_ok=True, mode=0o700)


def private_folder(path: Path) -> Path:
    """Make a folder that only this user can enter, or see to it that it is one, for a library that takes paths.

    Raises:
        ForeignFileError: it is not, and must not be trusted.
        OSError: it cannot be made.
    """
    with _opened(path):
        return path


class PrivateFolder:
    """Files of one kind in a private folder.

    All methods raise ``ForeignFileError`` where others had a hand in it, or could have had, and other kinds of
    ``OSError`` for what else is wrong.
    """

    def __init__(self, path: Path, suffix: str, header: bytes, most_bytes: int) -> None:
        """
        Args:
            path: of the folder; it is made when first written to.
            suffix: of all files, with the dot, letters only.
            header: that all files begin with; a file without it is not ours.
            most_bytes: that a file may have.
        """
        self.path = path
        self._suffix, self._header, self._most_bytes = suffix, header, most_bytes

    def read(self, key: str) -> bytes:
        """Read what was written, and mark it as the last one used.

        Raises:
            FileNotFoundError: nothing.
        """
        if not self.path.is_symlink() and not self.path.exists():
            raise FileNotFoundError(f"{self.path} does not exist")
        with _opened(self.path) as folder:
            name = key + self._suffix
            file = self._file(folder, name)
            with open(file, "rb") as stream:
                content = stream.read(self._most_bytes + 1)
            if not content.startswith(self._header):
                raise ForeignFileError(f"{self.path / name} is not a file of this program")
            os.utime(name, dir_fd=folder, follow_symlinks=False)
            return content[len(self._header) :]

    def write(self, key: str, content: bytes) -> None:
        """Keep something in place of what is there, whoever made that."""
        with _opened(self.path) as folder:
            part = f"{key}.{os.getpid()}-{os.urandom(6).hex()}.part"
            file = os.open(
                part,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
                dir_fd=folder,
            )
            try:
                with open(file, "wb") as stream:
                    stream.write(self._header + content)
                os.rename(part, key + self._suffix, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part, dir_fd=folder)
                raise

    def prune(self, most_files: int, most_bytes: int) -> None:
        """Remove the longest unused files beyond a number, or a size of all. Files that are not ours stay."""
        with _opened(self.path) as folder:
            own = []
            for name in os.listdir(folder):
                if _NAME.fullmatch(name) and name.endswith(self._suffix):
                    with suppress(OSError):  # foreign, or gone meanwhile
                        own.append((self._seen(folder, name), name))
            for number, (status, name) in enumerate(sorted(own, key=lambda file: -file[0].st_mtime_ns)):
                most_bytes -= status.st_size
                if number >= most_files or most_bytes < 0:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)

    def _seen(self, folder: int, name: str) -> os.stat_result:
        """Return what the system says of a file of ours."""
        file = self._file(folder, name)
        try:
            if os.read(file, len(self._header)) != self._header:
                raise ForeignFileError(f"{self.path / name} is not a file of this program")
            return os.fstat(file)
        finally:
            os.close(file)

    def _file(self, folder: int, name: str) -> int:
        """Open a file for reading and check it: nothing can be put in its place afterwards."""
        try:
            file = os.open(
                name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
            )  # without waiting for who writes to a pipe
        except FileNotFoundError:
            raise
        except OSError as error:
            raise ForeignFileError(
                f"{self.path / name} is a link, or cannot be opened: {error.strerror}"
            ) from error
        status = os.fstat(file)
        wrong = ""
        if not stat.S_ISREG(status.st_mode):
            wrong = "is no plain file"
        elif status.st_uid != os.geteuid():
            wrong = f"belongs to another user (number {status.st_uid})"
        elif status.st_mode & 0o022:
            wrong = f"can be written by other users (mode {stat.S_IMODE(status.st_mode):o})"
        elif status.st_nlink > 1:  # one that is replaced meanwhile has none
            wrong = "has a second name"
        elif status.st_size > self._most_bytes:
            wrong = f"is larger than {self._most_bytes} bytes"
        if wrong:
            os.close(file)
            raise ForeignFileError(f"{self.path / name} {wrong}")
        return file


def _require_own(path: Path) -> None:
    """Raise ForeignFileError where others may put something in a folder's place."""
    reason = others_hand(path.parent)
    if reason:
        raise ForeignFileError(f"{path} is not used: {reason}")


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open the folder itself, whatever its name leads to afterwards."""
    _require_own(path)
    with suppress(FileExistsError):
        make_folder(path)
    _require_own(path)  # somebody may have been quicker
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except NotADirectoryError:
        raise ForeignFileError(f"{path} is not used: it is a link, or no folder") from None
    try:
        status = os.fstat(folder)
        if status.st_uid != os.geteuid():
            raise ForeignFileError(f"{path} is not used: it belongs to another user (number {status.st_uid})")
        if status.st_mode & 0o022:
            mode = stat.S_IMODE(status.st_mode)
            raise ForeignFileError(
                f"{path} is not used: other users may write to it (mode {mode:o}); remove it, as they may have done so"
            )
        if status.st_mode & 0o077:
            os.fchmod(folder, 0o700)
        yield folder
    finally:
        os.close(folder)
