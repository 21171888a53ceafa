"""A robot with the place of one link made variable: for calibration, or to try where a part should be."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.robot.limits import DEFAULT_ACCELERATION, DEFAULT_JERK, DEFAULT_VELOCITY
from kinopt_ros.robot.model import Joint, JointType, RobotModel, VariableLimits
from kinopt_ros.robot.variables import variable_names_of

_T = TypeVar("_T")


def with_free_joint(
    robot: RobotModel, link: str, start: Literal["description", "zero"] = "description"
) -> RobotModel:
    """A new robot in which a floating joint takes the place of the fixed transform above a link.

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
    variables = variable_names_of(name, JointType.FLOATING)
    taken = {name, *variables} & {*robot.joint_by_name, *robot.variable_names} or {origin} & {
        *robot.link_names
    }
    if taken:
        raise InvalidRequestError(f"robot {robot.name!r} has {', '.join(sorted(taken))!r} already")
    own = robot.parent_joint.get(link)
    at = 0 if own is None else robot.joints.index(own)
    first = sum(joint.type.num_variables for joint in robot.joints[:at] if joint.is_active)
    free = Joint(
        name=name,
        type=JointType.FLOATING,
        parent_link=origin if own is None else own.parent_link,
        child_link=link if own is None else origin,
        T_parent_joint=np.eye(4),
        axis=np.array([1.0, 0.0, 0.0]),
        first_variable=first,
    )
    joints = [_shifted(joint, first) for joint in robot.joints]
    if own is not None:
        joints[at] = replace(joints[at], parent_link=origin, T_parent_joint=np.eye(4))
    place = robot.link_index[link]
    T = np.eye(4) if own is None or start == "zero" else own.T_parent_joint
    virtual = robot.virtual_joint
    return replace(
        robot,
        link_names=_inserted(robot.link_names, place, (origin,)),
        joints=_inserted(joints, at, (free,)),
        variable_names=_inserted(robot.variable_names, first, variables),
        limits=_with_limits(robot.limits, first),
        default_q=np.insert(robot.default_q, [first] * 7, [*T[:3, 3], *matrix_to_quaternion(T[:3, :3])]),
        virtual_joint=replace(virtual, child_link=origin) if virtual and own is None else virtual,
    )


def _shifted(joint: Joint, first: int) -> Joint:
    return replace(joint, first_variable=joint.first_variable + 7) if joint.first_variable >= first else joint


def _inserted(items: Iterable[_T], place: int, new: Iterable[_T]) -> tuple[_T, ...]:
    before = tuple(items)
    return (*before[:place], *new, *before[place:])


def _with_limits(limits: VariableLimits, first: int) -> VariableLimits:
    def inserted(values: Float64, new: Float64) -> Float64:
        return np.insert(values, [first] * 7, new)

    ones = np.ones(7)
    free = np.array([np.inf] * 3 + [1.0] * 4)
    return VariableLimits(
        lower=inserted(limits.lower, -free),
        upper=inserted(limits.upper, free),
        velocity=inserted(limits.velocity, DEFAULT_VELOCITY * ones),
        acceleration=inserted(limits.acceleration, DEFAULT_ACCELERATION * ones),
        jerk=inserted(limits.jerk, DEFAULT_JERK * ones),
    )
