"""Kinematic chain: a path between any two links as a sequence of elementary motions.

``T_base_tip(q) = T_fixed[0] M_0(q) T_fixed[1] M_1(q) ... M_{m-1}(q) T_fixed[m]``

A path may run up the tree, down it, or both. A joint passed upwards is the inverse motion: the same axis
turned round (a planar joint becomes three elementary motions, reversed). Fixed joints, and variables that are
held, disappear into the fixed transforms.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Immutable, Int64, taken_over
from kinopt_ros.errors import InvalidRequestError, InvalidStateError
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import Joint, JointType, RobotModel


class Motion(IntEnum):
    """Kinds of elementary motions."""

    ROTATION = 0
    TRANSLATION = 1
    QUATERNION = 2
    """Rotation by four consecutive variables qw, qx, qy, qz (normalised); inverse if multiplier is -1."""


@dataclass(frozen=True, eq=False)
class KinematicChain(Immutable):
    """Path from base_link to tip_link; m elementary motions driven by n variables of the robot."""

    base_link: str
    tip_link: str
    T_fixed: Annotated[Float64, "m+1 4 4"]
    motion: Annotated[Int64, "m"]
    axis: Annotated[Float64, "m 3"]
    """Unit axes in the frame before the motion."""
    column: Annotated[Int64, "m"]
    """Variable that drives each motion, as an index into ``variables`` (for QUATERNION: the first of its four)."""
    multiplier: Annotated[Float64, "m"]
    offset: Annotated[Float64, "m"]
    """The motion's value is multiplier * q[variables[column]] + offset (rad or m)."""
    variables: Annotated[Int64, "n"]
    """Indices in the robot's q of the variables that move this chain, in ascending order."""

    def __post_init__(self) -> None:
        taken_over(self, "T_fixed", "motion", "axis", "column", "multiplier", "offset", "variables")


@dataclass(frozen=True)
class JointMotion:
    """One elementary motion of a joint, in the direction from parent to child."""

    motion: Motion
    axis: tuple[float, float, float]
    variable: int
    """Index in the robot's q; for QUATERNION of the first of four."""
    multiplier: float
    offset: float


def joint_motions(joint: Joint) -> tuple[JointMotion, ...]:
    """Return what a joint does after its ``T_parent_joint``, as elementary motions in order; none if it is fixed.

    A planar joint moves along the two in-plane axes and then turns about its normal. The in-plane axes are x
    and y turned by the smallest rotation that takes z to the normal, so that a joint with normal z is
    MoveIt's; for normal -z, where many rotations are smallest, it is half a turn about x. A floating joint
    moves along x, y, z of its frame and then turns by its quaternion.
    """
    i = joint.first_variable
    if joint.type is JointType.FIXED:
        return ()
    if joint.type is JointType.PLANAR:
        x, y = in_plane_axes(joint.axis)
        return (
            JointMotion(Motion.TRANSLATION, x, i, 1.0, 0.0),
            JointMotion(Motion.TRANSLATION, y, i + 1, 1.0, 0.0),
            JointMotion(Motion.ROTATION, _triple(joint.axis), i + 2, 1.0, 0.0),
        )
    if joint.type is JointType.FLOATING:
        along = tuple(
            JointMotion(Motion.TRANSLATION, _triple(row), i + k, 1.0, 0.0) for k, row in enumerate(np.eye(3))
        )
        return (*along, JointMotion(Motion.QUATERNION, (1.0, 0.0, 0.0), i + 3, 1.0, 0.0))
    kind = Motion.TRANSLATION if joint.type is JointType.PRISMATIC else Motion.ROTATION
    return (JointMotion(kind, _triple(joint.axis), i, joint.multiplier, joint.offset),)


