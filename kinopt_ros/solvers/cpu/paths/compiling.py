"""Memory of the optimization kernel, and its compilation, or loading what was compiled before."""

import threading
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

from kinopt_ros.array import Int64
from kinopt_ros.errors import NotReadyError
from kinopt_ros.numba_cache import loaded_or_compiled
from kinopt_ros.solvers.cpu.paths.kernels import connect, levenberg_marquardt, nearness_cost, tasks
from kinopt_ros.solvers.cpu.paths.kernels.vectors import CHUNK
from kinopt_ros.solvers.cpu.paths.surroundings import Around

_lock = threading.Lock()
_ready = False


def check_compiled() -> None:
    """Raise ``NotReadyError`` unless the kernel is ready, or lies on disk."""
    if not (_ready or load_or_compile(may_compile=False)):
        raise NotReadyError(
            "optimizing trajectories has to be compiled once per machine for solver cpu, which no deadline waits for; "
            "call its warm_up() before"
        )


def load_or_compile(may_compile: bool) -> bool:
    """Make the kernel ready; return whether it is.

    It is loaded if it was compiled before, else compiled if that may be.

    While another thread compiles, one that may not does not wait for it.
    """
    global _ready
    if _ready or not _lock.acquire(blocking=may_compile):
        return _ready
    try:
        for function, arguments in _compiled():
            signature = tuple(numba.typeof(argument) for argument in arguments)
            if not loaded_or_compiled(function, signature, may_compile):
                return False
        _ready = True
    finally:
        _lock.release()
    return True


def workspace(T: int, n: int, M: int, S: int, B: int) -> tuple[Any, ...]:
    """Return the memory that ``nearness.py`` works in."""
    return (
        np.empty(n),
        np.empty(n),
        np.empty((M, 12)),
        np.empty((S, 3)),
        np.empty((B, 3)),
        np.empty((T, S)),
        np.empty(S),
        np.zeros(M, dtype=np.bool_),
        np.empty((M, 6)),
        np.empty((M, 6, 6)),
        np.empty((M, 6)),
        np.empty(n),
        np.empty((n, n)),
    )


def store(T: int, n: int, M: int, S: int, B: int, last: Int64) -> tuple[Any, ...]:
    """Return the memory that the kernel works in."""
    width = int((last - np.arange(T)).max() + 1) * n
    rows = tasks.ROWS
    return (
        np.empty((T, M, 12)),
        np.empty((T, S, 3)),
        np.empty((2, T, n)),
        np.empty((2, T, n, n)),
        np.empty((2, T, n, n)),
        np.empty((2, T, n)),
        np.empty((2, T, 5, n)),
        np.zeros((T, n, width + CHUNK)),
        np.empty(T * n + CHUNK),
        np.empty((T, n)),
        workspace(T, n, M, S, B),
        (
            np.zeros((rows, n)),
            np.zeros(rows),
            np.zeros((rows, 3)),
            np.zeros((3, 12)),
            np.zeros(3, dtype=np.bool_),
        ),
        np.zeros(2),
        (np.empty((T, n)), np.empty((T, n, n)), np.empty(3)),
    )


def _model() -> tuple[Any, Any, Any]:
    """Return empty arguments tree, around and anchors of the kernel."""
    f1, f2, f3 = np.empty(0), np.empty((0, 0)), np.empty((0, 0, 0))
    i1, i2 = np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.int64)
    b1, b2 = np.empty(0, dtype=np.bool_), np.empty((0, 0), dtype=np.bool_)
    around = Around(i1, f2, f1, f1, i1, b2, f2, i2, i1, i1, f2, i1, f1, i2, i1)
    return (i1, f2, b1, i1, f1, f1), around, (f2, f3, f2)


def _compiled() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield functions and empty arguments of the types that they are called with."""
    f1, f2, f3 = np.empty(0), np.empty((0, 0)), np.empty((0, 0, 0))
    i1, i2, b1 = np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.int64), np.empty(0, dtype=np.bool_)
    yield levenberg_marquardt.anchor_path, (*_model(), f2, 0.0)
    yield levenberg_marquardt.score_paths, (*_model(), f3, 0.0, 0.0, workspace(1, 1, 1, 1, 1), f1, f1)
    trees = f2, f3, i2, i1  # draws, nodes, parents, counts
    work = connect.work_of(1, 1, 1, 1)
    yield connect.set_reach, (*_model()[:2], f2, work)
    yield connect.grow, (*_model(), 0.0, *trees, work, i1, 0)
    yield connect.shorten, (*_model(), 0.0, f2, 0, f2, f2, work, i1)
    yield nearness_cost.sphere_distances, (*_model()[:2], f2, 0.0, workspace(1, 1, 1, 1, 1), f2, i2, f2)
    memory = store(1, 1, 1, 1, 1, np.zeros(1, dtype=np.int64))
    costs = (f1, f2, f2, f1, f2, i1, f1, f1, f2)
    yield (
        levenberg_marquardt.improve,
        (*_model(), (f2, f2, f2), (f2, i2), costs, i1, b1, f2, f2, f2, (f2, f3, i1, i1), memory, f1, 0),
    )
