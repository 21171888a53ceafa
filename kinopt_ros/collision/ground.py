"""Surface of a height map as triangles, for the judge."""

from collections.abc import Iterator
from typing import Annotated
from weakref import WeakKeyDictionary

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.collision.coal_geometry import Geometry, surface
from kinopt_ros.geometry.shapes import HeightMap

TILE = 32
"""Number of cells along an edge of a tile."""

_tiles: WeakKeyDictionary[HeightMap, dict[tuple[int, int], Geometry]] = WeakKeyDictionary()


def ground_surfaces(ground: HeightMap, low: Float64, high: Float64) -> Iterator[Geometry]:
    """Yield surfaces (of coal) that hold all of the ground in the rectangle from ``low`` to ``high`` (x, y).

    Inside of the grid they are tiles, which are made when first wanted, and kept.
    """
    edge = TILE * ground.resolution
    end = (np.array(ground.heights.shape) - 1) * ground.resolution
    if (low < 0.0).any() or (high > end).any():
        yield surface(*ground_triangles(ground, low, high))
        return
    tiles = _tiles.setdefault(ground, {})
    for i in range(int(low[0] / edge), int(high[0] / edge) + 1):
        for j in range(int(low[1] / edge), int(high[1] / edge) + 1):
            if (i, j) not in tiles:
                corner = np.array([i, j]) * edge
                if (corner >= end).any():
                    continue
                tiles[i, j] = surface(*ground_triangles(ground, corner, np.minimum(corner + edge, end)))
            yield tiles[i, j]


def ground_triangles(
    ground: HeightMap, low: Float64, high: Float64
) -> tuple[Annotated[Float64, "V 3"], Annotated[Int64, "T 3"]]:
    """Return the surface over all cells that meet the rectangle from ``low`` to ``high`` (x, y), in the map's frame.

    Every cell is cut along its higher diagonal, so that the bilinear surface is contained, as in
    ``kernels._ground``. Where the rectangle goes beyond the grid, cells reach to its edge.
    """
    points = [
        _grid_points(count, ground.resolution, low[axis], high[axis])
        for axis, count in enumerate(ground.heights.shape)
    ]
    (i, x), (j, y) = points
    height = ground.heights[np.ix_(i, j)]
    vertices = np.stack([*np.meshgrid(x, y, indexing="ij"), height], axis=-1).reshape(-1, 3)
    numbers = np.arange(len(vertices)).reshape(height.shape)
    a, b, c, d = numbers[:-1, :-1], numbers[1:, :-1], numbers[1:, 1:], numbers[:-1, 1:]
    ridge = (height[:-1, :-1] + height[1:, 1:] >= height[1:, :-1] + height[:-1, 1:])[..., None]
    first = np.where(ridge, np.stack([a, b, c], axis=-1), np.stack([a, b, d], axis=-1))
    second = np.where(ridge, np.stack([a, c, d], axis=-1), np.stack([b, c, d], axis=-1))
    return vertices, np.concatenate([first.reshape(-1, 3), second.reshape(-1, 3)])


def _grid_points(count: int, resolution: float, low: float, high: float) -> tuple[Int64, Float64]:
    """Return numbers and coordinates of the points of the cells that meet an interval; a number may come twice at an
    edge."""
    first = int(np.clip(np.floor(low / resolution), 0, count - 1))
    last = int(np.clip(np.ceil(high / resolution), 0, count - 1))
    if first == last:
        first, last = max(first - 1, 0), min(last + 1, count - 1)
    numbers: Int64 = np.arange(first, last + 1, dtype=np.int64)
    places: Float64 = numbers.astype(np.float64) * resolution
    if low < 0.0:
        numbers, places = np.append(0, numbers), np.append(low - resolution, places)
    if high > (count - 1) * resolution:
        numbers, places = np.append(numbers, count - 1), np.append(places, high + resolution)
    return numbers, places
