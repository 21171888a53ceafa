"""Two arms of one robot, each with a controller of its own, that MoveIt's clients move at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.moveit_moves import ABORTED, PATIENCE, SLOWLY, SUCCEEDED, Moving, Slowly
from support.moveit_requests import joint_goal
from support.ros_requests import StartNode, until_seen
from support.trajectory_goals import until_prepared
from support.two_pandas import LEFT, PANDAS, RIGHT, START, TEXTS

from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot
from kinopt_ros.verification.collision import first_in_collision

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(1200)  # a compiler may be at work on a new and busy machine


@pytest.fixture(scope="module")
def moving(moveit: Any, control_msgs: None, start_shared_node: StartNode) -> Iterator[Moving]:
    parameters = {
        "robot_description": TEXTS[0],
        "robot_description_semantic": TEXTS[1],
        "default_group": "left_arm",
        "controllers": ["left=left_arm", "right=right_arm"],
        "trajectory.timeout": 30.0,
        "ik.timeout": 10.0,
        "state_timeout": 30.0,
        **SLOWLY,
    }
    _, client = start_shared_node("two_arms", parameters)
    robot = Slowly(client.node, SimulatedRobot(PANDAS, {"left": LEFT, "right": RIGHT}, START), [])
    until_seen(client, START, links=())
    until_prepared(client, left_joint1=0.1)
    yield Moving(client, robot, moveit)
    robot.close()


def goal(moving: Moving, side: str, first: float, scaling: float) -> Any:
    """A goal of one arm, all joints of which but the first stay."""
    joints = {name: value for name, value in START.items() if name.startswith(f"{side}_joint")}
    made = moving.goal(joint_goal(moving.types, **{**joints, f"{side}_joint1": first}), scaling=scaling)
    made.request.group_name = f"{side}_arm"
    return made


def at(moving: Moving, name: str) -> float:
    names, position, _ = moving.robot.robot.states(moving.robot.now())
    return float(position[list(names).index(name)])


def assert_free(moving: Moving) -> None:
    q = PANDAS.default_q.copy()
    names, position, _ = moving.robot.robot.states(moving.robot.now())
    where = dict(zip(names, position.tolist(), strict=True))
    q[:] = [where[name] for name in PANDAS.variable_names]
    assert first_in_collision(PANDAS, Scene(), q[None], 0.0) is None


def test_both_arms_move_at_the_same_time_where_they_cannot_meet(moving: Moving) -> None:
    both: list[np.ndarray] = []
    left = moving.send(moving.move, goal(moving, "left", 0.7, 0.1))
    moving.until_it_moves(left)
    right = moving.send(moving.move, goal(moving, "right", -0.7, 0.1))

    def moves() -> bool:
        _, _, velocity = moving.robot.robot.states(moving.robot.now())
        both.append(np.where(np.abs(velocity) > 0.01, 1.0, 0.0))
        return right.done and left.done

    assert moving.client.spin_until(moves, PATIENCE)
    for sent in (left, right):
        status, result = sent.result()
        assert status == SUCCEEDED, result.error_code.message
    assert max(row.sum() for row in both) == 2.0, "they moved one after the other"
    assert at(moving, "left_joint1") == pytest.approx(0.7, abs=1e-4)
    assert at(moving, "right_joint1") == pytest.approx(-0.7, abs=1e-4)


def test_a_goal_of_one_arm_ends_a_motion_of_both(moving: Moving) -> None:
    """It was refused as long as the other arm moved, and the motion of both went on."""
    both = {name: value for name, value in START.items() if "_joint" in name and "finger" not in name}
    made = moving.goal(
        joint_goal(moving.types, **{**both, "left_joint1": 0.2, "right_joint1": -0.2}), scaling=0.1
    )
    made.request.group_name = "both_arms"
    first = moving.send(moving.move, made)
    moving.until_it_moves(first)
    status, result = moving.send(moving.move, goal(moving, "left", 0.6, 0.5)).result()
    assert status == SUCCEEDED, result.error_code.message
    assert at(moving, "left_joint1") == pytest.approx(0.6, abs=1e-4)
    status, result = first.result()
    assert status == ABORTED
    assert result.error_code.val == result.error_code.PREEMPTED, result.error_code.message


def test_an_arm_waits_for_nobody_whose_way_it_may_cross(moving: Moving) -> None:
    """The left one goes inwards; the right one, which would follow, is refused, and the left one goes on."""
    for side in ("left", "right"):
        status, result = moving.send(moving.move, goal(moving, side, 0.0, 0.5)).result()
        assert status == SUCCEEDED, result.error_code.message
    left = moving.send(moving.move, goal(moving, "left", -0.5, 0.1))
    moving.until_it_moves(left)
    status, result = moving.send(moving.move, goal(moving, "right", 0.5, 0.1)).result()
    assert status == ABORTED
    assert result.error_code.val in (
        result.error_code.START_STATE_INVALID,
        result.error_code.GOAL_IN_COLLISION,
        result.error_code.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE,
    ), result.error_code.message
    status, result = left.result()
    assert status == SUCCEEDED, result.error_code.message
    assert_free(moving)


def test_an_arm_that_somebody_else_moves_into_the_way_stops_this_one(moving: Moving) -> None:
    """Nobody looked at joints that a motion leaves out until it was over: the arms met, and the goal had succeeded."""
    for side, first in (("right", -1.0), ("left", 1.0)):
        status, result = moving.send(moving.move, goal(moving, side, first, 0.5)).result()
        assert status == SUCCEEDED, result.error_code.message
    left = moving.send(moving.move, goal(moving, "left", -0.7, 0.1))
    moving.until_it_moves(left)
    robot, now = moving.robot.robot, moving.robot.now()
    there = [0.6, *(START[name] for name in RIGHT[1:])]
    robot.follow(RIGHT, robot.way_to(RIGHT, there, now), 0, now)
    status, result = left.result()
    assert status == ABORTED
    code = result.error_code
    assert code.val == code.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE, code.message
    assert "joints that it leaves out have moved" in code.message
    assert_free(moving)
