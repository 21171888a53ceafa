"""A robot whose floating joints turn by three angles, in which straight lines make sense, instead of a quaternion.

Below each floating joint there are three more joints, which turn about x, y and z, and then a fixed rotation: the
quaternions before and after them are held, and the link is turned by

``R = R_before Rx(a) Ry(b) Rz(c) R_after``

Whatever R_before and R_after are, every orientation has such angles. With all angles 0 at some orientation and x along
the axis that leads from there to another one, a straight line of angles between both is the geodesic, and b and c stay
0: far from a quarter turn, at which a and c turn about the same axis.

All else is as in the robot itself: links, shapes, pairs to check, limits, groups. So what knows joints of one variable,
such as the optimizer, time laws and bounds between samples, can move floating joints.
"""

from dataclasses import dataclass, replace
from typing import Annotated
from weakref import ref

import numpy as np

from kinopt_ros.array import Float64, Immutable, Int64, taken_over
from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.kinematics.quaternion_products import (
    angles_of_matrix,
    conjugate,
    product,
    quaternion_of_angles,
)
from kinopt_ros.kinematics.se3 import normalized, quaternion_to_matrix
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import Joint, JointType, RobotModel
from kinopt_ros.robot.new_joint import names_taken, with_new_joint
from kinopt_ros.robot.variables import variable_names_of

_IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True)
class AngledJoint:
    """Where a floating joint's rotation is in both robots, as indices in q."""

    joint: str
    own: int
    """Index of qw in the robot itself; qx, qy, qz follow."""
    before: int
    """Index of qw of the rotation before the angles, in the other robot; qx, qy, qz follow."""
    first: int
    """Index of the first angle in the other robot; the two others follow."""
    after: int
    """Index of qw of the rotation after them."""


@dataclass(frozen=True, eq=False)
class AngledRobot(Immutable):
    """The other robot, and how configurations of both belong together."""

    robot: RobotModel
    variables: Annotated[Int64, "nq"]
    """Index in the other robot's q of every variable of the robot itself."""
    joints: tuple[AngledJoint, ...]

    def __post_init__(self) -> None:
        taken_over(self, "variables")

    def with_frames(
        self,
        q: Annotated[Float64, "... nq"],
        after: Annotated[Float64, "F 4"] | None = None,
    ) -> Annotated[Float64, "... mq"]:
        """Return configurations of the other robot in which all angles are 0, with the same poses of links.

        Args:
            q: configurations of the robot itself.
            after: quaternions of the rotation after the angles, for each floating joint; None: the identity.
        """
        full = np.empty((*q.shape[:-1], self.robot.nq))
        full[...] = self.robot.default_q
        full[..., self.variables] = q
        for k, joint in enumerate(self.joints):
            behind = _IDENTITY if after is None else after[k]
            own = normalized(q[..., joint.own : joint.own + 4])
            full[..., joint.before : joint.before + 4] = product(own, conjugate(behind))
            full[..., joint.first : joint.first + 3] = 0.0
            full[..., joint.after : joint.after + 4] = behind
        return full

    def from_own(
        self, q: Annotated[Float64, "... nq"], frames: Annotated[Float64, "... mq"]
    ) -> Annotated[Float64, "... mq"]:
        """Return configurations of the other robot with the same poses of links.

        Args:
            q: configurations of the robot itself; quaternions of length 0 stand for that of ``frames``.
            frames: configurations of the other robot: rotations before and after the angles, and angles to be near to.
        """
        full = np.array(np.broadcast_to(frames, (*q.shape[:-1], self.robot.nq)))
        others = np.ones(len(self.variables), dtype=np.bool_)
        for joint in self.joints:
            others[joint.own : joint.own + 4] = False
        full[..., self.variables[others]] = q[..., others]
        for joint in self.joints:
            own = q[..., joint.own : joint.own + 4]
            before, near, after = _parts(full, joint)
            R = quaternion_to_matrix(product(product(conjugate(before), normalized(own)), conjugate(after)))
            known = (own != 0.0).any(axis=-1, keepdims=True)
            full[..., joint.first : joint.first + 3] = np.where(known, angles_of_matrix(R, near), near)
        return full

    def to_own(self, full: Annotated[Float64, "... mq"]) -> Annotated[Float64, "... nq"]:
        """Return configurations of the robot itself with the same poses of links; quaternions change as smoothly as
        angles."""
        q = full[..., self.variables]
        for joint in self.joints:
            before, angles, after = _parts(full, joint)
            turned = product(product(before, quaternion_of_angles(angles)), after)
            q[..., joint.own : joint.own + 4] = normalized(turned)
        return np.asarray(q)

    def variables_from_own(self, variables: Annotated[Int64, "n"]) -> Annotated[Int64, "m"]:
        """Return the variables of the other robot that stand for some of the robot itself, in their order: three angles
        for the four numbers of a quaternion."""
        angles = {joint.own: range(joint.first, joint.first + 3) for joint in self.joints}
        left_out = {joint.own + k for joint in self.joints for k in (1, 2, 3)}
        found: list[int] = []
        for i in variables.tolist():
            if i in angles:
                found += angles[i]
            elif i not in left_out:
                found.append(int(self.variables[i]))
        return np.array(found, dtype=np.int64)


