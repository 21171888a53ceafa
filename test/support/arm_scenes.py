"""Scenes for the bundled arm."""

import numpy as np

from kinopt_ros.geometry.shapes import Box, PlacedShape, Sphere
from kinopt_ros.scene.scene import Scene, SceneObject

READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
"""The arm's usual posture, rad."""


def scene_of(*shapes: tuple[Box | Sphere, tuple[float, float, float]]) -> Scene:
    """Shapes at places of the root frame, m."""
    objects = {}
    for k, (shape, p) in enumerate(shapes):
        T = np.eye(4)
        T[:3, 3] = p
        objects[f"object {k}"] = SceneObject(f"object {k}", (PlacedShape(shape, np.eye(4)),), T)
    return Scene(version=1, objects=objects)
