"""MoveIt's services under its names, asked as any MoveIt client does."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from builtin_interfaces.msg import Duration
from compiled_client.client import TOOLS, ask, compiled
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Transform, Vector3
from rclpy.node import NodeNameNonExistentError
from sensor_msgs.msg import JointState
from support.forked_nodes import ForkedNode
from support.moveit_requests import (
    AWAY,
    SERVICES,
    Call,
    caller,
    constraints,
    joint_goal,
    motion_request,
    pose_goal,
    too_many,
)
from support.moving_base import base_urdf
from support.pages import filled, page
from support.ros_requests import READY, StartNode, pose, set_parameter, stand
from support.trajectory_goals import until_prepared
from trajectory_msgs.msg import JointTrajectoryPoint

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene, PlanTrajectory
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.messages.conversions import matrices_from_poses, poses_from_matrices
from kinopt_ros.ros.moveit.codes import MOVEIT_CODES
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

pytest.importorskip("coal")
# A compiler may be at work on a new and busy machine.
pytestmark = pytest.mark.timeout(1200)

PANDA = load_robot("panda")
FREE = JointState(name=list(READY), position=list(READY.values()))
TIP = "panda_link8"
NAN = float("nan")

BASE = """<robot name="r"><link name="a"/><link name="b"/><link name="c"/>
<joint name="base" type="planar"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
  <origin xyz="0 0 1" rpy="0.3 0 0"/></joint>
