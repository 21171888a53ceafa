"""A timed, verified move of some joints from the present state to a goal configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, StartStateError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.pauses import Pause
from kinopt_ros.planning.leaving import Leaving
from kinopt_ros.problems.trajectory import START_TOLERANCE
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.turns import continuous_joints
from kinopt_ros.robot.variables import joint_named, variables_named
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.timing import nearest_equivalent, point_to_point, scaled_limits
from kinopt_ros.verification.motion import AT_REST, GOAL, JOINT_TOLERANCE
from kinopt_ros.verification.trajectory import TrajectoryLimits, Violation
from kinopt_ros.verification.verify import Start, Surroundings, VerifiedMotion, verify


def plan_joint_motion(
    robot: RobotModel,
    joints: Sequence[str],
    start: Annotated[Float64, "nq"],
    start_velocity: Annotated[Float64, "nq"],
    goal: Annotated[Float64, "nq"],
    velocity_scaling: float,
    acceleration_scaling: float,
    start_tolerance: float = START_TOLERANCE,
    scene: Scene | None = None,
    clearance: float = 0.0,
    leaving: Leaving | None = None,
) -> VerifiedMotion:
    """Move straight in joint space, as fast as the scaled limits allow, all joints arriving together.

    Args:
        robot: the robot.
        joints: joints of the trajectory, in the order that the controller gets them. Each must be active and
            have one variable, or be a variable of a planar joint (``base/x``); every one that differs between start and
            goal must be among them.
        start: configuration of the robot now; velocities likewise (rad/s, m/s).
        goal: configuration to reach and stop in. Continuous joints take the shorter way round.
        velocity_scaling: share of the velocity limits in (0, 1].
        acceleration_scaling: share of the acceleration limits in (0, 1].
        start_tolerance: how far the start may be outside the position limits, rad or m: sensors are not exact. From
            there a joint moves inwards only.
        scene: what the whole way must be free of collisions with, besides the robot itself; None: nobody looks.
        clearance: least distance, m, of bodies that must not touch, with a scene.
        leaving: the motion that the robot is in, which goes on into this one and is its first part; ``start`` and
            ``start_velocity`` are those at its end. It may be faster than the scaled limits, so what is joined is
            checked against the robot's own. None: the robot is as at the start.

    Raises:
        KinoptError: a joint that cannot be commanded, a moving joint left out, a start farther outside the limits.
    """
    variables = commanded_variables(robot, joints)
    left_out = np.setdiff1d(np.flatnonzero(start != goal), variables)
    if left_out.size:
        names = ", ".join(robot.variable_names[i] for i in left_out)
        raise InvalidRequestError(
            f"the goal moves {names}, which the controller's joints leave out: {', '.join(joints)}"
        )
    q = start[variables]
    check_begins_inside(robot, joints, variables, q, start_tolerance)
    limits = robot.limits
    continuous = continuous_joints(robot, joints)
    velocity, acceleration = scaled_limits(
        limits.velocity[variables], limits.acceleration[variables], velocity_scaling, acceleration_scaling
    )
    jerk = limits.jerk[variables]
    velocity_now = start_velocity[variables]
    # What was measured is never 0. What is left is known: another velocity would be a step in the midst of the motion.
    if leaving is None and (np.abs(velocity_now) <= AT_REST * velocity).all():
        velocity_now = np.zeros(len(joints))
    if leaving is not None:
        velocity = np.minimum(limits.velocity[variables], np.maximum(velocity, np.abs(velocity_now)))
    surroundings = None if scene is None else Surroundings(robot, scene, start, variables, clearance)
    demands = [_SameLinks(robot, start, goal, variables)]
    trajectory = point_to_point(
        tuple(joints),
        q,
        nearest_equivalent(goal[variables], q, continuous),
        velocity,
        acceleration,
        jerk,
        start_velocity=velocity_now,
    )
    inside = limits.lower[variables], limits.upper[variables]
    scaled = TrajectoryLimits(*inside, velocity, acceleration, jerk)
    begin = Start(q, velocity_now, start_tolerance)
    if leaving is None:
        return verify(trajectory, scaled, begin, surroundings, demands)
    alone = verify(trajectory, scaled, begin, None, demands)
    if not alone.report.ok:
        return alone
    own = TrajectoryLimits(*inside, limits.velocity[variables], limits.acceleration[variables], jerk)
    joined = leaving.joined(trajectory).trajectory
    begin = Start(joined.position[0], joined.velocity[0], start_tolerance)
    return verify(joined, own, begin, surroundings, demands)


@dataclass(frozen=True, eq=False)
class _SameLinks:
    """The last point has every link where the goal has it: whole turns must move none."""

    robot: RobotModel
    start: Annotated[Float64, "nq"]
    goal: Annotated[Float64, "nq"]
    variables: Annotated[Int64, "n"]
    name = GOAL

    def look(self, trajectory: JointTrajectory, pause: Pause) -> tuple[str, list[Violation]]:
        """Return the name of the check, and the link that is farthest off, if any is."""
        last = self.start.copy()
        last[self.variables] = trajectory.position[-1]
        wanted, found = forward_kinematics(self.robot, np.array([self.goal, last]))
        distance, angle = pose_error(wanted, found)
        off = np.maximum(distance, angle)
        k = int(np.argmax(off))
        if off[k] <= JOINT_TOLERANCE:
            return GOAL, []
        link = self.robot.link_names[k]
        sentence = f"{link!r} ends {distance[k]:.3g} m and {angle[k]:.3g} rad from where the goal has it"
        return GOAL, [Violation(GOAL, sentence, time=trajectory.duration, value=float(off[k]))]


def check_begins_inside(
    robot: RobotModel,
    joints: Sequence[str],
    variables: Annotated[Int64, "n"],
    q: Annotated[Float64, "n"],
    tolerance: float,
) -> None:
    """Raise StartStateError if a joint is farther outside its position limits than a motion may begin.

    ``q`` has the values of the joints' variables, rad or m.
    """
    lower, upper = robot.limits.lower[variables], robot.limits.upper[variables]
    outside = np.flatnonzero(~((q >= lower - tolerance) & (q <= upper + tolerance)))
    if outside.size:
        i = int(outside[0])
        raise StartStateError(
            f"joint {joints[i]!r} is at {q[i]:.9g}, outside its limits {lower[i]:.9g} to {upper[i]:.9g} by more than "
            f"{tolerance:g} (parameter start_state_tolerance)"
        )


def commanded_variables(robot: RobotModel, joints: Sequence[str]) -> Annotated[Int64, "n"]:
    """Return the indices in q of the joints of a trajectory.

    Of planar and floating ones variables are named (``base/x``).

    Raises:
        InvalidRequestError: none is given, or one twice.
        UnknownJointError: the robot does not have one of them.
        InvalidStateError: one is fixed, follows another one, has several variables, or is part of a quaternion.
    """
    if len(set(joints)) != len(joints) or not joints:
        raise InvalidRequestError(
            f"joints of a trajectory must be given once each, at least one, not {list(joints)}"
        )
    variables = []
    for name in joints:
        joint = joint_named(robot, name)
        if not joint.is_active:
            kind = f"follows {joint.mimics!r}" if joint.mimics else f"is {joint.type.value}"
            raise InvalidStateError(f"joint {name!r} {kind}: it cannot be part of a trajectory")
        own = variables_named(robot, name)
        quaternion = joint.type is JointType.FLOATING and own[-1] >= joint.first_variable + 3
        if quaternion:
            raise InvalidStateError(
                f"{name!r} turns the floating joint {joint.name!r}: controllers interpolate numbers, of which a "
                "quaternion's make no rotation; lock its orientation, or use plan_trajectory of the library"
            )
        if len(own) != 1:
            singly = ", ".join(robot.variable_names[i] for i in own)
            raise InvalidStateError(
                f"joint {name!r} is {joint.type.value}: a trajectory names its variables, of {singly}"
            )
        variables.append(own[0])
    return np.array(variables, dtype=np.int64)
