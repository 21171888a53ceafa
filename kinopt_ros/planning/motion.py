"""A timed, verified move of some joints from the present state to a goal configuration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, StartStateError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.problems.trajectory_validation import START_TOLERANCE
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import continuous_joints
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.timing import nearest_equivalent, point_to_point, scaled_limits
from kinopt_ros.verification.collision import not_checked
from kinopt_ros.verification.motion import AT_REST, GOAL, JOINT_TOLERANCE, ON_THE_WAY, contact_sentence
from kinopt_ros.verification.sweep import WayContact, first_contact
from kinopt_ros.verification.trajectory import TrajectoryReport, Violation, verify_trajectory


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion, and the float64 check of the very numbers in it. Send it only if ``report.ok``."""

    trajectory: JointTrajectory
    report: TrajectoryReport
    contact: WayContact | None = None
    """Where the motion comes too near to something; ``report`` says it, too."""


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
) -> Motion:
    """Move straight in joint space, as fast as the scaled limits allow, all joints arriving together.

    Args:
        robot: the robot.
        joints: joints of the trajectory, in the order that the controller gets them. Each must be active and
            have one variable; every joint that differs between start and goal must be among them.
        start: configuration of the robot now; velocities likewise (rad/s, m/s).
        goal: configuration to reach and stop in. Continuous joints take the shorter way round.
        velocity_scaling: share of the velocity limits in (0, 1].
        acceleration_scaling: share of the acceleration limits in (0, 1].
        start_tolerance: how far the start may be outside the position limits, rad or m: sensors are not exact. From
            there a joint moves inwards only.
        scene: what the whole way must be free of collisions with, besides the robot itself; None: nobody looks.
        clearance: least distance, m, of bodies that must not touch, with a scene.

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
    if (np.abs(velocity_now) <= AT_REST * velocity).all():
        velocity_now = np.zeros(len(joints))
    trajectory = point_to_point(
        tuple(joints),
        q,
        nearest_equivalent(goal[variables], q, continuous),
        velocity,
        acceleration,
        jerk,
        start_velocity=velocity_now,
    )
    report = verify_trajectory(
        trajectory,
        limits.lower[variables],
        limits.upper[variables],
        velocity,
        acceleration,
        jerk,
        start=q,
        start_velocity=velocity_now,
        start_outside=start_tolerance,
    )
    missed = _missed(robot, start, goal, variables, trajectory)
    report = replace(report, violations=(*report.violations, *missed), checks=(*report.checks, GOAL))
    if scene is None or not report.ok:
        return Motion(trajectory, _not_looked_at(report))
    contact = first_contact(robot, scene, start, variables, trajectory, clearance)
    found = (
        ()
        if contact is None
        else (Violation(ON_THE_WAY, contact_sentence(contact, clearance), time=contact.time),)
    )
    report = replace(
        report,
        violations=(*report.violations, *found),
        checks=(*report.checks, ON_THE_WAY),
        not_checked=(*report.not_checked, *not_checked(robot)),
    )
    return Motion(trajectory, report, contact)


def _missed(
    robot: RobotModel,
    start: Annotated[Float64, "nq"],
    goal: Annotated[Float64, "nq"],
    variables: Annotated[Int64, "n"],
    trajectory: JointTrajectory,
) -> tuple[Violation, ...]:
    """Return the link that the last point leaves farthest from where the goal has it, if any: whole turns must move
    none."""
    last = start.copy()
    last[variables] = trajectory.position[-1]
    wanted, found = forward_kinematics(robot, np.array([goal, last]))
    distance, angle = pose_error(wanted, found)
    off = np.maximum(distance, angle)
    k = int(np.argmax(off))
    if off[k] <= JOINT_TOLERANCE:
        return ()
    sentence = (
        f"{robot.link_names[k]!r} ends {distance[k]:.3g} m and {angle[k]:.3g} rad from where the goal has it"
    )
    return (Violation(GOAL, sentence, time=trajectory.duration, value=float(off[k])),)


def _not_looked_at(report: TrajectoryReport) -> TrajectoryReport:
    return replace(report, not_checked=(*report.not_checked, ON_THE_WAY))


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

    Raises:
        InvalidRequestError: none is given, or one twice.
        UnknownJointError: the robot does not have one of them.
        InvalidStateError: one is fixed, follows another one, or has several variables.
    """
    if len(set(joints)) != len(joints) or not joints:
        raise InvalidRequestError(
            f"joints of a trajectory must be given once each, at least one, not {list(joints)}"
        )
    variables = []
    for name in joints:
        joint = robot.joint(name)
        if not joint.is_active or joint.type.num_variables != 1:
            kind = f"follows {joint.mimics!r}" if joint.mimics else f"is {joint.type.value}"
            raise InvalidStateError(f"joint {name!r} {kind}: it cannot be part of a trajectory")
        variables.append(joint.first_variable)
    return np.array(variables, dtype=np.int64)
