"""Compiled programs: made once per structure and size, kept in memory and on disk.

Nothing but a program's key decides whether it can be used again: shapes of chain, rows and beam, number of targets,
device, versions of JAX, and the source of what is compiled. Loading one from disk takes a tenth of a second and needs
no tracing, which JAX's own cache does.

A program on disk is a pickle, and code: it is read only from where nobody else can write to (``private_files.py``).
"""

import hashlib
import logging
import pickle
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.experimental import serialize_executable
from jax.experimental.xla_metadata import set_xla_metadata

from kinopt_ros.differentiable import components
from kinopt_ros.private_files import PrivateFolder, cache_folder, temporary_folder
from kinopt_ros.solvers import turns
from kinopt_ros.solvers.jax_lm.beam import FEW, beam
from kinopt_ros.solvers.jax_lm.runtime import Runtime
from kinopt_ros.solvers.jax_lm.shapes import ProgramKey
from kinopt_ros.solvers.lru import LruCache

IN_MEMORY = 128
ON_DISK = 400
"""Most programs kept on disk (about 1.5 MB each); the longest unused ones go first."""
MOST_WANTED = 32
"""Most programs that wait for the compiler, which takes seconds for each, if one request does not want more."""
MOST_BYTES = 256 * 2**20
"""Largest program on disk, bytes."""
ONE_KERNEL = 128
"""Most lanes of programs for CPUs that are compiled as a whole."""
Program: TypeAlias = Callable[..., jax.Array]
_log = logging.getLogger(__name__)


class Programs:
    """Compiled programs, in memory and on disk. Thread-safe."""

    def __init__(self, runtime: Runtime) -> None:
        """``runtime``: where programs run."""
        self.runtime = runtime
        self.compiled = 0
        """Number of programs that were compiled, rather than found, since this object exists."""
        self._folder = _folder()
        self._lock = threading.Lock()
        self._making: dict[ProgramKey, threading.Lock] = {}
        self._programs: LruCache[ProgramKey, Program] = LruCache(IN_MEMORY)
        self._background: threading.Thread | None = None
        self._wanted: list[ProgramKey] = []

    def missing(self, keys: Iterable[ProgramKey]) -> list[ProgramKey]:
        """Return the keys of programs that are not in memory."""
        with self._lock:
            return [key for key in keys if key not in self._programs]

    def get(self, key: ProgramKey) -> Program:
        """Return a program; load or compile it if need be."""
        with self._lock:
            program = self._programs.get(key)
            if program is not None:
                return program
            making = self._making.setdefault(key, threading.Lock())
        with making:  # others that want the same one wait; the rest do not
            with self._lock:
                program = self._programs.get(key)
            if program is None:
                program = self._make(key)
                with self._lock:
                    self._programs.put(key, program)
            return program

    def make_in_background(self, keys: Iterable[ProgramKey]) -> None:
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
            except Exception:
                _log.exception("a program could not be compiled")

    def _make(self, key: ProgramKey) -> Program:
        # On a thread of its own, where nothing holds that the caller has set for his: meshes, devices, precision.
        with ThreadPoolExecutor(1, "jax_lm compiler") as thread:
            return thread.submit(self._loaded_or_compiled, key).result()

    def _loaded_or_compiled(self, key: ProgramKey) -> Program:
        name = _digest(self.runtime.fingerprint, key)
        with jax.enable_x64(True), jax.default_device(self.runtime.device):
            program: Program | None = _load(self._folder, name, self.runtime.device)
            if program is None:
                program = _compile(self.runtime, key)
                self.compiled += 1
                _save(self._folder, name, program)
        return program


def _folder() -> PrivateFolder:
    try:
        path = cache_folder("jax_lm")
    except RuntimeError:  # a user without a home
        path = temporary_folder() / "jax_lm"
    return PrivateFolder(path, ".program", b"compiled program of kinopt_ros\n", MOST_BYTES)


def _compile(runtime: Runtime, key: ProgramKey) -> Any:
    n, S, B = key.chain.variables, key.size.num_seeds, key.targets
    function: Callable[..., jax.Array] = partial(beam, key.chain, key.rows, key.size)
    options = dict(runtime.compiler_options)
    if runtime.on_cpu and S > 1 and S * B <= ONE_KERNEL and key.size.keep <= FEW:
        function = _one_kernel(function)
        options["xla_cpu_prefer_vector_width"] = 512  # 4 us less of 60 where processors have it
    lowered = jax.jit(function).lower(
        np.empty(len(key.chain.exact) + 12 + 4 * n + 18),
        np.empty((4, n), np.float32),
        np.empty((B, 12 + 2 * n)),
        np.empty((n, S * B), np.float32),
    )
    return lowered.compile(compiler_options=options)


def _one_kernel(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """The function as one call that XLA compiles as a whole, loops and all. (Others are run as hundreds of kernels, on
    several threads, which for few lanes takes five times as long as what they compute.)

    What says so is no public interface: versions of XLA that do not know it only take longer. With a single
    start, where the table of starts is of no use, XLA 0.10 aborts the process: such programs are left as they are.
    """
    inner = jax.jit(function)

    def outer(*arguments: jax.Array) -> jax.Array:
        found: jax.Array = set_xla_metadata(  # type: ignore[no-untyped-call]
            inner(*arguments), xla_cpu_small_call="true", inlineable="false"
        )
        return found

    return outer


def _load(folder: PrivateFolder, name: str, device: jax.Device) -> Program | None:
    try:
        content = folder.read(name)
        # The one place that unpickles: nobody but this user can have written it.
        serialized, in_tree, out_tree = pickle.loads(content)
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
    try:
        folder.write(name, pickle.dumps(serialize_executable.serialize(program)))
        folder.prune(ON_DISK, ON_DISK * MOST_BYTES)
    except (OSError, ValueError) as error:  # it works all the same, and compiles again next time
        _log.warning("compiled program cannot be kept in %s: %s", folder.path, error)


def _digest(fingerprint: str, key: ProgramKey) -> str:
    return hashlib.sha256(f"{fingerprint}\n{_source()}\n{key!r}".encode()).hexdigest()[:32]


@cache
def _source() -> str:
    digest = hashlib.sha256()
    for file in (
        *sorted(Path(__file__).parent.glob("*.py")),
        Path(components.__file__),
        Path(turns.__file__),
    ):
        digest.update(file.read_bytes())
    return digest.hexdigest()
