"""Seed configurations spread evenly over the joint ranges."""

from functools import lru_cache
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, frozen


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


def _primes(count: int) -> list[int]:
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    return primes
