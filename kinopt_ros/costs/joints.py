"""Directions of some joints, for costs that a robot may have for some of its joints alone."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Int64
from kinopt_ros.costs.base import Cost
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.tangent import directions, free_directions
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel


def counted(cost: Cost, robot: RobotModel, joints: tuple[str, ...]) -> Annotated[Int64, "k"]:
    """Return the directions of some joints, all if there are none, ascending.

    Raises:
        UnknownJointError: a joint that the robot does not have.
        InvalidRequestError: a joint without variables of its own, or weights of another number.
    """
    found = _directions_of(robot, joints)
    size = np.ndim(cost.weight) and np.shape(cost.weight)[0]
    if size and size != len(found):
        raise InvalidRequestError(
            f"cost {cost.title!r}: weight has {size} numbers; allowed are 1 or {len(found)} here"
        )
    return found


@remembered
def _directions_of(robot: RobotModel, joints: tuple[str, ...]) -> Annotated[Int64, "k"]:
    found = np.flatnonzero(free_directions(robot, joints)) if joints else np.arange(directions(robot).nv)
    found.setflags(write=False)
    return found
