"""A pose that a link keeps all along a motion; such as that of a full cup."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import InvalidGoalError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.problems.constraints.base import Breach, FromFile, PathConstraint
from kinopt_ros.problems.constraints.rows import ConstraintRow, PoseRow
from kinopt_ros.problems.ik import PoseTarget
from kinopt_ros.problems.target_errors import errors_of_target
from kinopt_ros.problems.validation import check_single_target
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene import yaml_text as read


@dataclass(frozen=True, eq=False)
class PoseAlong(PathConstraint):
    """A link, or a tool fixed to it, stays within the tolerances of one pose (B = 1) all the way.

    A full cup: no bound on the position, a small one on the angles about the axes that tilt it, none about the
    vertical one, ``PoseTarget(link, T[None], math.inf, (0.1, 0.1, math.inf))``.
    """

    key: ClassVar[str] = "upright"
    rows_used: ClassVar[frozenset[type[ConstraintRow]]] = frozenset({PoseRow})
    target: PoseTarget

    def check(self, robot: RobotModel) -> None:
        """Raise KinoptError unless the target is one pose of a link of the robot."""
        check_single_target(self.target, "a pose along the way", robot)

    def kept(
        self, robot: RobotModel, base_link: str, full: Annotated[Float64, "M nq"]
    ) -> Annotated[Bool, "M"]:
        """Return which configurations are within the tolerances."""
        return errors_of_target(robot, base_link, self.target, full)[2]

    def breach(
        self,
        robot: RobotModel,
        base_link: str,
        full: Annotated[Float64, "M nq"],
        times: Annotated[Float64, "M"],
    ) -> Breach | None:
        """Return where a motion is the farthest from the pose, if it leaves the tolerances."""
        distance, angle, within = errors_of_target(robot, base_link, self.target, full)
        if within.all():
            return None
        k = int(np.argmax(np.where(within, -1.0, distance + angle)))
        return Breach(
            f"{self.target.link!r} is {distance[k]:.3g} m and {angle[k]:.3g} rad from the pose that it shall keep",
            time=float(times[k]),
        )

    def rows(
        self, robot: RobotModel, base_link: str, ends: Annotated[Float64, "2 nq"]
    ) -> tuple[ConstraintRow, ...]:
        """Return the pose."""
        return (PoseRow(self.target),)

    @classmethod
    def from_file(cls, said: Mapping[str, Any], place: FromFile) -> Self:
        """Read ``{upright: link, tilt: rad}``."""
        said = read.mapping(said, "it", (cls.key, "tilt"), ("tilt",))
        link = read.text(said[cls.key], cls.key)
        tilt = read.number(said["tilt"], "tilt")
        return cls(upright(place.robot, link, tilt, place.start, place.base_link).target)


def upright(
    robot: RobotModel,
    link: str,
    tilt: float,
    start: Annotated[Float64, "nq"] | None = None,
    base_link: str | None = None,
) -> PoseAlong:
    """Make a link keep the tilt that it has at the start: it may move anywhere and turn about the vertical, as a full
    cup.

    Args:
        robot: the robot.
        link: what is to stay upright, as it is held.
        tilt: largest angle about each of the two horizontal axes, rad.
        start: configuration that the motion starts from, (nq,); default: robot.default_q.
        base_link: the problem's; its z axis is the vertical. Default: the root link.

    Raises:
        UnknownLinkError: the robot has no such link.
        InvalidGoalError: a tilt that is not between 0 and pi.
    """
    if not 0.0 < tilt < math.pi:
        raise InvalidGoalError(f"tilt is {tilt}; allowed: above 0, below pi rad")
    chain = chain_between(robot, base_link or robot.root_link, link)
    q = robot.default_q if start is None else start
    T_base_link = chain_pose(chain, q[chain.variables])
    # A tool in the link whose axes are those of the base, at the start.
    T_link_tool = np.eye(4)
    T_link_tool[:3, :3] = T_base_link[:3, :3].T
    target = np.eye(4)
    target[:3, 3] = T_base_link[:3, 3]
    return PoseAlong(PoseTarget(link, target[None], math.inf, (tilt, tilt, math.inf), T_link_tool))
