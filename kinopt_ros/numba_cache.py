"""numba's ``njit`` with a cache folder that only trusted users can write to; compiled functions take it from here.

numba's files are code, and their index is a pickle.
"""

import fcntl
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.sigutils import normalize_signature

from kinopt_ros.errors import MissingPackageError, quoted
from kinopt_ros.numba_notice import announce_compiling
from kinopt_ros.private_files import (
    ForeignFileError,
    cache_folder,
    make_folder,
    others_hand,
    private_folder,
    temporary_folder,
)
from kinopt_ros.source_stamp import changed_since_start, source_stamp

__all__ = ["NotCompiledError", "njit", "without_compiling"]

_log = logging.getLogger(__name__)
_thread = threading.local()
"""Has ``waits_not`` where a thread may not compile."""
_said: set[str] = set()
"""Sentences that were logged."""
_OTHERS_SAVE = 2.0
"""s that other processes may take to save what they have compiled; they need milliseconds."""
_PART, _LEFT = ".tmp.", 600.0
"""What names of files say that are being written; s after which nobody writes them any more."""


class NotCompiledError(Exception):
    """A function was neither compiled before nor lies on disk."""


@contextmanager
def without_compiling() -> Iterator[None]:
    """Functions that this thread calls meanwhile are loaded if they lie on disk; else they raise
    ``NotCompiledError`` at once. That holds for those that are asked to be kept."""
    _thread.waits_not = True
    try:
        yield
    finally:
        _thread.waits_not = False


def _say_once(sentence: str) -> None:
    """Log what holds for all functions of a folder for the first of them only."""
    if sentence not in _said:
        _said.add(sentence)
        _log.warning("%s", sentence)


def _may_compile(name: str) -> None:
    if getattr(_thread, "waits_not", False):
        raise NotCompiledError(f"{name} is not compiled yet")


