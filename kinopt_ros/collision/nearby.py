"""Trees of the spheres around many shapes, by which compiled loops pass over those that are far off."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.collision.kernels.memory import WORDS
from kinopt_ros.collision.trees import item_tree

FEWEST = 32
"""Spheres from which on a tree pays."""
MOST = 64 * WORDS
"""Spheres that a set of bits has room for."""
PER_LEAF = 8
_CAREFUL = 1e-9
"""Share of its place and size by which a sphere is larger in the tree, so that rounding takes none out."""


def sphere_tree(centres: Annotated[Float64, "n 3"], reaches: Annotated[Float64, "n"]) -> Float64 | None:
    """Return the tree of n spheres (m; infinite for shapes without end), as ``kernels/nearby.py`` reads it.

    None if there are so few, or so many, that looking at one after the other is as good.
    """
    if not FEWEST <= len(reaches) <= MOST:
        return None
    finite, endless = np.flatnonzero(np.isfinite(reaches)), np.flatnonzero(~np.isfinite(reaches))
    if len(finite) < FEWEST:
        return None
    centres, reaches = centres[finite], reaches[finite]
    larger = reaches + _CAREFUL * (reaches + np.abs(centres).max(axis=1))
    items = np.column_stack([centres, larger, finite])
    low, high = centres - larger[:, None], centres + larger[:, None]
    tree = item_tree(items, centres, low, high, PER_LEAF, extra=len(endless))
    return np.concatenate([tree, endless])
