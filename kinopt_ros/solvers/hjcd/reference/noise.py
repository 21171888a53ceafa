"""Random numbers by counter: the same ones on every device, whatever runs first.

A number is a hash of (seed, lane, step, which), so no lane waits for another one, and none has a state.
M. Jarzynski and M. Olano, "Hash functions for GPU rendering", J. Computer Graphics Techniques 9(3), 2020 (``pcg``).
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64

_U32 = np.uint32


def hashed(value: np.ndarray) -> np.ndarray:
    """Compute Jarzynski and Olano's ``pcg`` of 32-bit numbers."""
    state = value * _U32(747796405) + _U32(2891336453)
    word = ((state >> ((state >> _U32(28)) + _U32(4))) ^ state) * _U32(277803737)
    return np.asarray((word >> _U32(22)) ^ word)


def uniform(seed: int, lane: int, step: int, count: int) -> Annotated[Float64, "count"]:
    """Return numbers in (0, 1), multiples of 2^-24 and a half."""
    key = np.asarray(seed & 0xFFFFFFFF, dtype=_U32)
    for part in (lane, step):
        key = hashed(key[None])[0] ^ np.asarray(part, dtype=_U32)
    bits = hashed(hashed(key[None]) ^ np.arange(count, dtype=_U32))
    return np.asarray(((bits >> _U32(8)).astype(np.float64) + 0.5) * 2.0**-24)


def normal(seed: int, lane: int, step: int, count: int) -> Annotated[Float64, "count"]:
    """Return standard normal numbers, after G. E. P. Box and M. E. Muller (1958)."""
    u = uniform(seed, lane, step, 2 * count)
    return np.asarray(np.sqrt(-2.0 * np.log(u[0::2])) * np.cos(2.0 * np.pi * u[1::2]))
