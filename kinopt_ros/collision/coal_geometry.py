"""Conversion of shapes to geometry of coal: primitives exactly, meshes as trees of triangles; kept as long as a shape
lives."""

import threading
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import MissingPackageError
from kinopt_ros.geometry.shapes import Box, Capsule, Cone, Cylinder, Mesh, Plane, Primitive, Sphere

_known: WeakKeyDictionary[Primitive | Mesh, Any] = WeakKeyDictionary()
_lock = threading.Lock()


def load_coal() -> Any:
    """Import coal; raise ``MissingPackageError`` without it."""
    try:
        import coal
    except ImportError as error:
        raise MissingPackageError(
            "collision checks need the package coal (pip install coal, or kinopt_ros[collision])"
        ) from error
    return coal


def geometry_of(shape: Primitive | Mesh) -> Any:
    with _lock:
        known = _known.get(shape)
    if known is None:
        made = _surface(shape) if isinstance(shape, Mesh) else _primitive(shape)
        with _lock:
            known = _known.setdefault(shape, made)
    return known


def surface(vertices: Float64, triangles: Int64) -> Any:
    """Build a tree of triangles; what lies inside is not part of it."""
    coal = load_coal()
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(triangles), len(vertices))
    model.addVertices(np.array(vertices))
    model.addTriangles(np.array(triangles, dtype=np.int64))
    model.endModel()
    return model


def _surface(mesh: Mesh) -> Any:
    return surface(mesh.vertices, mesh.triangles)


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
