"""Conversion of shapes to geometry of coal: primitives exactly, meshes as trees of triangles; kept as long as a shape
lives.

coal holds Python's lock while it builds a tree: a quarter of a second for 100,000 triangles, in which no emergency stop
is heard. So the surface of a large mesh is cut into tiles, each with a tree of its own.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import MissingPackageError
from kinopt_ros.geometry.meshes import without_unused
from kinopt_ros.geometry.shapes import Box, Capsule, Cone, Cylinder, Mesh, Plane, Primitive, Sphere

TILE = 4_096
"""Most triangles of a tile."""

_known: WeakKeyDictionary[Primitive | Mesh, "Geometry"] = WeakKeyDictionary()
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class Geometry:
    """A shape as coal knows it: the whole, or K tiles of its surface."""

    parts: tuple[Any, ...]
    balls: Annotated[Float64, "K 4"]
    """Centre and radius of a ball around each part, in the shape's frame, m."""
    boxes: Annotated[Float64, "K 6"]
    """Lowest and highest corner of a box around each part, in that frame."""


def load_coal() -> Any:
    """Import coal; raise ``MissingPackageError`` without it."""
    try:
        import coal
    except ImportError as error:
        raise MissingPackageError(
            "collision checks need the package coal (pip install coal, or kinopt_ros[collision])"
        ) from error
    return coal


def geometry_of(shape: Primitive | Mesh) -> Geometry:
    with _lock:
        known = _known.get(shape)
    if known is None:
        made = _of_mesh(shape) if isinstance(shape, Mesh) else _of_primitive(shape)
        with _lock:
            known = _known.setdefault(shape, made)
    return known


def surface(vertices: Float64, triangles: Int64) -> Geometry:
    """Build trees of triangles; what lies inside is not part of them."""
    tiles = [without_unused(vertices, triangles[tile]) for tile in _tiles(vertices, triangles)]
    parts = tuple(_tree(corners, numbers) for corners, numbers in tiles)
    return _around(parts, [corners for corners, _ in tiles])


def _of_mesh(mesh: Mesh) -> Geometry:
    if len(mesh.triangles) <= TILE:
        return _around((_tree(mesh.vertices, mesh.triangles),), [mesh.vertices])
    return surface(mesh.vertices, mesh.triangles)


def _of_primitive(shape: Primitive) -> Geometry:
    from kinopt_ros.collision.obstacles import bounding_sphere  # which imports numba

    centre, reach = bounding_sphere(shape)
    middle, half = np.array(centre), np.full(3, reach)
    box = np.concatenate([middle - half, middle + half])
    return Geometry((_primitive(shape),), np.append(middle, reach)[None], box[None])


def _tree(vertices: Float64, triangles: Int64) -> Any:
    coal = load_coal()
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(triangles), len(vertices))
    model.addVertices(np.array(vertices))
    model.addTriangles(np.array(triangles, dtype=np.int64))
    model.endModel()
    return model


def _tiles(vertices: Float64, triangles: Int64) -> Iterator[Annotated[Int64, "k"]]:
    """Cut triangles into halves along their longest side, until none has more than TILE; yield their numbers."""
    middles = vertices[triangles].mean(axis=1)
    waiting = [np.arange(len(triangles))]
    while waiting:
        some = waiting.pop()
        if len(some) <= TILE:
            yield some
            continue
        places = middles[some]
        along = places[:, int(np.argmax(np.ptp(places, axis=0)))]
        order, half = np.argpartition(along, len(some) // 2), len(some) // 2
        waiting += [some[order[half:]], some[order[:half]]]


def _around(parts: tuple[Any, ...], corners: Sequence[Annotated[Float64, "V 3"]]) -> Geometry:
    """Return parts that contain the given corners."""
    low, high = (np.array([side(each, axis=0) for each in corners]) for side in (np.min, np.max))
    middle = 0.5 * (low + high)
    reach = [np.linalg.norm(each - m, axis=1).max() for each, m in zip(corners, middle, strict=True)]
    balls = np.column_stack([middle, np.array(reach) * (1.0 + 1e-12)])
    return Geometry(parts, balls, np.concatenate([low, high], axis=1))


def _primitive(shape: Primitive) -> Any:
    coal = load_coal()
    match shape:
        case Sphere(radius):
            return coal.Sphere(radius)
        case Box(x, y, z):
            return coal.Box(x, y, z)
        case Cylinder(radius, length):
            return coal.Cylinder(radius, length)
        case Cone(radius, length):
            return coal.Cone(radius, length)
        case Capsule(radius, length):
            return coal.Capsule(radius, length)
        case Plane():
            return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
