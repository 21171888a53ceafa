"""An axis of a link that shall point along a direction: a cup upright, a tool downwards."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from kinopt_ros.costs.base import Cost, checked_sizes, links_of, unit_vector
from kinopt_ros.costs.directions import angle_between
from kinopt_ros.costs.point import Point
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False, kw_only=True)
class Alignment(Cost):
    """Angle between an axis of a link and a direction in the root link, as a rotation vector."""

    name: ClassVar[str] = "alignment"
    formula: ClassVar[str] = "r = angle(R a, d) * (R a x d) / |R a x d|"
    units: ClassVar[str] = "rad"

    link: str
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Axis in the link's frame, of any length but 0."""
    direction: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Direction in the root link's frame, of any length but 0."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for a link that the robot lacks, and for vectors of length 0."""
        links_of(robot, self, self.link)
        unit_vector(self, "axis", self.axis)
        unit_vector(self, "direction", self.direction)
        checked_sizes(self, 3)

    def residual(self, point: Point) -> Annotated[Any, "3"]:
        """Compute the rotation vector, rad, that turns the axis into the direction."""
        xp = point.xp
        return angle_between(
            xp, point.pose(self.link)[:3, :3] @ xp.asarray(self.axis), xp.asarray(self.direction)
        )
