"""Insertion of one more joint into a robot."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, TypeVar

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.robot.limits import variable_limits
from kinopt_ros.robot.model import Joint, RobotModel, VariableLimits
from kinopt_ros.robot.variables import variable_names_of

T = TypeVar("T")


def with_new_joint(
    robot: RobotModel, joint: Joint, at: int, link: str, place: int, default: Annotated[Float64, "k"]
) -> RobotModel:
    """Return a new robot with a joint and a link inserted.

    The caller sees to it that the tree remains one, and that the names are new.

    Args:
        robot: the robot; it stays as it is.
        joint: an independent joint of k variables; those from its ``first_variable`` on move up by k.
        at: its index in ``joints``.
        link: name of the new link.
        place: its index in ``link_names``.
        default: values of the new variables in ``default_q``, rad or m.
    """
    first, count = joint.first_variable, joint.type.num_variables
    own = variable_limits([replace(joint, first_variable=0)], count)
    joints = [
        replace(other, first_variable=other.first_variable + count)
        if other.first_variable >= first
        else other
        for other in robot.joints
    ]

    def inserted(values: Float64, new: Float64) -> Float64:
        return np.insert(values, [first] * count, new)

    return replace(
        robot,
        link_names=_inserted(robot.link_names, place, (link,)),
        joints=_inserted(joints, at, (joint,)),
        variable_names=_inserted(robot.variable_names, first, variable_names_of(joint.name, joint.type)),
        limits=VariableLimits(
            lower=inserted(robot.limits.lower, own.lower),
            upper=inserted(robot.limits.upper, own.upper),
            velocity=inserted(robot.limits.velocity, own.velocity),
            acceleration=inserted(robot.limits.acceleration, own.acceleration),
            jerk=inserted(robot.limits.jerk, own.jerk),
        ),
        default_q=inserted(robot.default_q, default),
    )


def names_taken(robot: RobotModel, joint: str, variables: Iterable[str], link: str) -> list[str]:
    """Return which names of a new joint, its variables and a new link the robot has already."""
    known = {*robot.joint_by_name, *robot.variable_names}
    return sorted({joint, *variables} & known | {link} & {*robot.link_names})


def _inserted(items: Iterable[T], place: int, new: Iterable[T]) -> tuple[T, ...]:
    before = tuple(items)
    return (*before[:place], *new, *before[place:])
