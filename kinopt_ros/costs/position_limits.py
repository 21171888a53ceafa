"""Position limits, with a margin."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.joints import checked_joints, counted
from kinopt_ros.costs.point import Point
from kinopt_ros.kinematics.tangent import directions
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False, kw_only=True)
class PositionLimits(Cost):
    """Joint positions that shall keep a margin from their limits.

    The limits themselves hold without this cost: solvers do not leave them, and every answer is checked.
    """

    name: ClassVar[str] = "position_limits"
    formula: ClassVar[str] = "r = (lower + margin - q, q - upper + margin)"
    units: ClassVar[str] = "rad or m"
    source: ClassVar[str] = 'Kim et al., "PyRoki", 2025, III'
    one_sided: ClassVar[bool] = True

    margin: float = 0.0
    """Distance from the limits that is wanted, rad or m."""
    joints: tuple[str, ...] = ()
    """Joints that count; empty: all."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for joints that the robot lacks."""
        checked_joints(self, robot, self.joints, 2)

    def residual(self, point: Point) -> Annotated[Any, "2k"]:
        """Compute what is beyond the limits."""
        xp, known = point.xp, directions(point.robot)
        mine = counted(point.robot, self.joints)
        scalars = np.isin(mine, known.scalar_directions)
        column = np.zeros(known.nv, dtype=np.int64)
        column[known.scalar_directions] = known.scalar_variables
        q = point.q[column[mine]]
        parts = []
        for sign, limits in ((-1.0, known.lower), (1.0, known.upper)):
            counts = scalars & np.isfinite(limits[mine])
            beyond = sign * (q - xp.asarray(np.where(counts, limits[mine], 0.0))) + self.margin
            parts.append(xp.where(xp.asarray(counts), beyond, -1.0))
        return xp.concatenate(parts)
