"""Variables that a whole turn brings back to the same poses."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, frozen
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.variables import joint_named


@remembered
def periodic_variables(robot: RobotModel) -> Annotated[Bool, "nq"]:
    """Return which variables can be changed by 2 pi without moving any link, limits aside.

    Angles of revolute, continuous and planar joints, unless a mimic joint follows them by less than whole turns.
    """
    periodic = np.zeros(robot.nq, dtype=np.bool_)
    for joint in robot.joints:
        if joint.is_active and joint.type in (JointType.REVOLUTE, JointType.CONTINUOUS):
            periodic[joint.first_variable] = True
        if joint.type is JointType.PLANAR:
            periodic[joint.first_variable + 2] = True
    for joint in robot.mimic_joints:
        slides = joint.type is JointType.PRISMATIC
        if slides or joint.multiplier % 1.0 != 0.0:
            periodic[joint.first_variable] = False
    frozen(periodic)
    return periodic


@remembered
def endless_variables(robot: RobotModel) -> Annotated[Bool, "nq"]:
    """Return which of the periodic variables nothing limits, so that whole turns make no difference."""
    endless = periodic_variables(robot) & np.isinf(robot.limits.lower) & np.isinf(robot.limits.upper)
    frozen(endless)
    return np.asarray(endless)


def continuous_joints(robot: RobotModel, joints: Sequence[str]) -> Annotated[Bool, "n"]:
    """Return which joints may be moved by whole turns without changing any pose; of planar ones name the variables.

    These are continuous joints, and angles of planar ones, that nothing limits and that no mimic joint follows by less
    than whole turns.

    The only place that decides it: whoever moves a joint by a turn, or compares values without turns, must ask here.
    """
    endless = endless_variables(robot)

    def wraps(name: str) -> bool:
        joint = joint_named(robot, name)
        if joint.type is JointType.PLANAR:
            return joint.name != name and bool(endless[robot.variable_index[name]])
        return joint.type is JointType.CONTINUOUS and bool(endless[joint.first_variable])

    return np.array([wraps(name) for name in joints], dtype=np.bool_)


def turned_near(
    q: Annotated[Float64, "... n"],
    near: Annotated[Float64, "... n"] | float,
    turns: Annotated[Bool, "... n"] | bool,
) -> Annotated[Float64, "... n"]:
    """Return joint values, rad or m, moved by whole turns to within half a turn of others where turns make no
    difference (``turns``)."""
    return np.asarray(np.where(turns, q + 2.0 * np.pi * np.rint((near - q) / (2.0 * np.pi)), q))


def shortest(
    difference: Annotated[Float64, "... n"], turns: Annotated[Bool, "... n"] | bool
) -> Annotated[Float64, "... n"]:
    """Return differences, rad or m, without whole turns where these make no difference (``turns``)."""
    return turned_near(difference, 0.0, turns)


def apart(
    difference: Annotated[Float64, "... n"], turns: Annotated[Bool, "... n"]
) -> Annotated[Float64, "... n"]:
    """Return the sizes of differences, rad or m, without whole turns where these make no difference (``turns``)."""
    return np.abs(shortest(difference, turns))
