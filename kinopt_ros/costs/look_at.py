"""An axis of a link that shall point to a place: a camera looking at an object."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from kinopt_ros.costs.base import Cost, checked_sizes, links_of, unit_vector
from kinopt_ros.costs.directions import angle_between
from kinopt_ros.costs.point import Point
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False, kw_only=True)
class LookAt(Cost):
    """Angle between an axis of a link and the line to a place, as a rotation vector.

    Where the place is the link's own origin there is no line, and it is half a turn.
    """

    name: ClassVar[str] = "look_at"
    formula: ClassVar[str] = "r = angle(R a, c - p) * (R a x (c - p)) / |R a x (c - p)|"
    units: ClassVar[str] = "rad"

    link: str
    place: tuple[float, float, float]
    """Where to look, in ``base_link``, m."""
    base_link: str = ""
    """Link in whose frame the place is given; it may move. Empty: the root link."""
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Viewing direction in the link's frame, of any length but 0."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for links that the robot lacks, and for an axis of length 0."""
        links_of(robot, self, self.link, *([self.base_link] if self.base_link else []))
        unit_vector(self, "axis", self.axis)
        checked_sizes(self, 3)

    def residual(self, point: Point) -> Annotated[Any, "3"]:
        """Compute the rotation vector, rad, that turns the axis towards the place."""
        xp = point.xp
        T, place = point.pose(self.link), xp.asarray(self.place)
        if self.base_link:
            T_base = point.pose(self.base_link)
            place = T_base[:3, :3] @ place + T_base[:3, 3]
        return angle_between(xp, T[:3, :3] @ xp.asarray(self.axis), place - T[:3, 3])
