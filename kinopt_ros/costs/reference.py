"""Similarity to a reference: a configuration, or a path of as many points as the trajectory has."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.joints import checked_joints, counted
from kinopt_ros.costs.point import Point
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False, kw_only=True)
class Reference(Cost):
    """Distance from the point of a reference path that has the same number."""

    name: ClassVar[str] = "reference"
    formula: ClassVar[str] = "r[t] = q[t] - reference[t], along the robot's directions"
    units: ClassVar[str] = "rad or m"

    q: Annotated[Float64, "T nq"]
    """Reference path, a configuration of the whole robot per point."""
    joints: tuple[str, ...] = ()
    """Joints that count; empty: all."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for joints that the robot lacks, and for a path of another size."""
        if np.ndim(self.q) != 2 or np.shape(self.q)[1] != robot.nq:
            raise InvalidRequestError(
                f"cost {self.title!r}: q has shape {np.shape(self.q)}; allowed is (number of points, {robot.nq})"
            )
        checked_joints(self, robot, self.joints)

    def residual(self, point: Point) -> Annotated[Any, "k"]:
        """Compute the distance from the reference."""
        known = point.xp.asarray(self.q)
        return point.difference(known[point.index], point.q)[counted(point.robot, self.joints)]
