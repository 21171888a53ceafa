"""trajectory_problem fills in what follows from the robot, and refuses the rest by a sentence."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.errors import KinoptError
from kinopt_ros.problems.constraints.pose_along import PoseAlong
from kinopt_ros.problems.constraints.straight_line import StraightLine
from kinopt_ros.problems.ik import PoseTarget
from kinopt_ros.problems.trajectory import (
    NUM_POINTS,
    POINTS_TO_GOALS,
    CostWeights,
    JointGoal,
    PoseGoal,
)
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.problems.trajectory_validation import check_trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene
from kinopt_ros.status import Status


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return load_robot("panda")


def goal_of(robot: RobotModel) -> np.ndarray:
    return robot.default_q[:7] + 0.1


def test_values_are_a_joint_goal_of_the_first_group(robot: RobotModel) -> None:
    problem = trajectory_problem(robot, goal_of(robot))
    assert problem.joints == robot.group("panda_arm").joints
    assert problem.base_link == "panda_link0"
    np.testing.assert_array_equal(problem.start, robot.default_q)
    assert isinstance(problem.goals[0], JointGoal)
    assert problem.velocity_scaling == problem.acceleration_scaling == 0.1
    assert problem.scene is None
    assert problem.duration is None
    assert not problem.late


def test_a_list_of_numbers_is_one_goal_and_a_list_of_goals_several(robot: RobotModel) -> None:
    one = trajectory_problem(robot, goal_of(robot).tolist())
    assert len(one.goals) == 1
    several = trajectory_problem(robot, [goal_of(robot), robot.default_q[:7], np.eye(4)])
    assert [type(goal) for goal in several.goals] == [JointGoal, JointGoal, PoseGoal]


def test_a_pose_is_for_the_tip(robot: RobotModel) -> None:
    goal = trajectory_problem(robot, np.eye(4), tip_link="panda_hand", position_tolerance=0.01).goals[0]
    assert isinstance(goal, PoseGoal)
    assert goal.targets[0].link == "panda_hand"
    assert goal.targets[0].position_tolerance == 0.01


def test_joints_in_the_order_of_the_controller(robot: RobotModel) -> None:
    names = tuple(reversed(robot.group("panda_arm").joints))
    problem = trajectory_problem(robot, goal_of(robot)[::-1], joints=names)
    assert problem.joints == names
    np.testing.assert_array_equal(problem.variables, range(6, -1, -1))


def test_nothing_given_can_be_changed_afterwards(robot: RobotModel) -> None:
    problem = trajectory_problem(robot, goal_of(robot))
    goal = problem.goals[0]
    assert isinstance(goal, JointGoal)
    for array in (problem.start, problem.variables, goal.q):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


REFUSED: list[tuple[dict[str, Any], str, Status]] = [
    ({"goals": []}, "0 goals", Status.INVALID_GOAL_CONSTRAINTS),
    ({"goals": np.zeros(3)}, "shape", Status.INVALID_GOAL_CONSTRAINTS),
    ({"goals": "home"}, "goals is 'home'", Status.INVALID_GOAL_CONSTRAINTS),
    ({"goals": np.full(7, 9.0)}, "its limits are", Status.INVALID_GOAL_CONSTRAINTS),
    ({"goals": np.full(7, np.nan)}, "at nan", Status.INVALID_GOAL_CONSTRAINTS),
    ({"goals": 2.0 * np.eye(4)}, "rigid", Status.INVALID_GOAL_CONSTRAINTS),
    ({"goals": PoseGoal(())}, "no targets", Status.INVALID_GOAL_CONSTRAINTS),
    ({"waypoints": [np.full(7, 9.0)]}, "waypoint 0", Status.INVALID_GOAL_CONSTRAINTS),
    ({"along": [StraightLine("nowhere", 0.01)]}, "nowhere", Status.INVALID_LINK_NAME),
    ({"along": [StraightLine("panda_hand", 0.0)]}, "tolerance", Status.INVALID_GOAL_CONSTRAINTS),
    ({"along": ["upright"]}, "allowed are PoseAlong", Status.INVALID_REQUEST),
    ({"group": "legs"}, "legs", Status.INVALID_GROUP_NAME),
    ({"joints": ["panda_joint1", "panda_joint1"]}, "twice", Status.INVALID_REQUEST),
    ({"start": np.full(8, 9.0)}, "starts at", Status.START_STATE_INVALID),
    ({"start": np.zeros(3)}, "shape", Status.INVALID_ROBOT_STATE),
    ({"start_velocity": np.full(8, np.inf)}, "start_velocity", Status.INVALID_ROBOT_STATE),
    ({"start_velocity": np.full(8, 0.01)}, "leaves out", Status.START_STATE_INVALID),
    ({"velocity_scaling": 0.0}, "velocity_scaling", Status.INVALID_REQUEST),
    ({"acceleration_scaling": 1.1}, "acceleration_scaling", Status.INVALID_REQUEST),
    ({"velocity_scaling": "fast"}, "allowed is a number", Status.INVALID_REQUEST),
    ({"duration": -1.0}, "duration", Status.INVALID_REQUEST),
    ({"duration": math.nan}, "duration", Status.INVALID_REQUEST),
    ({"clearance": 0.01}, "without a scene", Status.INVALID_REQUEST),
    ({"clearance": -0.01, "scene": EMPTY_SCENE}, "clearance", Status.INVALID_REQUEST),
    ({"weights": CostWeights(jerk=-1.0)}, "jerk", Status.INVALID_REQUEST),
    ({"weights": CostWeights(rest=1.0)}, "no rest posture", Status.INVALID_REQUEST),
    ({"rest": np.zeros(7)}, "rest", Status.INVALID_ROBOT_STATE),
    ({"num_points": 4}, "num_points", Status.INVALID_REQUEST),
    ({"num_points": -4}, "num_points", Status.INVALID_REQUEST),
    ({"num_points": False}, "whole number", Status.INVALID_REQUEST),
    ({"random_seed": True}, "whole number", Status.INVALID_REQUEST),
    ({"num_points": 6.4}, "whole number", Status.INVALID_REQUEST),
    ({"paths": np.zeros((12, 7))}, "paths", Status.INVALID_REQUEST),
    ({"paths": 3}, "paths has shape", Status.INVALID_REQUEST),
    ({"weights": 3}, "allowed is CostWeights", Status.INVALID_REQUEST),
    ({"weights": CostWeights(jerk="much")}, "'much'", Status.INVALID_REQUEST),  # type: ignore[arg-type]
    ({"along": 3}, "along is 3", Status.INVALID_REQUEST),
    ({"waypoints": 3}, "waypoints is 3", Status.INVALID_REQUEST),
    ({"duration": True}, "duration is True", Status.INVALID_REQUEST),
    ({"scene": 3}, "scene is 3", Status.INVALID_REQUEST),
    ({"group": 3}, "group is 3", Status.INVALID_REQUEST),
    ({"base_link": 3}, "base_link is 3", Status.INVALID_REQUEST),
    ({"tip_link": ["panda_hand"]}, "tip_link is", Status.INVALID_REQUEST),
    ({"joints": "panda_joint1"}, "list of names", Status.INVALID_REQUEST),
    ({"position_tolerance": "x"}, "position_tolerance", Status.INVALID_REQUEST),
    ({"deadline": math.inf}, "deadline", Status.INVALID_REQUEST),
    ({"random_seed": -1}, "random_seed", Status.INVALID_REQUEST),
]


@pytest.mark.parametrize(("options", "said", "status"), REFUSED)
def test_bad_input_is_refused_by_name(
    robot: RobotModel, options: dict[str, Any], said: str, status: Status
) -> None:
    goals = options.get("goals", goal_of(robot))
    rest = {name: value for name, value in options.items() if name != "goals"}
    with pytest.raises(KinoptError, match=said) as refusal:
        trajectory_problem(robot, goals, **rest)
    assert refusal.value.status is status


def test_poses_along_the_way_are_single_ones(robot: RobotModel) -> None:
    two = PoseTarget("panda_hand", np.stack([np.eye(4)] * 2), math.inf, 0.1)
    with pytest.raises(KinoptError, match="2 poses"):
        trajectory_problem(robot, goal_of(robot), along=[PoseAlong(two)])


def test_joints_of_several_variables_are_refused(urdf: Any) -> None:
    robot = robot_from_urdf(urdf("float floating world base", "turn revolute base arm"))
    goal = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.5])
    problem = trajectory_problem(robot, goal, joints=["float", "turn"])
    assert problem.joints == (*robot.variable_names[:7], "turn")
    with pytest.raises(KinoptError, match="'float' has several variables; name float/trans_x"):
        check_trajectory_problem(replace(problem, joints=("float", "turn")), robot)
    with pytest.raises(KinoptError, match="goal 0: the quaternion of floating joint 'float' has length 0"):
        trajectory_problem(robot, np.zeros(8), joints=["float", "turn"])
    with pytest.raises(KinoptError, match="some of the quaternion of joint 'float'"):
        trajectory_problem(robot, np.zeros(2), joints=["float/rot_x", "turn"])


def test_variables_of_other_joints_are_refused(robot: RobotModel) -> None:
    problem = trajectory_problem(robot, goal_of(robot))
    with pytest.raises(KinoptError, match="do not belong"):
        check_trajectory_problem(replace(problem, variables=np.arange(1, 8)), robot)


def test_attached_objects_need_their_link(robot: RobotModel) -> None:
    from kinopt_ros.geometry.shapes import PlacedShape, Sphere
    from kinopt_ros.scene.scene import AttachedObject

    carried = AttachedObject("cup", (PlacedShape(Sphere(0.05), np.eye(4)),), "tray", np.eye(4), frozenset())
    with pytest.raises(KinoptError, match="tray"):
        trajectory_problem(robot, goal_of(robot), scene=Scene(attached={"cup": carried}))


@pytest.mark.parametrize(
    ("link", "joints"), [("panda_link0", None), ("panda_link1", ["panda_joint2", "panda_joint3"])]
)
def test_poses_of_links_that_nothing_moves_are_refused(
    robot: RobotModel, link: str, joints: list[str] | None
) -> None:
    still = PoseGoal((PoseTarget(link, np.eye(4)[None]),))
    with pytest.raises(KinoptError, match=f"goal 0 is a pose of '{link}', which no joint") as refusal:
        trajectory_problem(robot, still, joints=joints)
    assert refusal.value.status is Status.INVALID_GOAL_CONSTRAINTS


@pytest.mark.parametrize("value", [1.1e9, -1e14])
def test_values_too_large_for_small_motions_are_refused_where_they_enter(value: float) -> None:
    """A continuous joint has no limits that would stop them; at 1e14 rad float64 knows angles to 0.02 rad only."""
    wheel = robot_from_urdf(
        """<robot name="wheel"><link name="base"/><link name="rim"/><joint name="turn" type="continuous">
        <parent link="base"/><child link="rim"/><axis xyz="0 0 1"/><limit velocity="1" effort="1"/></joint></robot>"""
    )
    for given, words in (
        ({"start": [value], "goals": [0.5]}, r"start is not finite or beyond 1e\+09 rad or m at turn"),
        ({"goals": [value]}, r"goal 0 puts joint 'turn' at .*; its limits are -1e\+09 to 1e\+09"),
        ({"goals": [0.5], "rest": [value]}, r"of at most 1e\+09"),
        ({"goals": [0.5], "paths": np.full((1, 32, 1), value), "num_points": 32}, r"numbers up to 1e\+09"),
    ):
        with pytest.raises(KinoptError, match=words):
            trajectory_problem(wheel, joints=["turn"], **given)


def test_paths_have_more_points_where_something_holds_on_the_way(robot: RobotModel) -> None:
    goal = goal_of(robot)
    line = StraightLine("panda_link8", 0.01)
    for given, points in (
        ({}, POINTS_TO_GOALS),
        ({"waypoints": [goal]}, NUM_POINTS),
        ({"along": [line]}, NUM_POINTS),
        ({"paths": np.tile(robot.default_q[:7], (1, NUM_POINTS, 1))}, NUM_POINTS),
        ({"num_points": 40}, 40),
        ({"num_points": 40, "waypoints": [goal]}, 40),
    ):
        assert trajectory_problem(robot, goal, **given).num_points == points  # type: ignore[arg-type]
    with pytest.raises(KinoptError, match="num_points is 3"):
        trajectory_problem(robot, goal, num_points=3.5)  # type: ignore[arg-type]
