"""A joint's range all along a motion."""

import math

import numpy as np
import pytest

from kinopt_ros.errors import InvalidGoalError, UnknownJointError
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.constraints.joint_range import JointRange
from kinopt_ros.problems.trajectory_bounds import position_bounds
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.states import named_configuration
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return load_robot("panda")


def test_all_of_the_way_is_in_the_range(robot: RobotModel) -> None:
    start = named_configuration(robot, "ready")
    goal = start[:7] + np.array([1.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0])
    kept = JointRange("panda_joint4", lower=start[3] - 0.05, upper=start[3] + 0.05)
    problem = trajectory_problem(
        robot, goal, start=start, along=[kept], waypoints=[0.5 * (start[:7] + goal) + 0.04]
    )
    solver = create_solver("cpu", robot)
    try:
        result = plan_trajectory(solver, problem)
        narrow = JointRange("panda_joint1", upper=start[0] + 0.5)
        refused = plan_trajectory(solver, trajectory_problem(robot, goal, start=start, along=[narrow]))
        elsewhere = JointRange("panda_joint1", lower=start[0] + 0.5)
        away = plan_trajectory(solver, trajectory_problem(robot, goal, start=start, along=[elsewhere]))
    finally:
        solver.close()
    assert result.success, result.message
    assert result.trajectory is not None
    times = np.linspace(0.0, result.trajectory.duration, 500)
    column = result.trajectory.joint_names.index("panda_joint4")
    assert (np.abs(evaluate(result.trajectory, times)[0][:, column] - start[3]) <= 0.05 + 1e-6).all()
    assert refused.status is Status.GOAL_VIOLATES_PATH_CONSTRAINTS
    assert "'panda_joint1' is at 1; it shall keep to -inf to 0.5" in refused.message
    assert away.status is Status.START_STATE_VIOLATES_PATH_CONSTRAINTS
    assert "'panda_joint1' is at 0; it shall keep to 0.5 to inf" in away.message


def test_bounds_are_those_of_the_robot_and_the_problem(robot: RobotModel) -> None:
    start = named_configuration(robot, "ready")
    along = [JointRange("panda_joint2", lower=-1.0), JointRange("panda_joint2", -9.0, 0.5)]
    lower, upper = position_bounds(robot, trajectory_problem(robot, start[:7], start=start, along=along))
    assert (lower[1], upper[1]) == (-1.0, 0.5)
    np.testing.assert_array_equal(lower[2:], robot.limits.lower[2:7])


@pytest.mark.parametrize(
    ("kept", "error", "words"),
    [
        (JointRange("leg", 0.0), UnknownJointError, "leg"),
        (JointRange("panda_joint1"), InvalidGoalError, "-inf to inf"),
        (JointRange("panda_joint1", 1.0, 0.0), InvalidGoalError, "1 to 0"),
        (JointRange("panda_joint1", math.nan, 0.0), InvalidGoalError, "nan to 0"),
    ],
)
def test_ranges_that_are_none(robot: RobotModel, kept: JointRange, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        kept.check(robot)
