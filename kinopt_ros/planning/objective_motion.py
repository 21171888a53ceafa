"""Motions along the points of an answer to an objective: timed within the limits, and verified as every motion is."""

from dataclasses import replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.objectives.evaluation import evaluate as evaluate_costs
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.result import ObjectiveResult
from kinopt_ros.problems.trajectory import JointGoal, TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.objective_gate import described
from kinopt_ros.solvers.trajectory_gate import Gate
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

BETWEEN_POINTS = "costs between the points of the path"
"""Not checked of motions along answers to objectives."""
_SAMPLES = 32
"""Samples of a motion per point of its path, from which the nearest one is searched for."""
_HALVINGS = 40
_PASSED = 1e-6
"""Distance, rad or m, at which a motion counts as passing a point."""


def objective_motion(
    robot: RobotModel,
    problem: ObjectiveProblem,
    result: ObjectiveResult,
    request: int = 0,
    velocity_scaling: float = 1.0,
    acceleration_scaling: float = 1.0,
    deadline: float | None = None,
) -> TrajectoryResult:
    """Return a motion from rest to rest along the points of an answer.

    It passes all points as a curve or, where that would leave the position limits, along the edges between them, whose
    corners it rounds, as quickly as the limits of velocity, acceleration and jerk allow; the times of the objective
    (``dt``) do not count. It is checked between points, too: limits, and collisions if the problem has a scene. What
    has to hold is judged where the motion passes the points.

    Args:
        robot: the robot.
        problem: what was asked, of at least two points.
        result: its answer.
        request: which of the B requests.
        velocity_scaling: share of the velocity limits, above 0 to 1.
        acceleration_scaling: share of the acceleration and jerk limits.
        deadline: value of time.monotonic().

    Returns:
        SUCCESS with a trajectory, or PLANNING_FAILED with what the motion would break.

    Raises:
        InvalidRequestError: the request has no answer that holds, or a single point.
        KinoptError: the joints cannot be moved along a trajectory.
    """
    if problem.num_points < 2:
        raise InvalidRequestError("an objective of one point has no motion; num_points must be 2 or more")
    if result.status[request] not in (Status.SUCCESS, Status.NEAREST):
        raise InvalidRequestError(f"request {request} has no answer that holds: {result.messages[request]}")
    path = np.array(result.best[request])
    variables = [i for name in problem.joints for i in robot.variables_of(name)]
    asked = trajectory_problem(
        robot,
        JointGoal(path[-1, variables]),
        joints=problem.joints,
        start=path[0],
        scene=problem.scene,
        clearance=problem.clearance,
        velocity_scaling=velocity_scaling,
        acceleration_scaling=acceleration_scaling,
        num_points=max(problem.num_points, 3),
        deadline=deadline,
    )
    return motion_with_costs(robot, asked, problem, request, path[:, asked.variables], result.solver)


def motion_with_costs(
    robot: RobotModel,
    asked: TrajectoryProblem,
    problem: ObjectiveProblem,
    request: int,
    path: Annotated[Float64, "T n"],
    solver: str,
) -> TrajectoryResult:
    """Return a motion along a path, with the values of an objective's costs where the motion passes its points.

    Args:
        robot: the robot.
        asked: what the motion has to be.
        problem: the objective, of T points.
        request: which of its B requests.
        path: points, in the order of the variables of ``asked``.
        solver: name of who found the path.

    Returns:
        SUCCESS with a trajectory, or PLANNING_FAILED with what it breaks.
    """
    gate = Gate(robot, asked, solver)
    found = gate.passed(path, 0)
    if not isinstance(found, TrajectoryResult):
        return TrajectoryResult(
            Status.PLANNING_FAILED, str(found.violation), None, solver, attempt=found, stages=gate.stages
        )
    assert found.trajectory is not None
    passed = passed_at(found.trajectory, path)
    there = np.repeat(problem.state[request][None], len(path), axis=0)
    there[:, asked.variables] = path if np.abs(passed - path).max() <= _PASSED else passed
    terms = evaluate_costs(robot, problem.objectives[request], there, problem.dt)
    broken = [term for term in terms if not term.met]
    if broken:
        worst = max(broken, key=lambda term: term.ratio)
        why = f"the motion rounds corners of the path, where {described(worst)}"
        return TrajectoryResult(Status.PLANNING_FAILED, why, None, solver, stages=gate.stages, costs=terms)
    return replace(found, not_checked=(*found.not_checked, BETWEEN_POINTS), costs=terms)


def passed_at(trajectory: JointTrajectory, path: Annotated[Float64, "T n"]) -> Annotated[Float64, "T n"]:
    """Return where a motion is nearest to each point of a path, in the order of the path; its ends at the ends."""
    times = np.linspace(0.0, trajectory.duration, _SAMPLES * len(path))
    nearest = _in_order(evaluate(trajectory, times)[0], path)
    lower = times[np.maximum(nearest - 1, 0)]
    upper = times[np.minimum(nearest + 1, len(times) - 1)]
    for _ in range(_HALVINGS):
        middle = 0.5 * (lower + upper)
        q, velocity = evaluate(trajectory, middle)[:2]
        beyond = ((q - path) * velocity).sum(axis=1) > 0.0
        lower, upper = np.where(beyond, lower, middle), np.where(beyond, middle, upper)
    found = evaluate(trajectory, 0.5 * (lower + upper))[0]
    found[0], found[-1] = trajectory.position[0], trajectory.position[-1]
    return np.asarray(found)


def _in_order(samples: Annotated[Float64, "M n"], path: Annotated[Float64, "T n"]) -> Annotated[Int64, "T"]:
    """Return for each point which sample is nearest to it, where they may only go on: the least sum of squares.

    A motion may come by the same place several times.
    """
    T, M = len(path), len(samples)
    came_from = np.empty((T, M), dtype=np.int64)
    least = np.zeros(M)
    for k, point in enumerate(path):
        before = np.minimum.accumulate(least)
        new = np.concatenate([[True], before[1:] < before[:-1]])
        came_from[k] = np.maximum.accumulate(np.where(new, np.arange(M), 0))
        least = before + ((samples - point) ** 2).sum(axis=1)
    chosen = np.empty(T, dtype=np.int64)
    at = int(np.argmin(least))
    for k in reversed(range(T)):
        chosen[k] = at
        at = int(came_from[k, at])
    return chosen