<joint name="free" type="floating"><parent link="b"/><child link="c"/></joint></robot>"""
"""A robot whose joints have several variables."""


@pytest.fixture(scope="module")
def panda_parameters(panda_parameters: dict[str, object], moveit: Any) -> dict[str, object]:
    return panda_parameters


@pytest.fixture(scope="module")
def call(client: Client, moveit: Any) -> Call:
    return caller(client, moveit)


@pytest.fixture(autouse=True)
def standing(client: Client) -> Iterator[None]:
    """A free scene around a robot that stands at READY."""
    stand(client)
    apply(client, SceneOperation(operation="clear"))
    yield
    apply(client, SceneOperation(operation="clear"))


def apply(client: Client, *operations: SceneOperation) -> None:
    answer = client.call("apply_scene", ApplyScene.Request(operations=list(operations)))
    assert answer.status.code == Status.SUCCESS, answer.status.message


def ball(radius: float, x: float, y: float, z: float) -> SceneOperation:
    given = CollisionObject(id="ball", shapes=[Shape(type="sphere", dimensions=[radius])])
    given.pose = Pose(position=Point(x=x, y=y, z=z))
    return SceneOperation(operation="add", object=given)


@pytest.fixture
def ik(moveit: Any) -> Callable[..., Any]:
    """Makes requests of compute_ik as a MoveIt client does."""

    def make(at: Pose | None = None, frame: str = "panda_link0", **fields: Any) -> Any:
        given = moveit.msg.PositionIKRequest(group_name="panda_arm")
        given.robot_state.is_diff = True
        given.pose_stamped.header.frame_id = frame
        given.pose_stamped.pose = pose() if at is None else at
        for name, value in fields.items():
            setattr(given, name, value)
        return moveit.srv.GetPositionIK.Request(ik_request=given)

    return make


@pytest.fixture
def state(moveit: Any) -> Callable[..., Any]:
    """Makes robot states of named joints."""

    def make(**positions: float) -> Any:
        result = moveit.msg.RobotState(is_diff=True)
        result.joint_state = JointState(name=list(positions), position=list(positions.values()))
        return result

    return make


def configuration(solution: Any) -> np.ndarray:
    """q of a robot state that has all joints."""
    values = dict(zip(solution.joint_state.name, solution.joint_state.position, strict=True))
    return np.array([values[name] for name in PANDA.variable_names])


def T_of(at: Pose) -> np.ndarray:
    return matrices_from_poses([at])[0]


def test_codes_are_those_of_moveit(moveit: Any) -> None:
    kind = moveit.msg.MoveItErrorCodes
    values = {name: getattr(kind, name) for name in dir(kind) if name.isupper()}
    other = {
        "VERIFICATION_FAILED": "INVALID_MOTION_PLAN",
        "ENVIRONMENT_CHANGED": "MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE",
        "INVALID_JOINT_NAME": "INVALID_ROBOT_STATE",
    }
    assert {code: values[other.get(code.name, code.name)] for code in MOVEIT_CODES} == MOVEIT_CODES


def test_the_requests_of_the_tutorial(call: Call, moveit: Any) -> None:
    found = re.findall(
        r'^ros2 service call /(\w+) moveit_msgs/srv/(\w+) "(.*)"$',
        page("tutorials/moveit_client"),
        re.MULTILINE,
    )
    assert [name for name, *_ in found] == ["compute_ik", "plan_kinematic_path"]
    for name, kind, text in found:
        answer = call(name, filled(getattr(moveit.srv, kind).Request(), yaml.safe_load(text)))
        code = getattr(answer, "motion_plan_response", answer).error_code
        assert code.val == code.SUCCESS, code.message


@pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {' and '.join(TOOLS)}")
def test_a_compiled_client(call: Call, moveit: Any, tmp_path: Path) -> None:
    times, codes = ask(compiled(tmp_path), 20)
    assert times.shape == (20, 2)
    assert (times > 0.0).all()
    assert (codes == moveit.msg.MoveItErrorCodes.SUCCESS).all()


# compute_ik


def test_an_unmodified_client_gets_a_solution(call: Call, ik: Any) -> None:
    answer = call("compute_ik", ik())
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    assert answer.error_code.source == "kinopt"
    solution = answer.solution
    assert not solution.is_diff
    q = configuration(solution)
    assert ((q >= PANDA.limits.lower) & (q <= PANDA.limits.upper)).all()
    np.testing.assert_allclose(forward_kinematics(PANDA, q, links=(TIP,))[0], T_of(pose()), atol=2e-4)
    values = dict(zip(solution.joint_state.name, solution.joint_state.position, strict=True))
    assert values["panda_finger_joint2"] == values["panda_finger_joint1"]  # which it mimics


def test_an_empty_request_is_for_the_present_state_and_the_default_group(call: Call, ik: Any) -> None:
    answer = call("compute_ik", ik(group_name="", frame=""))
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message


def test_a_seed_decides_which_solution(call: Call, ik: Any, state: Any) -> None:
    q = np.array(list(READY.values())) + np.array([0.3, -0.2, 0.4, 0.2, -0.3, 0.2, 0.1])
    full = PANDA.default_q.copy()
    full[:7] = q
    T = forward_kinematics(PANDA, full, links=(TIP,))[0]
    given = state(**dict(zip(READY, q.tolist(), strict=True)))
    answer = call("compute_ik", ik(poses_from_matrices(T[None])[0], robot_state=given))
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    np.testing.assert_allclose(configuration(answer.solution)[:7], q, atol=1e-2)


def test_another_link_of_the_chain_may_be_placed(call: Call, ik: Any) -> None:
    answer = call("compute_ik", ik(ik_link_name="panda_hand"))
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    q = configuration(answer.solution)
    T = forward_kinematics(PANDA, q, links=("panda_hand",))[0]
    np.testing.assert_allclose(T, T_of(pose()), atol=2e-4)


def test_poses_in_frames_of_links(call: Call, ik: Any) -> None:
    answer = call("compute_ik", ik(pose(0.0, 0.0, 0.05, (0.0, 0.0, 0.0, 1.0)), frame=TIP))
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    start = PANDA.default_q.copy()
    start[:7] = list(READY.values())
    wanted = forward_kinematics(PANDA, start, links=(TIP,))[0]
    wanted[:3, 3] += 0.05 * wanted[:3, 2]
    found = forward_kinematics(PANDA, configuration(answer.solution), links=(TIP,))[0]
    np.testing.assert_allclose(found, wanted, atol=2e-4)


def test_several_links_in_several_frames(call: Call, ik: Any) -> None:
    start = PANDA.default_q.copy()
    start[:7] = np.array(list(READY.values())) + 0.1
    links = ("panda_hand", "panda_link4")
    T = forward_kinematics(PANDA, start, links=links)
    T_root_link1 = forward_kinematics(
        PANDA, np.concatenate([list(READY.values()), start[7:]]), ("panda_link1",)
    )[0]
    at = [T[0], np.linalg.inv(T_root_link1) @ T[1]]
    frames = ("panda_link0", "panda_link1")
    targets = [PoseStamped(pose=one) for one in poses_from_matrices(np.array(at))]
    for target, frame in zip(targets, frames, strict=True):
        target.header.frame_id = frame
    answer = call("compute_ik", ik(ik_link_names=list(links), pose_stamped_vector=targets))
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    found = forward_kinematics(PANDA, configuration(answer.solution), links=links)
    np.testing.assert_allclose(found, T, atol=3e-4)


def test_solutions_avoid_collisions_if_asked_to(call: Call, ik: Any, client: Client, moveit: Any) -> None:
    # Where one solution has its elbow; there are others.
    free = configuration(call("compute_ik", ik()).solution)
    elbow = forward_kinematics(PANDA, free, links=("panda_link4",))[0][:3, 3]
    apply(client, ball(0.03, *elbow.tolist()))
    answer = call("compute_ik", ik(avoid_collisions=True))
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    validity = moveit.srv.GetStateValidity.Request(robot_state=answer.solution)
    assert call("check_state_validity", validity).valid


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_solutions_meet_constraints(call: Call, ik: Any, moveit: Any, sign: float) -> None:
    side = moveit.msg.JointConstraint(joint_name="panda_joint1", position=sign, weight=1.0)
    side.tolerance_above = side.tolerance_below = 0.9
    answer = call("compute_ik", ik(constraints=constraints(moveit, joint_constraints=[side])))
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    q = configuration(answer.solution)
    assert abs(q[0] - sign) <= 0.9
    np.testing.assert_allclose(forward_kinematics(PANDA, q, links=(TIP,))[0], T_of(pose()), atol=2e-4)


def test_a_goal_in_collision(call: Call, ik: Any, client: Client) -> None:
    apply(client, ball(0.1, 0.4, 0.1, 0.5))
    answer = call("compute_ik", ik(avoid_collisions=True))
    assert answer.error_code.val == answer.error_code.GOAL_IN_COLLISION, answer.error_code
    assert "ball" in answer.error_code.message
    assert not answer.solution.joint_state.name
    assert call("compute_ik", ik()).error_code.val == answer.error_code.SUCCESS  # nobody asked to avoid it


def attached(moveit: Any) -> Any:
    result = moveit.msg.RobotState()
    result.attached_collision_objects = [moveit.msg.AttachedCollisionObject(link_name=TIP)]
    result.attached_collision_objects[0].object.id = "cup"
    return result


def several(moveit: Any, name: str) -> Any:
    result = moveit.msg.RobotState()
    result.multi_dof_joint_state.joint_names = [name]
    result.multi_dof_joint_state.transforms = [Transform()]
    return result


def joints(moveit: Any, names: list[str], positions: list[float]) -> Any:
    return moveit.msg.RobotState(joint_state=JointState(name=names, position=positions))


BAD_IK: dict[str, tuple[Callable[[Any], dict[str, Any]], str, str]] = {
    "group": (lambda m: {"group_name": "leg"}, "INVALID_GROUP_NAME", "'leg'"),
    "link": (lambda m: {"ik_link_name": "claw"}, "INVALID_LINK_NAME", "'claw'"),
    "frame": (lambda m: {"frame": "moon"}, "FRAME_TRANSFORM_FAILURE", "'moon'"),
    "zero quaternion": (
        lambda m: {"at": Pose(orientation=Quaternion(w=0.0))},
        "INVALID_GOAL_CONSTRAINTS",
        "length 0",
    ),
    "NaN": (lambda m: {"at": pose(NAN)}, "INVALID_GOAL_CONSTRAINTS", "not finite"),
    "out of reach": (lambda m: {"at": pose(3.0)}, "NO_IK_SOLUTION", ""),
    "constraints that cannot be judged": (
        lambda m: {"constraints": constraints(m, visibility_constraints=[m.msg.VisibilityConstraint()])},
        "INVALID_GOAL_CONSTRAINTS",
        "constraints has visibility_constraints",
    ),
    "many constraints": (
        lambda m: {"constraints": too_many(m)},
        "INVALID_GOAL_CONSTRAINTS",
        "65 primitives of position_constraints and orientation_constraints are given; allowed are up to 64 in all",
    ),
    "constraints that cannot be met": (
        lambda m: {"constraints": pose_goal(m, pose(0.4, 0.1, 0.6))},
        "NO_IK_SOLUTION",
        "solutions meets the constraints",
    ),
    "links without poses": (
        lambda m: {"ik_link_names": [TIP]},
        "INVALID_GOAL_CONSTRAINTS",
        "ik_link_names has 1 names and pose_stamped_vector 0 poses",
    ),
    "poses without links": (
        lambda m: {"pose_stamped_vector": [PoseStamped(), PoseStamped()]},
        "INVALID_GOAL_CONSTRAINTS",
        "ik_link_names has 0 names",
    ),
    "attached objects": (lambda m: {"robot_state": attached(m)}, "INVALID_ROBOT_STATE", " attaches cup "),
    "unknown joint": (
        lambda m: {"robot_state": joints(m, ["knee"], [0.0])},
        "INVALID_ROBOT_STATE",
        "unknown joint 'knee'",
    ),
    "lengths": (
        lambda m: {"robot_state": joints(m, ["panda_joint1"], [])},
        "INVALID_ROBOT_STATE",
        "1 names and 0 positions",
    ),
    "NaN state": (
        lambda m: {"robot_state": joints(m, ["panda_joint1"], [NAN])},
        "INVALID_ROBOT_STATE",
        "finite",
    ),
    "held virtual joint": (
        lambda m: {"robot_state": several(m, "virtual_joint")},
        "INVALID_ROBOT_STATE",
        "virtual_joint",
    ),
    "arm joint of several variables": (
        lambda m: {"robot_state": several(m, "panda_joint1")},
        "INVALID_ROBOT_STATE",
        "revolute",
    ),
    "negative timeout": (
        lambda m: {"timeout": Duration(sec=-1)},
        "FAILURE",
        "INVALID_REQUEST: timeout is -1",
    ),
    "too long a timeout": (lambda m: {"timeout": Duration(sec=61)}, "FAILURE", "ik.max_timeout"),
    "no time": (lambda m: {"timeout": Duration(nanosec=1)}, "TIMED_OUT", "timeout"),
}


@pytest.mark.parametrize("name", BAD_IK)
def test_what_compute_ik_refuses(name: str, call: Call, ik: Any, moveit: Any) -> None:
    fields, code, words = BAD_IK[name]
    answer = call("compute_ik", ik(**fields(moveit)))
    assert answer.error_code.val == getattr(answer.error_code, code), answer.error_code
    assert words in answer.error_code.message
    assert not answer.solution.joint_state.name
    assert not answer.solution.joint_state.position


def test_a_stale_state(
    call: Call, ik: Any, client: Client, moveit: Any, panda_parameters: dict[str, object]
) -> None:
    client.stop_robot()
    assert set_parameter(client, "kinopt", "state_timeout", 0.05).successful
    try:
        client.spin(0.1)
        code = call("compute_ik", ik()).error_code
        assert code.val == code.ROBOT_STATE_STALE, code
        code = call("compute_fk", moveit.srv.GetPositionFK.Request(fk_link_names=[TIP])).error_code
        assert code.val == code.ROBOT_STATE_STALE, code
        whole = joints(moveit, [*READY, "panda_finger_joint1"], [*READY.values(), 0.02])
        answer = call("compute_ik", ik(robot_state=whole))
        assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code
    finally:
        assert set_parameter(client, "kinopt", "state_timeout", panda_parameters["state_timeout"]).successful


# compute_fk


def test_poses_of_links(call: Call, state: Any, moveit: Any) -> None:
    request = moveit.srv.GetPositionFK.Request(fk_link_names=[TIP, "panda_link3"])
    request.robot_state = state(panda_joint1=0.3, panda_joint4=-1.5)
    q = PANDA.default_q.copy()
    q[:7] = list(READY.values())
    q[[0, 3]] = 0.3, -1.5
    wanted = forward_kinematics(PANDA, q, links=(TIP, "panda_link3", "panda_link1"))
    answer = call("compute_fk", request)
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    assert answer.fk_link_names == [TIP, "panda_link3"]
    assert [one.header.frame_id for one in answer.pose_stamped] == ["panda_link0"] * 2
    found = matrices_from_poses([one.pose for one in answer.pose_stamped])
    np.testing.assert_allclose(found, wanted[:2], atol=1e-12)
    request.header.frame_id = "panda_link1"
    answer = call("compute_fk", request)
    assert answer.pose_stamped[0].header.frame_id == "panda_link1"
    found = matrices_from_poses([one.pose for one in answer.pose_stamped])
    np.testing.assert_allclose(found, np.linalg.inv(wanted[2]) @ wanted[:2], atol=1e-12)


BAD_FK: dict[str, tuple[Callable[[Any], dict[str, Any]], str, str]] = {
    "no links": (lambda m: {"fk_link_names": []}, "INVALID_LINK_NAME", "fk_link_names is empty"),
    "unknown link": (lambda m: {"fk_link_names": [TIP, "claw"]}, "INVALID_LINK_NAME", "'claw'"),
    "attached objects": (lambda m: {"robot_state": attached(m)}, "INVALID_ROBOT_STATE", " attaches cup "),
    "a batch": (
        lambda m: {"robot_state": joints(m, ["panda_joint1"], [0.0, 0.1])},
        "INVALID_ROBOT_STATE",
        "1 names and 2 positions",
    ),
}


@pytest.mark.parametrize("name", BAD_FK)
def test_what_compute_fk_refuses(name: str, call: Call, moveit: Any) -> None:
    fields, code, words = BAD_FK[name]
    request = moveit.srv.GetPositionFK.Request(**{"fk_link_names": [TIP], **fields(moveit)})
    answer = call("compute_fk", request)
    assert answer.error_code.val == getattr(answer.error_code, code), answer.error_code
    assert words in answer.error_code.message
    assert not answer.pose_stamped


def test_an_unknown_frame_of_poses(call: Call, moveit: Any) -> None:
    request = moveit.srv.GetPositionFK.Request(fk_link_names=[TIP])
    request.header.frame_id = "moon"
    code = call("compute_fk", request).error_code
    assert code.val == code.FRAME_TRANSFORM_FAILURE, code


# check_state_validity


def validity(moveit: Any, robot_state: Any | None = None, **fields: Any) -> Any:
    given = moveit.msg.RobotState(is_diff=True) if robot_state is None else robot_state
    return moveit.srv.GetStateValidity.Request(robot_state=given, **fields)


def test_a_free_state_is_valid(call: Call, moveit: Any) -> None:
    answer = call("check_state_validity", validity(moveit, group_name="panda_arm"))
    assert answer.valid
    assert not answer.contacts
    assert not answer.constraint_result


def test_contacts_of_a_state(call: Call, moveit: Any, client: Client) -> None:
    apply(client, ball(0.1, 0.0, 0.0, 0.6))
    answer = call("check_state_validity", validity(moveit))
    assert not answer.valid
    [first, *_] = answer.contacts
    kinds = {first.contact_body_1: first.body_type_1, first.contact_body_2: first.body_type_2}
    assert kinds.pop("ball") == first.WORLD_OBJECT
    assert list(kinds.values()) == [first.ROBOT_LINK]
    assert first.depth > 0.0
    assert first.header.frame_id == "panda_link0"
    at = np.array([first.position.x, first.position.y, first.position.z])
    assert np.linalg.norm(at - [0.0, 0.0, 0.6]) <= 0.1 + 1e-6  # on or in the ball
    normal = np.array([first.normal.x, first.normal.y, first.normal.z])
    assert np.linalg.norm(normal) == pytest.approx(1.0)
    # The hand's fingers are elsewhere: its group has nothing to do with it.
    assert call("check_state_validity", validity(moveit, group_name="hand")).valid


def test_self_collision(call: Call, moveit: Any, state: Any) -> None:
    folded = state(panda_joint2=1.7, panda_joint4=-3.0, panda_joint6=0.5)
    answer = call("check_state_validity", validity(moveit, folded))
    assert not answer.valid
    assert {c.body_type_1 for c in answer.contacts} | {c.body_type_2 for c in answer.contacts} == {0}


def test_a_state_outside_the_limits(call: Call, moveit: Any, state: Any, process: NodeProcess) -> None:
    # The answer has no field for that, so the log says it.
    outside = state(panda_joint1=3.1)
    answer = call("check_state_validity", validity(moveit, outside))
    assert not answer.valid
    assert not answer.contacts
    assert "joint 'panda_joint1' at 3.1" in process.log_text()
    assert call("check_state_validity", validity(moveit, outside, group_name="hand")).valid


def test_constraints_are_judged(call: Call, moveit: Any) -> None:
    message = moveit.msg
    q = PANDA.default_q.copy()
    q[:7] = list(READY.values())
    T = forward_kinematics(PANDA, q, links=(TIP,))[0]
    at = poses_from_matrices(T[None])[0]
    met = message.JointConstraint(
        joint_name="panda_joint2", position=-0.8, tolerance_above=0.1, tolerance_below=0.1
    )
    unmet = message.JointConstraint(joint_name="panda_joint1", position=-0.3, tolerance_above=0.1, weight=2.0)
    sphere = message.PositionConstraint(link_name=TIP, weight=1.0)
    sphere.header.frame_id = "panda_link0"
    from shape_msgs.msg import SolidPrimitive

    sphere.constraint_region.primitives = [SolidPrimitive(type=SolidPrimitive.SPHERE, dimensions=[0.01])]
    beside = Pose(position=Point(x=at.position.x, y=at.position.y + 0.009, z=at.position.z))
    sphere.constraint_region.primitive_poses = [beside]
    upright = message.OrientationConstraint(link_name=TIP, orientation=at.orientation, weight=1.0)
    upright.absolute_x_axis_tolerance = upright.absolute_y_axis_tolerance = 0.01
    upright.absolute_z_axis_tolerance = 0.01
    given = constraints(
        moveit,
        joint_constraints=[met, unmet],
        position_constraints=[sphere],
        orientation_constraints=[upright],
    )
    answer = call("check_state_validity", validity(moveit, constraints=given))
    assert not answer.valid
    assert [one.result for one in answer.constraint_result] == [True, False, True, True]
    assert [one.distance for one in answer.constraint_result] == pytest.approx(
        [0.0, 0.6, 0.009, 0.0], abs=1e-6
    )
    # A turn by 0.2 about the tip's z is allowed if that axis is.
    turn = np.eye(4)
    turn[:2, :2] = [[np.cos(0.2), -np.sin(0.2)], [np.sin(0.2), np.cos(0.2)]]
    upright.orientation = poses_from_matrices((T @ turn)[None])[0].orientation
    for tolerance, parameterization, result in (
        (0.19, 0, False),
        (0.21, 0, True),
        (0.19, 1, False),
        (0.21, 1, True),
    ):
        upright.absolute_z_axis_tolerance, upright.parameterization = tolerance, parameterization
        given = constraints(moveit, orientation_constraints=[upright])
        answer = call("check_state_validity", validity(moveit, constraints=given))
        assert answer.valid == result
        assert answer.constraint_result[0].distance == pytest.approx(0.2)
    sphere.constraint_region.primitives[0].dimensions = [0.008]
    given = constraints(moveit, position_constraints=[sphere])
    assert not call("check_state_validity", validity(moveit, constraints=given)).valid


BAD_VALIDITY: dict[str, tuple[Callable[[Any], dict[str, Any]], str]] = {
    "group": (lambda m: {"group_name": "leg"}, "INVALID_GROUP_NAME: unknown group 'leg'"),
    "attached": (lambda m: {"robot_state": attached(m)}, "INVALID_ROBOT_STATE: robot_state attaches cup "),
    "joint": (
        lambda m: {
            "constraints": constraints(m, joint_constraints=[m.msg.JointConstraint(joint_name="knee")])
        },
        "INVALID_JOINT_NAME: unknown joint 'knee'",
    ),
    "visibility": (
        lambda m: {"constraints": constraints(m, visibility_constraints=[m.msg.VisibilityConstraint()])},
        "INVALID_GOAL_CONSTRAINTS: constraints has visibility_constraints",
    ),
    "many": (
        lambda m: {
            "constraints": constraints(
                m, joint_constraints=100 * [m.msg.JointConstraint(joint_name="panda_joint1")]
            )
        },
        "INVALID_GOAL_CONSTRAINTS: 100 joint_constraints are given; allowed are up to ",
    ),
    "region": (
        lambda m: {
            "constraints": constraints(m, position_constraints=[m.msg.PositionConstraint(link_name=TIP)])
        },
        "INVALID_GOAL_CONSTRAINTS: position_constraints[0] has 0 primitives",
    ),
}


@pytest.mark.parametrize("name", BAD_VALIDITY)
def test_what_cannot_be_judged_is_not_valid_and_logged(
    name: str, call: Call, moveit: Any, client: Client, process: NodeProcess
) -> None:
    fields, sentence = BAD_VALIDITY[name]
    client.spin(1.1)  # at most one sentence per second is logged
    answer = call("check_state_validity", validity(moveit, **fields(moveit)))
    assert not answer.valid
    assert not answer.contacts
    assert client.spin_until(lambda: f"check_state_validity: {sentence}" in process.log_text(), 60.0)


# compute_cartesian_path


@pytest.fixture
def lines(moveit: Any, client: Client) -> Callable[..., Any]:
    """Makes requests of compute_cartesian_path."""
    until_prepared(client)

    def make(*waypoints: Pose, **fields: Any) -> Any:
        request = moveit.srv.GetCartesianPath.Request(
            waypoints=list(waypoints) or [pose(0.32, 0.0, 0.5)],
            group_name="panda_arm",
            max_step=0.01,
            avoid_collisions=True,
            max_velocity_scaling_factor=1.0,
            max_acceleration_scaling_factor=1.0,
        )
        request.header.frame_id = "panda_link0"
        request.start_state.is_diff = True
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    return make


def last_tip(trajectory: Any) -> np.ndarray:
    """Return where the tip is at the end."""
    q = PANDA.default_q.copy()
    q[[PANDA.variable_index[name] for name in trajectory.joint_names]] = trajectory.points[-1].positions
    return forward_kinematics(PANDA, q, links=(TIP,))[0]


def test_straight_lines(call: Call, lines: Any) -> None:
    answer = call("compute_cartesian_path", lines(pose(0.32, 0.0, 0.5), pose(0.32, 0.15, 0.5)))
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    assert answer.fraction == 1.0
    motion = answer.solution.joint_trajectory
    start = configuration(answer.start_state)[:7]
    np.testing.assert_array_equal(start, list(READY.values()))
    np.testing.assert_array_equal(motion.points[0].positions, start)
    np.testing.assert_allclose(last_tip(motion), T_of(pose(0.32, 0.15, 0.5)), atol=1e-3)
    slow = call("compute_cartesian_path", lines(max_velocity_scaling_factor=0.1)).solution.joint_trajectory
    quick = call("compute_cartesian_path", lines()).solution.joint_trajectory
    assert slow.points[-1].time_from_start.sec > quick.points[-1].time_from_start.sec


def test_a_path_that_ends_early_is_a_success_as_in_moveit(call: Call, lines: Any) -> None:
    answer = call("compute_cartesian_path", lines(pose(0.32, 0.0, 0.5), pose(1.5, 0.0, 0.5)))
    assert answer.error_code.val == answer.error_code.SUCCESS
    assert "the path ends early: NO_IK_SOLUTION: " in answer.error_code.message
    assert 0.0 < answer.fraction < 1.0
    assert answer.solution.joint_trajectory.points


def test_obstacles_of_lines(call: Call, lines: Any, client: Client) -> None:
    apply(client, ball(0.1, 0.32, 0.35, 0.5))
    there = pose(0.32, 0.35, 0.5)
    answer = call("compute_cartesian_path", lines(there))
    assert 0.0 < answer.fraction < 1.0
    assert "ball" in answer.error_code.message
    assert call("compute_cartesian_path", lines(there, avoid_collisions=False)).fraction == 1.0


BAD_LINES: dict[str, tuple[Callable[[Any], dict[str, Any]], str, str]] = {
    "no step": (lambda m: {"max_step": 0.0}, "FAILURE", "INVALID_REQUEST: max_step is 0 m"),
    "no waypoints": (lambda m: {"waypoints": []}, "INVALID_GOAL_CONSTRAINTS", "waypoints is empty"),
    "group": (lambda m: {"group_name": "leg"}, "INVALID_GROUP_NAME", "'leg'"),
    "link": (lambda m: {"link_name": "claw"}, "INVALID_LINK_NAME", "'claw'"),
    "attached objects": (lambda m: {"start_state": attached(m)}, "INVALID_ROBOT_STATE", " attaches cup "),
    "constraints": (
        lambda m: {"path_constraints": constraints(m, visibility_constraints=[m.msg.VisibilityConstraint()])},
        "INVALID_GOAL_CONSTRAINTS",
        "path_constraints has visibility_constraints",
    ),
    "many path constraints": (
        lambda m: {"path_constraints": too_many(m)},
        "INVALID_GOAL_CONSTRAINTS",
        "65 primitives of position_constraints and orientation_constraints are given",
    ),
    "speed of a link": (
        lambda m: {"max_cartesian_speed": 0.1},
        "FAILURE",
        "UNSUPPORTED_FEATURE: max_cartesian_speed is 0.1",
    ),
    "too fast": (lambda m: {"max_velocity_scaling_factor": 2.0}, "FAILURE", "velocity_scaling"),
    "a jump": (
        lambda m: {"waypoints": [pose(2.0, 0.0, 3.0)], "max_step": 0.5},
        "PLANNING_FAILED",
        "would have to jump by",
    ),
    "start in collision": (
        lambda m: {
            "start_state": joints(m, ["panda_joint2", "panda_joint4", "panda_joint6"], [1.7, -3.0, 0.5])
        },
        "START_STATE_IN_COLLISION",
        "",
    ),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_what_compute_cartesian_path_refuses(name: str, call: Call, lines: Any, moveit: Any) -> None:
    fields, code, words = BAD_LINES[name]
    answer = call("compute_cartesian_path", lines(**fields(moveit)))
    assert answer.error_code.val == getattr(answer.error_code, code), answer.error_code
    assert words in answer.error_code.message
    assert not answer.solution.joint_trajectory.points


def test_an_unknown_frame_of_waypoints(call: Call, lines: Any) -> None:
    request = lines()
    request.header.frame_id = "moon"
    code = call("compute_cartesian_path", request).error_code
    assert code.val == code.FRAME_TRANSFORM_FAILURE, code


# plan_kinematic_path

PILZ = "pilz_industrial_motion_planner"
KINDS = ("positions", "velocities", "accelerations")


@pytest.fixture
def motion(moveit: Any, client: Client) -> Callable[..., Any]:
    """Makes requests of plan_kinematic_path as MoveIt's clients do."""
    until_prepared(client)
    return partial(motion_request, moveit)


