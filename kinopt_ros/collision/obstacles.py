"""Packing of obstacles for the compiled kernels, and signed distances of points and balls to them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision.kernels import ball_distances, layout
from kinopt_ros.collision.nearby import sphere_tree
from kinopt_ros.collision.trees import tree_of
from kinopt_ros.errors import InvalidRequestError, InvalidShapeError
from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightMap,
    Mesh,
    Octomap,
    PlacedShape,
    Plane,
    PointCloud,
    Primitive,
    Shape,
    Sphere,
)

KINDS: dict[type[Any], int] = {
    Sphere: layout.SPHERE,
    Box: layout.BOX,
    Cylinder: layout.CYLINDER,
    Cone: layout.CONE,
    Capsule: layout.CAPSULE,
    Plane: layout.PLANE,
    Mesh: layout.MESH,
    HeightMap: layout.HEIGHT_MAP,
    PointCloud: layout.POINT_CLOUD,
    Octomap: layout.OCTOMAP,
}
NOT_RIGID = 1e-6
"""Largest error of a rotation's columns from orthonormal ones."""


@dataclass(frozen=True, eq=False)
class Obstacles:
    """Shapes in one common frame, as the functions of ``kernels/`` take them. Made by ``pack``.

    The arrays are not read-only, as numba would compile everything a second time for such arrays.
    """

    numbers: Annotated[Float64, "n NUMBERS"]
    integers: Annotated[Int64, "n INTEGERS"]
    nothing_skipped: Annotated[Bool, "n"]
    """False for every obstacle: the argument ``skipped`` of the kernels, if all count."""
    trees: tuple[Float64, ...]
    """Trees that ``integers`` points to; keep this object as long as its arrays."""

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class Nearest:
    distances: Annotated[Float64, "N"]
    """Signed distances, m; negative inside."""
    gradients: Annotated[Float64, "N 3"]
    """Unit vectors of the common frame, away from the nearest obstacle; 0 where there is none."""
    obstacles: Annotated[Int64, "N"]
    """Index of the nearest obstacle, or -1."""


def pack(shapes: Sequence[PlacedShape]) -> Obstacles:
    """Pack obstacles at poses of a common frame (``T_frame_shape``); an obstacle's number is its index in the sequence.

    Trees of big shapes are built the first time and remembered (about 2 s for a million points); without them
    packing takes some 10 us per shape.
    """
    numbers, integers, trees = [], [], []
    for placed in shapes:
        shape = placed.shape
        (a, b, c, x), (d, e, f, y), (g, h, i, z) = rigid(placed.T_frame_shape)
        (cx, cy, cz), reach = bounding_sphere(shape)
        address, parameters = 0, _NONE
        if isinstance(shape, Mesh | HeightMap | PointCloud | Octomap):
            tree = tree_of(shape).numbers
            trees.append(tree)
            address = tree.ctypes.data
        else:
            parameters = _parameters(shape)
        numbers.append(
            (
                *(a * cx + b * cy + c * cz + x, d * cx + e * cy + f * cz + y, g * cx + h * cy + i * cz + z),
                reach,
                *(a, d, g, b, e, h, c, f, i),
                *(-a * x - d * y - g * z, -b * x - e * y - h * z, -c * x - f * y - i * z),
                *parameters,
            )
        )
        integers.append((KINDS[type(shape)], address, 0))
    rows = np.array(numbers, dtype=np.float64).reshape(-1, layout.NUMBERS)
    columns = np.array(integers, dtype=np.int64).reshape(-1, layout.INTEGERS)
    nearby = sphere_tree(rows[:, layout.CENTER : layout.REACH], rows[:, layout.REACH])
    if nearby is not None:
        trees.append(nearby)
        columns[0, layout.NEARBY] = nearby.ctypes.data
    return Obstacles(
        rows,
        columns,
        np.zeros(len(shapes), dtype=np.bool_),
        tuple(trees),
    )


def nearest(
    obstacles: Obstacles,
    balls: Annotated[Float64, "N 4"],
    most: float = np.inf,
    skipped: Annotated[Bool, "n"] | None = None,
) -> Nearest:
    """Compute the signed distance of every ball (centre and radius, m; radius 0 for points) to the nearest obstacle.

    Obstacles at ``most`` metres and beyond are passed over, which is quicker: such balls get this distance. ``skipped``
    marks obstacles that do not count.
    """
    balls = _checked(balls, 4)
    if skipped is None:
        skipped = obstacles.nothing_skipped
    elif skipped.dtype != np.bool_ or skipped.shape != (len(obstacles),):
        raise InvalidRequestError(
            f"skipped is {skipped.dtype} {skipped.shape}; allowed is bool ({len(obstacles)},), one for each obstacle"
        )
    if np.isnan(most):
        raise InvalidRequestError("most is nan; allowed is a distance or infinity")
    count = len(balls)
    answer = Nearest(np.empty(count), np.empty((count, 3)), np.empty(count, dtype=np.int64))
    ball_distances.nearest_obstacles(
        obstacles.numbers,
        obstacles.integers,
        skipped,
        balls,
        float(most),
        answer.distances,
        answer.gradients,
        answer.obstacles,
    )
    return answer


