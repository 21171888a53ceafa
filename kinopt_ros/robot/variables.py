"""Names of the variables of the configuration vector, and a default configuration."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.robot.model import Joint, JointType, RobotModel, VariableLimits

_SUFFIXES = {
    JointType.PLANAR: ("/x", "/y", "/theta"),
    JointType.FLOATING: ("/trans_x", "/trans_y", "/trans_z", "/rot_w", "/rot_x", "/rot_y", "/rot_z"),
}


def variable_names_of(name: str, joint_type: JointType) -> tuple[str, ...]:
    """Return the names of an independent joint's variables, as MoveIt calls them, in their order in q.

    Only the order differs from MoveIt's: the quaternion of a floating joint is w, x, y, z here.
    """
    if joint_type is JointType.FIXED:
        return ()
    return tuple(name + suffix for suffix in _SUFFIXES.get(joint_type, ("",)))


def quaternion_starts(joints: Sequence[Joint]) -> list[int]:
    """Return the index in q of qw of every floating joint; qx, qy, qz follow."""
    return [joint.first_variable + 3 for joint in joints if joint.type is JointType.FLOATING]


def quaternion_columns(robot: RobotModel, variables: Annotated[Int64, "n"]) -> list[int]:
    """Return where among some variables of a robot the qw of floating joints are; qx, qy, qz follow."""
    if not robot.floating_joints:
        return []
    columns: list[int] = np.flatnonzero(np.isin(variables, quaternion_starts(robot.joints))).tolist()
    return columns


def velocity_columns(robot: RobotModel) -> tuple[tuple[int, ...], int]:
    """Return for every variable the first column of Jacobians of the whole robot that belongs to it, and their number.

    There is one column for each variable, but three for the four numbers of a quaternion: qw has the first of them.
    """
    ends = [start + 3 for start in quaternion_starts(robot.joints)]
    return tuple(v - sum(end < v for end in ends) for v in range(robot.nq)), robot.nq - len(ends)


def default_configuration(joints: Sequence[Joint], limits: VariableLimits) -> Float64:
    """Return mid-limits where both ends are finite, else the permitted value nearest to 0; quaternions are identity.

    Returns: float64 of shape (nq,), rad or m.
    """
    bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    nearest = np.clip(0.0, limits.lower, limits.upper)
    q = np.asarray(nearest, dtype=np.float64).copy()
    q[bounded] = 0.5 * limits.lower[bounded] + 0.5 * limits.upper[bounded]
    for start in quaternion_starts(joints):
        q[start : start + 4] = (1.0, 0.0, 0.0, 0.0)
    return q