def planned(call: Call, request: Any) -> Any:
    """The motion of a request that succeeds."""
    answer = call("plan_kinematic_path", request).motion_plan_response
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    assert answer.group_name == "panda_arm"
    assert answer.planning_time > 0.0
    motion = answer.trajectory.joint_trajectory
    start = configuration(answer.trajectory_start)
    np.testing.assert_array_equal(
        motion.points[0].positions, start[[PANDA.variable_index[name] for name in motion.joint_names]]
    )
    return answer


def test_a_motion_to_joints(call: Call, motion: Any, moveit: Any, client: Client) -> None:
    shown: list[Any] = []
    kind = moveit.msg.DisplayTrajectory
    subscription = client.node.create_subscription(kind, "display_planned_path", shown.append, 10)
    client.wait_until_heard()
    answer = planned(call, motion())
    last = answer.trajectory.joint_trajectory
    np.testing.assert_allclose(last.points[-1].positions, list(AWAY.values()), atol=1e-6)
    assert client.spin_until(lambda: bool(shown), 60.0)
    assert (shown[0].model_id, shown[0].trajectory) == ("panda", [answer.trajectory])
    assert shown[0].trajectory_start == answer.trajectory_start
    client.node.destroy_subscription(subscription)


@pytest.mark.parametrize(
    ("position", "tolerance", "moved"),
    [
        (2.8973 + 3e-6, 0.0, "from 2.897303 to its limit 2.8973"),  # by parameter limit_tolerance
        (2.9, 0.01, "from 2.9 to its limit 2.8973"),  # by the constraint's own
        (2.9, 0.001, ""),
    ],
)
def test_a_goal_beyond_a_limit(
    call: Call, motion: Any, moveit: Any, position: float, tolerance: float, moved: str
) -> None:
    goal = joint_goal(moveit, panda_joint7=position)
    [constraint] = goal.joint_constraints
    constraint.tolerance_above = constraint.tolerance_below = tolerance
    if not moved:
        answer = call("plan_kinematic_path", motion(goal)).motion_plan_response
        assert answer.error_code.val == answer.error_code.INVALID_GOAL_CONSTRAINTS
        return
    answer = planned(call, motion(goal))
    assert f"goal_constraints[0] moves 'panda_joint7' {moved}" in answer.error_code.message
    assert answer.trajectory.joint_trajectory.points[-1].positions[6] == 2.8973


