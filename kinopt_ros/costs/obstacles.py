"""Obstacles of a scene as rounded boxes, which collision costs take (``solids.py``)."""

from typing import Annotated
from weakref import WeakKeyDictionary

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.solids import RoundedBoxes
from kinopt_ros.errors import InvalidRequestError, quoted
from kinopt_ros.geometry.fit import fit_spheres
from kinopt_ros.geometry.shapes import Box, Capsule, Cone, Cylinder, Mesh, PlacedShape, Plane, Sphere
from kinopt_ros.geometry.spheres import SphereSet
from kinopt_ros.scene.scene import Scene

COLUMNS = 16
"""Numbers of an obstacle: nine of its rotation, row by row, three of its centre, three half edges, its radius."""
MOST = 256
"""Most rounded boxes of a scene."""
MESH_SPHERES = 64
"""Most spheres of a mesh."""
_KNOWN = (Sphere, Box, Capsule, Cylinder, Cone, Plane, Mesh)
_FAR = 1e3
"""Half edge of the box that stands for a half-space, m."""


def obstacles_of(scene: Scene, known_only: bool = False) -> Annotated[Float64, "K 16"]:
    """Return the obstacles of a scene, padded as it says, each at least as large as its shape.

    Cylinders and cones become capsules and what contains them; meshes become the spheres of a fit. It is remembered as
    long as the scene lives.

    Args:
        scene: the scene.
        known_only: leave out shapes that have no such form, instead of refusing them.

    Raises:
        InvalidRequestError: a shape that has no such form (clouds, octomaps, height maps), or too many.
    """
    kept = _kept.setdefault(scene, {})
    if known_only not in kept:
        kept[known_only] = _packed(scene, known_only)
    return kept[known_only]


_kept: WeakKeyDictionary[Scene, dict[bool, Float64]] = WeakKeyDictionary()
_fits: WeakKeyDictionary[Mesh, SphereSet] = WeakKeyDictionary()
"""Spheres of meshes, in their own frames."""


def _packed(scene: Scene, known_only: bool) -> Annotated[Float64, "K 16"]:
    rows: list[Float64] = []
    for item in scene.objects.values():
        for placed in item.shapes:
            if known_only and not isinstance(placed.shape, _KNOWN):
                continue
            T = item.T_root_object @ placed.T_frame_shape
            rows += _rows(item.id, PlacedShape(placed.shape, T), scene.padding_of(item.id))
    if len(rows) > MOST:
        raise InvalidRequestError(f"the scene has {len(rows)} solids for collision costs; allowed are {MOST}")
    obstacles = np.array(rows, dtype=np.float64).reshape(-1, COLUMNS)
    obstacles.setflags(write=False)
    return obstacles


def boxes_of(obstacles: Annotated[Float64, "K 16"]) -> RoundedBoxes:
    """Return rounded boxes from the array that a cost holds, numpy's or JAX's."""
    return RoundedBoxes(
        obstacles[:, :9].reshape(-1, 3, 3), obstacles[:, 9:12], obstacles[:, 12:15], obstacles[:, 15]
    )


def _rows(name: str, placed: PlacedShape, padding: float) -> list[Float64]:
    shape, T = placed.shape, placed.T_frame_shape
    if isinstance(shape, Sphere):
        return [_row(T, (0.0, 0.0, 0.0), shape.radius + padding)]
    if isinstance(shape, Box):
        return [_row(T, (0.5 * shape.x, 0.5 * shape.y, 0.5 * shape.z), padding)]
    if isinstance(shape, Capsule):
        return [_row(T, (0.0, 0.0, 0.5 * shape.length), shape.radius + padding)]
    if isinstance(shape, Cylinder | Cone):
        # Two boxes would stick out at corners, the capsule at its ends.
        return [_row(T, (0.0, 0.0, 0.5 * shape.length), shape.radius + padding)]
    if isinstance(shape, Plane):
        below = T.copy()
        below[:3, 3] = T[:3, 3] - _FAR * T[:3, 2]
        return [_row(below, (_FAR, _FAR, _FAR), padding)]
    if isinstance(shape, Mesh):
        spheres = _fits.get(shape)
        if spheres is None:  # scenes come and go, meshes stay
            spheres = _fits[shape] = fit_spheres([PlacedShape(shape, np.eye(4))], MESH_SPHERES)
        return [
            _row(
                np.block([[np.eye(3), center[:, None]], [np.zeros((1, 3)), 1.0]]),
                (0.0, 0.0, 0.0),
                radius + padding,
            )
            for center, radius in zip(
                spheres.centers @ T[:3, :3].T + T[:3, 3], spheres.radii.tolist(), strict=True
            )
        ]
    raise InvalidRequestError(
        f"object {quoted(name)} is a {type(shape).__name__}, which collision costs do not know; answers are checked "
        "against it all the same if the problem has the scene"
    )


def _row(T: Annotated[Float64, "4 4"], half: tuple[float, float, float], radius: float) -> Float64:
    return np.concatenate([T[:3, :3].ravel(), T[:3, 3], half, [radius]])
