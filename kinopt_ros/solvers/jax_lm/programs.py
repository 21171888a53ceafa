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
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import jax
from jax.experimental import serialize_executable

from kinopt_ros.compiler_notice import CompilerNotice
from kinopt_ros.errors import KinoptError, SolverUnavailableError, said_by
from kinopt_ros.freed_memory import give_back
from kinopt_ros.pauses import wait_until_nothing_moves
from kinopt_ros.private_files import PrivateFolder, cache_folder, temporary_folder
from kinopt_ros.solvers.jax_lm.runtime import Runtime, look_up_lapack
from kinopt_ros.solvers.lru import LruCache

IN_MEMORY, FEWEST = 128, 6
"""Most programs kept in memory, and how many are kept whatever they take: those of three objectives."""
MOST_MEMORY, MOST_FOR_OBJECTIVES = 100e6, 400e6
"""Memory that the programs of beams, and of objectives, may take besides those that are kept for good, bytes."""
MEMORY_PER_BYTE = 25.0
"""What one takes in memory for each byte on disk: 13 to 88 MB for 0.8 to 3.5 MB, measured with XLA 0.10 on a CPU."""
_USUAL_BYTES = 2_000_000
"""What a program takes on disk, as long as that is not known, bytes."""
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

    def __init__(
        self,
        runtime: Runtime,
        compilation: Callable[[Runtime, K], Compilation],
        most_memory: float = MOST_MEMORY,
    ) -> None:
        """
        Args:
            runtime: where programs run.
            compilation: what is done for a key that is not in memory.
            most_memory: that they may take besides those that are kept for good, bytes.
        """
        self.runtime = runtime
        self._compilation = compilation
        self.compiled = 0
        """Number of programs that were compiled, rather than found, since this object exists."""
        self._folder, self._names = _folder(".program", MOST_BYTES), _folder(".name", _NAME_BYTES)
        self._notice = CompilerNotice(f"it is kept in {self._folder.path}")
        self._lock = threading.Lock()
        self._making: dict[K, threading.Lock] = {}
        self._programs: LruCache[K, Program] = LruCache(IN_MEMORY, most_memory, FEWEST)
        self._for_good: dict[K, Program] = {}
        self._background: threading.Thread | None = None
        self._wanted: list[K] = []
        self._refused: LruCache[K, tuple[type[KinoptError], str]] = LruCache(IN_MEMORY)
        """Why a program cannot be made, in the background, for whoever asks again; what is no fault of a cost is told
        once, and then tried again, as memory may have run out."""

    def keep(self) -> None:
        """Keep the programs that are in memory now for good: what the options of a solver ask for."""
        with self._lock:
            self._for_good |= self._programs.take_all()

    def _known(self, key: K) -> Program | None:
        """Return a program that is in memory. The lock is held."""
        return self._for_good.get(key) or self._programs.get(key)

    def missing(self, keys: Iterable[K]) -> list[K]:
        """Return the keys of programs that are not in memory."""
        with self._lock:
            return [key for key in keys if key not in self._for_good and key not in self._programs]

    def check_can_be_made(self, keys: Iterable[K]) -> None:
        """Raise the KinoptError by which one of some programs could not be made in the background; one that failed by
        no fault of a cost is tried again after that."""
        with self._lock:
            for key in keys:
                why = self._refused.get(key)
                if why is None:
                    continue
                kind, sentence = why
                if kind is SolverUnavailableError:
                    self._refused.pop(key)
                raise kind(sentence)

    def get(self, key: K) -> Program:
        """Return a program; load or compile it if need be. Callers who wait for the compiler are told so, once."""
        with self._lock:
            program = self._known(key)
            if program is not None:
                return program
            making = self._making.setdefault(key, threading.Lock())
        name, gone = None, 0
        with making:  # others that want the same one wait; the rest do not
            with self._lock:
                program = self._known(key)
            if program is None:
                try:
                    program, name, size = self._make(key)
                    with self._lock:
                        gone = self._programs.put(key, program, MEMORY_PER_BYTE * size)
                finally:
                    with self._lock:
                        self._making.pop(key, None)
        if name is not None:  # which others need not wait for
            size = _save(self._folder, name, program)
            with self._lock:
                gone += self._programs.weigh(key, MEMORY_PER_BYTE * size)
        if gone:  # what is free is kept by the C library, and the process would seem to grow
            give_back()
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
                self._refuse(key, type(error), str(error))
            except Exception as error:
                _log.exception("a program could not be compiled")
                sentence = f"its program could not be compiled: {said_by(error)}"
                self._refuse(key, SolverUnavailableError, sentence)

    def _refuse(self, key: K, kind: type[KinoptError], sentence: str) -> None:
        with self._lock:
            self._refused.put(key, (kind, sentence))

    def _make(self, key: K) -> tuple[Program, str | None, int]:
        """Return a program, the name by which it is to be kept if it was not, and its bytes on disk."""
        nobody_waits = threading.current_thread() is self._background
        at_work = nullcontext() if nobody_waits else self._notice.compiling("a program of jax_lm")
        # On a thread of its own, where nothing holds that the caller has set for his: meshes, devices, precision. No
        # daemon, whoever calls: where Python ends in the middle of XLA's compiler, the process is aborted.
        made: Future[tuple[Program, str | None, int]] = Future()

        def make() -> None:
            try:
                made.set_result(self._loaded_or_compiled(key, at_work))
            except BaseException as error:
                made.set_exception(error)

        threading.Thread(target=make, name="jax_lm at work", daemon=False).start()
        return made.result()

    def _loaded_or_compiled(
        self, key: K, at_work: AbstractContextManager[None]
    ) -> tuple[Program, str | None, int]:
        with jax.enable_x64(True), jax.default_device(self.runtime.device):
            compilation = self._compilation(self.runtime, key)
            name = _name(self._names, compilation)
            loaded = _load(self._folder, name, self.runtime.device)
            if loaded is not None:
                program, size = loaded
                return program, None, size
            with at_work:
                program = compilation.compiled()
            self.compiled += 1
            return program, name, _USUAL_BYTES


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


def _load(folder: PrivateFolder, name: str, device: jax.Device) -> tuple[Program, int] | None:
    """Return a program, and its bytes on disk; None if it is not there."""
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
    return program, len(content)


def _save(folder: PrivateFolder, name: str, program: Any) -> int:
    """Keep a program on disk; return its bytes there, or what is usual if it is not kept."""
    if not wait_until_nothing_moves(PATIENCE):
        return _USUAL_BYTES  # compiled again next time
    content = b""
    try:
        content = pickle.dumps(serialize_executable.serialize(program))
        folder.write(name, content)
        folder.prune(ON_DISK, ON_DISK * MOST_BYTES)
    except (OSError, ValueError) as error:  # it works all the same, and compiles again next time
        _log.warning("compiled program cannot be kept in %s: %s", folder.path, error)
    return len(content) or _USUAL_BYTES
