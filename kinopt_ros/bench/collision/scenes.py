"""Cluttered scenes for an arm, generated: primitives, a rock (mesh), and uneven ground below in every third one."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.collision.judge import distance, in_collision
from kinopt_ros.geometry.meshes import hull_of
from kinopt_ros.geometry.shapes import Box, Capsule, Cone, Cylinder, HeightMap, PlacedShape, Shape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene, SceneObject

PRIMITIVES = 10
"""Kinds of obstacles besides a rock."""
SIZES = (0.05, 0.35)
"""Range of edges, diameters and lengths of obstacles, m."""
GAP = 0.03
"""Distance that obstacles keep from links which the arm does not move, m."""
GROUND_EVERY = 3
GROUND_CELLS, GROUND_STEP, GROUND_BUMP = 40, 0.1, 0.08
"""Cells along an edge, their size and the height of bumps, m."""
FAR_BELOW = -100.0


class SceneMaker:
    """Makes scenes for one robot and the variables that are moved."""

    def __init__(self, robot: RobotModel, tip: str, moved: list[int], rng: np.random.Generator) -> None:
        """
        Args:
            robot: the robot; what is not moved stays at ``default_q``.
            tip: obstacles are put where this link can be.
            moved: indices of the moved variables.
            rng: source of all that is random.
        """
        self._rng = rng
        q = np.repeat(robot.default_q[None], 64, axis=0)
        low, high = robot.limits.lower[moved], robot.limits.upper[moved]
        turn = np.where(np.isfinite(high - low), 0.0, np.pi)
        low, high = np.where(turn > 0.0, -turn, low), np.where(turn > 0.0, turn, high)
        q[1:, moved] = rng.uniform(low, high, (63, len(moved)))
        names = tuple(robot.collision_shapes)
        poses = forward_kinematics(robot, q, names)
        rests = np.ptp(poses, axis=0).max(axis=(1, 2)) < 1e-9
        self._resting = [
            PlacedShape(placed.shape, poses[0, k] @ placed.T_frame_shape)
            for k, name in enumerate(names)
            if rests[k]
            for placed in robot.collision_shapes[name]
        ]
        self._places = forward_kinematics(robot, q, (tip,))[1:, 0, :3, 3]

    def scene(self, number: int) -> Scene:
        """Return the scene of a number, which decides whether there is ground."""
        placed = [self._beside(shape) for shape in self._shapes()]
        if number % GROUND_EVERY == 0:
            placed.append(self._ground())
        objects = {}
        for k, shape in enumerate(placed):
            name = f"{type(shape.shape).__name__.lower()} {k}"
            at_origin = PlacedShape(shape.shape, np.eye(4))
            objects[name] = SceneObject(name, (at_origin,), shape.T_frame_shape)
        return Scene(version=number + 1, objects=objects)

    def _shapes(self) -> Iterator[Shape]:
        for number in range(PRIMITIVES):
            a, b, c = (float(size) for size in self._rng.uniform(*SIZES, 3))
            kinds = (
                Box(a, b, c),
                Sphere(a / 2.0),
                Cylinder(a / 2.0, b),
                Capsule(a / 2.0, b),
                Cone(a / 2.0, b),
            )
            yield kinds[number % len(kinds)]
        points = self._rng.normal(size=(40, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        yield hull_of(points * self._rng.uniform(*SIZES, 3) / 2.0)

    def _beside(self, shape: Shape) -> PlacedShape:
        """Return a place in reach, but away from what does not move."""
        while True:
            T = np.eye(4)
            T[:3, :3] = _random_rotation(self._rng)
            T[:3, 3] = self._rng.choice(self._places) + self._rng.uniform(-0.1, 0.1, 3)
            if not any(in_collision(shape, T, r.shape, r.T_frame_shape, GAP) for r in self._resting):
                return PlacedShape(shape, T)

    def _ground(self) -> PlacedShape:
        """Return ground so high that it just keeps away from what does not move."""
        heights = self._rng.uniform(0.0, GROUND_BUMP, (GROUND_CELLS + 1, GROUND_CELLS + 1))
        shape = HeightMap(heights, GROUND_STEP)
        T = np.eye(4)
        T[:3, 3] = -GROUND_CELLS * GROUND_STEP / 2.0, -GROUND_CELLS * GROUND_STEP / 2.0, FAR_BELOW
        gaps = [distance(shape, T, r.shape, r.T_frame_shape).distance for r in self._resting]
        T[2, 3] += min(gaps, default=-FAR_BELOW) - GAP
        return PlacedShape(shape, T)


def _random_rotation(rng: np.random.Generator) -> Annotated[Float64, "3 3"]:
    w, x, y, z = (lambda q: q / np.linalg.norm(q))(rng.normal(size=4))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
