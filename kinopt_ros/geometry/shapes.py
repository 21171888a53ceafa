"""Shapes of robots and obstacles, in metres, each in a frame of its own.

All are solid: what lies inside counts as collision. Constructors check what they are given and refuse it by name;
nothing is repaired. Arrays are taken over and become read-only; views are copied.
"""

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np

from kinopt_ros.array import Float64, Immutable, Int64, as_numbers, taken_over, with_arrays
from kinopt_ros.errors import InvalidShapeError, shown

LARGEST = 1e4
"""Largest length or coordinate, m."""
SMALLEST = 1e-9
"""Smallest length, m: its square and its inverse must be numbers."""
MAX_POINTS = 1_000_000
"""Most points of a cloud, voxels of an octomap, cells of a height map, and vertices or triangles of a mesh."""


@dataclass(frozen=True)
class Sphere:
    """Ball about the origin."""

    radius: float

    def __post_init__(self) -> None:
        _lengths("sphere", radius=self.radius)


@dataclass(frozen=True)
class Box:
    """Box centred at the origin, edges along the axes."""

    x: float
    y: float
    z: float

    def __post_init__(self) -> None:
        _lengths("box", x=self.x, y=self.y, z=self.z)


@dataclass(frozen=True)
class Cylinder:
    """Cylinder centred at the origin, axis along z."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _lengths("cylinder", radius=self.radius, length=self.length)


@dataclass(frozen=True)
class Cone:
    """Cone with its axis along z, base at -length/2, apex at +length/2."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _lengths("cone", radius=self.radius, length=self.length)


