"""Obstacles that are added, dragged and deleted on the page: the changes of its scene."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidShapeError, shown
from kinopt_ros.geometry.shapes import Box, Cylinder, PlacedShape, Shape, Sphere
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene import changes
from kinopt_ros.scene.files import load_scene, save_scene
from kinopt_ros.scene.scene import Scene, SceneObject

KINDS = ("box", "sphere", "cylinder")


class Obstacles:
    """The scene, which changes as a whole. Methods may be called from any thread."""

    def __init__(self, robot: RobotModel, scene: Scene) -> None:
        self._robot = robot
        self._scene = scene
        self._lock = threading.Lock()

    @property
    def scene(self) -> Scene:
        """The scene as it is now."""
        return self._scene

    def add(self, kind: str, size: Sequence[float], at: tuple[float, float, float]) -> str:
        """Add an obstacle; return its id.

        Args:
            kind: one of ``KINDS``.
            size: edges of a box; of a sphere the first, of a cylinder the first and the third count: diameter and
                length; m.
            at: where its middle is in the root link, m.

        Raises:
            InvalidShapeError: another kind, or a size or place that is not allowed.
        """
        shape = _shape(kind, size)
        T = np.eye(4)
        T[:3, 3] = at
        with self._lock:
            taken = {*self._scene.objects, *self._scene.attached, *self._robot.link_names}
            id = next(name for i in range(1, len(taken) + 2) if (name := f"{kind}{i}") not in taken)
            new = SceneObject(id, (PlacedShape(shape, np.eye(4)),), T)
            self._scene = changes.add(self._scene, self._robot, new)
        return id

    def move(self, id: str, T_root_object: Annotated[Float64, "4 4"]) -> None:
        """Put an obstacle elsewhere; KinoptError if there is none of that id, or that is no pose."""
        with self._lock:
            self._scene = changes.move(self._scene, id, np.array(T_root_object, dtype=np.float64))

    def remove(self, id: str) -> None:
        """Delete an obstacle; KinoptError if there is none of that id."""
        with self._lock:
            self._scene = changes.remove(self._scene, id)

    def load(self, path: str | Path) -> None:
        """Take the scene of a file in place of this one; KinoptError if it is none."""
        loaded = load_scene(path, self._robot)
        with self._lock:
            self._scene = loaded

    def save(self, path: str | Path) -> None:
        """Write the scene to a file. Raises as ``save_scene``."""
        save_scene(self._scene, path, self._robot)


def _shape(kind: str, size: Sequence[float]) -> Shape:
    if len(size) != 3:  # whatever a browser says
        raise InvalidShapeError(f"the size of an obstacle has {len(size)} numbers; allowed are 3")
    x, y, z = (float(edge) for edge in size)
    if kind == "box":
        return Box(x, y, z)
    if kind == "sphere":
        return Sphere(x / 2.0)
    if kind == "cylinder":
        return Cylinder(x / 2.0, z)
    raise InvalidShapeError(f"an obstacle is {shown(kind)}; allowed are {', '.join(KINDS)}")
