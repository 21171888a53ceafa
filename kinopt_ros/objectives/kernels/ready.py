"""Whether the verdict is compiled."""

import threading

import numba
import numpy as np

from kinopt_ros.numba_cache import loaded_or_compiled
from kinopt_ros.objectives.kernels.verdict import Claims, Plan, Verdict, judge

_compiling = threading.Lock()
_ready: bool | None = None
"""None: not asked yet."""


def load_or_compile(may_compile: bool) -> bool:
    """Make the kernel ready; return whether it is.

    It is loaded if it was compiled before, else compiled if that may be.
    """
    global _ready
    if _ready or (_ready is False and not may_compile):
        return _ready
    if not _compiling.acquire(blocking=may_compile):
        return False
    try:
        f, i, flags = ([np.empty((0,) * ndim, kind) for ndim in range(5)] for kind in (float, int, bool))
        arguments = (
            *Plan(i[1], i[1], i[1], i[1], f[2], f[2], f[4], i[1], f[3], i[2], i[1], f[2], f[2]),
            *Claims(f[2], f[2], i[1], i[1], f[2], f[2], i[1], f[2], f[2], f[2]),
            0.0,
            *Verdict(flags[1], f[2], f[2], flags[1]),
        )
        _ready = loaded_or_compiled(judge, tuple(map(numba.typeof, arguments)), may_compile)
    finally:
        _compiling.release()
    return _ready
