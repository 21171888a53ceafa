"""Ranges that the variables of a motion keep: limits of the robot, and what the problem says beyond them."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel


def position_bounds(
    robot: RobotModel, problem: TrajectoryProblem
) -> tuple[Annotated[Float64, "n"], Annotated[Float64, "n"]]:
    """Return lower and upper bounds (rad or m) of the problem's variables, in their order."""
    lower, upper = robot.limits.lower, robot.limits.upper
    for along in problem.along:
        bounds = along.bounds(robot)
        if bounds is not None:
            lower, upper = np.maximum(lower, bounds[0]), np.minimum(upper, bounds[1])
    return lower[problem.variables], upper[problem.variables]
