"""Directions of some joints, for costs that a robot may have for some of its joints alone."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Int64
from kinopt_ros.costs.base import Cost, checked_sizes
from kinopt_ros.errors import KinoptError
from kinopt_ros.kinematics.tangent import directions, free_directions
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel


def counted(robot: RobotModel, joints: tuple[str, ...]) -> Annotated[Int64, "k"]:
    """Return the directions of some joints, all if there are none, ascending.

    Raises:
        UnknownJointError: a joint that the robot does not have.
        InvalidRequestError: a joint without variables of its own.
    """
    return _directions_of(robot, joints)


def checked_joints(cost: Cost, robot: RobotModel, joints: tuple[str, ...], components: int = 1) -> None:
    """Raise a KinoptError that names the cost unless a robot has some joints, and weights and tolerances are as many
    as the residual's components for each of their directions."""
    try:
        found = counted(robot, joints)
    except KinoptError as error:
        error.args = (f"cost {cost.title!r}: {error}",)
        raise
    checked_sizes(cost, components * len(found))


@remembered
def _directions_of(robot: RobotModel, joints: tuple[str, ...]) -> Annotated[Int64, "k"]:
    found = np.flatnonzero(free_directions(robot, joints)) if joints else np.arange(directions(robot).nv)
    found.setflags(write=False)
    return found
