"""Pose of one link in another: two hands on one object, or a closed loop."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost, links_of
from kinopt_ros.costs.link_pose import LinkPose, checked_pose
from kinopt_ros.costs.point import Point
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False, kw_only=True)
class RelativePose(Cost):
    """Difference of ``T_a_b`` of two links, both of which may move, from a wanted one; along the axes of the latter.

    Weights and tolerances are those of ``link_pose``.
    """

    name: ClassVar[str] = "relative_pose"
    formula: ClassVar[str] = "r = (R_wanted^T (p_a_b - p_wanted), log(R_wanted^T R_a_b))"
    units: ClassVar[str] = "m, rad"

    link_a: str
    link_b: str
    T_a_b: Annotated[Float64, "4 4"]

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for links that the robot lacks, and for what is no pose."""
        links_of(robot, self, self.link_a, self.link_b)
        checked_pose(self, "T_a_b", self.T_a_b)
        self._as_link_pose().check(robot)

    def residual(self, point: Point) -> Annotated[Any, "6"]:
        """Compute the difference from the wanted pose."""
        xp = point.xp
        T_a, T_b, wanted = point.pose(self.link_a), point.pose(self.link_b), xp.asarray(self.T_a_b)
        R = T_a[:3, :3].T @ T_b[:3, :3]
        p = T_a[:3, :3].T @ (T_b[:3, 3] - T_a[:3, 3])
        shift = wanted[:3, :3].T @ (p - wanted[:3, 3])
        return xp.concatenate([shift, point.rotation_vector(wanted[:3, :3].T @ R)])

    def magnitudes(self, residual: Annotated[Float64, "... 6"]) -> Annotated[Float64, "... 2"]:
        """Return distance, m, and angle, rad, along and about the axes that have a weight."""
        return self._as_link_pose().magnitudes(residual)

    def _as_link_pose(self) -> LinkPose:
        return LinkPose(
            link=self.link_b,
            base_link=self.link_a,
            T_base_target=np.asarray(self.T_a_b),
            weight=self.weight,
            tolerance=self.tolerance,
            label=self.title,
        )
