"""Start configurations of a beam."""

from functools import lru_cache
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, frozen
from kinopt_ros.solvers.jax_lm.chain import LaneChain

RANGE = 0.95
"""Share of the range that is used: starts at a limit are poor ones."""


@lru_cache(maxsize=64)
def quasi_random(
    first: int, count: int, dimensions: int, seed: int
) -> Annotated[Float64, "dimensions count"]:
    """Return points of Roberts' sequence in [0, 1), from a given one on, shifted by a random vector.

    M. Roberts, "The unreasonable effectiveness of quasirandom sequences" (2018): multiples of the powers of 1/phi,
    where phi solves phi^(d+1) = phi + 1; random shift after R. Cranley and T. N. L. Patterson (1976).
    """
    phi = 2.0
    for _ in range(60):
        phi = (1.0 + phi) ** (1.0 / (dimensions + 1))
    alpha = phi ** -np.arange(1.0, dimensions + 1.0)
    shift = np.random.default_rng(seed).random(dimensions)
    points = (shift[:, None] + alpha[:, None] * np.arange(first + 1, first + count + 1)) % 1.0
    frozen(points)
    return points


def starts(
    low: Annotated[Float64, "n"], high: Annotated[Float64, "n"], first: int, count: int, seed: int
) -> Annotated[np.ndarray, "n count"]:
    """Return start values spread over ranges (rad or m), float32."""
    u = 0.5 + RANGE * (quasi_random(first, count, len(low), seed) - 0.5)
    return (low[:, None] + u * (high - low)[:, None]).astype(np.float32)


def start_table(chain: LaneChain, first: int, count: int, seed: int) -> Annotated[np.ndarray, "n count"]:
    """Return the starts of a chain, read-only."""
    return _start_table(chain.sample.tobytes(), first, count, seed)


@lru_cache(maxsize=64)  # keyed by value, since a chain as key would be kept, too
def _start_table(sample: bytes, first: int, count: int, seed: int) -> Annotated[np.ndarray, "n count"]:
    low, high = np.frombuffer(sample).reshape(2, -1)
    table = starts(low, high, first, count, seed)
    table.setflags(write=False)
    return table