def test_a_motion_to_a_pose(call: Call, motion: Any, moveit: Any) -> None:
    answer = planned(call, motion(pose_goal(moveit, pose(0.4, 0.2, 0.5))))
    reached = last_tip(answer.trajectory.joint_trajectory)
    np.testing.assert_allclose(reached, T_of(pose(0.4, 0.2, 0.5)), atol=1e-3)


def test_free_axes_frames_and_offsets(call: Call, motion: Any, moveit: Any) -> None:
    at = pose(0.1, 0.2, 0.3)
    goal = pose_goal(moveit, at, frame="panda_link1", radius=0.002, tolerances=None, offset=0.1)
    reached = last_tip(planned(call, motion(goal)).trajectory.joint_trajectory)
    q = PANDA.default_q.copy()
    q[:7] = list(READY.values())
    T_root_link1 = forward_kinematics(PANDA, q, links=("panda_link1",))[0]
    wanted = T_root_link1 @ [0.1, 0.2, 0.3, 1.0]
    assert np.linalg.norm(reached @ [0.0, 0.0, 0.1, 1.0] - wanted) <= 0.002
    turned = pose_goal(moveit, pose(), radius=None, tolerances=(0.05, 0.05, 4.0))
    reached = last_tip(planned(call, motion(turned)).trajectory.joint_trajectory)
    assert reached[2, 2] < -0.99  # the tip points down, and any turn about it will do


