"""Convex pieces of shapes, whose hulls contain them, for quick lower bounds of distances."""

import math
import threading
from dataclasses import dataclass
from typing import Annotated
from weakref import WeakKeyDictionary

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.collision.box_cover import covering_spheres
from kinopt_ros.collision.kernels.hull_gap import BOX, CONE, CYLINDER, FEW, POINTS, WIDTH
from kinopt_ros.collision.obstacles import bounding_box
from kinopt_ros.geometry import kept
from kinopt_ros.geometry.cells import cut, triangles_of
from kinopt_ros.geometry.shapes import Box, Capsule, Cone, Cylinder, Mesh, PlacedShape, Shape, Sphere
from kinopt_ros.wanted import check_wanted

LARGE = 20_000
"""Triangles beyond which a mesh is not cut, since it would take longer than a request may wait."""
PIECES = 24
"""Approximate number of pieces of a mesh that is not convex."""
_CONVEX = 1.005
"""Ratio of a hull's volume to its mesh's up to which the mesh counts as its hull."""
_SOURCES = ("kinopt_ros.collision.hulls", "kinopt_ros.geometry.cells")


@dataclass(frozen=True, eq=False)
class Hulls:
    """Pieces of one shape, in the frame of its box: the shape's, moved to the centre of ``bounding_box``.

    Arguments of ``hull_gap``. Piece i has the points ``first[i]:last[i]``. Where there are several, the last row is the
    hull of them all.
    """

    kind: Annotated[Int64, "N"]
    size: Annotated[Float64, "N 3"]
    """Half edges of boxes; radius, radius and half length of cylinders and cones."""
    radius: Annotated[Float64, "N"]
    first: Annotated[Int64, "N"]
    last: Annotated[Int64, "N"]
    points: Annotated[Float64, "K 3"]
    center: Annotated[Float64, "N 3"]
    reach: Annotated[Float64, "N"]
    """Spheres that contain the pieces."""
    clusters: Annotated[Float64, "C 4"]
    """Centres and radii of spheres around WIDTH points each, of pieces with more than FEW."""
    cluster: Annotated[Int64, "N"]
    """First cluster of each piece; of others any number."""
    balls: Annotated[Float64, "M 4"]
    """Centres and radii of balls that contain the shape, smaller ones where it is long."""

    @property
    def count(self) -> int:
        """Number of pieces, without the hull of several."""
        return max(len(self.kind) - 1, 1)


def hulls_of(shape: Shape) -> Hulls | None:
    """Return the pieces of a shape, which are kept as long as it lives.

    None for what has no few pieces: clouds, octomaps, ground, and large meshes.
    """
    if not isinstance(shape, Sphere | Box | Cylinder | Cone | Capsule | Mesh):
        return None
    if isinstance(shape, Mesh) and len(shape.triangles) > LARGE:
        return None
    with _lock:
        known = _known.get(shape)
    if known is None:
        check_wanted()
        known = _of_mesh(shape) if isinstance(shape, Mesh) else _of_primitive(shape)
        with _lock:
            known = _known.setdefault(shape, known)
    return known


_known: WeakKeyDictionary[Shape, Hulls] = WeakKeyDictionary()
_lock = threading.Lock()


def _of_primitive(shape: Sphere | Box | Cylinder | Cone | Capsule) -> Hulls:
    points, size, kind, radius = np.empty((0, 3)), (0.0, 0.0, 0.0), POINTS, 0.0
    match shape:
        case Sphere(radius):
            points = np.zeros((1, 3))
            reach = radius
        case Capsule(radius, length):
            points = np.array([[0.0, 0.0, -length / 2.0], [0.0, 0.0, length / 2.0]])
            reach = radius + length / 2.0
        case Box(x, y, z):
            kind, size = BOX, (x / 2.0, y / 2.0, z / 2.0)
            reach = math.hypot(*size)
        case Cylinder(base, length) | Cone(base, length):
            kind, size = CONE if isinstance(shape, Cone) else CYLINDER, (base, base, length / 2.0)
            reach = math.hypot(base, length / 2.0)
    covering = _along(shape) if isinstance(shape, Capsule) else _covering(shape)
    return Hulls(
        kind=np.array([kind], dtype=np.int64),
        size=np.array([size]),
        radius=np.array([radius]),
        first=np.zeros(1, dtype=np.int64),
        last=np.array([len(points)], dtype=np.int64),
        points=points,
        center=np.zeros((1, 3)),
        reach=np.array([reach * (1.0 + 1e-12)]),
        clusters=np.empty((0, 4)),
        cluster=np.zeros(1, dtype=np.int64),
        balls=covering,
    )


def _covering(shape: Shape) -> Annotated[Float64, "M 4"]:
    spheres = covering_spheres(PlacedShape(shape, np.eye(4)))
    return np.column_stack([spheres.centers, spheres.radii])


