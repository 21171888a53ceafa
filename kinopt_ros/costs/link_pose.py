"""Pose of a link, or of a frame fixed to it. A mobile base is a link as well: its target is a base pose."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost, checked_shape, checked_sizes, links_of
from kinopt_ros.costs.point import Point
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, shown
from kinopt_ros.kinematics.se3 import is_one_pose
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkPose(Cost):
    """Difference of a link's pose from its target, in the frame that ``frame`` names.

    ``weight`` has one number, or six: for x, y, z (m) and rotation about x, y, z (rad) of the axes of ``frame``; 0
    frees an axis. ``tolerance`` has two: distance, m, and angle, rad, along and about the axes that have a weight.
    """

    name: ClassVar[str] = "link_pose"
    formula: ClassVar[str] = "r = (R_target^T (p - p_target), log(R_target^T R))"
    units: ClassVar[str] = "m, rad"
    source: ClassVar[str] = (
        'Kim et al., "PyRoki", 2025, III; here position and rotation apart, in the target frame'
    )

    link: str
    T_base_target: Annotated[Float64, "4 4"]
    """Target pose in ``base_link``."""
    base_link: str = ""
    """Link in whose frame the target is given; it may move. Empty: the root link."""
    T_link_tool: Annotated[Float64, "4 4"] | None = None
    """Pose of the tool in the link; None: the link itself."""
    frame: str = "target"
    """Axes of the residual: ``target``, or ``base``: those of ``base_link``."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for links that the robot lacks, and for what is no pose."""
        links_of(robot, self, self.link, *([self.base_link] if self.base_link else []))
        if self.frame not in ("target", "base"):
            raise InvalidRequestError(
                f"cost {self.title!r}: frame is {shown(self.frame)}; allowed are target, base"
            )
        for field, T in (("T_base_target", self.T_base_target), ("T_link_tool", self.T_link_tool)):
            if T is not None:
                checked_pose(self, field, T)
        checked_sizes(self, 6)

    def residual(self, point: Point) -> Annotated[Any, "6"]:
        """Compute the difference from the target."""
        xp = point.xp
        T = point.pose(self.link)
        if self.T_link_tool is not None:
            T = T @ xp.asarray(self.T_link_tool)
        target = xp.asarray(self.T_base_target)
        R, p, R_target, p_target = T[:3, :3], T[:3, 3], target[:3, :3], target[:3, 3]
        if self.base_link and self.base_link != point.robot.root_link:
            T_base = point.pose(self.base_link)
            p, R = T_base[:3, :3].T @ (p - T_base[:3, 3]), T_base[:3, :3].T @ R
        shift, turn = p - p_target, point.rotation_vector(R_target.T @ R)
        if self.frame == "target":
            return xp.concatenate([R_target.T @ shift, turn])
        return xp.concatenate([shift, R_target @ turn])

    def magnitudes(self, residual: Annotated[Float64, "... 6"]) -> Annotated[Float64, "... 2"]:
        """Return distance, m, and angle, rad, along and about the axes that have a weight."""
        counted = residual * (np.broadcast_to(np.asarray(self.weight, dtype=np.float64), 6) != 0.0)
        squares = (counted * counted).reshape(*counted.shape[:-1], 2, 3)
        lengths: Float64 = np.sqrt(np.add.reduce(squares, axis=-1))
        return lengths

    def num_magnitudes(self, components: int) -> int:
        """Return 2, for distance and angle."""
        del components
        return 2


def checked_pose(cost: Cost, field: str, T: Float64) -> None:
    """Raise InvalidGoalError unless an array of a cost is a rigid motion."""
    checked_shape(cost, field, T, (4, 4))
    entries = T.reshape(16).tolist()
    if entries[12:] == [0.0, 0.0, 0.0, 1.0] and is_one_pose(entries, 1e-7):
        return
    R = T[:3, :3]
    rigid = np.abs(R @ R.T - np.eye(3)).max() < 1e-6 and np.linalg.det(R) > 0.0
    if not rigid or np.abs(T[3] - (0.0, 0.0, 0.0, 1.0)).max() > 1e-9:
        raise InvalidGoalError(
            f"cost {cost.title!r}: {field} is no pose; allowed is a rotation (orthonormal to 1e-6), a position, and "
            "(0, 0, 0, 1) below"
        )
