"""Float64 check of a motion against everything that its problem asks: the only way to a successful trajectory.

Its only inputs are the robot, the problem and the numbers that go into the message.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.pauses import Pause, go_on
from kinopt_ros.problems.target_errors import errors_of_target
from kinopt_ros.problems.trajectory import (
    Goal,
    JointGoal,
    PoseGoal,
    TrajectoryProblem,
)
from kinopt_ros.problems.trajectory_validation import START_TOLERANCE
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import continuous_joints
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.interpolation import control_points, evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.timing import scaled_limits
from kinopt_ros.verification.collision import first_in_collision, not_checked
from kinopt_ros.verification.sweep import WayContact, first_contact, least_clearance
from kinopt_ros.verification.trajectory import TrajectoryReport, Violation, verify_trajectory

ON_THE_WAY = "collisions on the way"
GOAL, WAYPOINTS, ALONG = "goal", "waypoints", "constraints along the way"
"""Names of checks."""
JOINT_TOLERANCE = 1e-6
"""Tolerance of joint goals, rad or m."""
WAYPOINT_TOLERANCE = 1e-3
"""Tolerance of waypoints given as joint values, rad or m."""
AT_REST = 0.01
"""Share of the (scaled) velocity limits up to which a measured velocity counts as none: sensors never read 0."""
CLEARANCE_RANGE = 0.1
"""Distance up to which it is measured how near a motion comes to something, m."""
_SURE = 1e-4
"""Distance beyond the wanted clearance, m, from which on a lower bound of it needs no second look."""
_GLANCES = 12
"""Number of waypoints that are checked before the whole way."""
SAMPLE = 1e-3
"""Time between the instants at which waypoints and constraints that hold all the way are checked, s."""
_MOST_SAMPLES = 20_000
_EVERY = "(looked at every {:g} ms)"
_NEAREST, _BETWEEN, _ZOOMS = 16, 33, 3
"""Search for where a motion comes nearest to the pose of a waypoint: number of places, of instants between neighbouring
ones, and of rounds.

A quick motion is at a pose for less than a millisecond."""


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits of a problem's joints, scaled as it asks; rad or m, per s, s^2, s^3."""

    lower: Annotated[Float64, "n"]
    upper: Annotated[Float64, "n"]
    velocity: Annotated[Float64, "n"]
    acceleration: Annotated[Float64, "n"]
    jerk: Annotated[Float64, "n"]


@dataclass(frozen=True, eq=False)
class VerifiedMotion:
    """A trajectory, and what the check found. Send it only if ``report.ok``."""

    trajectory: JointTrajectory
    report: TrajectoryReport
    contact: WayContact | None = None
    """Where the motion comes too near to something; ``report`` says it, too."""
    clearance: float = float("nan")
    """Distance that all bodies that must not touch keep from each other, m.

    Infinity if nothing comes within ``CLEARANCE_RANGE``; NaN if collisions were not checked."""


def motion_limits(robot: RobotModel, problem: TrajectoryProblem) -> MotionLimits:
    """Return the limits that the motion must keep."""
    limits, variables = robot.limits, problem.variables
    velocity, acceleration = scaled_limits(
        limits.velocity[variables],
        limits.acceleration[variables],
        problem.velocity_scaling,
        problem.acceleration_scaling,
    )
    return MotionLimits(
        limits.lower[variables], limits.upper[variables], velocity, acceleration, limits.jerk[variables]
    )


def velocity_at_start(robot: RobotModel, problem: TrajectoryProblem) -> Annotated[Float64, "n"]:
    """Return the velocity with which the motion must begin: what was measured, or none if that is next to nothing."""
    velocity = problem.start_velocity[problem.variables]
    if (np.abs(velocity) <= AT_REST * motion_limits(robot, problem).velocity).all():
        return np.zeros(len(velocity))
    return np.asarray(velocity)