@dataclass(frozen=True)
class Capsule:
    """All points within ``radius`` of a segment of ``length`` along z, centred at the origin."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _lengths("capsule", radius=self.radius, length=self.length)


@dataclass(frozen=True)
class Plane:
    """The half-space z <= 0. (Pose the shape to get any other.)"""


@dataclass(frozen=True, eq=False)
class Mesh(Immutable):
    """A closed surface of triangles whose normals point outwards."""

    vertices: Annotated[Float64, "V 3"]
    triangles: Annotated[Int64, "T 3"]
    """Indices of vertices, counter-clockwise as seen from outside."""

    def __post_init__(self) -> None:
        _arrays(self, "vertices")
        _points("mesh", "vertices", self.vertices)
        given: Any = self.triangles
        if not isinstance(given, np.ndarray):
            numbers = as_numbers(given, "triangles", InvalidShapeError)
            whole = ((numbers == numbers.round()) & (np.abs(numbers) < 2**53)).all()
            object.__setattr__(self, "triangles", numbers.astype(np.int64) if whole else numbers)
        triangles = self.triangles
        if triangles.dtype.kind not in "iu" or triangles.ndim != 2 or triangles.shape[1:] != (3,):
            raise InvalidShapeError(
                f"triangles of a mesh are {triangles.dtype} {triangles.shape}; allowed are whole numbers (T, 3)"
            )
        if not 1 <= len(triangles) <= MAX_POINTS:
            raise InvalidShapeError(f"a mesh has {len(triangles)} triangles; allowed are 1 to {MAX_POINTS}")
        if triangles.min() < 0 or triangles.max() >= len(self.vertices):
            raise InvalidShapeError(
                f"triangles of a mesh name vertices {triangles.min()} to {triangles.max()}; it has {len(self.vertices)}"
            )
        taken_over(self, "triangles")


@dataclass(frozen=True, eq=False)
class HeightMap(Immutable):
    """The ground below a surface given by heights over a grid, bilinear between its points.

    Point (i, j) of the grid is at x = i * resolution, y = j * resolution. Outside the grid the nearest height holds.
    """

    heights: Annotated[Float64, "nx ny"]
    resolution: float

    def __post_init__(self) -> None:
        _lengths("height map", resolution=self.resolution)
        _arrays(self, "heights")
        heights = self.heights
        if heights.dtype != np.float64 or heights.ndim != 2 or min(heights.shape) < 2:
            raise InvalidShapeError(
                f"heights are {heights.dtype} {heights.shape}; allowed are float64 values of at least 2 x 2 points"
            )
        if heights.size > MAX_POINTS:
            raise InvalidShapeError(f"a height map has {heights.size} points; allowed are {MAX_POINTS}")
        _finite("height map", "heights", heights)


@dataclass(frozen=True, eq=False)
class PointCloud(Immutable):
    """Point cloud: a ball about every point."""

    points: Annotated[Float64, "N 3"]
    radius: float

    def __post_init__(self) -> None:
        _lengths("point cloud", radius=self.radius)
        _arrays(self, "points")
        _points("point cloud", "points", self.points)


@dataclass(frozen=True, eq=False)
class Octomap(Immutable):
    """Octomap: occupied cubes, edges along the axes."""

    centers: Annotated[Float64, "N 3"]
    sizes: Annotated[Float64, "N"]
    """Edge lengths."""

    def __post_init__(self) -> None:
        _arrays(self, "centers", "sizes")
        _points("octomap", "centers", self.centers)
        if self.sizes.dtype != np.float64 or self.sizes.shape != (len(self.centers),):
            raise InvalidShapeError(
                f"sizes of an octomap are {self.sizes.dtype} {self.sizes.shape}; allowed is float64 "
                f"({len(self.centers)},), one for each voxel"
            )
        _finite("octomap", "sizes", self.sizes)
        if self.sizes.min() < SMALLEST:
            raise InvalidShapeError(
                f"an octomap has a voxel of size {self.sizes.min():g}; allowed is at least {SMALLEST:g} m"
            )


Primitive: TypeAlias = Sphere | Box | Cylinder | Cone | Capsule | Plane
Shape: TypeAlias = Primitive | Mesh | HeightMap | PointCloud | Octomap


@dataclass(frozen=True, eq=False)
class PlacedShape(Immutable):
    """A shape in the frame of a link or of an object."""

    shape: Shape
    T_frame_shape: Annotated[Float64, "4 4"]

    def __post_init__(self) -> None:
        if not isinstance(self.shape, Shape):
            raise InvalidShapeError(
                f"a shape is {shown(self.shape)}; allowed are Box, Sphere, Mesh and the others"
            )
        taken_over(self, "T_frame_shape")


def _arrays(shape: Immutable, *names: str) -> None:
    """Make read-only arrays of what is given as lists."""
    for name in names:
        if getattr(shape, name) is None:
            raise InvalidShapeError(f"{name} of {type(shape).__name__} is None; allowed is an array")
    with_arrays(shape, InvalidShapeError, *names)


def _lengths(kind: str, **lengths: float) -> None:
    for name, value in lengths.items():
        if not isinstance(value, float | int) or isinstance(value, bool):
            raise InvalidShapeError(f"{name} of a {kind} is {shown(value)}; allowed is a number")
        if not SMALLEST <= value <= LARGEST:
            raise InvalidShapeError(
                f"{name} of a {kind} is {_said(value)}; allowed is at least {SMALLEST:g} m and at most {LARGEST:g} m"
            )


def _said(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else shown(value)


def _points(kind: str, name: str, points: Float64) -> None:
    if points.dtype != np.float64 or points.ndim != 2 or points.shape[1:] != (3,):
        raise InvalidShapeError(
            f"{name} of a {kind} are {points.dtype} {points.shape}; allowed is float64 (N, 3)"
        )
    if not 1 <= len(points) <= MAX_POINTS:
        raise InvalidShapeError(f"a {kind} has {len(points)} {name}; allowed are 1 to {MAX_POINTS}")
    _finite(kind, name, points)


def _finite(kind: str, name: str, values: Float64) -> None:
    if not np.isfinite(values).all():
        raise InvalidShapeError(f"{name} of a {kind} hold values that are not finite")
    if np.abs(values).max() > LARGEST:
        raise InvalidShapeError(
            f"{name} of a {kind} hold {np.abs(values).max():g}; allowed is at most {LARGEST:g} m"
        )
