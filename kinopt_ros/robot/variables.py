"""Names of the variables of the configuration vector, and a default configuration."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import UnknownJointError
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


def joint_named(robot: RobotModel, name: str) -> Joint:
    """Return the joint of that name, or the joint that a variable of that name belongs to (``base/x``).

    Raises:
        UnknownJointError: the robot has neither.
    """
    try:
        joint = robot.joint_by_name.get(name)
        variable = None if joint is not None else robot.variable_index.get(name)
    except TypeError:  # what cannot be a key
        joint = variable = None
    if joint is not None:
        return joint
    for joint in robot.joints if variable is not None else ():
        if variable in robot.variables_of(joint.name):
            return joint
    several = [i for joint in robot.joints if joint.type in _SUFFIXES for i in robot.variables_of(joint.name)]
    raise UnknownJointError(name, [*robot.joint_by_name, *(robot.variable_names[i] for i in several)])


def variables_named(robot: RobotModel, name: str) -> range:
    """Return the indices in q of the variables of a joint, or of the one variable of that name.

    None for fixed and mimic joints. Errors as ``joint_named``.
    """
    joint = joint_named(robot, name)
    if joint.name == name:
        return robot.variables_of(name)
    index = robot.variable_index[name]
    return range(index, index + 1)


def one_variable_each(robot: RobotModel, names: Sequence[str]) -> tuple[str, ...]:
    """Return names of joints and variables, with joints of several variables replaced by the names of these.

    So each name stands for one column of a trajectory: ``base`` becomes ``base/x``, ``base/y``, ``base/theta``. Errors
    as ``joint_named``.
    """
    found: list[str] = []
    for name in names:
        variables = variables_named(robot, name)
        found += [robot.variable_names[i] for i in variables] if len(variables) > 1 else [name]
    return tuple(found)


def one_variable_joints(robot: RobotModel) -> tuple[str, ...]:
    """Return the names of the independent joints that have one variable, which are those of the variables, too."""
    return tuple(name for name in robot.variable_names if name in robot.joint_by_name)


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
