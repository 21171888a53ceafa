"""Distance of the robot's links to one another."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.point import Point
from kinopt_ros.costs.robot_bodies import bodies_of, body_pairs
from kinopt_ros.costs.solids import activation, between_points, between_segments
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False, kw_only=True)
class SelfCollision(Cost):
    """Nearness of each pair of links that is checked for collisions.

    Weighed, it is the smooth activation of the signed distance; with a tolerance, links keep the margin but for that.
    Bodies that overlap in the default configuration, as they contain more than the links, may do so as far.
    """

    name: ClassVar[str] = "self_collision"
    formula: ClassVar[str] = "r = activation(d, margin); with a tolerance r = margin - d"
    units: ClassVar[str] = "m"
    source: ClassVar[str] = 'Kim et al., "PyRoki", 2025, III-C'
    one_sided: ClassVar[bool] = True
    looks_at_shapes: ClassVar[bool] = True

    margin: float = 0.02
    """Distance from which on nearness counts, m."""
    shape: str = "spheres"
    """What stands for a link: ``spheres`` that contain it, or one of ``capsules``."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for another shape, a robot without pairs of links to check, or a margin below 0."""
        body_pairs(robot, self.shape)
        if self.margin < 0.0:
            raise InvalidRequestError(f"cost {self.title!r}: margin is {self.margin}; allowed is 0 or more")

    def links(self, robot: RobotModel) -> tuple[str, ...]:
        """Return the links whose poses it asks for."""
        return bodies_of(robot, self.shape).links

    def residual(self, point: Point) -> Annotated[Any, "P"]:
        """Compute the nearness of every pair of links."""
        xp = point.xp
        bodies, pairs = bodies_of(point.robot, self.shape), body_pairs(point.robot, self.shape)
        a, b = bodies.placed(point)
        radii = xp.asarray(bodies.radius)

        def gaps(one: Any, two: Any) -> Any:
            if a is b:
                return between_points(xp, a[one], a[two]) - radii[one] - radii[two]
            return between_segments(xp, a[one], b[one], a[two], b[two]) - radii[one] - radii[two]

        # Which bodies are nearest is found first, so that their distance alone is differentiated.
        nearest = xp.argmin(gaps(pairs.first, pairs.second), axis=1)
        each = np.arange(len(pairs.names))
        one, two = xp.asarray(pairs.first)[each, nearest], xp.asarray(pairs.second)[each, nearest]
        distance = gaps(one, two) + xp.asarray(pairs.slack)
        return self.margin - distance if self.holds else activation(xp, distance, self.margin)
