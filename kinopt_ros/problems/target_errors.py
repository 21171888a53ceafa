"""Errors of targets: how far tools are from where they shall be, and whether that is within the tolerances."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.pose_errors import axis_errors
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.problems.ik import PoseTarget
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel

Errors = tuple[Annotated[Float64, "N"], Annotated[Float64, "N"], Annotated[Bool, "N"]]
"""Position errors (m), orientation errors (rad), and which poses are within the tolerances."""


def target_errors(
    target: PoseTarget, T_base_target: Annotated[Float64, "N 4 4"], T_base_tool: Annotated[Float64, "N 4 4"]
) -> Errors:
    """Compute errors of poses of a target's tool."""
    if target.plain is not None:
        distance, angle = pose_error(T_base_target, T_base_tool)
        within = (distance <= target.plain[0]) & (angle <= target.plain[1])
        return distance, angle, np.asarray(within)
    errors = axis_errors(T_base_target, T_base_tool, target.free_position, target.free_orientation)
    lengths = [np.asarray(np.linalg.norm(error, axis=-1)) for error in errors]
    within = np.ones(len(T_base_tool), dtype=np.bool_)
    for error, length, tolerance in zip(
        errors, lengths, (target.position_tolerance, target.orientation_tolerance), strict=True
    ):
        if isinstance(tolerance, tuple):
            within &= (np.abs(error) <= np.array(tolerance)).all(axis=-1)
        else:
            within &= length <= tolerance
    return lengths[0], lengths[1], within


def errors_of_target(
    robot: RobotModel, base_link: str, target: PoseTarget, full: Annotated[Float64, "M nq"]
) -> Errors:
    """Compute errors of a target of one pose (B = 1) in configurations of the whole robot."""
    chain = chain_between(robot, base_link, target.link)
    T_base_tool = chain_pose(chain, full[:, chain.variables])
    if target.T_link_tool is not None:
        T_base_tool = T_base_tool @ target.T_link_tool
    return target_errors(target, np.broadcast_to(target.T_base_target, (len(full), 4, 4)), T_base_tool)
