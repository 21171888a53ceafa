"""Seed configurations spread evenly over the joint ranges."""

from functools import lru_cache
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, frozen


@lru_cache(
    maxsize=64
)  # the costly part of packing a chain, which noise in a held joint makes happen in every call
def scrambled_halton(size: int, dimensions: int) -> Annotated[Float64, "size dimensions"]:
    """Return the first points of a scrambled Halton sequence in [0, 1); always the same ones.

    Digits are permuted, as plain Halton points are strongly correlated in high dimensions (Braaten and Weller,
    "An improved low-discrepancy sequence for multidimensional quasi-Monte Carlo integration", 1979).
    """
    generator = np.random.default_rng(20260101)
    points = np.zeros((size, dimensions))
    for j, base in enumerate(_primes(dimensions)):
        number, weight = np.arange(1, size + 1), 1.0 / base
        while weight > 1e-9:
            permutation = generator.permutation(base)
            points[:, j] += permutation[number % base] * weight
            number, weight = number // base, weight / base
    points = np.minimum(points, np.nextafter(1.0, 0.0))
    frozen(points)
    return points


AROUND = 0.12
"""Share of the points that lie around one, if it is in the middle."""


@lru_cache(maxsize=64)
def neighbours(size: int, dimensions: int) -> Annotated[Bool, "size size"]:
    """Return which of the points of ``scrambled_halton`` lie around which, in a box; each lies around itself."""
    points = scrambled_halton(size, dimensions)
    reach = 1.0 - np.sqrt(1.0 - AROUND ** (1.0 / max(dimensions, 1)))
    near = np.ones((size, size), dtype=np.bool_)
    for values in points.T:
        near &= np.abs(values[:, None] - values) <= reach
    frozen(near)
    return near


def _primes(count: int) -> list[int]:
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    return primes
