"""Generated scenes for an arm, in four families, with regions where its tip is to start and to end."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.bench.collision.scenes import GAP, SceneMaker
from kinopt_ros.collision.judge import in_collision
from kinopt_ros.geometry.shapes import Box, Cylinder, PlacedShape, Shape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import sampling_range
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene, SceneObject

FAMILIES = ("wall", "table", "shelf", "clutter")
"""Families of scenes: walls or pillars, a table with boxes, a shelf, random clutter."""
Region: TypeAlias = Callable[[Annotated[Float64, "N 3"]], Annotated[Bool, "N"]]
"""Function that tells which positions of the tip (root frame, m) are where a motion shall start or end."""


@dataclass(frozen=True, eq=False)
class Setting:
    """A scene, and where motions start and end in it."""

    scene: Scene
    start: Region
    goal: Region


class SettingMaker:
    """Makes settings for one arm. Sizes are shares of its reach, places are relative to its first joint."""

    def __init__(self, robot: RobotModel, tip: str, moved: list[int], front: float) -> None:
        """
        Args:
            robot: the robot; what is not moved stays at ``default_q``.
            tip: link whose positions count.
            moved: indices of the moved variables.
            front: azimuth (rad, about z of the root frame) of the middle of where the arm works.
        """
        self._robot, self._tip, self._moved, self._front = robot, tip, moved, front
        rng = np.random.default_rng(0)
        low, high = sampling_range(robot)
        q = np.repeat(robot.default_q[None], 512, axis=0)
        q[:, moved] = rng.uniform(low[moved], high[moved], (512, len(moved)))
        first = next(joint.child_link for joint in robot.joints if joint.first_variable == moved[0])
        links = tuple(robot.collision_shapes)
        poses = forward_kinematics(robot, q, (first, tip, *links))
        self.shoulder = poses[0, 0, :3, 3].copy()
        self.reach = float(np.linalg.norm(poses[:, 1, :3, 3] - self.shoulder, axis=1).max())
        rests = np.ptp(poses[:, 2:], axis=0).max(axis=(1, 2)) < 1e-9
        self._resting = [
            PlacedShape(placed.shape, poses[0, 2 + k] @ placed.T_frame_shape)
            for k, link in enumerate(links)
            if rests[k]
            for placed in robot.collision_shapes[link]
        ]

    def setting(self, family: str, number: int, rng: np.random.Generator) -> Setting:
        """Return the setting of a family and number, random otherwise."""
        if family == "wall":
            return self._wall(rng) if number % 2 == 0 else self._pillars(rng)
        if family == "table":
            return self._table(rng)
        if family == "shelf":
            return self._shelf(rng)
        if family == "clutter":
            maker = SceneMaker(self._robot, self._tip, self._moved, rng)
            return Setting(_rounded(maker.scene(number)), _anywhere, _anywhere)
        raise AssertionError(f"no family {family}")

    def _wall(self, rng: np.random.Generator) -> Setting:
        """Return upright walls, on the line from the arm outwards: the way is over them, or behind them."""
        azimuth = self._front + rng.uniform(-0.5, 0.5)
        near, far = rng.uniform(0.3, 0.45) * self.reach, 1.15 * self.reach
        low, high = -0.5 * self.reach, rng.uniform(-0.1, 0.3) * self.reach
        wall = Box(far - near, rng.uniform(0.02, 0.06), high - low)
        scene = self._scene([(wall, self._frame(azimuth, (near + far) / 2.0, 0.0, (low + high) / 2.0))])
        return Setting(scene, self._beside(azimuth, 1.0, high), self._beside(azimuth, -1.0, high))

    def _pillars(self, rng: np.random.Generator) -> Setting:
        azimuth = self._front + rng.uniform(-0.3, 0.3)
        parts: list[tuple[Shape, Float64]] = []
        for k in range(int(rng.integers(3, 6))):
            low, high = -0.5 * self.reach, rng.uniform(0.2, 0.8) * self.reach
            width = rng.uniform(0.05, 0.13)
            shape = Cylinder(width / 2.0, high - low) if k % 2 else Box(width, width, high - low)
            turn = azimuth + (rng.uniform(-0.9, 0.9) if k else rng.uniform(-0.2, 0.2))
            parts.append(
                (shape, self._frame(turn, rng.uniform(0.4, 0.85) * self.reach, 0.0, (low + high) / 2))
            )
        top = 0.4 * self.reach
        return Setting(self._scene(parts), self._beside(azimuth, 1.0, top), self._beside(azimuth, -1.0, top))

    def _beside(self, azimuth: float, side: float, top: float) -> Region:
        """Return a region on one side of an upright plane through the first joint, in front of the arm, not above
        ``top``."""

        def inside(position: Float64) -> Bool:
            x, y, z = self._seen_from(azimuth, position)
            turn = side * np.arctan2(y, x)
            return (turn > 0.25) & (turn < 1.4) & (np.hypot(x, y) > 0.4 * self.reach) & (z < top)

        return inside

    def _table(self, rng: np.random.Generator) -> Setting:
        azimuth = self._front + rng.uniform(-0.2, 0.2)
        depth, width, board = 0.8 * self.reach, 1.5 * self.reach, 0.04
        middle, top = 0.65 * self.reach, -rng.uniform(0.1, 0.4) * self.reach
        parts: list[tuple[Shape, Float64]] = [
            (Box(depth, width, board), self._frame(azimuth, middle, 0.0, top - board / 2.0))
        ]
        for _ in range(int(rng.integers(5, 9))):
            x, y = rng.uniform(0.06, 0.2, 2)
            height = rng.uniform(0.08, 0.4)
            ahead = middle + rng.uniform(-0.4, 0.4) * depth
            aside = rng.uniform(-0.45, 0.45) * width
            # A hair above, as boxes stand.
            frame = self._frame(azimuth, ahead, aside, top + 1e-3 + height / 2.0)
            parts.append((Box(x, y, height), frame @ _turned(rng.uniform(-np.pi, np.pi))))

        def above(position: Float64) -> Bool:
            x, y, z = self._seen_from(azimuth, position)
            over = (np.abs(x - middle) < depth / 2.0) & (np.abs(y) < 0.45 * width)
            return over & (z > top + 0.03) & (z < top + 0.35)

        return Setting(self._scene(parts), above, above)

    def _shelf(self, rng: np.random.Generator) -> Setting:
        """Return boards, two sides and a back: the way is from one compartment to another one, or from before it."""
        azimuth = self._front + rng.uniform(-0.3, 0.3)
        face, depth = rng.uniform(0.45, 0.6) * self.reach, 0.4 * self.reach
        width, space, board = 0.9 * self.reach, 0.4 * self.reach, 0.02
        lowest = -rng.uniform(0.4, 0.7) * self.reach
        heights = [lowest + k * space for k in range(4)]
        middle, height = face + depth / 2.0, heights[-1] - heights[0]
        parts: list[tuple[Shape, Float64]] = [
            (Box(depth, width, board), self._frame(azimuth, middle, 0.0, z)) for z in heights
        ]
        centre = heights[0] + height / 2.0
        for side in (-1.0, 1.0):
            frame = self._frame(azimuth, middle, side * (width + board) / 2.0, centre)
            parts.append((Box(depth, board, height), frame))
        parts.append((Box(board, width, height), self._frame(azimuth, face + depth + board, 0.0, centre)))
        parts.append(
            (Sphere(rng.uniform(0.03, 0.06)), self._frame(azimuth, middle, 0.0, heights[1] + 0.08)),
        )

        def compartment(k: int) -> Region:
            def inside(position: Float64) -> Bool:
                x, y, z = self._seen_from(azimuth, position)
                deep = (x > face + 0.01 * self.reach) & (x < face + depth) & (np.abs(y) < width / 2.0)
                return deep & (z > heights[k]) & (z < heights[k + 1])

            return inside

        def before(position: Float64) -> Bool:
            x, _, z = self._seen_from(azimuth, position)
            return (x < face) & (x > 0.0) & (z > heights[0])

        first, second = rng.permutation(3)[:2].tolist()
        start = before if rng.uniform() < 0.3 else compartment(first)
        return Setting(self._scene(parts), start, compartment(second))

    def _frame(self, azimuth: float, ahead: float, aside: float, up: float) -> Annotated[Float64, "4 4"]:
        """Return the pose in the root frame that is so far (m) ahead of the first joint, aside of it, and above it."""
        T = _turned(azimuth)
        T[:3, 3] = self.shoulder + T[:3, :3] @ np.array([ahead, aside, up])
        return T

    def _seen_from(self, azimuth: float, position: Float64) -> tuple[Float64, Float64, Float64]:
        """Return how far (m) a position in the root frame is ahead of the first joint, aside of it, and above it."""
        x, y, z = ((position - self.shoulder) @ _turned(azimuth)[:3, :3]).T
        return x, y, z

    def _scene(self, parts: list[tuple[Shape, Float64]]) -> Scene:
        """Return a scene without what touches links that the arm does not move."""
        kept = {}
        for number, (shape, T) in enumerate(parts):
            if any(in_collision(shape, T, r.shape, r.T_frame_shape, GAP) for r in self._resting):
                continue
            name = f"{type(shape).__name__.lower()} {number}"
            kept[name] = SceneObject(name, (PlacedShape(shape, np.eye(4)),), T)
        return _rounded(Scene(version=2, objects=kept))


def _anywhere(position: Float64) -> Bool:
    return np.ones(len(position), dtype=np.bool_)


def _turned(angle: float) -> Annotated[Float64, "4 4"]:
    T = np.eye(4)
    T[0, 0] = T[1, 1] = np.cos(angle)
    T[1, 0] = np.sin(angle)
    T[0, 1] = -T[1, 0]
    return T


def _rounded(scene: Scene) -> Scene:
    """Round places to a micrometre, so that the last bits of a machine's sine do not make another scene."""
    objects = {}
    for name, thing in scene.objects.items():
        T = thing.T_root_object.copy()
        T[:3, 3] = np.round(T[:3, 3], 6)
        objects[name] = SceneObject(name, thing.shapes, T)
    return Scene(version=scene.version, objects=objects)
