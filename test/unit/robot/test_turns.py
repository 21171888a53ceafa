"""Whole turns of continuous joints, where they count: joints that others follow, and joints with a limit.

Where the tip is, formulas of the tests themselves say.
"""

import numpy as np
import pytest

from kinopt_ros.planning import motion
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.trajectory import JointGoal
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import apart, continuous_joints, shortest, turned_near
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status
from kinopt_ros.verification.motion import GOAL, joint_difference

RATES = 'velocity="1" effort="1"'


def screw(kind: str, multiplier: float, lower: float = -10.0, upper: float = 10.0) -> RobotModel:
    """A screw and what follows it, with a tip 0.3 m off the axis of the latter."""
    limit = (
        f"<limit {RATES}/>" if kind == "continuous" else f'<limit lower="{lower}" upper="{upper}" {RATES}/>'
    )
    return robot_from_urdf(
        f"""<robot name="screw"><link name="base"/><link name="screw"/><link name="nut"/><link name="tip"/>
        <joint name="s" type="continuous"><parent link="base"/><child link="screw"/><axis xyz="0 0 1"/>
          <limit {RATES}/></joint>
        <joint name="n" type="{kind}"><parent link="base"/><child link="nut"/><axis xyz="0 0 1"/>{limit}
          <mimic joint="s" multiplier="{multiplier}"/></joint>
        <joint name="f" type="fixed"><parent link="nut"/><child link="tip"/><origin xyz="0.3 0 0"/></joint>
        </robot>"""
    )


def tip(kind: str, multiplier: float, s: float) -> np.ndarray:
    """Return where a screw at an angle has the tip."""
    moved = multiplier * s
    if kind == "prismatic":
        return np.array([0.3, 0.0, moved])
    return np.array([0.3 * np.cos(moved), 0.3 * np.sin(moved), 0.0])


FOLLOWED = [
    ("prismatic", 0.1, 0.0, 1.0),
    ("prismatic", 1.0, -50.0, 50.0),
    ("continuous", 0.5, 0.0, 0.0),
    ("revolute", 0.5, -10.0, 10.0),
    ("revolute", 1.0, -7.0, 7.0),
]


@pytest.mark.parametrize(("kind", "multiplier", "lower", "upper"), FOLLOWED)
@pytest.mark.parametrize(("start", "goal"), [(0.1, 6.3), (0.5, 6.0)])
def test_a_screw_goes_all_the_way(
    kind: str, multiplier: float, lower: float, upper: float, start: float, goal: float
) -> None:
    """6.3 was a success that ended at 0.0168: the nut 0.63 m from where it was sent."""
    robot = screw(kind, multiplier, lower, upper)
    assert not continuous_joints(robot, ["s"])[0]
    problem = trajectory_problem(
        robot,
        [JointGoal(np.array([goal]))],
        joints=["s"],
        start=[start],
        velocity_scaling=1.0,
        acceleration_scaling=1.0,
    )
    assert joint_difference(robot, problem, np.array([2.0 * np.pi]))[0] == 2.0 * np.pi
    solver = create_solver("cpu", robot)
    answer = plan_trajectory(solver, problem)
    solver.close()
    assert answer.status is Status.SUCCESS, answer.message
    assert answer.trajectory is not None
    moved = plan_joint_motion(robot, ["s"], np.array([start]), np.zeros(1), np.array([goal]), 1.0, 1.0)
    assert moved.report.ok, moved.report.violations
    for found in (answer.trajectory, moved.trajectory):
        last = tip(kind, multiplier, float(found.position[-1, 0]))
        assert np.abs(last - tip(kind, multiplier, goal)).max() < 1e-5


def test_whole_turns_count_where_they_make_a_difference() -> None:
    """What is less than half a turn away keeps its last bit."""
    turns = np.array([True, False, True])
    difference = np.array([[1e-12, 1e-12, 2.0 * np.pi + 0.5], [-6.0, -6.0, 3.0]])
    expected = [[1e-12, 1e-12, 0.5], [2.0 * np.pi - 6.0, -6.0, 3.0]]
    np.testing.assert_allclose(shortest(difference, turns), expected, rtol=0.0, atol=1e-15)
    assert shortest(difference, turns)[0, 0] == 1e-12
    np.testing.assert_array_equal(apart(difference, turns), np.abs(shortest(difference, turns)))
    near = turned_near(difference, np.array([20.0, 20.0, -20.0]), turns)
    np.testing.assert_allclose(np.remainder(near - difference, 2.0 * np.pi) % (2.0 * np.pi), 0.0, atol=1e-14)
    assert (np.abs(near - [20.0, 20.0, -20.0])[:, turns] <= np.pi).all()
    np.testing.assert_array_equal(near[:, 1], difference[:, 1])


@pytest.mark.parametrize("multiplier", [1.0, -2.0])
def test_what_follows_by_whole_turns_leaves_a_joint_endless(multiplier: float) -> None:
    robot = screw("continuous", multiplier)
    assert continuous_joints(robot, ["s"])[0]
    assert not robot.warnings
    moved = plan_joint_motion(robot, ["s"], np.array([0.1]), np.zeros(1), np.array([6.3]), 1.0, 1.0)
    assert moved.report.ok
    assert moved.trajectory.position[-1, 0] == pytest.approx(6.3 - 2.0 * np.pi)


def test_a_limit_on_one_side_ends_a_joint() -> None:
    """The shorter way round to 5.0 would leave the limits, and the goal was refused."""
    one = screw("continuous", 1.0)
    robot = apply_joint_limits(one, {"s": {"has_position_limits": True, "min_position": -1.0}})
    assert robot.limits.upper[0] == np.inf
    assert not continuous_joints(robot, ["s"])[0]
    moved = plan_joint_motion(robot, ["s"], np.zeros(1), np.zeros(1), np.array([5.0]), 1.0, 1.0)
    assert moved.report.ok
    assert moved.trajectory.position[-1, 0] == 5.0


def test_a_limit_of_a_follower_ends_a_joint() -> None:
    robot = screw("revolute", 1.0, -3.0, 3.0)
    moved = plan_joint_motion(robot, ["s"], np.array([-2.5]), np.zeros(1), np.array([2.5]), 1.0, 1.0)
    assert moved.report.ok
    assert moved.trajectory.position[-1, 0] == 2.5


def test_a_motion_that_ends_elsewhere_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever chose the turns: the poses of the last point are compared with those of the goal."""
    robot = screw("prismatic", 0.1, 0.0, 1.0)
    monkeypatch.setattr(motion, "continuous_joints", lambda robot, joints: np.array([True]))
    moved = plan_joint_motion(robot, ["s"], np.array([0.1]), np.zeros(1), np.array([6.3]), 1.0, 1.0)
    (violation,) = moved.report.violations
    assert violation.check == GOAL
    assert "0.628 m" in violation.message
