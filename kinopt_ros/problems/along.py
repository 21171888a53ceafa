"""Constraints that hold all along a motion, built from few arguments."""

import math
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.problems.ik import PoseTarget
from kinopt_ros.problems.trajectory import PoseAlong
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel


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
