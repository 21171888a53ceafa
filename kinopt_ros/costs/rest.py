"""Distance from a rest posture, with a weight per joint."""

from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Any, ClassVar

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost, checked_shape
from kinopt_ros.costs.joints import checked_joints, counted
from kinopt_ros.costs.point import Point
from kinopt_ros.robot.model import RobotModel


def rest_residual(
    xp: ModuleType, q: Annotated[Any, "T n"], rest: Annotated[Any, "n"]
) -> Annotated[Any, "T n"]:
    """Compute the distance from the rest posture at every point."""
    return xp.asarray(q - rest)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rest(Cost):
    """Distance from a rest posture along every direction of the robot, or of some joints.

    ``weight`` has one number, or one for each direction that counts (``kinematics/tangent.py``).
    """

    name: ClassVar[str] = "rest"
    formula: ClassVar[str] = "r = q - rest, along the robot's directions"
    units: ClassVar[str] = "rad or m"
    source: ClassVar[str] = 'Kim et al., "PyRoki", 2025, III'

    q: Annotated[Float64, "nq"] | None = None
    """Rest posture of the whole robot; None: the robot's default configuration."""
    joints: tuple[str, ...] = ()
    """Joints that count; empty: all."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for joints that the robot lacks, and for a posture of another size."""
        if self.q is not None:
            checked_shape(self, "q", self.q, (robot.nq,))
        checked_joints(self, robot, self.joints)

    def residual(self, point: Point) -> Annotated[Any, "k"]:
        """Compute the distance from the rest posture."""
        rest = point.robot.default_q if self.q is None else self.q
        return point.difference(point.xp.asarray(rest), point.q)[counted(point.robot, self.joints)]
