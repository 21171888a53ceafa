"""Distance to obstacles of what the robot sweeps from one point of a trajectory to the next."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from kinopt_ros.costs.obstacles import boxes_of
from kinopt_ros.costs.point import Point
from kinopt_ros.costs.robot_bodies import bodies_of
from kinopt_ros.costs.solids import to_nearest_box
from kinopt_ros.costs.world_collision import WorldCollision
from kinopt_ros.errors import InvalidRequestError, shown
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False, kw_only=True)
class SweptCollision(WorldCollision):
    """Nearness of the capsule that each sphere sweeps on its way to the next point, and so of all in between.

    Spheres move along arcs, not segments: how far an arc may stray is for the check of the motion, not for this cost.
    """

    name: ClassVar[str] = "swept_collision"
    formula: ClassVar[str] = "r = activation(d, margin) of the capsule from one point to the next"
    source: ClassVar[str] = 'Kim et al., "PyRoki", 2025, IV-A'
    span: ClassVar[int] = 2

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for what ``world_collision`` refuses, and for capsules."""
        super().check(robot)
        if self.shape != "spheres":
            raise InvalidRequestError(
                f"cost {self.title!r}: shape is {shown(self.shape)}; allowed is spheres"
            )

    def residual(self, point: Point) -> Annotated[Any, "N"]:
        """Compute the nearness of every swept sphere to the nearest obstacle."""
        xp, bodies = point.xp, bodies_of(point.robot, self.shape)
        if self.obstacles is None or not len(self.obstacles):
            return xp.zeros(len(bodies.radius))
        before, after = bodies.placed(point)[0], bodies.placed(point.next())[0]
        found = to_nearest_box(xp, boxes_of(xp.asarray(self.obstacles)), before, after)
        return self.nearness(xp, found - xp.asarray(bodies.radius))
