"""OctoMap's serialized trees: occupied leaves of what octomap_msgs and ``.bt`` and ``.ot`` files hold, and back.

A tree has 16 levels about the origin; its root's edge is 2^16 times the resolution. Nodes are written depth first, the
children of each in the order of their index, whose bits 0, 1, 2 are the sides in x, y, z.

- Binary: two bytes per node that has children, two bits per child: 0 unknown, 1 free, 2 occupied, 3 has children.
- Full: per node the logarithm of its odds (float32, little endian) and a byte that says which children there are; a
  node without children is a leaf, occupied from 0 on (a probability of 0.5).

Source: OctoMap 1.10, ``OcTreeBaseImpl::writeData`` and ``OccupancyOcTreeBase::writeBinaryNode``.
"""

import math
from collections.abc import Iterable
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.shapes import LARGEST, MAX_POINTS, SMALLEST, Octomap

LEVELS = 16
"""Levels below the root."""
MOST_BYTES = 16_000_000
"""Longest serialization that is read; a second of work per two million."""
_ON_GRID = 1e-3
"""Largest distance of a voxel from the grid that is taken as rounding, in edges of the smallest voxel."""
_FREE, _OCCUPIED, _INNER = 1, 2, 3
_NODE = 5
"""Bytes of a node of the full serialization."""


def read_octree(data: bytes, resolution: float, binary: bool) -> Octomap | None:
    """Return the occupied leaves of a serialized tree.

    Args:
        data: serialized tree, without the header of files.
        resolution: edge of the smallest voxels, m.
        binary: whether it is the binary serialization.

    Returns:
        The leaves as cubes; None if nothing is occupied.

    Raises:
        InvalidShapeError: it is none, or too large.
    """
    if not (math.isfinite(resolution) and SMALLEST <= resolution <= LARGEST):
        raise InvalidShapeError(
            f"the resolution of an octomap is {resolution:g}; allowed is at least {SMALLEST:g} m and at most "
            f"{LARGEST:g} m"
        )
    if len(data) > MOST_BYTES:
        raise InvalidShapeError(f"an octomap has {len(data)} bytes; allowed are {MOST_BYTES}")
    leaves, used = (_binary_leaves if binary else _full_leaves)(data)
    if used != len(data):
        raise InvalidShapeError(
            f"an octomap has {len(data)} bytes, and its tree ends after {used} of them; is it of another kind "
            f"({'full' if binary else 'binary'}, or with colours)?"
        )
    if not leaves:
        return None
    rows = np.array(leaves, dtype=np.int64)
    sizes = resolution * np.exp2(LEVELS - rows[:, 0])
    half = 0.5 * resolution * 2.0**LEVELS
    return Octomap((rows[:, 1:] + 0.5) * sizes[:, None] - half, sizes)


def write_octree(octomap: Octomap) -> tuple[bytes, float]:
    """Return the binary serialization of an octomap, and its resolution (m).

    Raises:
        InvalidShapeError: its cubes are no leaves of one tree about the origin: elsewhere than on its grid, larger than
            each other by other factors than powers of two, or within one another.
    """
    resolution = float(octomap.sizes.min())
    depth, keys = _keys(octomap, resolution)
    tree: dict[int, Any] = {}
    for level, (x, y, z) in zip(depth.tolist(), keys.tolist(), strict=True):
        children = [
            (x >> below & 1) | (y >> below & 1) << 1 | (z >> below & 1) << 2
            for below in range(level - 1, -1, -1)
        ]
        node: Any = tree
        for child in children[:-1]:
            node = node.setdefault(child, {})
            if node is None:
                break
        if node is None or children[-1] in node:
            raise InvalidShapeError("an octomap has cubes within one another: it is no tree")
        node[children[-1]] = None
    words: list[int] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        words.append(sum((_OCCUPIED if node[i] is None else _INNER) << 2 * i for i in node))
        waiting.extend(node[i] for i in sorted(node, reverse=True) if node[i] is not None)
    return np.array(words, dtype="<u2").tobytes(), resolution


