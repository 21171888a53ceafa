"""Checks of a trajectory problem against a robot. Every refusal is a sentence that names what was given."""

import math

import numpy as np

from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, InvalidStateError, StartStateError, shown
from kinopt_ros.kinematics.se3 import LARGEST
from kinopt_ros.problems.constraints.every import check_constraint
from kinopt_ros.problems.trajectory import (
    CostWeights,
    Goal,
    JointGoal,
    PoseGoal,
    TrajectoryProblem,
)
from kinopt_ros.problems.validation import (
    LARGEST_VALUE,
    MOST_CLEARANCE,
    check_single_target,
    check_state,
    variables_of_joints,
)
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import one_variable_each, variables_named
from kinopt_ros.scene.checks import check_fits

MOST_START_TOLERANCE = 0.1
"""Largest distance that a start may be allowed to be outside its limits, rad or m."""
LEAST_POINTS, MOST_POINTS = 8, 512
MOST_GOALS = 64
"""Most goals, waypoints, constraints along the way and paths to begin from of one problem, each."""
LONGEST = 3600.0
"""Longest duration that may be given, s."""


def check_trajectory_problem(problem: TrajectoryProblem, robot: RobotModel) -> None:
    """Raise unless the problem fits the robot and itself."""
    expected = variables_of_joints(robot, problem.joints)
    if not np.array_equal(problem.variables, expected):
        raise InvalidRequestError(
            "variables do not belong to joints; build problems with trajectory_problem()"
        )
    if len(expected) != len(problem.joints):
        name = next(name for name in problem.joints if len(variables_named(robot, name)) != 1)
        raise InvalidRequestError(
            f"joint {name!r} has several variables; name {', '.join(one_variable_each(robot, [name]))}"
        )
    robot.link(problem.base_link)
    check_state(problem.start, robot, "start")
    _check_start(problem, robot)
    _check_velocity(problem)
    if not problem.goals:
        raise InvalidGoalError(f"0 goals are given; allowed are 1 to {MOST_GOALS}")
    check_number_of("goals", len(problem.goals))
    check_number_of("waypoints", len(problem.waypoints))
    check_number_of("along", len(problem.along))
    for kind, goals in (("goal", problem.goals), ("waypoint", problem.waypoints)):
        for number, goal in enumerate(goals):
            _check_goal(goal, f"{kind} {number}", problem, robot)
    for along in problem.along:
        check_constraint(along, robot)
    _check_numbers(problem)
    if problem.scene is not None:
        check_fits(problem.scene, robot)


def check_number_of(what: str, number: int) -> None:
    """Raise InvalidGoalError unless a problem may have so many."""
    if number > MOST_GOALS:
        raise InvalidGoalError(f"{number} {what} are given; allowed are up to {MOST_GOALS}")


def check_scaling(what: str, value: float) -> None:
    """Raise InvalidRequestError unless a value is a share of limits."""
    if not 0.0 < value <= 1.0:
        raise InvalidRequestError(f"{what} is {value}; allowed: above 0, up to 1")


def _check_velocity(problem: TrajectoryProblem) -> None:
    velocity = problem.start_velocity
    if velocity.shape != problem.start.shape or not (np.abs(velocity) <= LARGEST).all():
        raise InvalidStateError(
            f"start_velocity must be {len(problem.start)} finite numbers, one per variable of the robot"
        )
    others = np.ones(len(velocity), dtype=np.bool_)
    others[problem.variables] = False
    if velocity[others].any():
        raise StartStateError(
            "joints that the motion leaves out are moving; it must begin when they stand still"
        )


def _check_start(problem: TrajectoryProblem, robot: RobotModel) -> None:
    tolerance = problem.start_tolerance
    if not 0.0 <= tolerance <= MOST_START_TOLERANCE:
        raise InvalidRequestError(
            f"start_tolerance is {tolerance}; allowed is 0 to {MOST_START_TOLERANCE:g} (rad or m)"
        )
    lower, upper = robot.limits.lower[problem.variables], robot.limits.upper[problem.variables]
    q = problem.start[problem.variables]
    outside = np.flatnonzero(~((q >= lower - tolerance) & (q <= upper + tolerance)))
    if outside.size:
        i = int(outside[0])
        raise StartStateError(
            f"joint {problem.joints[i]!r} starts at {q[i]:.9g}, outside its limits {lower[i]:.9g} to {upper[i]:.9g} "
            f"by more than {tolerance:g} (start_tolerance; of a node: parameter start_state_tolerance)"
        )


