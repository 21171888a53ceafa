"""Obstacles packed for the compiled kernels, and signed distances of points and balls to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision import kernels
from kinopt_ros.collision.trees import bounds_of, tree_of
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
    Shape,
    Sphere,
)

KINDS: dict[type[Any], int] = {
    Sphere: kernels.SPHERE,
    Box: kernels.BOX,
    Cylinder: kernels.CYLINDER,
    Cone: kernels.CONE,
    Capsule: kernels.CAPSULE,
    Plane: kernels.PLANE,
    Mesh: kernels.MESH,
    HeightMap: kernels.HEIGHT_MAP,
    PointCloud: kernels.POINT_CLOUD,
    Octomap: kernels.OCTOMAP,
}


@dataclass(frozen=True, eq=False)
class Obstacles:
    """Shapes in one common frame, as the functions of ``kernels.py`` take them. Made by ``pack``.

    The arrays are not read-only, as numba would compile everything a second time for such arrays.
    """

    numbers: Annotated[Float64, "n NUMBERS"]
    integers: Annotated[Int64, "n INTEGERS"]
    nothing_skipped: Annotated[Bool, "n"]
    """False for every obstacle: the argument ``skipped`` of the kernels, if all count."""
    trees: tuple[Float64, ...]
    """What ``integers`` points to; keep this object as long as its arrays."""

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class Nearest:
    distances: Annotated[Float64, "N"]
    """m; negative inside."""
    gradients: Annotated[Float64, "N 3"]
    """Unit vectors of the common frame, away from the nearest obstacle; 0 where there is none."""
    obstacles: Annotated[Int64, "N"]
    """Index of the nearest obstacle, or -1."""


def pack(shapes: Sequence[PlacedShape]) -> Obstacles:
    """Obstacles at poses of a common frame (``T_frame_shape``); the index in the sequence is the obstacle's number.

    Trees of big shapes are built the first time and remembered (about 2 s for a million points); without them
    packing takes some 10 us per shape.
    """
    numbers = np.zeros((len(shapes), kernels.NUMBERS))
    integers = np.zeros((len(shapes), kernels.INTEGERS), dtype=np.int64)
    trees = []
    for row, index, placed in zip(numbers, integers, shapes, strict=True):
        rotation, position = rigid(placed.T_frame_shape)
        row[kernels.ROTATION : kernels.ROTATION + 9] = rotation.T.reshape(-1)
        row[kernels.TRANSLATION : kernels.TRANSLATION + 3] = -rotation.T @ position
        shape = placed.shape
        index[kernels.KIND] = KINDS[type(shape)]
        if isinstance(shape, Mesh | HeightMap | PointCloud | Octomap):
            tree = tree_of(shape)
            trees.append(tree)
            index[kernels.TREE] = tree.ctypes.data
        else:
            parameters, _ = _primitive(shape)
            row[kernels.PARAMETERS : kernels.PARAMETERS + len(parameters)] = parameters
        centre, reach = bounding_sphere(shape)
        row[kernels.CENTER : kernels.CENTER + 3] = rotation @ centre + position
        row[kernels.REACH] = reach
    nothing_skipped = np.zeros(len(shapes), dtype=np.bool_)
    return Obstacles(numbers, integers, nothing_skipped, tuple(trees))


def nearest(
    obstacles: Obstacles,
    balls: Annotated[Float64, "N 4"],
    most: float = np.inf,
    skipped: Annotated[Bool, "n"] | None = None,
) -> Nearest:
    """Signed distance of every ball (centre and radius, m; radius 0 for points) to the nearest obstacle.

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
    kernels.nearest_obstacles(
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
    """Signed distances (m, negative inside) and unit gradients of points in a shape's own frame.

    Exact for all but: inside of clouds and octomaps the distance to the surface of the ball or cube in which the
    point is deepest; height maps at most ``twist / 4`` less than the truth, where twist is the largest difference of
    the two sums of heights over the diagonals of a cell.
    """
    points = _checked(points, 3)
    balls = np.hstack([points, np.zeros((len(points), 1))])
    answer = nearest(pack([PlacedShape(shape, np.eye(4))]), balls)
    return answer.distances, answer.gradients


def bounding_sphere(shape: Shape) -> tuple[Annotated[Float64, "3"], float]:
    """Centre and radius of a sphere that contains a shape, in its frame; infinite for planes and height maps."""
    if isinstance(shape, Mesh | HeightMap | PointCloud | Octomap):
        return bounds_of(shape, tree_of(shape))
    return np.zeros(3), _primitive(shape)[1]


def _primitive(shape: Shape) -> tuple[tuple[float, ...], float]:
    """Parameters as the kernels take them, and the radius of a sphere about the origin that contains the shape."""
    match shape:
        case Sphere(radius):
            return (radius,), radius
        case Box(x, y, z):
            return (x / 2.0, y / 2.0, z / 2.0), float(np.sqrt(x * x + y * y + z * z)) / 2.0
        case Cylinder(radius, length) | Cone(radius, length):
            return (radius, length / 2.0), float(np.hypot(radius, length / 2.0))
        case Capsule(radius, length):
            return (radius, length / 2.0), radius + length / 2.0
        case Plane():
            return (), np.inf
    raise InvalidShapeError(f"{type(shape).__name__} is no shape that has signed distances")


def rigid(transform: Annotated[Float64, "4 4"]) -> tuple[Annotated[Float64, "3 3"], Annotated[Float64, "3"]]:
    """Rotation and position of a pose; raises ``InvalidShapeError`` for what is none."""
    if transform.shape != (4, 4) or not np.isfinite(transform).all():
        raise InvalidShapeError(
            f"the pose of a shape is {transform.shape} or not finite; allowed is a 4 x 4 transform"
        )
    rotation = transform[:3, :3]
    if np.abs(rotation @ rotation.T - np.eye(3)).max() > 1e-6 or np.linalg.det(rotation) < 0.0:
        raise InvalidShapeError("the pose of a shape has a rotation that is not orthonormal and right-handed")
    return rotation, transform[:3, 3]


def _checked(values: Float64, columns: int) -> Float64:
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != columns:
        raise InvalidRequestError(f"given are numbers of shape {given.shape}; allowed is (N, {columns})")
    if not np.isfinite(given).all():
        raise InvalidRequestError("given are coordinates that are not finite")
    return np.array(given, order="C")
