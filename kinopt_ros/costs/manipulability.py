"""Manipulability of a link: how well it can move in every direction."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from kinopt_ros.costs.base import Cost, checked_sizes, links_of
from kinopt_ros.costs.joints import checked_joints, counted
from kinopt_ros.costs.point import Point
from kinopt_ros.errors import InvalidRequestError, shown
from kinopt_ros.robot.model import RobotModel

_ROWS = {"translation": slice(0, 3), "rotation": slice(3, 6), "full": slice(0, 6)}
_FLOOR = 1e-6
"""Added to the index, so that its inverse is finite where the robot is singular."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Manipulability(Cost):
    """Inverse of Yoshikawa's index of a link, so that less is better."""

    name: ClassVar[str] = "manipulability"
    formula: ClassVar[str] = "r = 1 / (sqrt(det(J J^T)) + 1e-6)"
    units: ClassVar[str] = "inverse of the index"
    source: ClassVar[str] = (
        'T. Yoshikawa, "Manipulability of robotic mechanisms", IJRR 4 (1985); inverse: Kim et al., "PyRoki", 2025, III'
    )

    rugged: ClassVar[bool] = True

    link: str
    part: str = "translation"
    """Which rows of the Jacobian count: ``translation``, ``rotation`` or ``full``."""
    joints: tuple[str, ...] = ()
    """Joints whose columns count; empty: all of the robot's."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for a link or joints that the robot lacks, and for another part."""
        links_of(robot, self, self.link)
        checked_joints(self.replace(weight=1.0, tolerance=None), robot, self.joints)
        checked_sizes(self, 1)
        if self.part not in _ROWS:
            raise InvalidRequestError(
                f"cost {self.title!r}: part is {shown(self.part)}; allowed are {', '.join(_ROWS)}"
            )

    def residual(self, point: Point) -> Annotated[Any, "1"]:
        """Compute the inverse of the index."""
        return 1.0 / (self.index(point) + _FLOOR)

    def index(self, point: Point) -> Annotated[Any, "1"]:
        """Compute Yoshikawa's index."""
        xp = point.xp
        J = point.jacobian(self.link)[_ROWS[self.part]][:, counted(point.robot, self.joints)]
        squared = xp.linalg.det(J @ J.T)
        positive = squared > 0.0
        return xp.where(positive, xp.sqrt(xp.where(positive, squared, 1.0)), 0.0)[None]