def test_any_of_several_goals(call: Call, motion: Any, moveit: Any) -> None:
    answer = planned(call, motion(pose_goal(moveit, pose(5.0)), joint_goal(moveit)))
    last = answer.trajectory.joint_trajectory.points[-1].positions
    np.testing.assert_allclose(last, list(AWAY.values()), atol=1e-6)


def test_a_motion_from_another_state_around_an_obstacle(
    call: Call, motion: Any, moveit: Any, client: Client
) -> None:
    apply(client, ball(0.1, 0.32, 0.0, 0.55))
    start = joints(moveit, list(READY), [-0.7, *list(READY.values())[1:]])
    goal = joint_goal(moveit, **{**READY, "panda_joint1": 0.7})
    answer = planned(call, motion(goal, start_state=start))
    assert configuration(answer.trajectory_start)[0] == -0.7
    points = np.array([point.positions for point in answer.trajectory.joint_trajectory.points])
    assert (
        np.abs(points[:, 1:] - points[0, 1:]).max() > 0.05
    )  # turning the first joint alone would hit the ball


def test_another_planner_is_named_and_ours_may_be_chosen(call: Call, motion: Any) -> None:
    answer = planned(call, motion(pipeline_id="ompl", planner_id="RRTConnectkConfigDefault"))
    assert "'ompl RRTConnectkConfigDefault' is no planner of this node" in answer.error_code.message
    for ours in ({"planner_id": "cpu"}, {"pipeline_id": "kinopt", "planner_id": "PTP"}):
        assert "planner" not in planned(call, motion(**ours)).error_code.message


