"""Loading of kernels; requests with a deadline never wait for the compiler."""

import threading
from typing import Any

from kinopt_ros.errors import NotReadyError
from kinopt_ros.solvers.hjcd.chain import ChainShape

_loading = threading.RLock()
"""Held while kernels are defined, compiled or loaded: Warp's modules are those of the process."""


class Kernels:
    """Kernels of one algorithm on one device. Thread-safe."""

    def __init__(self, algorithm: Any) -> None:
        self._algorithm = algorithm
        self._ready: set[ChainShape] = set()
        self._failed: dict[ChainShape, Exception] = {}
        self._threads: dict[ChainShape, threading.Thread] = {}
        self._lock = threading.Lock()
        self._stopped = False

    @property
    def loaded(self) -> tuple[ChainShape, ...]:
        """Shapes of chains whose kernels are loaded."""
        return tuple(self._ready.copy())

    def load(self, shape: ChainShape) -> None:
        """Compile what chains of a shape need, or load what was compiled before; nothing if that was done."""
        if shape in self._ready:
            return
        with _loading:
            self._algorithm.load(shape)
        self._ready.add(shape)

    def need(self, shape: ChainShape, may_wait: bool) -> None:
        """Load kernels, or have another thread do it.

        Raises:
            NotReadyError: it is not loaded, and there is no time to wait.
        """
        if may_wait:
            self.load(shape)
        if shape in self._ready:
            return
        with self._lock:
            failure = self._failed.pop(shape, None)
            if failure is not None:
                del self._threads[shape]
                raise failure
            if shape not in self._threads:
                thread = threading.Thread(
                    target=self._load_aside, args=(shape,), name="hjcd compiler", daemon=True
                )
                self._threads[shape] = thread
                thread.start()
        raise NotReadyError(
            f"solver hjcd compiles kernels for chains of {shape.variables} variables, which no deadline waits for; ask "
            "again later, or name a group with such a chain in hjcd.groups"
        )

    def stop(self) -> None:
        """Compile nothing beside requests any more, but for what has begun."""
        self._stopped = True

    def wait(self) -> None:
        """Wait until no thread compiles."""
        for thread in list(self._threads.values()):
            thread.join()

    def _load_aside(self, shape: ChainShape) -> None:
        try:
            with _loading:  # those that have not begun wait here
                if not self._stopped:
                    self.load(shape)
        except Exception as error:  # told to the next one who asks
            self._failed[shape] = error
