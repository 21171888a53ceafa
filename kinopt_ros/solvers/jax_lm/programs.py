"""Compiled programs: made once per structure and size, kept in memory and on disk.

What is compiled is somebody else's (``Compilation``): its name says all that decides whether a program can be used
again. Loading one from disk takes a tenth of a second, and needs no tracing, which JAX's own cache does.

A program on disk is a pickle, and code: it is read only from where nobody else can write to (``private_files.py``).
"""

import logging
import pickle
import re
import threading
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import jax
from jax.experimental import serialize_executable

from kinopt_ros.errors import KinoptError
from kinopt_ros.pauses import wait_until_nothing_moves
from kinopt_ros.private_files import PrivateFolder, cache_folder, temporary_folder
from kinopt_ros.solvers.jax_lm.runtime import Runtime, look_up_lapack
from kinopt_ros.solvers.lru import LruCache

IN_MEMORY = 128
ON_DISK = 400
"""Most programs kept on disk (about 1.5 MB each); the longest unused ones go first."""
NAMES_ON_DISK = 4 * ON_DISK
"""Most names of programs kept beside them."""
MOST_WANTED = 32
"""Most programs that wait for the compiler, which takes seconds for each, if one request does not want more."""
PATIENCE = 5.0
"""Longest time that keeping a program on disk waits until no robot moves, s: to serialize it takes XLA one step of up
to 0.2 s with Python's lock."""
MOST_BYTES = 256 * 2**20
"""Largest program on disk, bytes."""
_NAME, _NAME_BYTES = re.compile("[0-9a-f]{32}"), 200
Program: TypeAlias = Callable[..., Any]
K = TypeVar("K", bound=Hashable)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Compilation:
    """How a program is made, if there is none of its name on disk."""

    name: Callable[[], str]
    """Digest of all that the program depends on; it may take seconds, as for what has to be traced."""
    compiled: Callable[[], Any]
    known_as: str | None = None
    """Digest of all that the name follows from, if that is known sooner: the name is kept by it."""


class Programs(Generic[K]):
    """Compiled programs by key, in memory and on disk. Thread-safe."""

    def __init__(self, runtime: Runtime, compilation: Callable[[Runtime, K], Compilation]) -> None:
        """``runtime``: where programs run; ``compilation``: what is done for a key that is not in memory."""
        self.runtime = runtime
        self._compilation = compilation
        self.compiled = 0
        """Number of programs that were compiled, rather than found, since this object exists."""
        self._folder, self._names = _folder(".program", MOST_BYTES), _folder(".name", _NAME_BYTES)
        self._lock = threading.Lock()
        self._making: dict[K, threading.Lock] = {}
        self._programs: LruCache[K, Program] = LruCache(IN_MEMORY)
        self._background: threading.Thread | None = None
        self._wanted: list[K] = []
        self._refused: LruCache[K, tuple[type[KinoptError], str]] = LruCache(IN_MEMORY)
        """Why a program cannot be made, in the background, for whoever asks again."""

    def missing(self, keys: Iterable[K]) -> list[K]:
        """Return the keys of programs that are not in memory."""
        with self._lock:
            return [key for key in keys if key not in self._programs]

    def check_can_be_made(self, keys: Iterable[K]) -> None:
        """Raise the KinoptError by which one of some programs could not be made in the background."""
        with self._lock:
            found = next((why for key in keys if (why := self._refused.get(key)) is not None), None)
        if found is not None:
            kind, sentence = found
            raise kind(sentence)

    def get(self, key: K) -> Program:
        """Return a program; load or compile it if need be."""
        with self._lock:
            program = self._programs.get(key)
            if program is not None:
                return program
            making = self._making.setdefault(key, threading.Lock())
        name = None
        with making:  # others that want the same one wait; the rest do not
            with self._lock:
                program = self._programs.get(key)
            if program is None:
                try:
                    program, name = self._make(key)
                    with self._lock:
                        self._programs.put(key, program)
                finally:
                    with self._lock:
                        self._making.pop(key, None)
        if name is not None:  # which others need not wait for
            _save(self._folder, name, program)
        return program

    def make_in_background(self, keys: Iterable[K]) -> None:
        """See to it that programs will be there, without waiting for them.

        Those asked for last come first, and those asked for longest ago are forgotten if too many wait: whoever still
        wants something asks again, and need not wait for what others wanted once.
        """
        with self._lock:
            first = dict.fromkeys(keys)
            wanted = dict.fromkeys([*first, *self._wanted])
            self._wanted = list(wanted)[: max(MOST_WANTED, len(first))]
            if self._background is None or not self._background.is_alive():
                # No daemon: where Python ends in the middle of XLA's compiler, the process is aborted.
                self._background = threading.Thread(target=self._work, name="jax_lm compiler")
                self._background.start()

    def stop(self) -> None:
        """Make no further programs in the background."""
        with self._lock:
            self._wanted.clear()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._wanted or not threading.main_thread().is_alive():
                    self._background = None
                    return
                key = self._wanted.pop(0)
            try:
                self.get(key)
            except KinoptError as error:  # somebody's cost is wrong: told when it is asked for again
                with self._lock:
                    self._refused.put(key, (type(error), str(error)))
            except Exception:
                _log.exception("a program could not be compiled")

    def _make(self, key: K) -> tuple[Program, str | None]:
        """Return a program, and the name by which it is to be kept if it was not."""
        # On a thread of its own, where nothing holds that the caller has set for his: meshes, devices, precision.
        with ThreadPoolExecutor(1, "jax_lm compiler") as thread:
            return thread.submit(self._loaded_or_compiled, key).result()

    def _loaded_or_compiled(self, key: K) -> tuple[Program, str | None]:
        with jax.enable_x64(True), jax.default_device(self.runtime.device):
            compilation = self._compilation(self.runtime, key)
            name = _name(self._names, compilation)
            program: Program | None = _load(self._folder, name, self.runtime.device)
            if program is not None:
                return program, None
            program = compilation.compiled()
            self.compiled += 1
            return program, name


