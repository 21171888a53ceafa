"""Errors of targets: how far tools are from where they shall be, and whether that is within the tolerances."""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.pose_errors import axis_errors
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.problems.ik import PoseTarget, Tolerance
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel

Errors = tuple[Annotated[Float64, "N"], Annotated[Float64, "N"], Annotated[Bool, "N"]]
"""Position errors (m), orientation errors (rad), and which poses are within the tolerances."""


class Met(NamedTuple):
    """How far poses are from a target, and what of it is within the tolerances."""

    distance: Annotated[Float64, "N"]
    """Position errors, m."""
    angle: Annotated[Float64, "N"]
    """Orientation errors, rad."""
    position: Annotated[Bool, "N"]
    """Whether the position is within its tolerance."""
    orientation: Annotated[Bool, "N"]


def target_errors(
    target: PoseTarget, T_base_target: Annotated[Float64, "N 4 4"], T_base_tool: Annotated[Float64, "N 4 4"]
) -> Errors:
    """Compute errors of poses of a target's tool."""
    met = what_is_met(target, T_base_target, T_base_tool)
    return met.distance, met.angle, met.position & met.orientation


def what_is_met(
    target: PoseTarget, T_base_target: Annotated[Float64, "N 4 4"], T_base_tool: Annotated[Float64, "N 4 4"]
) -> Met:
    """Compute errors of poses of a target's tool, and whether position and orientation are within the tolerances."""
    if target.plain is not None:
        distance, angle = pose_error(T_base_target, T_base_tool)
        position, orientation = target.plain
        return Met(distance, angle, np.asarray(distance <= position), np.asarray(angle <= orientation))
    along, about = axis_errors(T_base_target, T_base_tool, target.free_position, target.free_orientation)
    distance, position_met = _within(along, target.position_tolerance)
    angle, orientation_met = _within(about, target.orientation_tolerance)
    return Met(distance, angle, position_met, orientation_met)


def target_words(target: PoseTarget, met: Met, several: bool) -> list[str]:
    """Say what is met of a target, and by how much what is not."""
    prefix = f"{target.link!r}: " if several else ""
    position, orientation = (
        ["free"] * len(met.distance)
        if all(free)
        else [
            f"met (off by {error:.3g} {unit})" if near else f"off by {error:.3g} {unit}"
            for error, near in zip(errors.tolist(), within.tolist(), strict=True)
        ]
        for free, errors, within, unit in (
            (target.free_position, met.distance, met.position, "m"),
            (target.free_orientation, met.angle, met.orientation, "rad"),
        )
    )
    return [f"{prefix}position {p}, orientation {o}" for p, o in zip(position, orientation, strict=True)]


def _within(
    errors: Annotated[Float64, "N 3"], tolerance: Tolerance
) -> tuple[Annotated[Float64, "N"], Annotated[Bool, "N"]]:
    """Return lengths of errors, and which of them are within a tolerance."""
    length = np.asarray(np.linalg.norm(errors, axis=-1))
    if isinstance(tolerance, tuple):
        return length, np.asarray((np.abs(errors) <= np.array(tolerance)).all(axis=-1))
    return length, np.asarray(length <= tolerance)


def weighted_cost(
    target: PoseTarget, T_base_target: Annotated[Float64, "N 4 4"], T_base_tool: Annotated[Float64, "N 4 4"]
) -> Annotated[Float64, "N"]:
    """Compute the sum of the squares of the weighted errors of poses of a target's tool.

    Axes that are free count nothing. Weights count as 1 if the target has none.
    """
    errors = np.concatenate(
        axis_errors(T_base_target, T_base_tool, target.free_position, target.free_orientation), axis=-1
    )
    weights = np.ones(6) if target.weights is None else np.array(target.weights.all)
    return np.asarray(((weights * errors) ** 2).sum(axis=-1))


def errors_of_target(
    robot: RobotModel, base_link: str, target: PoseTarget, full: Annotated[Float64, "M nq"]
) -> Errors:
    """Compute errors of a target of one pose (B = 1) in configurations of the whole robot."""
    chain = chain_between(robot, base_link, target.link)
    T_base_tool = chain_pose(chain, full[:, chain.variables])
    if target.T_link_tool is not None:
        T_base_tool = T_base_tool @ target.T_link_tool
    return target_errors(target, np.broadcast_to(target.T_base_target, (len(full), 4, 4)), T_base_tool)
