"""Centre of mass of the robot over a place: a humanoid that shall not fall."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from kinopt_ros.costs.base import Cost, checked_sizes, links_of
from kinopt_ros.costs.point import Point
from kinopt_ros.errors import InvalidRequestError, quoted, shown
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False, kw_only=True)
class CenterOfMass(Cost):
    """Difference of the centre of mass, by the description's inertials, from a place.

    ``weight`` has one number, or three for x, y, z; 0 frees an axis, as the height.
    """

    name: ClassVar[str] = "center_of_mass"
    formula: ClassVar[str] = "r = sum(m_i (R_i c_i + p_i)) / sum(m_i) - place"
    units: ClassVar[str] = "m"

    place: tuple[float, float, float]
    """Where the centre of mass shall be, in ``base_link``, m."""
    base_link: str = ""
    """Link in whose frame the place is given, such as a foot; it may move. Empty: the root link."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for a link that the robot lacks, a robot without masses, or another size."""
        if self.base_link:
            links_of(robot, self, self.base_link)
        if not self.links(robot):
            raise InvalidRequestError(f"cost {self.title!r}: robot {quoted(robot.name)} has no masses")
        checked_sizes(self, 3)
        if len(self.place) != 3:
            raise InvalidRequestError(
                f"cost {self.title!r}: place is {shown(self.place)}; allowed are three numbers"
            )

    def links(self, robot: RobotModel) -> tuple[str, ...]:
        """Return the links whose poses it asks for: those that have a mass."""
        massive = [name for name, inertial in robot.inertials.items() if inertial.mass > 0.0]
        return tuple(massive)

    def residual(self, point: Point) -> Annotated[Any, "3"]:
        """Compute the difference from the place."""
        xp, inertials = point.xp, point.robot.inertials
        links = self.links(point.robot)
        mass = np.array([inertials[name].mass for name in links])
        local = np.array([inertials[name].center_of_mass for name in links])
        T = xp.stack([point.pose(name) for name in links])
        centers = (T[:, :3, :3] * xp.asarray(local)[:, None, :]).sum(-1) + T[:, :3, 3]
        center = (xp.asarray(mass / mass.sum())[:, None] * centers).sum(0)
        if self.base_link:
            T_base = point.pose(self.base_link)
            center = T_base[:3, :3].T @ (center - T_base[:3, 3])
        return center - xp.asarray(self.place)