@pytest.mark.parametrize("speed", [0.0, -1.0])
def test_a_speed_of_zero_or_less_limits_nothing(call: Call, motion: Any, lines: Any, speed: float) -> None:
    """pymoveit2 asks for this in every request."""
    limited = {"cartesian_speed_limited_link": TIP, "max_cartesian_speed": speed}
    planned(call, motion(**limited))
    assert call("compute_cartesian_path", lines(**limited)).fraction == 1.0


def off_the_line(trajectory: Any, at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> float:
    """Return how far a point of the tip is at most from the line between its ends, m, also between the points."""
    motion = JointTrajectory(
        tuple(trajectory.joint_names),
        np.array([one.time_from_start.sec + 1e-9 * one.time_from_start.nanosec for one in trajectory.points]),
        *(np.array([getattr(one, kind) for one in trajectory.points]) for kind in KINDS),
    )
    q = np.tile(PANDA.default_q, (500, 1))
    index = [PANDA.variable_index[name] for name in trajectory.joint_names]
    q[:, index] = evaluate(motion, np.linspace(0.0, motion.duration, 500))[0]
    p = (forward_kinematics(PANDA, q, links=(TIP,))[:, 0] @ [*at, 1.0])[:, :3]
    along = (p[-1] - p[0]) / np.linalg.norm(p[-1] - p[0])
    return float(np.linalg.norm(p - p[0] - np.outer((p - p[0]) @ along, along), axis=1).max())


def test_a_line_is_a_line(call: Call, motion: Any, moveit: Any) -> None:
    goal = pose_goal(moveit, pose(0.45, 0.25, 0.4))
    usual = planned(call, motion(goal, pipeline_id=PILZ, planner_id="PTP")).trajectory.joint_trajectory
    assert off_the_line(usual) > 0.01
    answer = planned(call, motion(goal, pipeline_id=PILZ, planner_id="LIN"))
    assert off_the_line(answer.trajectory.joint_trajectory) <= 1.1e-3
    np.testing.assert_allclose(
        last_tip(answer.trajectory.joint_trajectory), T_of(pose(0.45, 0.25, 0.4)), atol=1e-3
    )


def test_a_line_to_joint_values(call: Call, motion: Any, moveit: Any) -> None:
    """The tip keeps its orientation, so that three of its points move on lines, and the joints are those asked for."""
    beside = planned(call, motion(pose_goal(moveit, beside_ready()), planner_id="LIN"))
    joints = beside.trajectory.joint_trajectory
    ends = dict(zip(joints.joint_names, joints.points[-1].positions, strict=True))
    answer = planned(call, motion(joint_goal(moveit, **ends), planner_id="LIN")).trajectory.joint_trajectory
    np.testing.assert_allclose(answer.points[-1].positions, list(ends.values()), atol=1e-6)
    for point in ((0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.1, 0.0)):
        assert off_the_line(answer, point) <= 1.1e-3


def beside_ready() -> Pose:
    """A pose 15 cm beside that of READY, turned alike."""
    q = PANDA.default_q.copy()
    q[:7] = list(READY.values())
    T = forward_kinematics(PANDA, q, links=(TIP,))[0]
    T[1, 3] += 0.15
    return poses_from_matrices(T[None])[0]


def in_region(moveit: Any, kind: int, *dimensions: float) -> Any:
    goal = pose_goal(moveit, pose())
    shape = goal.position_constraints[0].constraint_region.primitives[0]
    shape.type, shape.dimensions = kind, list(dimensions)
    return goal


def mixed(moveit: Any) -> Any:
    goal = pose_goal(moveit, pose())
    goal.joint_constraints = joint_goal(moveit).joint_constraints
    return goal


BAD_MOTIONS: dict[str, tuple[Callable[[Any], dict[str, Any]], str, str]] = {
    "no goal": (lambda m: {"goal_constraints": []}, "INVALID_GOAL_CONSTRAINTS", "goal_constraints is empty"),
    "empty goal": (
        lambda m: {"goal_constraints": [constraints(m)]},
        "INVALID_GOAL_CONSTRAINTS",
        "allowed is one",
    ),
    "mixed goal": (
        lambda m: {"goal_constraints": [mixed(m)]},
        "INVALID_GOAL_CONSTRAINTS",
        "7 joint_constraints",
    ),
    "other tolerances": (
        lambda m: {"goal_constraints": [pose_goal(m, pose()), pose_goal(m, pose(), radius=0.1)]},
        "INVALID_GOAL_CONSTRAINTS",
        "must be the same for all poses",
    ),
    "cone": (
        lambda m: {"goal_constraints": [in_region(m, 4, 0.1, 0.1)]},
        "INVALID_GOAL_CONSTRAINTS",
        "region of type 4",
    ),
    "visibility": (
        lambda m: {
            "goal_constraints": [constraints(m, visibility_constraints=[m.msg.VisibilityConstraint()])]
        },
        "INVALID_GOAL_CONSTRAINTS",
        "goal_constraints[0] has visibility_constraints",
    ),
    "path constraints": (
        lambda m: {"path_constraints": constraints(m, visibility_constraints=[m.msg.VisibilityConstraint()])},
        "INVALID_GOAL_CONSTRAINTS",
        "path_constraints has visibility_constraints",
    ),
    "many path constraints": (
        lambda m: {"path_constraints": too_many(m)},
        "INVALID_GOAL_CONSTRAINTS",
        "65 primitives of position_constraints and orientation_constraints are given",
    ),
    "trajectory constraints": (
        lambda m: {"trajectory_constraints": m.msg.TrajectoryConstraints(constraints=[joint_goal(m)])},
        "INVALID_GOAL_CONSTRAINTS",
        "trajectory_constraints",
    ),
    "reference": (
        lambda m: {"reference_trajectories": [m.msg.GenericTrajectory()]},
        "FAILURE",
        "UNSUPPORTED_FEATURE: reference_trajectories",
    ),
    "speed of a link": (
        lambda m: {"cartesian_speed_limited_link": TIP, "max_cartesian_speed": 0.1},
        "FAILURE",
        "UNSUPPORTED_FEATURE: max_cartesian_speed is 0.1",
    ),
    "speed that is no number": (
        lambda m: {"max_cartesian_speed": NAN},
        "FAILURE",
        "max_cartesian_speed is nan",
    ),
    "arc": (
        lambda m: {"pipeline_id": PILZ, "planner_id": "CIRC", "goal_constraints": [pose_goal(m, pose())]},
        "FAILURE",
        "UNSUPPORTED_FEATURE: planner_id is 'CIRC'",
    ),
    "arc of no pipeline": (
        lambda m: {"planner_id": "circ"},
        "FAILURE",
        "UNSUPPORTED_FEATURE: planner_id is 'circ'",
    ),
    "several lines": (
        lambda m: {"planner_id": "POLYLINE"},
        "FAILURE",
        "UNSUPPORTED_FEATURE: planner_id is 'POLYLINE'",
    ),
    "no motion of Pilz": (
        lambda m: {"pipeline_id": PILZ, "planner_id": "RRTConnect"},
        "FAILURE",
        "planner_id is 'RRTConnect' of the pipeline 'pilz_industrial_motion_planner'; allowed are LIN, PTP",
    ),
    "a pipeline that nobody knows": (
        lambda m: {"pipeline_id": "nope"},
        "FAILURE",
        "UNSUPPORTED_FEATURE: pipeline_id is 'nope'; allowed is 'kinopt'",
    ),
    "a planner that nobody knows": (
        lambda m: {"planner_id": "nope"},
        "FAILURE",
        "UNSUPPORTED_FEATURE: planner_id is 'nope'",
    ),
    "a workspace that is no number": (
        lambda m: {
            "workspace_parameters": m.msg.WorkspaceParameters(max_corner=Vector3(x=1.0, y=NAN, z=1.0))
        },
        "FAILURE",
        "INVALID_REQUEST: workspace_parameters.max_corner is [1.0, nan, 1.0]",
    ),
    "Pilz without a motion": (lambda m: {"pipeline_id": PILZ}, "FAILURE", "allowed are LIN, PTP"),
    "a line to several goals": (
        lambda m: {"planner_id": "LIN", "goal_constraints": [pose_goal(m, pose()), joint_goal(m)]},
        "INVALID_GOAL_CONSTRAINTS",
        "LIN has 2 goals; allowed is one",
    ),
    "a line to a position": (
        lambda m: {"planner_id": "LIN", "goal_constraints": [pose_goal(m, pose(), tolerances=None)]},
        "INVALID_GOAL_CONSTRAINTS",
        "LIN needs the position and the orientation",
    ),
    "a line that turns to joints": (
        lambda m: {"planner_id": "LIN", "goal_constraints": [joint_goal(m, panda_joint7=0.0)]},
        "FAILURE",
        "UNSUPPORTED_FEATURE: LIN to joint values that turn 'panda_link8' by 0.785 rad",
    ),
    "a line that ends early": (
        lambda m: {"planner_id": "LIN", "goal_constraints": [pose_goal(m, pose(5.0))]},
        "NO_IK_SOLUTION",
        "",
    ),
    "group": (lambda m: {"group_name": "leg"}, "INVALID_GROUP_NAME", "'leg'"),
    "link": (
        lambda m: {"goal_constraints": [pose_goal(m, pose(), link="claw")]},
        "INVALID_LINK_NAME",
        "'claw'",
    ),
    "frame": (
        lambda m: {"goal_constraints": [pose_goal(m, pose(), frame="moon")]},
        "FRAME_TRANSFORM_FAILURE",
        "'moon'",
    ),
    "unknown joint of a goal": (
        lambda m: {"goal_constraints": [joint_goal(m, knee=0.0)]},
        "INVALID_GOAL_CONSTRAINTS",
        "knee",
    ),
    "goal outside the limits": (
        lambda m: {"goal_constraints": [joint_goal(m, panda_joint1=9.0)]},
        "INVALID_GOAL_CONSTRAINTS",
        "",
    ),
    "goal in collision": (
        lambda m: {
            "goal_constraints": [joint_goal(m, panda_joint2=1.7, panda_joint4=-3.0, panda_joint6=0.5)]
        },
        "GOAL_IN_COLLISION",
        "",
    ),
    "start in collision": (
        lambda m: {
            "start_state": joints(m, ["panda_joint2", "panda_joint4", "panda_joint6"], [1.7, -3.0, 0.5])
        },
        "START_STATE_IN_COLLISION",
        "",
    ),
    "start outside the limits": (
        lambda m: {"start_state": joints(m, ["panda_joint1"], [3.1])},
        "START_STATE_INVALID",
        "",
    ),
    "attached objects": (lambda m: {"start_state": attached(m)}, "INVALID_ROBOT_STATE", " attaches cup "),
    "out of reach": (lambda m: {"goal_constraints": [pose_goal(m, pose(5.0))]}, "NO_IK_SOLUTION", ""),
    "no time": (lambda m: {"allowed_planning_time": 1e-9}, "TIMED_OUT", "timeout is 1e-09 s"),
    "too much time": (lambda m: {"allowed_planning_time": 61.0}, "FAILURE", "trajectory.max_timeout"),
}


@pytest.mark.parametrize("name", BAD_MOTIONS)
def test_what_plan_kinematic_path_refuses(name: str, call: Call, motion: Any, moveit: Any) -> None:
    fields, code, words = BAD_MOTIONS[name]
    answer = call("plan_kinematic_path", motion(**fields(moveit))).motion_plan_response
    assert answer.error_code.val == getattr(answer.error_code, code), answer.error_code
    assert words in answer.error_code.message
    assert not answer.trajectory.joint_trajectory.points


def test_a_workspace_for_a_base_that_drives_is_refused(moveit: Any) -> None:
    from kinopt_ros.ros.moveit.plan_kinematic_path import refuse_unsupported

    given = moveit.msg.MotionPlanRequest(goal_constraints=[joint_goal(moveit)])
    given.workspace_parameters.min_corner.x = -1.0
    refuse_unsupported(given, PANDA, PANDA.active_joints)  # which it does not concern
    robot = robot_from_urdf(BASE)
    with pytest.raises(UnsupportedFeatureError, match="workspace_parameters bounds base, free"):
        refuse_unsupported(given, robot, robot.active_joints)
    given.workspace_parameters.min_corner.x = 0.0
    refuse_unsupported(given, robot, ["base"])
    with pytest.raises(UnsupportedFeatureError, match="floating joint 'free'"):
        refuse_unsupported(given, robot, robot.active_joints)


def test_a_motion_that_ends_elsewhere_is_no_success(moveit: Any) -> None:
    from kinopt_ros.ros.moveit.plan_kinematic_path import PlanKinematicPath, _Asked

    answer = PlanTrajectory.Response()
    answer.status.code = int(Status.SUCCESS)
    answer.trajectory.joint_names = ["panda_joint1"]
    answer.trajectory.points = [JointTrajectoryPoint(positions=[0.5])]
    codes = moveit.msg.MoveItErrorCodes
    for wanted, code in ((0.5, codes.SUCCESS), (0.6, codes.GOAL_CONSTRAINTS_VIOLATED)):
        goals = [joint_goal(moveit, panda_joint1=wanted)]
        asked = _Asked(PANDA, PANDA.default_q, goals, "panda_arm", PANDA.default_q, "")
        response = moveit.srv.GetMotionPlan.Response()
        PlanKinematicPath(None, None, None).write(response, answer, asked)
        assert response.motion_plan_response.error_code.val == code
        found = response.motion_plan_response.trajectory.joint_trajectory.points
        assert bool(found) == (code == codes.SUCCESS)


# What is offered


def test_states_of_joints_with_several_variables(moveit: Any) -> None:
    from kinopt_ros.ros.moveit.robot_state import fill_robot_state, joint_state_of

    robot = robot_from_urdf(BASE)
    q = np.array([0.1, -0.2, 0.7, 1.0, 2.0, 3.0, 0.5, 0.5, -0.5, 0.5])
    message = moveit.msg.RobotState()
    fill_robot_state(message, robot, q)
    assert message.multi_dof_joint_state.joint_names == ["base", "free"]
    read = joint_state_of(message, robot)
    assert read.name == list(robot.variable_names)
    np.testing.assert_allclose(read.position, q, atol=1e-12)
    moved = message.multi_dof_joint_state.transforms[0]
    assert moved.translation == Vector3(x=pytest.approx(0.1), y=pytest.approx(-0.2), z=pytest.approx(0.0))


def test_they_are_not_offered_if_a_parameter_says_so(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    _, client = start_node("kinopt_alone", {**panda_parameters, "moveit_services": False})
    end = time.monotonic() + 60.0
    while "/kinopt_alone/solve_ik" not in _services_of(client, "kinopt_alone"):
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(1.0)  # others may be discovered after it
    assert not _services_of(client, "kinopt_alone") & {f"/{name}" for name in SERVICES}


def _services_of(client: Client, node: str) -> set[str]:
    """Return what is discovered so far."""
    try:
        return {name for name, _ in client.node.get_service_names_and_types_by_node(node, "/")}
    except NodeNameNonExistentError:
        return set()


def test_a_node_without_moveit_msgs_says_so(
    start_node: StartNode,
    panda_parameters: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "moveit_msgs.py").write_text("raise ImportError('hidden')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    process, _ = start_node("kinopt_plain", panda_parameters)
    assert "moveit_msgs is not installed: MoveIt's services are not offered" in process.log_text()


def test_who_offers_them_beside_another_says_so(
    start_node: StartNode, panda_parameters: dict[str, object], call: Call, client: Client
) -> None:
    process, _ = start_node("kinopt_second", panda_parameters)
    sentence = "another node, such as move_group, offers them, too"
    assert client.spin_until(lambda: sentence in process.log_text(), 60.0)
    assert "/compute_ik" in process.log_text()


def test_a_base_that_drives_is_planned_for(moveit: Any, tmp_path: Path) -> None:
    """By the names that MoveIt has for its variables; where it begins is a transform, as MoveIt's states have it."""
    namespaces = {"yard": {"robot_description": base_urdf("planar")}}
    with ForkedNode({}, tmp_path / "node.log", namespaces=namespaces) as process:
        client = Client("yard_client", "yard/kinopt")
        client.wait_until_ready(600.0, lambda: process.running)
        plan = caller(client, moveit, "/yard/")
        given = moveit.msg.MotionPlanRequest(
            group_name="tool",
            allowed_planning_time=20.0,
            max_velocity_scaling_factor=1.0,
            max_acceleration_scaling_factor=1.0,
        )
        given.start_state = several(moveit, "drive")
        given.start_state.multi_dof_joint_state.transforms[0].translation.x = 0.25
        goal = {"drive/x": 0.9, "drive/y": -0.4, "drive/theta": 2.5 + 4.0 * np.pi, "elbow": 0.4}
        given.goal_constraints = [joint_goal(moveit, **goal)]
        request = moveit.srv.GetMotionPlan.Request(motion_plan_request=given)
        answer = plan("plan_kinematic_path", request).motion_plan_response
        assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
        motion = answer.trajectory.joint_trajectory
        names = ["drive/x", "drive/y", "drive/theta", "shoulder", "elbow", "wrist"]
        assert list(motion.joint_names) == names
        np.testing.assert_allclose(motion.points[0].positions, [0.25, *np.zeros(5)], atol=1e-9)
        np.testing.assert_allclose(motion.points[-1].positions, [0.9, -0.4, 2.5, 0.0, 0.4, 0.0], atol=1e-6)
        client.close()