def in_plane_axes(
    normal: Sequence[float] | Float64,
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return the directions of x and y of a planar joint in the joint frame; ``normal`` has length 1, shape (3,)."""
    a, b, c = (float(value) for value in normal)
    sine = math.hypot(a, b)
    if sine == 0.0:
        return (1.0, 0.0, 0.0), (0.0, c, 0.0)
    u, v, d = a / sine, b / sine, 1.0 - c  # not a * a / (1 + c): inexact near -z
    return (1.0 - u * u * d, -u * v * d, -a), (-u * v * d, 1.0 - v * v * d, -b)


def build_chain(
    robot: RobotModel, base_link: str, tip_link: str, held: Mapping[int, float] | None = None
) -> KinematicChain:
    """Build the path from one link to any other one: up, down, or across branches.

    Args:
        robot: the robot.
        base_link: where the path starts.
        tip_link: where it ends.
        held: values (rad, m) of variables that do not move, by index in the robot's q; what they drive is
            folded into the fixed transforms. Of a floating joint's quaternion hold all four numbers or none.

    Returns:
        The chain; without any motion (m = 0) if nothing on the path moves.

    Raises:
        UnknownLinkError: a link that the robot does not have.
        InvalidRequestError: ``held`` has an index that is no variable, or part of a quaternion.
        InvalidStateError: a held value is not finite, or a held quaternion is zero.
    """
    held = {} if held is None else dict(held)
    _check_held(robot, held)
    up, down = joints_between(robot, base_link, tip_link)
    steps: list[JointMotion | Float64] = []
    for joint in up:
        for step in reversed(joint_motions(joint)):
            steps.append(_inverse_motion(step))
        steps.append(_inverse(joint.T_parent_joint))
    for joint in down:
        steps.append(joint.T_parent_joint)
        steps.extend(joint_motions(joint))
    return _assemble(base_link, tip_link, steps, held)


@remembered
def chain_between(robot: RobotModel, base_link: str, tip_link: str) -> KinematicChain:
    """Return ``build_chain`` with nothing held, built once per robot and pair of links."""
    return build_chain(robot, base_link, tip_link)


def with_tool(chain: KinematicChain, T_link_tool: Annotated[Float64, "4 4"] | None) -> KinematicChain:
    """Return the chain to a tool that is fixed to its tip."""
    if T_link_tool is None:
        return chain
    T_fixed = chain.T_fixed.copy()
    T_fixed[-1] = T_fixed[-1] @ T_link_tool
    return replace(chain, T_fixed=T_fixed)


def joints_between(robot: RobotModel, base_link: str, tip_link: str) -> tuple[list[Joint], list[Joint]]:
    """Return the joints passed upwards from the base, and then downwards to the tip, each in the order of passing.

    Raises:
        UnknownLinkError: a link that the robot does not have.
    """
    robot.link(base_link)
    robot.link(tip_link)
    above_base = _ancestors(robot, base_link)
    above_tip = _ancestors(robot, tip_link)
    while above_base and above_tip and above_base[-1] is above_tip[-1]:
        above_base.pop()
        above_tip.pop()
    return above_base, above_tip[::-1]


def _ancestors(robot: RobotModel, link: str) -> list[Joint]:
    joints = []
    while link in robot.parent_joint:
        joints.append(robot.parent_joint[link])
        link = joints[-1].parent_link
    return joints


def _assemble(
    base_link: str, tip_link: str, steps: Sequence[JointMotion | Float64], held: Mapping[int, float]
) -> KinematicChain:
    identity = np.eye(4)
    T_fixed = [identity]
    motions: list[JointMotion] = []
    for step in steps:
        if not isinstance(step, JointMotion):
            T_fixed[-1] = T_fixed[-1] @ step
        elif step.variable in held:
            T_fixed[-1] = T_fixed[-1] @ _held_transform(step, held)
        else:
            motions.append(step)
            T_fixed.append(identity)
    moved = {
        step.variable + k for step in motions for k in range(4 if step.motion is Motion.QUATERNION else 1)
    }
    variables = sorted(moved)
    column = {variable: k for k, variable in enumerate(variables)}
    m = len(motions)
    return KinematicChain(
        base_link=base_link,
        tip_link=tip_link,
        T_fixed=np.array(T_fixed),
        motion=np.array([step.motion for step in motions], dtype=np.int64),
        axis=np.array([step.axis for step in motions], dtype=np.float64).reshape(m, 3),
        column=np.array([column[step.variable] for step in motions], dtype=np.int64),
        multiplier=np.array([step.multiplier for step in motions], dtype=np.float64),
        offset=np.array([step.offset for step in motions], dtype=np.float64),
        variables=np.array(variables, dtype=np.int64),
    )


def _inverse_motion(step: JointMotion) -> JointMotion:
    if step.motion is Motion.QUATERNION:
        return replace(step, multiplier=-step.multiplier)
    x, y, z = step.axis
    return replace(step, axis=(-x, -y, -z))


def _check_held(robot: RobotModel, held: Mapping[int, float]) -> None:
    for index, value in held.items():
        if not 0 <= index < robot.nq:
            raise InvalidRequestError(
                f"held variable {index} does not exist: the robot has {robot.nq} variables"
            )
        if not math.isfinite(value):
            raise InvalidStateError(f"held value {value} of {robot.variable_names[index]!r} is not finite")
    for joint in robot.floating_joints:
        four = [i for i in range(joint.first_variable + 3, joint.first_variable + 7) if i in held]
        if 0 < len(four) < 4:
            raise InvalidRequestError(
                f"of the quaternion of joint {joint.name!r} all four numbers are held, or none"
            )
        if four and not any(held[i] for i in four):
            raise InvalidStateError(f"the held quaternion of joint {joint.name!r} is zero")


def _held_transform(step: JointMotion, held: Mapping[int, float]) -> Float64:
    T = np.eye(4)
    if step.motion is Motion.QUATERNION:
        R = _quaternion_matrix(np.array([held[step.variable + k] for k in range(4)]))
        T[:3, :3] = R if step.multiplier > 0.0 else R.T
        return T
    value = step.multiplier * held[step.variable] + step.offset
    if step.motion is Motion.TRANSLATION:
        T[:3, 3] = np.array(step.axis) * value
        return T
    x, y, z = step.axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    T[:3, :3] += np.sin(value) * K + (1.0 - np.cos(value)) * (K @ K)
    return T


def _quaternion_matrix(quaternion: Float64) -> Float64:
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _inverse(T_a_b: Float64) -> Float64:
    T_b_a = np.eye(4)
    T_b_a[:3, :3] = T_a_b[:3, :3].T
    T_b_a[:3, 3] = -T_a_b[:3, :3].T @ T_a_b[:3, 3]
    return T_b_a


def _triple(vector: Float64) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in vector)
    return x, y, z
