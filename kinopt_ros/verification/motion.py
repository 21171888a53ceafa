"""Float64 check of a motion against everything that its problem asks: the only way to a successful trajectory.

Its only inputs are the robot, the problem and the numbers that go into the message.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.pauses import Pause, go_on
from kinopt_ros.problems.target_errors import errors_of_target
from kinopt_ros.problems.trajectory import (
    Goal,
    JointGoal,
    PoseGoal,
    TrajectoryProblem,
)
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import continuous_joints, shortest
from kinopt_ros.robot.variables import quaternion_columns
from kinopt_ros.trajectory.instants import instants
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.timing import scaled_limits
from kinopt_ros.verification.trajectory import TrajectoryLimits, Violation
from kinopt_ros.verification.verify import Demand, Start, Surroundings, VerifiedMotion, verify

GOAL, WAYPOINTS, ALONG = "goal", "waypoints", "constraints along the way"
"""Names of checks."""
JOINT_TOLERANCE = 1e-6
"""Tolerance of joint goals, rad or m."""
WAYPOINT_TOLERANCE = 1e-3
"""Tolerance of waypoints given as joint values, rad or m."""
AT_REST = 0.01
"""Share of the (scaled) velocity limits up to which a measured velocity counts as none: sensors never read 0."""
SAMPLE = 1e-3
"""Time between the instants at which waypoints and constraints that hold all the way are checked, s."""
_MOST_SAMPLES = 20_000
_EVERY = "(looked at every {:g} ms)"
_NEAREST, _BETWEEN, _ZOOMS = 16, 33, 3
"""Search for where a motion comes nearest to the pose of a waypoint: number of places, of instants between neighbouring
ones, and of rounds.

A quick motion is at a pose for less than a millisecond."""


def motion_limits(robot: RobotModel, problem: TrajectoryProblem) -> TrajectoryLimits:
    """Return the limits that the motion must keep."""
    limits, variables = robot.limits, problem.variables
    velocity, acceleration = scaled_limits(
        limits.velocity[variables],
        limits.acceleration[variables],
        problem.velocity_scaling,
        problem.acceleration_scaling,
    )
    return TrajectoryLimits(
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

    Raises:
        InvalidRequestError: the joints are part of a quaternion, whose numbers are not interpolated one by one.
    """
    if quaternion_columns(robot, problem.variables):
        raise InvalidRequestError(
            "a motion moves numbers of a quaternion one by one; between its points they are no rotation"
        )
    samples = _Samples(problem)
    demands: list[Demand] = [_GoalDemand(robot, problem, problem.goals[goal])]
    if problem.waypoints:
        demands.append(_WaypointDemand(robot, problem, samples))
    if problem.along:
        demands.append(_AlongDemand(robot, problem, samples))
    q, variables = problem.start, problem.variables
    return verify(
        trajectory,
        motion_limits(robot, problem),
        Start(q[variables], velocity_at_start(robot, problem), problem.start_tolerance),
        None
        if problem.scene is None
        else Surroundings(robot, problem.scene, q, variables, problem.clearance, measured=True),
        demands,
        pause,
    )


@dataclass(eq=False)
class _Samples:
    """Configurations along the motion that is checked, for all who ask for them."""

    problem: TrajectoryProblem
    _made: tuple[Float64, Float64] | None = None

    def of(
        self, trajectory: JointTrajectory
    ) -> tuple[Annotated[Float64, "M"], Annotated[Float64, "M nq"], str]:
        """Return instants, the whole robot at these, and how densely they lie."""
        if self._made is None:
            times = instants(trajectory, SAMPLE, _MOST_SAMPLES)
            self._made = times, self.problem.whole(evaluate(trajectory, times)[0])
        times, full = self._made
        return times, full, _EVERY.format(1e3 * (times[1] - times[0]))


@dataclass(frozen=True, eq=False)
class _GoalDemand:
    robot: RobotModel
    problem: TrajectoryProblem
    goal: Goal
    name = GOAL

    def look(self, trajectory: JointTrajectory, pause: Pause) -> tuple[str, list[Violation]]:
        return GOAL, _listed(_missed_goal(self.robot, self.problem, trajectory, self.goal))


@dataclass(frozen=True, eq=False)
class _WaypointDemand:
    robot: RobotModel
    problem: TrajectoryProblem
    samples: _Samples
    name = WAYPOINTS

    def look(self, trajectory: JointTrajectory, pause: Pause) -> tuple[str, list[Violation]]:
        times, full, how = self.samples.of(trajectory)
        missed = _missed_waypoint(self.robot, self.problem, trajectory, full, times)
        return f"{WAYPOINTS} {how}", _listed(missed)


@dataclass(frozen=True, eq=False)
class _AlongDemand:
    robot: RobotModel
    problem: TrajectoryProblem
    samples: _Samples
    name = ALONG

    def look(self, trajectory: JointTrajectory, pause: Pause) -> tuple[str, list[Violation]]:
        times, full, how = self.samples.of(trajectory)
        found = []
        for along in self.problem.along:
            pause()
            breach = along.breach(self.robot, self.problem.base_link, full, times)
            if breach is not None:
                said = f"after {breach.time:.3f} s {breach.message}"
                found.append(Violation(ALONG, said, time=breach.time, value=breach.value, limit=breach.limit))
        return f"{ALONG} {how}", found


def _listed(violation: Violation | None) -> list[Violation]:
    return [] if violation is None else [violation]


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
    return shortest(difference, continuous_joints(robot, problem.joints))


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
            # Beside a sample a joint moves by up to half the way to the next one: how far off the motion itself is.
            ways = np.abs(np.diff(rest[:, problem.variables], axis=0, append=rest[-1:, problem.variables]))
            ways[1:] = np.maximum(ways[1:], ways[:-1])
            passed = (np.abs(off) <= WAYPOINT_TOLERANCE + 0.5 * ways).all(axis=1)
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