def signed_distance(
    shape: Shape, points: Annotated[Float64, "N 3"]
) -> tuple[Annotated[Float64, "N"], Annotated[Float64, "N 3"]]:
    """Compute signed distances (m, negative inside) and unit gradients of points in a shape's own frame.

    Exact for all but: inside of clouds and octomaps the distance to the surface of the ball or cube in which the
    point is deepest; height maps at most ``twist / 4`` less than the truth, where twist is the largest difference of
    the two sums of heights over the diagonals of a cell.
    """
    points = _checked(points, 3)
    balls = np.hstack([points, np.zeros((len(points), 1))])
    answer = nearest(pack([PlacedShape(shape, np.eye(4))]), balls)
    return answer.distances, answer.gradients


def bounding_sphere(shape: Shape) -> tuple[tuple[float, float, float], float]:
    """Return centre and radius of a sphere that contains a shape, in its frame; infinite for planes and height maps."""
    match shape:
        case Sphere(radius):
            reach = radius
        case Box(x, y, z):
            reach = math.hypot(x, y, z) / 2.0
        case Cylinder(radius, length) | Cone(radius, length):
            reach = math.hypot(radius, length / 2.0)
        case Capsule(radius, length):
            reach = radius + length / 2.0
        case Plane():
            reach = math.inf
        case _:
            tree = tree_of(shape)
            return tree.centre, tree.reach
    return (0.0, 0.0, 0.0), reach * (1.0 + 1e-12)


def bounding_box(shape: Shape) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return centre and half edges of a box along the axes of a shape's frame that contains it; infinite for ground."""
    match shape:
        case Sphere(radius):
            half = (radius, radius, radius)
        case Box(x, y, z):
            half = (x / 2.0, y / 2.0, z / 2.0)
        case Cylinder(radius, length) | Cone(radius, length):
            half = (radius, radius, length / 2.0)
        case Capsule(radius, length):
            half = (radius, radius, length / 2.0 + radius)
        case Plane():
            half = (math.inf, math.inf, math.inf)
        case _:
            tree = tree_of(shape)
            return tree.centre, tree.half
    return (0.0, 0.0, 0.0), half


def rigid(transform: Annotated[Float64, "4 4"]) -> list[list[float]]:
    """Return the first three rows of a pose; raise ``InvalidShapeError`` for what is no pose.

    Plain numbers: numpy would take ten times as long for so few.
    """
    if transform.shape != (4, 4):
        raise InvalidShapeError(f"the pose of a shape has the shape {transform.shape}; allowed is (4, 4)")
    rows: list[list[float]] = transform.tolist()
    (a, b, c, x), (d, e, f, y), (g, h, i, z), last = rows
    if not math.isfinite(x + y + z):
        raise InvalidShapeError(
            f"the pose of a shape has the position {[x, y, z]}; allowed are finite numbers"
        )
    unlike = (
        *(a * a + b * b + c * c - 1.0, d * d + e * e + f * f - 1.0, g * g + h * h + i * i - 1.0),
        *(a * d + b * e + c * f, a * g + b * h + c * i, d * g + e * h + f * i),
    )
    right_handed = a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g) > 0.0
    if not (right_handed and max(map(abs, unlike)) <= NOT_RIGID) or last != [0.0, 0.0, 0.0, 1.0]:
        raise InvalidShapeError(
            f"the pose of a shape is {rows}; allowed is a rotation beside a position, above 0 0 0 1"
        )
    return rows[:3]


_NONE = (0.0, 0.0, 0.0)


def _parameters(shape: Primitive) -> tuple[float, float, float]:
    """Return a shape's parameters as the kernels take them."""
    match shape:
        case Sphere(radius):
            return radius, 0.0, 0.0
        case Box(x, y, z):
            return x / 2.0, y / 2.0, z / 2.0
        case Cylinder(radius, length) | Cone(radius, length) | Capsule(radius, length):
            return radius, length / 2.0, 0.0
        case Plane():
            return _NONE


def _checked(values: Float64, columns: int) -> Float64:
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != columns:
        raise InvalidRequestError(f"given are numbers of shape {given.shape}; allowed is (N, {columns})")
    if not np.isfinite(given).all():
        raise InvalidRequestError("given are coordinates that are not finite")
    return np.array(given, order="C")