def _folder(suffix: str, most_bytes: int) -> PrivateFolder:
    try:
        path = cache_folder("jax_lm")
    except RuntimeError:  # a user without a home
        path = temporary_folder() / "jax_lm"
    return PrivateFolder(path, suffix, b"compiled program of kinopt_ros\n", most_bytes)


def _name(folder: PrivateFolder, compilation: Compilation) -> str:
    """Return the name of a program, as it is kept or found out."""
    known = compilation.known_as
    if known is None:
        return compilation.name()
    try:
        kept = folder.read(known).decode()
        if _NAME.fullmatch(kept):
            return kept
        raise ValueError("no name")
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # foreign or damaged
        _log.warning(
            "the name of a compiled program, %s in %s, is found out anew: %s", known, folder.path, error
        )
    name = compilation.name()
    try:
        folder.write(known, name.encode())
        folder.prune(NAMES_ON_DISK, NAMES_ON_DISK * _NAME_BYTES)
    except (OSError, ValueError) as error:  # it is found out again next time
        _log.warning("the name of a compiled program cannot be kept in %s: %s", folder.path, error)
    return name


def _load(folder: PrivateFolder, name: str, device: jax.Device) -> Program | None:
    try:
        content = folder.read(name)
        # The one place that unpickles: nobody but this user can have written it.
        serialized, in_tree, out_tree = pickle.loads(content)
        look_up_lapack()
        # Without a device, JAX loads it for all that there are, and refuses to run it.
        program: Program = serialize_executable.deserialize_and_load(
            serialized, in_tree, out_tree, device.client, [device]
        )
    except FileNotFoundError:
        return None
    except Exception as error:  # foreign, damaged, or of another machine: compile anew
        _log.warning("compiled program %s in %s is made anew: %s", name, folder.path, error)
        return None
    return program


def _save(folder: PrivateFolder, name: str, program: Any) -> None:
    if not wait_until_nothing_moves(PATIENCE):
        return  # compiled again next time
    try:
        folder.write(name, pickle.dumps(serialize_executable.serialize(program)))
        folder.prune(ON_DISK, ON_DISK * MOST_BYTES)
    except (OSError, ValueError) as error:  # it works all the same, and compiles again next time
        _log.warning("compiled program cannot be kept in %s: %s", folder.path, error)
