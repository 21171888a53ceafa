"""Motions along the points of an answer to an objective: timed within the limits, and verified as every motion is."""

from dataclasses import replace

import numpy as np

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.result import ObjectiveResult
from kinopt_ros.problems.trajectory import JointGoal
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.trajectory_gate import Gate
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status

BETWEEN_POINTS = "costs between the points of the path"
"""Not checked of motions along answers to objectives."""


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

    It passes all points, as a curve or along the edges between them, as quickly as the limits of velocity, acceleration
    and jerk allow; the times of the objective (``dt``) do not count. It is checked between points, too: limits, and
    collisions if the problem has a scene.

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
    gate = Gate(robot, asked, result.solver)
    found = gate.passed(path[:, asked.variables], 0)
    if isinstance(found, TrajectoryResult):
        return replace(found, not_checked=(*found.not_checked, BETWEEN_POINTS), costs=result.terms[request])
    return TrajectoryResult(
        Status.PLANNING_FAILED,
        str(found.violation),
        None,
        result.solver,
        attempt=found,
        stages=gate.stages,
    )