def _check_goal(goal: Goal, what: str, problem: TrajectoryProblem, robot: RobotModel) -> None:
    if isinstance(goal, PoseGoal):
        if not goal.targets:
            raise InvalidGoalError(f"{what} has no targets; give at least one PoseTarget")
        for target in goal.targets:
            check_single_target(target, what, robot)
        links = [target.link for target in goal.targets]
        chains = [chain_between(robot, problem.base_link, link) for link in links]
        if not any(np.isin(chain.variables, problem.variables).any() for chain in chains):
            raise InvalidGoalError(
                f"{what} is a pose of {', '.join(map(repr, links))}, which no joint of the problem moves against "
                f"{problem.base_link!r}"
            )
        return
    if not isinstance(goal, JointGoal):
        raise InvalidGoalError(f"{what} is {shown(goal)}; allowed are JointGoal and PoseGoal")
    n = len(problem.variables)
    if goal.q.shape != (n,):
        raise InvalidGoalError(
            f"{what} has shape {goal.q.shape}; allowed is ({n},): {', '.join(problem.joints)}"
        )
    lower, upper = robot.limits.lower[problem.variables], robot.limits.upper[problem.variables]
    lower, upper = np.maximum(lower, -LARGEST_VALUE), np.minimum(upper, LARGEST_VALUE)
    outside = np.flatnonzero(~((goal.q >= lower) & (goal.q <= upper)))
    if outside.size:
        i = int(outside[0])
        raise InvalidGoalError(
            f"{what} puts joint {problem.joints[i]!r} at {goal.q[i]:.9g}; its limits are {lower[i]:.9g} to "
            f"{upper[i]:.9g}"
        )
    if robot.floating_joints:
        check_state(problem.whole(goal.q), robot, what)


def _check_numbers(problem: TrajectoryProblem) -> None:
    check_scaling("velocity_scaling", problem.velocity_scaling)
    check_scaling("acceleration_scaling", problem.acceleration_scaling)
    if problem.duration is not None and not 0.0 < problem.duration <= LONGEST:
        raise InvalidRequestError(f"duration is {problem.duration} s; allowed: above 0, up to {LONGEST:g} s")
    if not 0.0 <= problem.clearance <= MOST_CLEARANCE:
        raise InvalidRequestError(f"clearance is {problem.clearance}; allowed is 0 to {MOST_CLEARANCE:g} m")
    if problem.clearance > 0.0 and problem.scene is None:
        raise InvalidRequestError(
            f"clearance is {problem.clearance:g}, but without a scene (EMPTY_SCENE will do) nobody looks at collisions"
        )
    if not isinstance(problem.weights, CostWeights):
        raise InvalidRequestError(f"weights is {shown(problem.weights)}; allowed is CostWeights")
    for name, weight in vars(problem.weights).items():
        if not isinstance(weight, float | int | np.floating | np.integer) or not 0.0 <= weight <= LARGEST:
            raise InvalidRequestError(f"weight of {name} is {shown(weight)}; allowed is 0 to {LARGEST:g}")
    n, T = len(problem.variables), problem.num_points
    if problem.rest is not None and (
        problem.rest.shape != (n,) or not (np.abs(problem.rest) <= LARGEST_VALUE).all()
    ):
        raise InvalidStateError(
            f"rest must be {n} finite numbers of at most {LARGEST_VALUE:g}, one per joint that moves"
        )
    if problem.weights.rest > 0.0 and problem.rest is None:
        raise InvalidRequestError("weights.rest is above 0, but no rest posture is given")
    if not LEAST_POINTS <= T <= MOST_POINTS:
        raise InvalidRequestError(f"num_points is {T}; allowed is {LEAST_POINTS} to {MOST_POINTS}")
    paths = problem.paths
    if len(paths) and (
        paths.ndim != 3 or paths.shape[1:] != (T, n) or not (np.abs(paths) <= LARGEST_VALUE).all()
    ):
        raise InvalidRequestError(
            f"paths has shape {paths.shape}; allowed is (S, {T}, {n}), of finite numbers up to {LARGEST_VALUE:g}"
        )
    if len(paths) > MOST_GOALS:
        raise InvalidRequestError(f"{len(paths)} paths are given; allowed are up to {MOST_GOALS}")
    if problem.deadline is not None and not math.isfinite(problem.deadline):
        raise InvalidRequestError(f"deadline is {problem.deadline}; give a value of time.monotonic() or None")
    if not 0 <= problem.random_seed < 2**64:
        raise InvalidRequestError(f"random_seed is {problem.random_seed}; allowed is 0 to 2**64 - 1")
