"""Path constraints of MoveIt's clients hold all the way, by MoveIt's own measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from scipy.spatial.transform import Rotation
from support.moveit_requests import TIP, Call, caller, constraints, joint_goal, motion_request, pose_goal
from support.ros_requests import READY, pose
from support.trajectory_goals import until_prepared

from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import trajectory_from_message
from kinopt_ros.trajectory.interpolation import evaluate

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(1200)

PANDA = load_robot("panda")
TILT = 0.1


@pytest.fixture(scope="module")
def panda_parameters(panda_parameters: dict[str, object], moveit: Any) -> dict[str, object]:
    return panda_parameters


@pytest.fixture(scope="module")
def call(client: Client, moveit: Any) -> Call:
    until_prepared(client)
    return caller(client, moveit)


@pytest.fixture
def motion(moveit: Any) -> Callable[..., Any]:
    return partial(motion_request, moveit)


def tips(trajectory: Any) -> Iterator[np.ndarray]:
    """Poses (4, 4) of the tip along a motion, as a controller interpolates it."""
    found = trajectory_from_message(trajectory)
    q = PANDA.default_q.copy()
    columns = [PANDA.variable_index[name] for name in found.joint_names]
    for position in evaluate(found, np.linspace(0.0, found.duration, 300))[0]:
        q[columns] = position
        yield forward_kinematics(PANDA, q, links=(TIP,))[0]


def upright(moveit: Any, *tolerances: float, **fields: Any) -> Any:
    """The tip as it is at READY, which points downwards."""
    one = moveit.msg.OrientationConstraint(
        link_name=TIP, orientation=pose().orientation, weight=1.0, **fields
    )
    one.header.frame_id = "panda_link0"
    one.absolute_x_axis_tolerance, one.absolute_y_axis_tolerance, one.absolute_z_axis_tolerance = tolerances
    return constraints(moveit, orientation_constraints=[one])


def box(moveit: Any, centre: Pose, *size: float) -> Any:
    """The tip stays in a box."""
    solid = import_module("shape_msgs.msg").SolidPrimitive
    one = moveit.msg.PositionConstraint(link_name=TIP, weight=1.0)
    one.header.frame_id = "panda_link0"
    one.constraint_region.primitives = [solid(type=solid.BOX, dimensions=list(size))]
    one.constraint_region.primitive_poses = [centre]
    return constraints(moveit, position_constraints=[one])


def planned(call: Call, request: Any) -> Any:
    """The motion of a request that succeeds."""
    answer = call("plan_kinematic_path", request).motion_plan_response
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    return answer.trajectory.joint_trajectory


def refused(call: Call, request: Any, code: str) -> str:
    """The sentence of a request that ends with a code of MoveIt's, without a motion."""
    answer = call("plan_kinematic_path", request).motion_plan_response
    assert answer.error_code.val == getattr(answer.error_code, code), answer.error_code.message
    assert not answer.trajectory.joint_trajectory.points
    return str(answer.error_code.message)


def test_the_tool_stays_upright(call: Call, motion: Any, moveit: Any) -> None:
    goal = pose_goal(moveit, pose(0.35, -0.35, 0.4))
    kept = upright(moveit, TILT, TILT, 2.0 * math.pi)
    wanted = Rotation.from_quat([1.0, 0.0, 0.0, 0.0])
    for T in tips(planned(call, motion(goal, path_constraints=kept))):
        x, y, _ = (wanted.inv() * Rotation.from_matrix(T[:3, :3])).as_euler("XYZ")
        assert abs(x) <= TILT + 1e-6
        assert abs(y) <= TILT + 1e-6


def test_the_tip_stays_in_a_box_and_a_joint_in_a_range(call: Call, motion: Any, moveit: Any) -> None:
    goal = pose_goal(moveit, pose(0.35, 0.25, 0.55))
    kept = box(moveit, pose(0.35, 0.1, 0.55, (0.0, 0.0, 0.0, 1.0)), 0.2, 0.5, 0.2)
    kept.joint_constraints = joint_goal(moveit, panda_joint3=0.0).joint_constraints
    kept.joint_constraints[0].tolerance_above = kept.joint_constraints[0].tolerance_below = 0.3
    trajectory = planned(call, motion(goal, path_constraints=kept))
    for T in tips(trajectory):
        assert (np.abs(T[:3, 3] - [0.35, 0.1, 0.55]) <= np.array([0.1, 0.25, 0.1]) + 1e-6).all()
    third = [
        point.positions[list(trajectory.joint_names).index("panda_joint3")] for point in trajectory.points
    ]
    assert max(map(abs, third)) <= 0.3 + 1e-6


def test_a_straight_line_keeps_them_or_there_is_none(call: Call, motion: Any, moveit: Any) -> None:
    kept = upright(moveit, TILT, TILT, 2.0 * math.pi)
    line = {"pipeline_id": "pilz_industrial_motion_planner", "planner_id": "LIN"}
    planned(call, motion(pose_goal(moveit, pose(0.32, 0.1, 0.5)), path_constraints=kept, **line))
    tilted = pose(0.32, 0.1, 0.5, (math.cos(0.2), 0.0, math.sin(0.2), 0.0))
    message = refused(
        call, motion(pose_goal(moveit, tilted), path_constraints=kept, **line), "PLANNING_FAILED"
    )
    assert "constraint 0 is not kept after" in message


def test_a_start_and_a_goal_that_break_them(call: Call, motion: Any, moveit: Any) -> None:
    away = box(moveit, pose(0.5, 0.5, 0.5), 0.1, 0.1, 0.1)
    refused(call, motion(path_constraints=away), "START_STATE_VIOLATES_PATH_CONSTRAINTS")
    kept = upright(moveit, TILT, TILT, 2.0 * math.pi)
    tilted = joint_goal(moveit, **{**READY, "panda_joint6": READY["panda_joint6"] + 0.5})
    refused(call, motion(tilted, path_constraints=kept), "GOAL_VIOLATES_PATH_CONSTRAINTS")


def test_cartesian_paths_keep_them_or_there_is_none(call: Call, moveit: Any) -> None:
    request = moveit.srv.GetCartesianPath.Request(
        group_name="panda_arm", max_step=0.01, waypoints=[pose(0.32, 0.15, 0.5)], avoid_collisions=True
    )
    request.header.frame_id = "panda_link0"
    request.start_state.is_diff = True
    request.path_constraints = upright(moveit, TILT, TILT, 2.0 * math.pi)
    answer = call("compute_cartesian_path", request)
    assert answer.fraction == 1.0, answer.error_code.message
    request.waypoints = [pose(0.32, 0.15, 0.5, (math.cos(0.2), 0.0, math.sin(0.2), 0.0))]
    answer = call("compute_cartesian_path", request)
    assert answer.error_code.val == answer.error_code.PLANNING_FAILED
    assert answer.fraction == 0.0
    assert not answer.solution.joint_trajectory.points
