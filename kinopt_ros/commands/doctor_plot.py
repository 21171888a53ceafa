"""Picture of a robot's shapes and the spheres around them."""

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.collision.spheres import RobotSpheres
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.geometry.cells import triangles_of
from kinopt_ros.geometry.shapes import Capsule, Mesh, PlacedShape, Sphere
from kinopt_ros.geometry.surfaces import surface_points
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.model import RobotModel

_MOST_TRIANGLES = 2500
"""Most triangles drawn of one mesh; of a finer mesh the largest ones are drawn."""
_LONGEST_SIDE = 0.08
"""Longest side of a drawn triangle, m."""
_ELEVATION, _AZIMUTH = 18.0, -60.0
"""Direction from which the robot is seen, degrees."""
_VIEW = np.array(
    [
        math.cos(math.radians(_ELEVATION)) * math.cos(math.radians(_AZIMUTH)),
        math.cos(math.radians(_ELEVATION)) * math.sin(math.radians(_AZIMUTH)),
        math.sin(math.radians(_ELEVATION)),
    ]
)
_LIGHT = np.array([0.35, -0.6, 0.72])

Triangles = Annotated[Float64, "T 3 3"]


def plot_collision(robot: RobotModel, spheres: RobotSpheres, file: Path) -> None:
    """Draw the shapes, and beside them the shapes within their spheres, at the default configuration.

    Every link has a colour of its own. What no sphere covers is red.

    Raises:
        InvalidRequestError: the robot has no shapes, or the file cannot be written.
    """
    if not robot.collision_shapes:
        raise InvalidRequestError(f"robot {robot.name!r} has no collision shapes: there is nothing to draw")
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    poses = forward_kinematics(robot, robot.default_q)
    colours = colormaps["tab10"]
    solids, balls, bare = [], [], [np.empty((0, 3))]
    for number, (name, shapes) in enumerate(robot.collision_shapes.items()):
        colour, T = colours(number % 10), poses[robot.link_index[name]]
        own = spheres.of(robot.link_index[name])
        solids += [(_small(_moved(_triangles(placed), T)), colour) for placed in shapes]
        unit = _ball(14)
        balls += [(_moved(unit * r + c, T), colour) for c, r in zip(own.centers, own.radii, strict=True)]
        points = surface_points(shapes)
        bare.append(_moved(points[~own.contain(points)], T))
    everything = np.concatenate([triangles.reshape(-1, 3) for triangles, _ in (*solids, *balls)])
    figure = Figure(figsize=(15.0, 9.0), layout="constrained")
    figure.suptitle(
        f"{robot.name}: {len(spheres.radii)} spheres contain the shapes of {len(robot.collision_shapes)} links"
        if sum(map(len, bare)) == 0
        else f"{robot.name}: {len(spheres.radii)} spheres; red: not covered",
        fontsize=14,
    )
    for column, (title, groups) in enumerate(
        (("shapes", [(solids, 1.0)]), ("spheres", [(solids, 0.9), (balls, 0.25)])), start=1
    ):
        axes: Any = figure.add_subplot(1, 2, column, projection="3d")
        _draw(axes, groups)
        if column == 2:
            axes.scatter(*np.concatenate(bare).T, color="red", s=2)
        axes.set_title(title)
        _frame(axes, everything)
    try:
        figure.savefig(file, dpi=110)
    except OSError as error:
        raise InvalidRequestError(f"cannot write the picture {file}: {error.strerror}") from None


def _draw(axes: Any, groups: list[tuple[list[tuple[Triangles, Any]], float]]) -> None:
    """Draw all triangles as one collection: only so are the near ones drawn over the far ones."""
    from mpl_toolkits.mplot3d.art3d import (  # type: ignore[import-untyped, unused-ignore]
        Poly3DCollection,
    )

    polygons, colours = [], []
    for parts, alpha in groups:
        for triangles, colour in parts:
            a, b, c = (triangles[:, corner] for corner in range(3))
            normal = np.cross(b - a, c - a)
            length = np.maximum(np.sqrt((normal**2).sum(axis=1)), 1e-300)
            shade = 0.62 + 0.38 * (normal @ _LIGHT) / length
            polygons.append(triangles)
            colours.append(
                np.column_stack([shade[:, None] * np.array(colour[:3]), np.full(len(shade), alpha)])
            )
    axes.add_collection3d(
        Poly3DCollection(
            np.concatenate(polygons), facecolors=np.concatenate(colours).clip(0.0, 1.0), linewidths=0.0
        )
    )


def _frame(axes: Any, points: Annotated[Float64, "P 3"]) -> None:
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    axes.set(
        xlim=(middle[0] - half[0], middle[0] + half[0]),
        ylim=(middle[1] - half[1], middle[1] + half[1]),
        zlim=(middle[2] - half[2], middle[2] + half[2]),
        xlabel="x (m)",
        ylabel="y (m)",
        zlabel="z (m)",
    )
    axes.set_box_aspect(half, zoom=0.95)
    axes.view_init(elev=_ELEVATION, azim=_AZIMUTH)
    axes.set_proj_type("ortho")
    axes.locator_params(nbins=5)


def _triangles(placed: PlacedShape) -> Triangles:
    shape = placed.shape
    if isinstance(shape, Sphere | Capsule):
        triangles = _ball(14) * shape.radius
        if isinstance(shape, Capsule):
            triangles[:, :, 2] += np.copysign(shape.length / 2.0, triangles[:, :, 2])
    else:
        triangles = triangles_of(shape)
    if isinstance(shape, Mesh) and len(triangles) > _MOST_TRIANGLES:
        a, b, c = (triangles[:, corner] for corner in range(3))
        area = (np.cross(b - a, c - a) ** 2).sum(axis=1)
        triangles = triangles[np.argsort(-area)[:_MOST_TRIANGLES]]
    return _moved(triangles, placed.T_frame_shape)


def _small(triangles: Triangles) -> Triangles:
    """Divide triangles until their sides are at most ``_LONGEST_SIDE``.

    Triangles are drawn by the distance of their middles, so large ones would hide what is in front of them.
    """
    while True:
        a, b, c = (triangles[:, corner] for corner in range(3))
        sides = np.sqrt(np.stack([((q - p) ** 2).sum(axis=1) for p, q in ((a, b), (b, c), (c, a))]))
        large = sides.max(axis=0) > _LONGEST_SIDE
        if not large.any() or len(triangles) > 20 * _MOST_TRIANGLES:
            return triangles
        a, b, c = a[large], b[large], c[large]
        ab, bc, ca = (a + b) / 2.0, (b + c) / 2.0, (c + a) / 2.0
        parts = [np.stack(part, axis=1) for part in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))]
        triangles = np.concatenate([triangles[~large], *parts])


def _moved(points: Float64, T: Annotated[Float64, "4 4"]) -> Float64:
    moved: Float64 = points @ T[:3, :3].T + T[:3, 3]
    return moved


def _ball(count: int) -> Triangles:
    """Return the unit sphere in ``count`` rings, none of which crosses z = 0."""
    polar = np.linspace(0.0, np.pi, count + 1)
    around = np.linspace(0.0, 2.0 * np.pi, 2 * count + 1)
    p, s = np.meshgrid(polar, around, indexing="ij")
    grid = np.stack([np.sin(p) * np.cos(s), np.sin(p) * np.sin(s), np.cos(p)], axis=-1)
    a, b, c, d = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    both = np.concatenate([np.stack([a, b, c], axis=-2), np.stack([a, c, d], axis=-2)])
    return both.reshape(-1, 3, 3)
