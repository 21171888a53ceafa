"""What limits of velocity, acceleration and jerk share."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.joints import checked_joints, counted
from kinopt_ros.costs.point import Point
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.tangent import Directions, directions
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False, kw_only=True)
class DerivativeLimit(Cost):
    """A derivative by time that shall stay within the robot's limits; joints without a limit do not count."""

    units: ClassVar[str] = "rad/s^k or m/s^k"
    one_sided: ClassVar[bool] = True

    joints: tuple[str, ...] = ()
    """Joints that count; empty: all."""
    scale: float = 1.0
    """Share of the limits that may be used."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for joints that the robot lacks, and for no share of the limits."""
        checked_joints(self, robot, self.joints)
        if not self.scale > 0.0:
            raise InvalidRequestError(f"cost {self.title!r}: scale is {self.scale}; allowed is above 0")

    def limits(self, known: Directions) -> Annotated[Float64, "nv"]:
        """Return the limits of all directions."""
        return (known.velocity, known.acceleration, known.jerk)[self.order - 1]

    def residual(self, point: Point) -> Annotated[Any, "k"]:
        """Compute what is above the limit: |d^k q / dt^k| - limit."""
        xp, mine = point.xp, counted(point.robot, self.joints)
        limits = self.limits(directions(point.robot))[mine]
        finite = np.isfinite(limits)
        allowed = xp.asarray(np.where(finite, limits, 0.0)) * self.scale
        above = xp.abs(point.derivative(self.order)[mine]) - allowed
        return xp.where(xp.asarray(finite), above, -1.0)