def _keys(octomap: Octomap, resolution: float) -> tuple[Annotated[Int64, "N"], Annotated[Int64, "N 3"]]:
    """Return the levels of cubes and their places on the grids of these."""
    above = np.log2(octomap.sizes / resolution)
    depth = LEVELS - np.rint(above).astype(np.int64)
    places: Float64 = (octomap.centers + 0.5 * resolution * 2.0**LEVELS) / octomap.sizes[:, None] - 0.5
    keys = np.rint(places).astype(np.int64)
    off = np.abs(places - keys) * (octomap.sizes / resolution)[:, None]
    if (
        np.abs(above - np.rint(above)).max() > _ON_GRID
        or off.max() > _ON_GRID
        or depth.min() < 1
        or (keys < 0).any()
        or (keys >= (1 << depth)[:, None]).any()
    ):
        raise InvalidShapeError(
            f"an octomap has cubes that are not on the grid of a tree about the origin with a resolution of "
            f"{resolution:g} m"
        )
    return depth, keys


def _children(word: int, kind: int) -> Iterable[int]:
    return (i for i in range(8) if word >> 2 * i & 3 == kind)


_Leaf = tuple[int, int, int, int]
"""Level and place on the grid of that level."""


def _binary_leaves(data: bytes) -> tuple[list[_Leaf], int]:
    """Return the occupied leaves, and how many bytes the tree has."""
    known: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    words = np.frombuffer(data[: len(data) // 2 * 2], dtype="<u2").tolist()
    leaves: list[_Leaf] = []
    waiting: list[_Leaf] = [(0, 0, 0, 0)]
    for used, word in enumerate(words):
        if not waiting:
            return leaves, 2 * used
        level, x, y, z = waiting.pop()
        if word not in known:
            known[word] = tuple(_children(word, _OCCUPIED)), tuple(reversed([*_children(word, _INNER)]))
        occupied, inner = known[word]
        level, x, y, z = level + 1, 2 * x, 2 * y, 2 * z
        _require_level(level)
        leaves.extend((level, x + (i & 1), y + (i >> 1 & 1), z + (i >> 2)) for i in occupied)
        waiting.extend((level, x + (i & 1), y + (i >> 1 & 1), z + (i >> 2)) for i in inner)
        _require_room(leaves)
    _require_end(waiting, len(data))
    return leaves, 2 * len(words)


def _full_leaves(data: bytes) -> tuple[list[_Leaf], int]:
    """As ``_binary_leaves``."""
    nodes = np.frombuffer(
        data[: len(data) // _NODE * _NODE], dtype=np.dtype([("odds", "<f4"), ("children", "u1")])
    )
    if not np.isfinite(nodes["odds"]).all():
        raise InvalidShapeError("an octomap holds values that are not finite")
    leaves: list[_Leaf] = []
    waiting: list[_Leaf] = [(0, 0, 0, 0)]
    pairs = zip((nodes["odds"] >= 0.0).tolist(), nodes["children"].tolist(), strict=True)
    for used, (occupied, children) in enumerate(pairs):
        if not waiting:
            return leaves, _NODE * used
        level, x, y, z = node = waiting.pop()
        if not children:
            if occupied:
                leaves.append(node)
                _require_room(leaves)
            continue
        level, x, y, z = level + 1, 2 * x, 2 * y, 2 * z
        _require_level(level)
        waiting.extend(
            (level, x + (i & 1), y + (i >> 1 & 1), z + (i >> 2))
            for i in range(7, -1, -1)
            if children >> i & 1
        )
    _require_end(waiting, len(data))
    return leaves, _NODE * len(nodes)


def _require_level(level: int) -> None:
    if level > LEVELS:
        raise InvalidShapeError(
            f"an octomap has more than {LEVELS} levels: it is damaged, or of another kind"
        )


def _require_room(leaves: list[_Leaf]) -> None:
    """Raise at the first voxel too many: two bytes can be eight voxels, whose numbers take a kilobyte."""
    if len(leaves) > MAX_POINTS:
        raise InvalidShapeError(
            f"an octomap has more than {MAX_POINTS} occupied voxels, which is not allowed"
        )


def _require_end(waiting: list[_Leaf], size: int) -> None:
    if waiting:
        raise InvalidShapeError(
            f"an octomap has {size} bytes, and {len(waiting)} or more of its nodes are missing: it was cut, or is of "
            "another kind"
        )
