"""Conversion of shapes to visualization_msgs/Marker, as RViz draws them. Pure functions."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from kinopt_ros.array import Float64
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
from kinopt_ros.kinematics.se3 import pose
from kinopt_ros.ros.messages.conversions import poses_from_matrices

MOST_DRAWN = 20_000
"""Most points, cubes or triangles that are drawn of a shape; of more, evenly chosen ones are drawn."""
PLANE_SIZE = 10.0
"""Edge of the square that stands for a plane, m; its thickness is a thousandth of that."""
_AROUND = 24
"""Number of sides of the polygon that stands for a circle."""


def color(red: float, green: float, blue: float, alpha: float) -> ColorRGBA:
    """Return a colour message."""
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)


def body_markers(
    namespace: str,
    frame: str,
    T_frame_body: Annotated[Float64, "4 4"],
    shapes: Sequence[PlacedShape],
    painted: ColorRGBA,
) -> list[Marker]:
    """Return the markers of a body, numbered from 0 in a namespace."""
    markers: list[Marker] = []
    for placed in shapes:
        for kind, T, scale, points in _drawn(placed.shape):
            marker = Marker(ns=namespace, id=len(markers), type=kind, action=Marker.ADD, color=painted)
            marker.header.frame_id = frame
            marker.frame_locked = True  # so that RViz moves it with its frame
            marker.pose = poses_from_matrices((T_frame_body @ placed.T_frame_shape @ T)[None])[0]
            marker.scale.x, marker.scale.y, marker.scale.z = (float(s) for s in scale)
            marker.points = points_of(points)
            markers.append(marker)
    return markers


def points_of(points: Annotated[Float64, "N 3"]) -> list[Point]:
    """Return messages of points."""
    return [Point(x=x, y=y, z=z) for x, y, z in points.tolist()]


def _drawn(shape: Shape) -> list[tuple[int, Float64, Any, Float64]]:
    """Return markers of a shape: type, pose in the shape's frame, scale, and points."""
    none, here = np.empty((0, 3)), np.eye(4)
    match shape:
        case Box(x=x, y=y, z=z):
            return [(Marker.CUBE, here, (x, y, z), none)]
        case Sphere(radius=r):
            return [(Marker.SPHERE, here, (2 * r,) * 3, none)]
        case Cylinder(radius=r, length=length):
            return [(Marker.CYLINDER, here, (2 * r, 2 * r, length), none)]
        case Capsule(radius=r, length=length):
            ends = [
                (Marker.SPHERE, pose(np.eye(3), np.array([0.0, 0.0, z])), (2 * r,) * 3, none)
                for z in (-0.5 * length, 0.5 * length)
            ]
            return [(Marker.CYLINDER, here, (2 * r, 2 * r, length), none), *ends]
        case Plane():
            thickness = 1e-3 * PLANE_SIZE
            below = pose(np.eye(3), np.array([0.0, 0.0, -0.5 * thickness]))
            return [(Marker.CUBE, below, (PLANE_SIZE, PLANE_SIZE, thickness), none)]
        case Cone():
            return [(Marker.TRIANGLE_LIST, here, (1, 1, 1), _cone(shape))]
        case Mesh(vertices=vertices, triangles=triangles):
            return [(Marker.TRIANGLE_LIST, here, (1, 1, 1), vertices[_chosen(triangles)].reshape(-1, 3))]
        case HeightMap():
            return [(Marker.TRIANGLE_LIST, here, (1, 1, 1), _ground(shape))]
        case PointCloud(points=points, radius=r):
            return [(Marker.SPHERE_LIST, here, (2 * r,) * 3, _chosen(points))]
        case Octomap(centers=centers, sizes=sizes):
            return [
                (Marker.CUBE_LIST, here, (size,) * 3, _chosen(centers[sizes == size]))
                for size in np.unique(sizes)
            ]


def _chosen(rows: Any) -> Any:
    """Return all rows, or evenly chosen ones of too many."""
    return rows[:: -(-len(rows) // MOST_DRAWN)] if len(rows) > MOST_DRAWN else rows


def _cone(cone: Cone) -> Annotated[Float64, "N 3"]:
    """Return the corners of triangles of a cone."""
    angle = np.linspace(0.0, 2.0 * np.pi, _AROUND + 1)
    z = 0.5 * cone.length
    rim = np.stack(
        [cone.radius * np.cos(angle), cone.radius * np.sin(angle), np.full_like(angle, -z)], axis=1
    )
    apex, base = np.broadcast_to([0.0, 0.0, z], (_AROUND, 3)), np.broadcast_to([0.0, 0.0, -z], (_AROUND, 3))
    side = np.stack([rim[:-1], rim[1:], apex], axis=1)
    bottom = np.stack([rim[1:], rim[:-1], base], axis=1)
    return np.concatenate([side, bottom]).reshape(-1, 3)


def _ground(ground: HeightMap) -> Annotated[Float64, "N 3"]:
    """Return the corners of triangles of a height map, coarser if it is large."""
    step = max(1, int(np.ceil(np.sqrt(2.0 * ground.heights.size / MOST_DRAWN))))
    i, j = (np.unique([*range(0, size, step), size - 1]) for size in ground.heights.shape)
    x, y = np.meshgrid(i * ground.resolution, j * ground.resolution, indexing="ij")
    grid = np.stack([x, y, ground.heights[np.ix_(i, j)]], axis=2)
    a, b, c, d = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    return np.stack([a, b, c, a, c, d], axis=2).reshape(-1, 3)