def _parts(full: Annotated[Float64, "... mq"], joint: AngledJoint) -> tuple[Float64, Float64, Float64]:
    return (
        full[..., joint.before : joint.before + 4],
        full[..., joint.first : joint.first + 3],
        full[..., joint.after : joint.after + 4],
    )


@remembered
def angled_robot(robot: RobotModel) -> AngledRobot:
    """Return the robot whose floating joints turn by angles.

    The angles of joint ``base`` are the variables ``base/turn_x``, ``base/turn_y`` and ``base/turn_z``. Their limits of
    velocity, acceleration and jerk are the least of those of the quaternion's four numbers; that of the velocity is
    the angular velocity's (``verification/turning.py``).

    Raises:
        RobotDescriptionError: the robot has one of the new names already.
    """
    other = robot
    for floating in robot.floating_joints:
        other = _with_angles(other, robot, floating)
    joints = tuple(
        AngledJoint(
            floating.name,
            floating.first_variable + 3,
            other.variable_index[robot.variable_names[floating.first_variable + 3]],
            other.variable_index[f"{floating.name}/turn_x"],
            other.joint(f"{floating.name}/after").first_variable + 3,
        )
        for floating in robot.floating_joints
    )
    variables = np.array([other.variable_index[name] for name in robot.variable_names], dtype=np.int64)
    return AngledRobot(replace(other, alike=ref(robot)), variables, joints)


def _with_angles(other: RobotModel, robot: RobotModel, floating: Joint) -> RobotModel:
    """Return another robot with four more joints below a floating one."""
    quaternion = slice(floating.first_variable + 3, floating.first_variable + 7)
    limits = robot.limits
    rates = [float(rate[quaternion].min()) for rate in (limits.velocity, limits.acceleration, limits.jerk)]
    above = floating.name
    for k, axis in enumerate("xyz"):
        name = f"{floating.name}/turn_{axis}"
        other = _below(other, above, name, JointType.CONTINUOUS, np.eye(3)[k], rates, np.zeros(1))
        above = name
    name = f"{floating.name}/after"
    still = np.array([0.0, 0.0, 0.0, *_IDENTITY])
    other = _below(other, above, name, JointType.FLOATING, np.eye(3)[0], [1.0, 1.0, 1.0], still)
    place = slice(other.joint(name).first_variable, other.joint(name).first_variable + 3)
    lower, upper = other.limits.lower.copy(), other.limits.upper.copy()
    lower[place] = upper[place] = 0.0
    return replace(other, limits=replace(other.limits, lower=lower, upper=upper))


def _below(
    robot: RobotModel,
    above: str,
    name: str,
    kind: JointType,
    axis: Annotated[Float64, "3"],
    rates: list[float],
    default: Annotated[Float64, "k"],
) -> RobotModel:
    """Return a robot with one more joint right below another one, which gets a new link."""
    upper = robot.joint(above)
    link = f"{name}_link"
    taken = names_taken(robot, name, variable_names_of(name, kind), link)
    if taken:
        raise RobotDescriptionError(
            f"the floating joint {above!r} cannot turn by angles: robot {robot.name!r} has {', '.join(taken)} already"
        )
    at = robot.joints.index(upper)
    velocity, acceleration, jerk = rates
    lower = Joint(
        name=name,
        type=kind,
        parent_link=link,
        child_link=upper.child_link,
        T_parent_joint=np.eye(4),
        axis=axis,
        first_variable=upper.first_variable + upper.type.num_variables,
        velocity=velocity,
        acceleration=acceleration,
        jerk=jerk,
    )
    joints = (*robot.joints[:at], replace(upper, child_link=link), *robot.joints[at + 1 :])
    place = robot.link_index[upper.child_link]
    return with_new_joint(replace(robot, joints=joints), lower, at + 1, link, place, default)
