"""Robot with a floating joint above one link: for calibration, or to try where a part should be."""

from dataclasses import replace
from typing import Literal

import numpy as np

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.robot.model import Joint, JointType, RobotModel
from kinopt_ros.robot.new_joint import names_taken, with_new_joint
from kinopt_ros.robot.variables import variable_names_of


def with_free_joint(
    robot: RobotModel, link: str, start: Literal["description", "zero"] = "description"
) -> RobotModel:
    """Return a new robot in which a floating joint takes the place of the fixed transform above a link.

    The joint ``<link>_free`` goes from the parent link to a new link ``<link>_origin``, and there the link's own joint
    begins, without any transform of its own; above the root link, ``<link>_origin`` is the new root. All other joints,
    links, limits and groups stay; variables behind the new ones move up by seven.

    Args:
        robot: the robot; it stays as it is.
        link: any link.
        start: the default value of the new joint: ``description``, with which forward kinematics are the same as
            before; or ``zero``, the identity.

    Raises:
        UnknownLinkError: a link that the robot does not have.
        InvalidRequestError: the robot has the new names already, or another ``start``.
    """
    robot.link(link)
    if start not in ("description", "zero"):
        raise InvalidRequestError(f"start is {start!r}; allowed are 'description' and 'zero'")
    name, origin = f"{link}_free", f"{link}_origin"
    taken = names_taken(robot, name, variable_names_of(name, JointType.FLOATING), origin)
    if taken:
        raise InvalidRequestError(f"robot {robot.name!r} has {', '.join(taken)!r} already")
    own = robot.parent_joint.get(link)
    at = 0 if own is None else robot.joints.index(own)
    free = Joint(
        name=name,
        type=JointType.FLOATING,
        parent_link=origin if own is None else own.parent_link,
        child_link=link if own is None else origin,
        T_parent_joint=np.eye(4),
        axis=np.array([1.0, 0.0, 0.0]),
        first_variable=sum(joint.type.num_variables for joint in robot.joints[:at] if joint.is_active),
    )
    T = np.eye(4) if own is None or start == "zero" else own.T_parent_joint
    place = robot.link_index[link]
    virtual = robot.virtual_joint
    if own is not None:
        moved = replace(own, parent_link=origin, T_parent_joint=np.eye(4))
        robot = replace(robot, joints=(*robot.joints[:at], moved, *robot.joints[at + 1 :]))
    elif virtual is not None:
        robot = replace(robot, virtual_joint=replace(virtual, child_link=origin))
    default = np.array([*T[:3, 3], *matrix_to_quaternion(T[:3, :3])])
    return with_new_joint(robot, free, at, origin, place, default)
