"""Search trees of big shapes, as ``kernels/`` reads them: built once per shape and kept as long as it lives."""

import math
import threading
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.collision.kernels import layout
from kinopt_ros.collision.kernels.partition import median_order
from kinopt_ros.geometry.shapes import HeightMap, Mesh, Octomap, PointCloud

BigShape = Mesh | HeightMap | PointCloud | Octomap

POINTS_PER_LEAF = 8
TRIANGLES_PER_LEAF = 3
THINNEST = 1e-10
"""Ratio of a triangle's height to its longest side below which it counts as its sides."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A big shape as the kernels read it."""

    numbers: Float64
    centre: tuple[float, float, float]
    reach: float
    """Bounding sphere in the shape's frame; infinite for ground."""
    half: tuple[float, float, float]
    """Half edges of the box about the same centre; infinite for ground."""


_trees: WeakKeyDictionary[BigShape, Tree] = WeakKeyDictionary()
_lock = threading.Lock()


def tree_of(shape: BigShape) -> Tree:
    with _lock:
        tree = _trees.get(shape)
    if tree is None:
        numbers = _built(shape)
        tree = Tree(numbers, *_bounds(shape, numbers))
        with _lock:
            tree = _trees.setdefault(shape, tree)
    return tree


def first_item(numbers: Float64) -> int:
    """Return where the items of a cloud's or octomap's tree begin."""
    return layout.TREE_HEADER + layout.BOX_NODE * ((2 << int(numbers[layout.LEVELS])) - 1)


def _bounds(
    shape: BigShape, numbers: Float64
) -> tuple[tuple[float, float, float], float, tuple[float, float, float]]:
    if isinstance(shape, HeightMap):
        return (0.0, 0.0, 0.0), math.inf, (math.inf, math.inf, math.inf)
    low, high = numbers[layout.TREE_HEADER :][:3], numbers[layout.TREE_HEADER + 3 :][:3]
    extra = shape.radius if isinstance(shape, PointCloud) else 0.0
    x, y, z = ((low + high) / 2.0).tolist()
    # The root's box is rounded, so that its corners are not always within half a diagonal.
    grown = (high - low) / 2.0 * (1.0 + 1e-12) + 1e-12 + extra
    a, b, c = grown.tolist()
    return (x, y, z), math.dist(low, high) / 2.0 * (1.0 + 1e-12) + 1e-12 + extra, (a, b, c)


def _built(shape: BigShape) -> Float64:
    if isinstance(shape, PointCloud):
        return item_tree(
            shape.points, shape.points, shape.points, shape.points, POINTS_PER_LEAF, shape.radius
        )
    if isinstance(shape, Octomap):
        half = shape.sizes[:, None] / 2.0
        items = np.hstack([shape.centers, half])
        return item_tree(items, shape.centers, shape.centers - half, shape.centers + half, POINTS_PER_LEAF)
    if isinstance(shape, Mesh):
        return _mesh_tree(shape)
    return _height_tree(shape)


def _mesh_tree(mesh: Mesh) -> Float64:
    corners = mesh.vertices[mesh.triangles]
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    normals = np.cross(b - a, c - a)
    doubled = np.linalg.norm(normals, axis=1)
    longest = np.maximum.reduce([((b - a) ** 2).sum(1), ((c - b) ** 2).sum(1), ((a - c) ** 2).sum(1)])
    thin = doubled <= THINNEST * longest
    units = np.where(thin[:, None], 0.0, normals / np.where(thin, 1.0, doubled)[:, None])
    low, high = corners.min(axis=1), corners.max(axis=1)
    items = np.hstack([corners.reshape(-1, 9), units])
    return item_tree(items, (low + high) / 2.0, low, high, TRIANGLES_PER_LEAF, dipoles=True)


def item_tree(
    items: Float64,
    centres: Float64,
    low: Float64,
    high: Float64,
    per_leaf: int,
    extra: float = 0.0,
    dipoles: bool = False,
) -> Float64:
    """Return a tree of items (n x columns): header, with ``extra`` in it, boxes of nodes, items in their order."""
    count = len(items)
    levels = int(np.ceil(np.log2(count / per_leaf))) if count > per_leaf else 0
    # A copy: to numba an array that is read-only is of another type, compiled for anew.
    order = median_order(np.array(centres, order="C"), levels)
    items, low, high = items[order], low[order], high[order]
    starts = (np.arange(1 << levels) * count) >> levels
    columns = [np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)]
    pools: list[np.ufunc] = [np.minimum, np.maximum]
    if dipoles:
        a, b, c = items[:, 0:3], items[:, 3:6], items[:, 6:9]
        normals = np.cross(b - a, c - a) / 2.0
        areas = np.linalg.norm(normals, axis=1, keepdims=True)
        for values in (normals, areas * (a + b + c) / 3.0, areas):
            columns.append(np.add.reduceat(values, starts))
            pools.append(np.add)
    rows = [columns]
    while len(rows[0][0]) > 1:
        rows.insert(0, [pool(c[0::2], c[1::2]) for pool, c in zip(pools, rows[0], strict=True)])
    nodes = [np.concatenate([row[column] for row in rows]) for column in range(len(columns))]
    if dipoles:
        nodes[3:] = _middles(*nodes[:2], *nodes[3:])
    return np.concatenate([[count, levels, extra], np.hstack(nodes).reshape(-1), items.reshape(-1)])


def _middles(low: Float64, high: Float64, moments: Float64, areas: Float64) -> list[Float64]:
    """Return centres of area, and the farthest corner of the box from them."""
    middles = np.where(areas > 0.0, moments / np.where(areas > 0.0, areas, 1.0), (low + high) / 2.0)
    farthest = np.maximum(middles - low, high - middles)
    return [middles, np.linalg.norm(farthest, axis=1, keepdims=True)]


def _height_tree(shape: HeightMap) -> Float64:
    padded = np.pad(shape.heights, 1, mode="edge")
    cells = [padded[:-1, :-1], padded[1:, :-1], padded[:-1, 1:], padded[1:, 1:]]
    low, high = np.minimum.reduce(cells), np.maximum.reduce(cells)
    levels = [np.stack([low, high], axis=-1)]
    while levels[-1].shape[:2] != (1, 1):
        rows, columns, _ = levels[-1].shape
        fine = np.pad(levels[-1], ((0, rows % 2), (0, columns % 2), (0, 0)), mode="edge")
        blocks = fine.reshape(fine.shape[0] // 2, 2, fine.shape[1] // 2, 2, 2)
        levels.append(np.stack([blocks[..., 0].min(axis=(1, 3)), blocks[..., 1].max(axis=(1, 3))], axis=-1))
    sizes = [shape.heights.size, *(level.size for level in levels)]
    places = np.zeros(layout.MOST_LEVELS)
    places[: len(levels)] = layout.HEIGHT_HEADER + np.cumsum(sizes)[:-1]
    header = [*shape.heights.shape, shape.resolution, len(levels)]
    return np.concatenate(
        [header, places, shape.heights.reshape(-1), *(level.reshape(-1) for level in levels)]
    )
