"""Distance of the robot to obstacles."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.obstacles import COLUMNS, MOST, boxes_of, obstacles_of
from kinopt_ros.costs.point import Point
from kinopt_ros.costs.robot_bodies import bodies_of
from kinopt_ros.costs.solids import activation, to_nearest_box
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene


@dataclass(frozen=True, eq=False, kw_only=True)
class WorldCollision(Cost):
    """Nearness of every body of the robot to the nearest obstacle.

    Weighed, it is the smooth activation of the signed distance; with a tolerance, bodies keep the margin but for that.
    Bodies contain the links' shapes and obstacles are rather too large, so that it errs to the safe side.
    """

    name: ClassVar[str] = "world_collision"
    formula: ClassVar[str] = "r = activation(d, margin); with a tolerance r = margin - d"
    units: ClassVar[str] = "m"
    source: ClassVar[str] = 'Kim et al., "PyRoki", 2025, III-C'
    one_sided: ClassVar[bool] = True
    looks_at_shapes: ClassVar[bool] = True

    margin: float = 0.05
    """Distance from which on nearness counts, m."""
    shape: str = "spheres"
    """What stands for a link: ``spheres`` that contain it, or one of ``capsules``."""
    obstacles: Annotated[Float64, "K 16"] | None = None
    """Obstacles (``costs/obstacles.py``); None: those of the problem's scene, which are put in its place."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for another shape, a robot without any, or a margin below 0."""
        bodies_of(robot, self.shape)
        if self.margin < 0.0:
            raise InvalidRequestError(f"cost {self.title!r}: margin is {self.margin}; allowed is 0 or more")
        if self.obstacles is None:
            raise InvalidRequestError(
                f"cost {self.title!r} has no obstacles: give the problem a scene, or obstacles_of(scene)"
            )
        if np.ndim(self.obstacles) != 2 or np.shape(self.obstacles)[1] != COLUMNS:
            raise InvalidRequestError(
                f"cost {self.title!r}: obstacles has shape {np.shape(self.obstacles)}; allowed is (K, {COLUMNS})"
            )
        if len(self.obstacles) > MOST:
            raise InvalidRequestError(
                f"cost {self.title!r} has {len(self.obstacles)} obstacles; allowed are {MOST}"
            )

    def in_scene(self, scene: Scene) -> Self:
        """Return the cost with the scene's obstacles, if it has none of its own."""
        return self if self.obstacles is not None else self.replace(obstacles=obstacles_of(scene))

    def links(self, robot: RobotModel) -> tuple[str, ...]:
        """Return the links whose poses it asks for."""
        return bodies_of(robot, self.shape).links

    def residual(self, point: Point) -> Annotated[Any, "N"]:
        """Compute the nearness of every body to the nearest obstacle."""
        xp, bodies = point.xp, bodies_of(point.robot, self.shape)
        if self.obstacles is None or not len(self.obstacles):
            return xp.zeros(len(bodies.radius))
        boxes = boxes_of(xp.asarray(self.obstacles))
        a, b = bodies.placed(point)
        found = to_nearest_box(xp, boxes, a, None if a is b else b)
        return self.nearness(xp, found - xp.asarray(bodies.radius))

    def nearness(self, xp: Any, distance: Any) -> Any:
        """Return the residual of distances."""
        return self.margin - distance if self.holds else activation(xp, distance, self.margin)