def _along(shape: Capsule) -> Annotated[Float64, "M 4"]:
    """Return balls on the axis of a capsule, each for a part of it."""
    count = min(max(1, math.ceil(shape.length / shape.radius)), 12)
    step = shape.length / count
    balls = np.zeros((count, 4))
    balls[:, 2] = (np.arange(count) + 0.5) * step - shape.length / 2.0
    balls[:, 3] = math.hypot(shape.radius, step / 2.0) * (1.0 + 1e-12)
    # A ball for the middle of a part contains the caps of its ends, too, only if it is as large as this.
    balls[[0, -1], 3] = shape.radius + step / 2.0
    return balls


def _of_mesh(mesh: Mesh) -> Hulls:
    key = kept.digest(_SOURCES, PIECES, _CONVEX, mesh.vertices, mesh.triangles)
    found = kept.load(key)
    if found is None:
        points, counts = _pieces(mesh)
        found = {"points": points, "counts": counts}
        kept.store(key, found)
    center = np.array(bounding_box(mesh)[0])
    points = np.array(found["points"] - center, order="C")
    last = np.cumsum(found["counts"]).astype(np.int64)
    first = last - found["counts"]
    ends = list(zip(first.tolist(), last.tolist(), strict=True))
    middle = np.array([(points[i:j].min(axis=0) + points[i:j].max(axis=0)) / 2.0 for i, j in ends])
    reach = np.array(
        [
            np.sqrt(((points[i:j] - c) ** 2).sum(axis=1)).max() * (1.0 + 1e-12)
            for (i, j), c in zip(ends, middle, strict=True)
        ]
    )
    N = len(ends)
    clusters = [_clusters(points[i:j]) for i, j in ends]
    sizes = np.array([len(found) for found in clusters], dtype=np.int64)
    return Hulls(
        kind=np.full(N, POINTS, dtype=np.int64),
        size=np.zeros((N, 3)),
        radius=np.zeros(N),
        first=first,
        last=last,
        points=points,
        center=middle,
        reach=reach,
        clusters=np.concatenate(clusters),
        cluster=np.cumsum(sizes) - sizes,
        balls=np.column_stack([middle, reach])[: max(N - 1, 1)],
    )


def _pieces(mesh: Mesh) -> tuple[Annotated[Float64, "K 3"], Annotated[Int64, "N"]]:
    """Return the corners of convex pieces, piece by piece, and how many each has; then those of the hull of several."""
    corners, volume = _corners(mesh.vertices)
    if volume <= _CONVEX * abs(_volume(mesh)):
        return _together(corners), np.array([len(corners)], dtype=np.int64)
    points, owner = cut(triangles_of(mesh), PIECES)
    parts = [_corners(points[owner == k])[0] for k in range(int(owner[-1]) + 1)]
    parts += [_corners(np.concatenate(parts))[0]] if len(parts) > 1 else []
    return np.concatenate([_together(part) for part in parts]), np.array(
        [len(part) for part in parts], dtype=np.int64
    )


def _together(points: Annotated[Float64, "K 3"]) -> Annotated[Float64, "K 3"]:
    """Return points in an order in which WIDTH that follow each other are near to each other: halved across their
    largest extent, again and again."""
    if len(points) <= WIDTH:
        return points
    axis = int(np.argmax(np.ptp(points, axis=0)))
    ordered = points[np.argsort(points[:, axis], kind="stable")]
    first = WIDTH * max(1, round(len(points) / (2 * WIDTH)))
    return np.concatenate([_together(ordered[:first]), _together(ordered[first:])])


def _clusters(points: Annotated[Float64, "K 3"]) -> Annotated[Float64, "C 4"]:
    """Return spheres around each WIDTH points of a piece."""
    parts = [] if len(points) <= FEW else [points[k : k + WIDTH] for k in range(0, len(points), WIDTH)]
    rows = np.empty((len(parts), 4))
    for row, part in zip(rows, parts, strict=True):
        row[:3] = (part.min(axis=0) + part.max(axis=0)) / 2.0
        row[3] = np.linalg.norm(part - row[:3], axis=1).max() * (1.0 + 1e-9)
    return rows


def _corners(points: Annotated[Float64, "K 3"]) -> tuple[Annotated[Float64, "k 3"], float]:
    """Return the corners of the points' convex hull, and its volume (m^3)."""
    from scipy.spatial import ConvexHull, QhullError  # takes a while to import

    try:
        hull = ConvexHull(points)
    except QhullError:  # flat
        return np.unique(points, axis=0), 0.0
    return points[hull.vertices], float(hull.volume)


def _volume(mesh: Mesh) -> float:
    a, b, c = (mesh.vertices[mesh.triangles[:, k]] for k in range(3))
    return float((np.cross(a, b) * c).sum() / 6.0)