def njit(signature: Any = None, *, cache: Any = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate as numba's ``njit`` does, but treat damaged or unwritable files of compiled code as no errors.

    Args:
        signature: compiles at once, for this one only.
        cache: compiled code is kept on disk.
        options: numba's.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(**options)(function)
        if compiled is function:  # NUMBA_DISABLE_JIT
            return function
        if cache:
            compiled._cache = _cache_of(function)
        if options.get("_nrt") is False:
            _refuse_returned_arrays(compiled)
        if signature is not None:
            compiled.compile(signature)
            compiled.disable_compile()
        return compiled

    return decorate


def _refuse_returned_arrays(compiled: Any) -> None:
    """Let the compiler refuse to return arrays from a function that does not count references: its caller would free
    what others use."""
    add = compiled.add_overload

    def checked(result: Any) -> None:
        if _has_arrays(result.signature.return_type):
            raise TypeError(f"{compiled.__name__} returns arrays, and does not count references to them")
        add(result)

    compiled.add_overload = checked


def _has_arrays(kind: Any) -> bool:
    if isinstance(kind, numba.types.BaseTuple):
        return any(_has_arrays(part) for part in kind)
    return isinstance(kind, numba.types.Array)


def loaded_or_compiled(function: Any, signature: Any, may_compile: bool) -> bool:
    """Make a kernel ready for one signature; return whether it is.

    It is loaded if it was compiled before, else compiled if that may be.

    Raises:
        MissingPackageError: numba was told to compile nothing.
    """
    if numba.config.DISABLE_JIT:
        raise MissingPackageError(
            "numba compiles nothing, as NUMBA_DISABLE_JIT is set in the environment: unset it"
        )
    if function.overloads:
        return True
    # What Dispatcher.compile asks first, too; numba has no public way to ask for nothing more.
    if not may_compile and function._cache.load_overload(signature, function.targetctx) is None:
        return False
    function.compile(signature)
    function.disable_compile()  # other argument types are a mistake, not a reason to compile in a request
    return True


def _cache_of(function: Callable[..., Any]) -> Any:
    """Where compiled code of a function is kept: nowhere if there is no file of its source, as in notebooks and
    archives, or if that may not be what this process imported."""
    name = function.__qualname__
    if _folder is None:
        return _NotKept(name)
    try:
        if changed_since_start(Path(function.__code__.co_filename)):
            _log.info("compiled code of %s is not kept: sources changed after this process began", name)
            return _NotKept(name)
        return _KeptCode(function)
    except (OSError, RuntimeError) as error:
        _log.info("compiled code of %s is not kept: %s", name, error)
        return _NotKept(name)


class _KeptCode(FunctionCache):  # type: ignore[misc]
    """Compiled code that numba keeps of a function. What cannot be read is made anew; what cannot be written is not
    kept."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        source = Path(function.__code__.co_filename)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, source_stamp(source))
        folder = Path(self._cache_path)
        self._cache_file.beside = source.parent.stat() if folder.parent == source.parent else None
        made = folder.stat()
        own = self._cache_file.beside is None and made.st_uid == os.geteuid()
        # numba makes its folders as umask says; an empty one was not trusted by anybody yet.
        if own and made.st_mode & 0o022 and not any(folder.iterdir()):
            folder.chmod(0o700)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """None if there is nothing that can be used, and it may be compiled."""
        found = self._found(signature, target_context)
        if found is None:
            _may_compile(self._name)
        return found

    def _found(self, signature: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(signature, target_context)
        except ForeignFileError as error:
            _say_once(str(error))
            with suppress(OSError):  # a file of ours takes the place of one that others could write to
                self._cache_file.flush()
            return None
        except Exception as error:  # whatever a damaged file raises
            _log.warning("compiled code of %s is damaged, and made anew: %s", self._name, error)
            with suppress(OSError):
                self._cache_file.flush()
            return None
        if found is not None and tuple(found.signature.args) != tuple(normalize_signature(signature)[0]):
            return None
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Save compiled code; does nothing where the disk is full or others damaged what is there."""
        try:
            super().save_overload(signature, compiled)
        except ForeignFileError as error:
            _say_once(str(error))
        except Exception as error:  # numba may raise anything here; the function is compiled all the same
            _log.warning("compiled code of %s cannot be kept: %s", self._name, error)


class _NotKept(NullCache):  # type: ignore[misc]
    """Where there is no place to keep anything."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Nothing, if it may be compiled."""
        _may_compile(self._name)


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """Writes code first, then the index that names it, and uses no name twice.

    numba does it the other way round and uses names again: where the disk is full or the process ends in between, or
    another one reads or writes meanwhile, a fresh index names code of an old source, which runs from then on.
    """

    beside: os.stat_result | None = None
    """What the system says of the folder of the sources, if the files lie beside them."""

    def _load_index(self) -> Any:
        """Read nothing that others could have written: it is unpickled."""
        self._require_own(Path(self._index_path))
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        """As of the index."""
        self._require_own(Path(self._data_path(name)))
        return super()._load_data(name)

    def _require_own(self, file: Path) -> None:
        """Raise ForeignFileError if others than those who may write to the sources could have made a file or its
        folder."""
        for path in (file.parent, file):
            try:
                reason = _foreign(path, self.beside)
            except FileNotFoundError:
                return
            if reason:
                raise ForeignFileError(
                    f"compiled code in {file.parent} is not used, and made anew with every start: {path} {reason}"
                )

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        """Write a file that only its owner can write to, whatever umask says, and that is there as a whole."""
        part = f"{filepath}{_PART}{os.urandom(8).hex()}"
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            with open(file, "wb") as stream:
                yield stream
            os.replace(part, filepath)
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise

    def save(self, key: Any, data: Any) -> None:
        """Keep code; remove files that the index does not name any more, and what was left half written."""
        with _one_process_at_a_time(Path(self._cache_path)):
            overloads = self._load_index()
            overloads[key] = self._data_name(int.from_bytes(os.urandom(6)))
            self._save_data(overloads[key], data)
            self._save_index(overloads)
            base = self._index_name.removesuffix(".nbi")
            old = time.time() - _LEFT
            for file in Path(self._cache_path).iterdir():
                is_code = file.suffix == ".nbc" and file.stem.rpartition(".")[0] == base
                is_part = file.name.startswith(f"{base}.") and _PART in file.name
                with suppress(OSError):
                    if (is_code and file.name not in overloads.values()) or (
                        is_part and file.stat().st_mtime < old
                    ):
                        file.unlink()


@contextmanager
def _one_process_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other process saves to a folder: it would remove code that no index names yet.

    Whoever may read a folder can hold its lock, so that nobody waits for ever. Without the lock a file may be lost,
    and its function is compiled once more.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # who may write there, but not read
        yield
        return
    try:
        end = time.monotonic() + _OTHERS_SAVE
        while not _locked(descriptor) and time.monotonic() < end:
            time.sleep(0.005)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Take the lock of an open folder; whether waiting is over: it is ours, or its file system has none."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _foreign(path: Path, beside: os.stat_result | None) -> str:
    """Return why others could have written a file or folder, as the end of a sentence; empty if they could not.

    Args:
        path: the file or folder.
        beside: the folder of the sources, if what lies beside them is meant: those who may write there may write here.
    """
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return "is a link"
    shared = 0 if beside is None else beside.st_mode & 0o022
    owners = {os.geteuid(), 0, os.stat("/").st_uid} | (set() if beside is None else {beside.st_uid})
    if status.st_uid not in owners and not shared:
        return f"belongs to another user (number {status.st_uid})"
    of_group = status.st_mode & 0o020 and beside is not None and status.st_gid != beside.st_gid
    if status.st_mode & 0o022 & ~shared or of_group:
        mode = stat.S_IMODE(status.st_mode)
        return f"can be written by other users (mode {mode:o}); if you trust them, chmod go-w {path}, else remove it"
    return ""


def trusted_folder(chosen: str, package: Path) -> str | None:
    """Return the folder in which numba shall keep compiled code; empty: beside the sources; None: nowhere.

    Args:
        chosen: what NUMBA_CACHE_DIR says.
        package: folder of the sources.
    """
    if chosen:
        reason = _unusable(Path(chosen))
        if not reason:
            return chosen
        _log.warning("NUMBA_CACHE_DIR is not used: %s", reason)
    elif _beside_sources(package):
        return ""
    try:
        return str(private_folder(cache_folder("numba")))
    except (OSError, RuntimeError) as error:  # the latter where a user has no home
        _log.warning("compiled code is not kept, and made anew with every start: %s", error)
    try:
        return str(temporary_folder())  # for processes of ours
    except OSError:
        return None


def _unusable(folder: Path) -> str:
    """Return why compiled code cannot be kept in a folder, in a few words; empty if it can."""
    try:
        reason = others_hand(folder)
        if not reason:
            make_folder(folder)
    except OSError as error:
        return f"{quoted(str(folder), 300)} cannot be used: {error.strerror}"
    if not reason and not os.access(folder, os.W_OK):
        return f"{folder} cannot be written to"
    return reason


def _beside_sources(package: Path) -> bool:
    """Check whether numba's files lie beside the sources, where only those can write who can write to the sources."""
    for source in {file.parent for file in package.rglob("*.py")}:
        cache = source / "__pycache__"
        if not os.access(cache if cache.exists() else source, os.W_OK):
            return False  # numba would go elsewhere
        if cache.is_symlink():
            return False
        if not cache.exists():
            continue
        of_source, of_cache = source.stat(), cache.stat()
        if of_cache.st_uid not in (of_source.st_uid, os.geteuid()):
            return False
        more = of_cache.st_mode & ~of_source.st_mode & 0o022
        if more or (of_cache.st_mode & 0o020 and of_cache.st_gid != of_source.st_gid):
            return False
    return True


_folder = trusted_folder(numba.config.CACHE_DIR, Path(__file__).parent)
numba.config.CACHE_DIR = _folder or ""
_PLACE = "beside the sources" if _folder == "" else f"in {_folder}"
announce_compiling("it cannot be kept" if _folder is None else f"it is kept {_PLACE}")
