"""Goals, starts and seeds a little beyond a limit: moved to it, and the answer says so."""

import numpy as np
import pytest

from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, StartStateError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.planning.cartesian.plan import plan_cartesian_path
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.limit_tolerance import MOST_TOLERANCE, moved_to_limits
from kinopt_ros.problems.trajectory import JointGoal
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.registry import create_solver

LIMIT = 3.14159
"""Limit as many files have it."""
BEYOND = 3.14159265


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    part = (
        '<joint name="j{k}" type="revolute"><parent link="l{k}"/><child link="l{n}"/><axis xyz="{axis}"/>'
        '<origin xyz="0.2 0 0.3"/><limit lower="-3.14159" upper="3.14159" velocity="1" effort="1"/></joint>'
    )
    axes = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0", "1 0 0")
    links = "".join(f'<link name="l{k}"/>' for k in range(7))
    joints = "".join(part.format(k=k, n=k + 1, axis=axis) for k, axis in enumerate(axes))
    return robot_from_urdf(f'<robot name="r">{links}{joints}</robot>')


@pytest.fixture(scope="module")
def solver(robot: RobotModel) -> Solver:
    return create_solver("cpu", robot)


def goal(value: float) -> list[float]:
    return [0.1, value, 0.2, 0.3, 0.4, 0.5]


@pytest.mark.parametrize("as_given", [list, lambda q: JointGoal(np.array(q)), lambda q: JointGoal(list(q))])
def test_a_goal_that_was_rounded_is_reached_at_the_limit(robot, solver, as_given):
    problem = trajectory_problem(
        robot, [as_given(goal(BEYOND)), as_given(goal(-BEYOND))], start=np.full(6, 0.4)
    )
    assert problem.notes == (
        "goal 0 moves 'j1' from 3.14159265 to its limit 3.14159",
        "goal 1 moves 'j1' from -3.14159265 to its limit -3.14159",
    )
    result = plan_trajectory(solver, problem)
    assert result.success
    assert result.notes == problem.notes
    assert result.trajectory is not None
    assert result.trajectory.position[-1][1] == LIMIT
    assert np.abs(result.trajectory.position).max() <= LIMIT


def test_a_start_that_was_rounded_begins_at_the_limit(robot, solver):
    problem = trajectory_problem(robot, goal(1.0), start=goal(BEYOND), waypoints=[goal(-BEYOND)])
    assert problem.start[1] == LIMIT
    assert [note.split(" moves")[0] for note in problem.notes] == ["the start", "waypoint 0"]
    result = plan_trajectory(solver, problem)
    assert result.success
    assert result.trajectory is not None
    assert np.abs(result.trajectory.position).max() <= LIMIT


def test_a_straight_path_from_a_start_that_was_rounded(robot, solver):
    q = np.array([0.1, 0.2, BEYOND - 1.2, 0.3, 1.0, BEYOND])
    T = forward_kinematics(robot, q, links=("l6",))[0].copy()
    T[0, 3] -= 0.01
    result = plan_cartesian_path(robot, solver.solve_ik, T, link="l6", start=q)
    assert result.trajectory is not None
    assert result.trajectory.position[0][5] == LIMIT
    assert result.notes == ("the start moves 'j5' from 3.14159265 to its limit 3.14159",)


def test_seeds_that_were_rounded(robot, solver):
    T = forward_kinematics(robot, np.array(goal(1.0)), links=("l6",))[0]
    problem = ik_problem(robot, T, seeds=[goal(1.0), goal(BEYOND)], prefer="closest")
    assert problem.seeds[0, 1, 1] == LIMIT
    assert problem.notes == ("a seed moves 'j1' from 3.14159265 to its limit 3.14159",)
    result = solver.solve_ik(problem)
    assert result.success.all()
    assert result.notes == problem.notes
    # Seeds farther beyond stay what they were: hints, which nobody is held to.
    far = ik_problem(robot, T, seeds=goal(4.0))
    assert far.seeds[0, 0, 1] == 4.0
    assert far.notes == ()


def test_what_is_farther_beyond_is_refused(robot):
    with pytest.raises(InvalidGoalError, match=r"goal 0 puts joint 'j1' at 3\.1418; its limits are"):
        trajectory_problem(robot, goal(3.1418))
    with pytest.raises(InvalidGoalError, match=r"3\.14159265"):
        trajectory_problem(robot, goal(BEYOND), limit_tolerance=0.0)
    assert trajectory_problem(robot, goal(3.1418), limit_tolerance=1e-3).notes
    with pytest.raises(StartStateError):
        trajectory_problem(robot, goal(0.0), start=goal(3.1436))


def test_a_start_is_moved_no_farther_than_a_motion_may_begin_from_the_robot(robot):
    near = trajectory_problem(robot, goal(0.0), start=goal(LIMIT + 0.9e-3), limit_tolerance=MOST_TOLERANCE)
    assert near.start[1] == LIMIT
    with pytest.raises(StartStateError, match=r"starts at 3\.15059.* by more than 0\.001"):
        trajectory_problem(robot, goal(0.0), start=goal(LIMIT + 9e-3), limit_tolerance=MOST_TOLERANCE)
    T = forward_kinematics(robot, np.array(goal(0.0)), links=("l6",))[0]
    with pytest.raises(StartStateError):
        plan_cartesian_path(
            robot, pytest.fail, T, link="l6", start=goal(LIMIT + 9e-3), limit_tolerance=MOST_TOLERANCE
        )
    far = trajectory_problem(
        robot, goal(LIMIT + 9e-3), limit_tolerance=MOST_TOLERANCE
    )  # goals are, as was asked
    assert far.notes


@pytest.mark.parametrize("tolerance", [-1e-9, 0.011, float("nan"), float("inf")])
def test_a_tolerance_that_is_none_is_refused(robot, tolerance):
    with pytest.raises(InvalidRequestError, match=r"limit_tolerance is .*allowed is 0 to 0\.01"):
        trajectory_problem(robot, goal(0.0), limit_tolerance=tolerance)
    with pytest.raises(InvalidRequestError, match=r"limit_tolerance is"):
        ik_problem(robot, np.eye(4), limit_tolerance=tolerance)


def test_many_are_counted_and_numbers_that_are_none_stay(robot):
    q = np.full((2, 6), BEYOND)
    q[1, 0] = np.nan
    q[1, 1] = np.inf
    kept, said = moved_to_limits(robot, np.arange(6), q, 1e-4, "a seed")
    assert said[0].endswith("'j2' from 3.14159265 to its limit 3.14159 and 7 more")
    assert np.isnan(kept[1, 0])
    assert kept[1, 1] == np.inf
    assert (kept[0] == LIMIT).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_no_number_is_refused_without_a_warning(value: float) -> None:
    text = (
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>'
    )
    with pytest.raises(InvalidGoalError, match="'j' at"):
        trajectory_problem(robot_from_urdf(text), [np.array([value])], joints=["j"])
