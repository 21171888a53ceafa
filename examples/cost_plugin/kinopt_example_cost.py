"""A cost of one's own, whole: a link that shall stay above a floor."""

from dataclasses import dataclass
from typing import Any, ClassVar

from kinopt_ros.costs.base import Cost, checked_sizes, links_of
from kinopt_ros.costs.point import Point
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False, kw_only=True)
class AboveFloor(Cost):
    """How far a link is below a height."""

    name: ClassVar[str] = "above_floor"
    formula: ClassVar[str] = "r = height - p_z"
    units: ClassVar[str] = "m"
    one_sided: ClassVar[bool] = True  # r <= 0 is as good as 0

    link: str
    height: float = 0.0
    """Least height of the link's origin in the root link, m. Another one needs no compiling."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for a link that the robot lacks, and for more than one weight or tolerance."""
        links_of(robot, self, self.link)
        checked_sizes(self, 1)

    def residual(self, point: Point) -> Any:
        """Compute how far it is below, shape (1,); point.xp is numpy or jax.numpy."""
        return self.height - point.pose(self.link)[2:3, 3]