def verify_motion(
    robot: RobotModel,
    problem: TrajectoryProblem,
    trajectory: JointTrajectory,
    goal: int,
    pause: Pause = go_on,
) -> VerifiedMotion:
    """Check a trajectory: numbers, limits, start, goal, waypoints, what holds all the way, collisions.

    Collisions are looked at last, and not if something else is wrong: ``not_checked`` then says so.

    Args:
        robot: the robot.
        problem: what was asked.
        trajectory: of the problem's joints, in their order.
        goal: which of the problem's goals it is for.
        pause: called between pieces of work.
    """
    limits = motion_limits(robot, problem)
    report = verify_trajectory(
        trajectory,
        limits.lower,
        limits.upper,
        limits.velocity,
        limits.acceleration,
        limits.jerk,
        start=problem.start[problem.variables],
        start_velocity=velocity_at_start(robot, problem),
        start_outside=START_TOLERANCE,
    )
    later = _later_checks(problem)
    if not report.ok:
        return VerifiedMotion(trajectory, _left_out(report, later))
    pause()
    found = [_missed_goal(robot, problem, trajectory, problem.goals[goal])]
    made = [GOAL]
    if problem.waypoints or problem.along:
        times = _instants(trajectory)
        every = " " + _EVERY.format(round(1e3 * float(np.diff(times).max()), 3))
        full = problem.whole(evaluate(trajectory, times)[0])
        if problem.waypoints:
            found.append(_missed_waypoint(robot, problem, trajectory, full, times))
            made.append(WAYPOINTS + every)
        if problem.along:
            for along in problem.along:
                pause()
                breach = along.breach(robot, problem.base_link, full, times)
                if breach is not None:
                    found.append(
                        Violation(
                            ALONG,
                            breach.message,
                            time=breach.time,
                            value=breach.value,
                            limit=breach.limit,
                        )
                    )
            made.append(ALONG + every)
    violations = tuple(violation for violation in found if violation is not None)
    report = replace(report, violations=violations, checks=(*report.checks, *made))
    if problem.scene is None or violations:
        return VerifiedMotion(trajectory, _left_out(report, (ON_THE_WAY,)))
    motion = robot, problem.scene, problem.start, problem.variables, trajectory
    pause()
    clearance = least_clearance(*motion, CLEARANCE_RANGE, pause)
    contact = None
    if clearance <= problem.clearance + _SURE:  # it is a lower bound: above that, nothing is left to look at
        contact = _sampled_contact(robot, problem.scene, problem, trajectory, pause)
        contact = contact or first_contact(*motion, problem.clearance, pause=pause)
    if contact is not None:
        violations = (Violation(ON_THE_WAY, contact_sentence(contact, problem.clearance), time=contact.time),)
    report = replace(
        report,
        violations=violations,
        checks=(*report.checks, ON_THE_WAY),
        not_checked=(*report.not_checked, *not_checked(robot)),
    )
    clearance = float("inf") if clearance >= CLEARANCE_RANGE else clearance
    return VerifiedMotion(trajectory, report, contact, clearance)


