"""Every value of MoveItErrorCodes that a client can get, by a request that gets it; and what display_contacts shows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, Pose, Quaternion
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from sensor_msgs.msg import JointState
from support.moveit_moves import PANDA, SLOWLY, SUCCEEDED, Moving, Slowly
from support.moveit_requests import TOUCHES, constraints, joint_goal, pose_goal
from support.ros_requests import READY, StartNode
from support.trajectory_goals import until_prepared
from visualization_msgs.msg import Marker, MarkerArray

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_ros.ros.moveit.codes import MOVEIT_CODES
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(1200)  # a compiler may be at work on a new and busy machine

PLANS = int(os.environ.get("KINOPT_PLANS", "8"))
"""Motions that are planned and then executed at once, one after the other."""


@pytest.fixture(scope="module")
def moving(
    moveit: Any, control_msgs: None, start_shared_node: StartNode, panda_parameters: dict[str, object]
) -> Iterator[Moving]:
    own = {**SLOWLY, "controllers": ["panda_arm_controller=panda_arm"], "state_timeout": 30.0}
    _, client = start_shared_node("kinopt", {**panda_parameters, **own})
    robot = Slowly(client.node, SimulatedRobot(PANDA, start=READY), [])
    client.spin(0.3)
    until_prepared(client)
    yield Moving(client, robot, moveit)
    robot.close()


def service(moving: Moving, name: str, kind: str) -> Callable[[Any], Any]:
    caller = moving.client.node.create_client(getattr(moving.types.srv, kind), name)
    assert moving.client.spin_until(caller.service_is_ready, 60.0)
    return lambda request: moving.call(caller, request)


def plan(moving: Moving, *goals: Any, **fields: Any) -> Any:
    request = moving.request(*goals, **fields)
    asked = moving.types.srv.GetMotionPlan.Request(motion_plan_request=request)
    return moving.call(moving.plan, asked).motion_plan_response.error_code


def arm(moving: Moving, **positions: float) -> Any:
    return joint_goal(moving.types, **{**READY, **positions})


def starting(moving: Moving, **positions: float) -> Any:
    state = moving.types.msg.RobotState(is_diff=True)
    state.joint_state = JointState(name=list(positions), position=list(positions.values()))
    return state


def near(moving: Moving, joint: str, position: float, by: float) -> Any:
    """A joint stays near a position."""
    one = moving.types.msg.JointConstraint(joint_name=joint, position=position, weight=1.0)
    one.tolerance_above = one.tolerance_below = by
    return constraints(moving.types, joint_constraints=[one])


def ik(moving: Moving, **fields: Any) -> Any:
    request = moving.types.srv.GetPositionIK.Request()
    request.ik_request.group_name = "panda_arm"
    request.ik_request.robot_state.is_diff = True
    target = request.ik_request.pose_stamped
    target.header.frame_id = "panda_link0"
    target.pose = Pose(position=Point(x=0.4, y=0.1, z=0.5), orientation=Quaternion(x=1.0, w=0.0))
    for name, value in fields.items():
        setattr(request.ik_request, name, value)
    return service(moving, "compute_ik", "GetPositionIK")(request).error_code


def execute(moving: Moving, trajectory: Any) -> Any:
    goal = moving.types.action.ExecuteTrajectory.Goal(trajectory=trajectory)
    return moving.send(moving.execute, goal).result()[1].error_code


def too_fast(moving: Moving) -> Any:
    trajectory = moving.trajectory(arm(moving, panda_joint1=0.5))
    for k, point in enumerate(trajectory.joint_trajectory.points):
        point.time_from_start = Duration(nanosec=1_000_000 * k)
    return execute(moving, trajectory)


def a_jump(moving: Moving) -> Any:
    request = moving.types.srv.GetCartesianPath.Request(group_name="panda_arm", max_step=0.5)
    request.start_state.is_diff = True
    request.header.frame_id = "panda_link0"
    request.waypoints = [Pose(position=Point(x=2.0, z=3.0), orientation=Quaternion(x=1.0, w=0.0))]
    return moving.call(moving.cartesian, request).error_code


def a_wall_since(moving: Moving) -> Any:
    trajectory = moving.trajectory(arm(moving, panda_joint1=1.5))
    wall = CollisionObject(id="wall", shapes=[Shape(type="box", dimensions=[0.6, 0.02, 0.6])])
    wall.pose = Pose(position=Point(x=0.4, y=0.3, z=0.5))
    moving.apply(SceneOperation(operation="add", object=wall))
    try:
        return execute(moving, trajectory)
    finally:
        moving.apply(SceneOperation(operation="clear"))


def cancelled(moving: Moving) -> Any:
    sent = moving.send(moving.move, moving.goal(arm(moving, panda_joint1=1.0), scaling=0.05))
    moving.until_it_moves(sent)
    return sent.cancel()[1].error_code


def timeout_of_states(moving: Moving, seconds: float) -> None:
    setter = moving.client.node.create_client(SetParameters, "kinopt/set_parameters")
    assert moving.client.spin_until(setter.service_is_ready, 60.0)
    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=seconds)
    request = SetParameters.Request(parameters=[Parameter(name="state_timeout", value=value)])
    assert moving.call(setter, request).results[0].successful


def stale(moving: Moving) -> Any:
    moving.robot.tell(states=False)
    timeout_of_states(moving, 0.2)
    try:
        moving.client.spin(0.4)
        return ik(moving)
    finally:
        timeout_of_states(moving, 30.0)
        moving.robot.tell(states=True)


def nobody_moves(moving: Moving) -> Any:
    moving.robot.without_controllers()  # to be asked last
    return moving.send(moving.move, moving.goal(arm(moving, panda_joint1=0.3))).result()[1].error_code


# What collides is shown


class Shown:
    """What display_contacts says."""

    def __init__(self, moving: Moving) -> None:
        self._moving = moving
        self.messages: list[MarkerArray] = []
        self._heard = moving.client.node.create_subscription(
            MarkerArray, "display_contacts", self.messages.append, 10
        )
        assert moving.client.spin_until(lambda: self._heard.get_publisher_count() > 0, 60.0)
        moving.client.spin(0.5)

    def next(self) -> list[Marker]:
        assert self._moving.client.spin_until(lambda: bool(self.messages), 60.0)
        markers = self.messages.pop(0).markers
        assert markers[0].action == Marker.DELETEALL
        return list(markers[1:])


@pytest.fixture(scope="module")
def shown(moving: Moving) -> Shown:
    return Shown(moving)


def test_contacts_of_a_state_are_shown_until_another_is_free(moving: Moving, shown: Shown) -> None:
    check = service(moving, "check_state_validity", "GetStateValidity")
    answer = check(moving.types.srv.GetStateValidity.Request(robot_state=starting(moving, **TOUCHES)))
    drawn = shown.next()
    assert not answer.valid
    assert len(drawn) == len(answer.contacts) > 0
    for marker, contact in zip(drawn, answer.contacts, strict=True):
        assert marker.ns == f"{contact.contact_body_1} and {contact.contact_body_2}"
        assert marker.pose.position == contact.position
        assert marker.header.frame_id == PANDA.root_link
    assert len({(marker.ns, marker.id) for marker in drawn}) == len(drawn)
    assert check(moving.types.srv.GetStateValidity.Request(robot_state=starting(moving))).valid
    assert shown.next() == []


@pytest.mark.parametrize("which", ["start", "goal"])
def test_contacts_of_starts_and_goals_are_shown(moving: Moving, shown: Shown, which: str) -> None:
    if which == "start":
        plan(moving, arm(moving), start_state=starting(moving, **TOUCHES))
    else:
        plan(moving, arm(moving, **TOUCHES))
    drawn = shown.next()
    assert drawn
    assert all(np.isfinite([m.pose.position.x, m.pose.position.y, m.pose.position.z]).all() for m in drawn)


# Motions one after the other


def test_what_is_planned_can_be_executed_at_once(moving: Moving) -> None:
    for number in range(PLANS):
        trajectory = moving.trajectory(arm(moving, panda_joint1=0.06 * (number % 3) - 0.05), scaling=1.0)
        goal = moving.types.action.ExecuteTrajectory.Goal(trajectory=trajectory)
        status, result = moving.send(moving.execute, goal).result()
        assert status == SUCCEEDED, (number, result.error_code)


# Codes


GETS: dict[str, Callable[[Moving], Any]] = {
    "SUCCESS": lambda m: plan(m, arm(m, panda_joint1=0.2)),
    "FAILURE": lambda m: plan(m, arm(m), cartesian_speed_limited_link="panda_hand", max_cartesian_speed=0.1),
    "PLANNING_FAILED": a_jump,
    "INVALID_MOTION_PLAN": too_fast,
    "MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE": a_wall_since,
    "TIMED_OUT": lambda m: plan(m, arm(m, panda_joint1=0.2), allowed_planning_time=1e-9),
    "PREEMPTED": cancelled,
    "START_STATE_IN_COLLISION": lambda m: plan(m, arm(m), start_state=starting(m, **TOUCHES)),
    "START_STATE_VIOLATES_PATH_CONSTRAINTS": lambda m: plan(
        m, arm(m), path_constraints=near(m, "panda_joint7", 2.0, 0.1)
    ),
    "START_STATE_INVALID": lambda m: plan(m, arm(m), start_state=starting(m, panda_joint1=3.1)),
    "GOAL_IN_COLLISION": lambda m: plan(m, arm(m, **TOUCHES)),
    "GOAL_VIOLATES_PATH_CONSTRAINTS": lambda m: plan(
        m, arm(m, panda_joint7=2.0), path_constraints=near(m, "panda_joint7", READY["panda_joint7"], 0.3)
    ),
    "INVALID_GROUP_NAME": lambda m: ik(m, group_name="leg"),
    "INVALID_GOAL_CONSTRAINTS": lambda m: plan(m, arm(m, panda_joint1=float("nan"))),
    "INVALID_ROBOT_STATE": lambda m: plan(m, arm(m), start_state=starting(m, elbow=0.0)),
    "INVALID_LINK_NAME": lambda m: ik(m, ik_link_name="claw"),
    "FRAME_TRANSFORM_FAILURE": lambda m: plan(m, pose_goal(m.types, Pose(), frame="moon")),
    "NO_IK_SOLUTION": lambda m: plan(m, pose_goal(m.types, Pose(position=Point(x=5.0)))),
    "ROBOT_STATE_STALE": stale,
    "CONTROL_FAILED": nobody_moves,
}
"""What gets each code, in the order in which it is asked for."""

ELSEWHERE = {
    "GOAL_CONSTRAINTS_VIOLATED": "a motion that ends where no goal is met by MoveIt's measure; no request leads there, "
    "and test_moveit_services.py gives the answer such a motion",
}
NEVER = {
    "UNDEFINED": "every answer says what became of the request",
    "UNABLE_TO_AQUIRE_SENSOR_DATA": "no sensors are read",
    "INVALID_OBJECT_NAME": "MoveIt's services of the scene answer whether it was changed; the log says why not",
    "COLLISION_CHECKING_UNAVAILABLE": "a request waits for what is prepared, and is else a FAILURE: NOT_READY",
    "SENSOR_INFO_STALE": "no sensors are read",
    "COMMUNICATION_FAILURE": "a controller that does not answer is CONTROL_FAILED",
    "GOAL_STATE_INVALID": "a goal outside of the limits is INVALID_GOAL_CONSTRAINTS, which names the joint",
    "UNRECOGNIZED_GOAL_TYPE": "constraints that are not supported are INVALID_GOAL_CONSTRAINTS, by name",
    "CRASH": "a defect is a FAILURE that says so",
    "ABORT": "the state of an action says so, and the code why",
}


@pytest.mark.parametrize("name", GETS)
def test_a_request_gets(moving: Moving, name: str) -> None:
    code = GETS[name](moving)
    assert code.val == getattr(code, name), code
    assert name == "SUCCESS" or code.message


def test_every_code_is_accounted_for(moveit: Any) -> None:
    kind = moveit.msg.MoveItErrorCodes
    values = {
        name: getattr(kind, name)
        for name in dir(kind)
        if name.isupper() and isinstance(getattr(kind, name), int)
    }
    assert {*values} == {*GETS, *ELSEWHERE, *NEVER}
    assert len({*GETS} & {*NEVER}) == 0
    ours = set(MOVEIT_CODES.values()) | {values["GOAL_CONSTRAINTS_VIOLATED"]}
    assert ours == {values[name] for name in (*GETS, *ELSEWHERE, "INVALID_OBJECT_NAME")}