def _sampled_contact(
    robot: RobotModel,
    scene: Scene,
    problem: TrajectoryProblem,
    trajectory: JointTrajectory,
    pause: Pause,
) -> WayContact | None:
    """Return a contact at one of some waypoints.

    It is sooner found than the first one of all, which may begin with a graze.
    """
    some = np.arange(0, len(trajectory.time), max(1, len(trajectory.time) // _GLANCES))
    found = first_in_collision(
        robot, scene, problem.whole(trajectory.position[some]), problem.clearance, pause
    )
    if found is None:
        return None
    k, (deepest, *_) = found
    return WayContact(
        deepest.a, deepest.b, problem.clearance - deepest.depth, float(trajectory.time[some[k]])
    )


def contact_sentence(contact: WayContact, clearance: float) -> str:
    """Return a sentence that says where a motion is in collision, with what, and how deep."""
    when = "where it starts" if contact.time == 0.0 else f"after {contact.time:.3f} s"
    distance = contact.distance
    how = (
        f"{contact.a!r} is {-distance:.4f} m deep in {contact.b!r}"
        if distance < 0.0
        else f"{contact.a!r} is {distance:.4f} m from {contact.b!r}"
    )
    wanted = f"; a clearance of {clearance:g} m is wanted" if clearance > 0.0 else ""
    return f"the motion is in collision {when}: {how}{wanted}"


def _later_checks(problem: TrajectoryProblem) -> tuple[str, ...]:
    return (
        GOAL,
        *((WAYPOINTS,) if problem.waypoints else ()),
        *((ALONG,) if problem.along else ()),
        ON_THE_WAY,
    )


def _left_out(report: TrajectoryReport, checks: tuple[str, ...]) -> TrajectoryReport:
    return replace(report, not_checked=(*report.not_checked, *checks))


def _instants(trajectory: JointTrajectory) -> Annotated[Float64, "M"]:
    """Return the instants to look at: evenly in time, and in long motions more where they are quick.

    A motion of an hour may begin with a second in which the robot brakes and comes back.
    """
    count = int(np.ceil(trajectory.duration / SAMPLE)) + 1
    evenly = np.linspace(0.0, trajectory.duration, max(min(count, _MOST_SAMPLES), 2))
    if count <= _MOST_SAMPLES:
        return evenly
    # Each segment moves by no more than the polygon of its control points.
    moved = np.abs(np.diff(control_points(trajectory).position, axis=0)).max(axis=2).sum(axis=0)
    share = moved / max(float(moved.sum()), np.finfo(np.float64).tiny)
    length = np.diff(trajectory.time)
    pieces = np.maximum(np.ceil(np.minimum(share * _MOST_SAMPLES, length / SAMPLE)), 1.0).astype(np.int64)
    spans = zip(trajectory.time[:-1].tolist(), length.tolist(), pieces.tolist(), strict=True)
    quick = [begin + span / count * np.arange(count) for begin, span, count in spans]
    return np.unique(np.concatenate([evenly, *quick]))


def _missed_goal(
    robot: RobotModel, problem: TrajectoryProblem, trajectory: JointTrajectory, goal: Goal
) -> Violation | None:
    end, last = trajectory.duration, trajectory.position[-1]
    if isinstance(goal, JointGoal):
        off = np.abs(joint_difference(robot, problem, last - goal.q))
        if not (off > JOINT_TOLERANCE).any():
            return None
        i = int(np.argmax(off))
        return Violation(
            GOAL,
            f"joint {problem.joints[i]!r} ends at {last[i]:.9g}; the goal is {goal.q[i]:.9g}",
            problem.joints[i],
            end,
            float(last[i]),
            float(goal.q[i]),
        )
    full = problem.whole(last[None])
    for target in goal.targets:
        distance, angle, within = errors_of_target(robot, problem.base_link, target, full)
        if not within[0]:
            return Violation(
                GOAL,
                f"{target.link!r} ends {distance[0]:.3g} m and {angle[0]:.3g} rad from its goal",
                time=end,
                value=float(distance[0]),
            )
    return None


def keeps_constraints(
    robot: RobotModel, problem: TrajectoryProblem, full: Annotated[Float64, "M nq"]
) -> Annotated[Bool, "M"]:
    """Return which configurations of the whole robot break none of the problem's constraints, as far as one alone
    tells."""
    kept = np.ones(len(full), dtype=np.bool_)
    for along in problem.along:
        kept &= along.kept(robot, problem.base_link, full)
    return kept


def joint_difference(
    robot: RobotModel, problem: TrajectoryProblem, difference: Annotated[Float64, "... n"]
) -> Annotated[Float64, "... n"]:
    """Return differences of joint values; of continuous joints without whole turns."""
    continuous = continuous_joints(robot, problem.joints)
    turns = 2.0 * np.pi * np.rint(difference / (2.0 * np.pi))
    return np.asarray(np.where(continuous, difference - turns, difference))


def _missed_waypoint(
    robot: RobotModel,
    problem: TrajectoryProblem,
    trajectory: JointTrajectory,
    full: Annotated[Float64, "M nq"],
    times: Annotated[Float64, "M"],
) -> Violation | None:
    """Return the first waypoint that is not passed after the one before."""
    first = 0
    for number, waypoint in enumerate(problem.waypoints):
        rest = full[first:]
        if isinstance(waypoint, JointGoal):
            off = joint_difference(robot, problem, rest[:, problem.variables] - waypoint.q)
            # Between two samples a joint moves by up to half their distance: how far off the motion itself is.
            step = np.abs(np.diff(full[:, problem.variables], axis=0)).max(axis=0, initial=0.0)
            passed = (np.abs(off) <= WAYPOINT_TOLERANCE + 0.5 * step).all(axis=1)
            nearest = f"{np.abs(off).max(axis=1).min():.3g} rad or m"
        else:
            passed, off, nearest = _at_poses(robot, problem, waypoint, rest)
            if not passed.any():
                passed, nearest = _between(robot, problem, trajectory, waypoint, off, times[first:])
        if not passed.any():
            return Violation(
                WAYPOINTS,
                f"waypoint {number} is not passed after those before it; the motion comes within {nearest}",
                time=float(times[first]),
            )
        first += int(np.argmax(passed))
    return None


def _at_poses(
    robot: RobotModel, problem: TrajectoryProblem, goal: PoseGoal, full: Annotated[Float64, "M nq"]
) -> tuple[Annotated[Bool, "M"], Annotated[Float64, "M"], str]:
    """Return which configurations are at all poses, how far off (m and rad together) each is, and how near they
    come."""
    passed, off, nearest = np.ones(len(full), dtype=np.bool_), np.zeros(len(full)), ""
    for target in goal.targets:
        distance, angle, within = errors_of_target(robot, problem.base_link, target, full)
        passed &= within
        off += distance + angle
        nearest = f"{distance.min():.3g} m and {angle.min():.3g} rad"
    return passed, off, nearest


def _between(
    robot: RobotModel,
    problem: TrajectoryProblem,
    trajectory: JointTrajectory,
    goal: PoseGoal,
    off: Annotated[Float64, "M"],
    times: Annotated[Float64, "M"],
) -> tuple[Annotated[Bool, "M"], str]:
    """Return the instants next to which a motion is at all poses, where it is so at none of them; and how near it
    comes."""
    padded = np.concatenate([[np.inf], off, [np.inf]])
    places = np.flatnonzero((off <= padded[:-2]) & (off <= padded[2:]))
    places = np.sort(places[np.argsort(off[places], kind="stable")[:_NEAREST]])
    low, high = times[np.maximum(places - 1, 0)], times[np.minimum(places + 1, len(times) - 1)]
    passed, nearest = np.zeros(len(times), dtype=np.bool_), ""
    for _ in range(_ZOOMS):
        instants = np.linspace(low, high, _BETWEEN, axis=1)
        full = problem.whole(evaluate(trajectory, instants.ravel())[0])
        within, found, nearest = _at_poses(robot, problem, goal, full)
        at = within.reshape(instants.shape).any(axis=1)
        if at.any():
            passed[places[at]] = True
            break
        best = found.reshape(instants.shape).argmin(axis=1)
        rows = np.arange(len(places))
        low = instants[rows, np.maximum(best - 1, 0)]
        high = instants[rows, np.minimum(best + 1, _BETWEEN - 1)]
    return passed, nearest
