"""MoveIt's actions under its names: a client of moveit_msgs alone moves a simulated Panda, stops it, and is refused."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, Pose, TwistStamped
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from support.moveit_moves import (
    ABORTED,
    CANCELED,
    PANDA,
    PATIENCE,
    SLOWLY,
    STOOD,
    SUCCEEDED,
    Moving,
    Slowly,
    kept_limits,
)
from support.moveit_requests import TOUCHES, joint_goal, pose_goal
from support.ros_requests import READY, StartNode, pose, target, until_seen
from support.trajectory_goals import Goals, joints, until_prepared
from support.wall import box, free_of_the_wall

from kinopt_msgs.msg import CollisionObject, SceneOperation, ServoStatus, Shape
from kinopt_ros.ros.messages.conversions import matrices_from_poses, trajectory_from_message
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(1200)  # a compiler may be at work on a new and busy machine

CONTROLLERS = ["panda_arm_controller=panda_arm", "hand_controller=hand"]


@pytest.fixture(scope="module")
def moving(
    moveit: Any, control_msgs: None, start_shared_node: StartNode, panda_parameters: dict[str, object]
) -> Iterator[Moving]:
    parameters = {**panda_parameters, **SLOWLY, "controllers": CONTROLLERS}
    _, client = start_shared_node("kinopt", parameters)
    robot = Slowly(client.node, SimulatedRobot(PANDA, start=READY), [])
    until_seen(client)
    until_prepared(client)
    yield Moving(client, robot, moveit)
    robot.close()


@pytest.fixture(autouse=True)
def standing(moving: Moving) -> None:
    """A robot that stands at READY in a free scene."""
    moving.apply(SceneOperation(operation="clear"))
    if np.abs(moving.at()[:7] - list(READY.values())).max() > 1e-6:
        status, result = moving.send(
            moving.move, moving.goal(joint_goal(moving.types, **READY), scaling=1.0)
        ).result()
        assert status == SUCCEEDED, result.error_code.message
    moving.robot.path.clear()


def test_a_joint_goal(moving: Moving) -> None:
    goal = {**READY, "panda_joint1": 0.4}
    sent = moving.send(moving.move, moving.goal(joint_goal(moving.types, **goal)))
    status, result = sent.result()
    assert status == SUCCEEDED, result.error_code.message
    assert result.error_code.val == result.error_code.SUCCESS
    np.testing.assert_allclose(moving.at()[:7], list(goal.values()), atol=1e-4)
    assert result.planned_trajectory.joint_trajectory.points
    assert sent.told() == ["PLANNING", "MONITOR", "IDLE"]
    kept_limits(moving)


def test_a_pose_goal(moving: Moving) -> None:
    status, result = moving.send(moving.move, moving.goal(pose_goal(moving.types, pose()))).result()
    assert status == SUCCEEDED, result.error_code.message
    np.testing.assert_allclose(moving.tip(), matrices_from_poses([pose()])[0], atol=2e-3)
    kept_limits(moving)


def test_planning_alone_moves_nothing(moving: Moving) -> None:
    before = moving.at()
    sent = moving.send(moving.move, moving.goal(joint_goal(moving.types, panda_joint1=0.4), plan_only=True))
    status, result = sent.result()
    assert status == SUCCEEDED, result.error_code.message
    assert result.planned_trajectory.joint_trajectory.points
    assert sent.told() == ["PLANNING", "IDLE"]
    np.testing.assert_allclose(moving.at(), before, rtol=0.0, atol=STOOD)


def test_a_cartesian_path(moving: Moving) -> None:
    T = moving.tip()
    down = Pose(position=Point(x=T[0, 3], y=T[1, 3] + 0.1, z=T[2, 3] - 0.1))
    down.orientation.x, down.orientation.w = 1.0, 0.0
    request = moving.types.srv.GetCartesianPath.Request(
        group_name="panda_arm", waypoints=[down], max_step=0.01, avoid_collisions=True
    )
    request.start_state.is_diff = True
    request.max_velocity_scaling_factor = request.max_acceleration_scaling_factor = 0.5
    answer = moving.call(moving.cartesian, request)
    assert answer.fraction == 1.0, answer.error_code.message
    goal = moving.types.action.ExecuteTrajectory.Goal(trajectory=answer.solution)
    sent = moving.send(moving.execute, goal)
    status, result = sent.result()
    assert status == SUCCEEDED, result.error_code.message
    np.testing.assert_allclose(moving.tip()[:3, 3], matrices_from_poses([down])[0][:3, 3], atol=1e-3)
    assert sent.told() == ["MONITOR", "IDLE"]
    kept_limits(moving)


@pytest.mark.parametrize("scaling", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("planner", ["", "PTP", "LIN", "cartesian"])
def test_every_answer_keeps_the_scaled_limits(moving: Moving, planner: str, scaling: float) -> None:
    """MoveIt's exceed them: moveit2 issues 3778 (accelerations of 2.75 times the limit) and 3779 (scaling ignored)."""
    T = moving.tip()
    beside = Pose(position=Point(x=T[0, 3] - 0.05, y=T[1, 3] + 0.2, z=T[2, 3] - 0.1))
    beside.orientation.x, beside.orientation.w = 1.0, 0.0
    if planner == "cartesian":
        request = moving.types.srv.GetCartesianPath.Request(
            group_name="panda_arm", waypoints=[beside], max_step=0.01, avoid_collisions=True
        )
        request.start_state.is_diff = True
        request.max_velocity_scaling_factor = request.max_acceleration_scaling_factor = scaling
        message = moving.call(moving.cartesian, request).solution.joint_trajectory
    else:
        goal = pose_goal(moving.types, beside)
        message = moving.trajectory(goal, scaling=scaling, planner_id=planner).joint_trajectory
    motion = trajectory_from_message(message)
    order = [PANDA.variable_index[name] for name in motion.joint_names]
    _, velocity, acceleration = evaluate(motion, np.linspace(0.0, motion.time[-1], 5000))
    limits = PANDA.limits
    for values, most in ((velocity, limits.velocity), (acceleration, limits.acceleration)):
        share = (np.abs(values) / most[order]).max()
        assert share <= scaling * (1.0 + 1e-6)


def stands(moving: Moving) -> None:
    """The robot stands, before the goal."""
    before = moving.at()
    moving.client.spin(0.3)
    np.testing.assert_allclose(moving.at(), before, rtol=0.0, atol=STOOD)
    assert before[0] < 1.4


@pytest.mark.parametrize("how", ["cancel", "event"])
@pytest.mark.parametrize("name", ["move", "execute"])
def test_a_stop_in_the_middle(moving: Moving, name: str, how: str) -> None:
    goal = joint_goal(moving.types, **{**READY, "panda_joint1": 1.5})
    if name == "move":
        sent = moving.send(moving.move, moving.goal(goal, scaling=0.1))
    else:
        trajectory = moving.trajectory(goal, scaling=0.1)
        sent = moving.send(moving.execute, moving.types.action.ExecuteTrajectory.Goal(trajectory=trajectory))
    moving.until_it_moves(sent)
    if how == "cancel":
        status, result = sent.cancel()
        assert status == CANCELED
    else:
        moving.events.publish(String(data="stop"))
        status, result = sent.result()
        assert status == ABORTED
    assert result.error_code.val == result.error_code.PREEMPTED, result.error_code
    stands(moving)
    kept_limits(moving, braked=True)


def test_a_trajectory_that_begins_elsewhere_is_refused(moving: Moving) -> None:
    start = moving.types.msg.RobotState(is_diff=True)
    start.joint_state.name, start.joint_state.position = ["panda_joint1"], [0.2]
    goal = joint_goal(moving.types, **{**READY, "panda_joint1": 0.5})
    trajectory = moving.trajectory(goal, start_state=start)
    before = moving.at()
    sent = moving.send(moving.execute, moving.types.action.ExecuteTrajectory.Goal(trajectory=trajectory))
    status, result = sent.result()
    assert status == ABORTED
    assert result.error_code.val == result.error_code.START_STATE_INVALID, result.error_code
    assert "panda_joint1" in result.error_code.message
    asked = moving.goal(goal)
    asked.request.start_state = start
    status, result = moving.send(moving.move, asked).result()
    assert (status, result.error_code.val) == (ABORTED, result.error_code.START_STATE_INVALID)
    np.testing.assert_allclose(moving.at(), before, rtol=0.0, atol=STOOD)


def faster(trajectory: Any) -> None:
    for point in trajectory.joint_trajectory.points:
        seconds = point.time_from_start.sec + point.time_from_start.nanosec * 1e-9
        sec, nanosec = divmod(round(seconds * 1e9 / 20.0), 10**9)
        point.time_from_start = Duration(sec=sec, nanosec=nanosec)


def without_accelerations(trajectory: Any) -> None:
    for point in trajectory.joint_trajectory.points:
        point.accelerations = []


def not_finite(trajectory: Any) -> None:
    trajectory.joint_trajectory.points[1].positions[0] = float("nan")


def backwards(trajectory: Any) -> None:
    trajectory.joint_trajectory.points[1].time_from_start = Duration(sec=1000)


def of_nobody(trajectory: Any) -> None:
    trajectory.joint_trajectory.joint_names[0] = "elbow"


def pushing(trajectory: Any) -> None:
    trajectory.joint_trajectory.points[1].effort = [0.0] * 6 + [0.1]


def empty(trajectory: Any) -> None:
    trajectory.joint_trajectory.points = []


@pytest.mark.parametrize(
    ("spoil", "code", "said"),
    [
        (faster, "INVALID_MOTION_PLAN", "limit"),
        (without_accelerations, "INVALID_MOTION_PLAN", "accelerations"),
        (not_finite, "INVALID_MOTION_PLAN", "finite"),
        (backwards, "INVALID_MOTION_PLAN", "time of point"),
        (of_nobody, "INVALID_ROBOT_STATE", "'elbow'"),
        (empty, "INVALID_MOTION_PLAN", "no points"),
        (pushing, "INVALID_MOTION_PLAN", "point 1 has efforts other than 0"),
    ],
)
def test_trajectories_that_may_not_be_done(moving: Moving, spoil: Any, code: str, said: str) -> None:
    trajectory = moving.trajectory(joint_goal(moving.types, **{**READY, "panda_joint1": 0.5}))
    spoil(trajectory)
    before = moving.at()
    goal = moving.types.action.ExecuteTrajectory.Goal(trajectory=trajectory)
    status, result = moving.send(moving.execute, goal).result()
    assert status == ABORTED
    assert result.error_code.val == getattr(result.error_code, code), result.error_code
    assert said in result.error_code.message
    np.testing.assert_allclose(moving.at(), before, rtol=0.0, atol=STOOD)


def test_a_trajectory_into_an_obstacle_is_refused(moving: Moving) -> None:
    trajectory = moving.trajectory(joint_goal(moving.types, **{**READY, "panda_joint1": 1.5}))
    moving.apply(box(0.3))
    goal = moving.types.action.ExecuteTrajectory.Goal(trajectory=trajectory)
    status, result = moving.send(moving.execute, goal).result()
    assert (status, result.error_code.val) == (
        ABORTED,
        result.error_code.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE,
    )
    assert "wall" in result.error_code.message


@pytest.mark.parametrize("number", range(3))
def test_an_obstacle_that_comes_in_the_way_stops_the_robot_before_it(moving: Moving, number: int) -> None:
    goal = joint_goal(moving.types, **{**READY, "panda_joint1": 1.5})
    sent = moving.send(moving.move, moving.goal(goal, scaling=0.1))
    moving.until_it_moves(sent, 0.03 * (1 + number))
    moving.apply(box(0.35))
    status, result = sent.result()
    assert status == ABORTED
    code = result.error_code
    assert code.val == code.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE, code
    assert "wall" in code.message
    stands(moving)
    kept_limits(moving, braked=True)
    free_of_the_wall(position for _, position, _ in moving.robot.path)
    moving.apply(SceneOperation(operation="clear"))


def test_what_comes_in_the_way_is_planned_around_if_that_is_wanted(moving: Moving) -> None:
    goal = joint_goal(moving.types, **{**READY, "panda_joint1": 1.5})
    sent = moving.send(
        moving.move, moving.goal(goal, scaling=0.1, replan=True, replan_attempts=3, replan_delay=0.1)
    )
    moving.until_it_moves(sent)
    given = CollisionObject(id="ball", shapes=[Shape(type="sphere", dimensions=[0.04])])
    given.pose = Pose(position=Point(x=0.24, y=0.2, z=0.55))
    moving.apply(SceneOperation(operation="add", object=given))
    status, result = sent.result()
    assert status == SUCCEEDED, result.error_code.message
    assert sent.feedback.count("PLANNING") == 2
    np.testing.assert_allclose(moving.at()[0], 1.5, atol=1e-4)


def test_a_scene_of_a_goal_of_its_own_is_refused(moving: Moving) -> None:
    goal = moving.goal(joint_goal(moving.types, **READY))
    goal.planning_options.planning_scene_diff.world.collision_objects = [
        moving.types.msg.CollisionObject(id="a")
    ]
    status, result = moving.send(moving.move, goal).result()
    assert status == ABORTED
    assert "planning_scene_diff" in result.error_code.message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"look_around": True}, "look_around"),
        ({"replan_delay": -1.0}, "replan_delay"),
        ({"replan_attempts": -1}, "replan_attempts"),
    ],
)
def test_options_that_are_refused(moving: Moving, options: dict[str, Any], said: str) -> None:
    goal = moving.goal(joint_goal(moving.types, **READY), **options)
    status, result = moving.send(moving.move, goal).result()
    assert status == ABORTED
    assert said in result.error_code.message


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"pipeline_id": "nope"}, "pipeline_id is 'nope'"),
        ({"planner_id": "nope"}, "planner_id is 'nope'"),
        ({"robot_model_name": "ur5"}, "the planning scene is for robot 'ur5'"),
        ({"workspace_parameters": float("nan")}, "workspace_parameters.min_corner is [0.0, 0.0, nan]"),
    ],
)
def test_a_planner_a_workspace_and_another_robot_that_cannot_be_honoured_are_refused(
    moving: Moving, fields: dict[str, Any], said: str
) -> None:
    """They were taken in silence."""
    goal = moving.goal(joint_goal(moving.types, **READY))
    for name, value in fields.items():
        if name == "robot_model_name":
            goal.planning_options.planning_scene_diff.robot_model_name = value
        elif name == "workspace_parameters":
            goal.request.workspace_parameters.min_corner.z = value
        else:
            setattr(goal.request, name, value)
    for plan_only in (True, False):
        goal.planning_options.plan_only = plan_only
        status, result = moving.send(moving.move, goal).result()
        assert (status, result.error_code.val) == (ABORTED, result.error_code.FAILURE)
        assert said in result.error_code.message


def test_what_was_done_otherwise_is_said_when_the_motion_is_over(moving: Moving) -> None:
    goal = moving.goal(joint_goal(moving.types, **{**READY, "panda_joint1": 0.1}))
    goal.request.pipeline_id, goal.request.planner_id = "ompl", "RRTConnectkConfigDefault"
    goal.planning_options.planning_scene_diff.robot_model_name = "panda"
    status, result = moving.send(moving.move, goal).result()
    assert status == SUCCEEDED, result.error_code.message
    assert "'ompl RRTConnectkConfigDefault' is no planner of this node" in result.error_code.message


def test_a_goal_that_cannot_be_planned(moving: Moving) -> None:
    status, result = moving.send(moving.move, moving.goal(pose_goal(moving.types, pose(3.0)))).result()
    assert status == ABORTED
    assert result.error_code.val not in (result.error_code.SUCCESS, result.error_code.UNDEFINED)
    goal = moving.goal(joint_goal(moving.types, **READY))
    goal.request.group_name = "leg"
    status, result = moving.send(moving.move, goal).result()
    assert (status, result.error_code.val) == (ABORTED, result.error_code.INVALID_GROUP_NAME)


def test_the_next_goal_ends_the_one_before(moving: Moving) -> None:
    first = moving.send(
        moving.move, moving.goal(joint_goal(moving.types, **{**READY, "panda_joint1": 1.5}), scaling=0.1)
    )
    moving.until_it_moves(first)
    goal = {**READY, "panda_joint1": -0.2}
    second = moving.send(moving.move, moving.goal(joint_goal(moving.types, **goal)))
    status, result = first.result()
    assert (status, result.error_code.val) == (ABORTED, result.error_code.PREEMPTED)
    status, result = second.result()
    assert status == SUCCEEDED, result.error_code.message
    np.testing.assert_allclose(moving.at()[:7], list(goal.values()), atol=1e-4)
    kept_limits(moving, braked=True)


def refused_goals(moving: Moving, trajectory: Any) -> Iterator[tuple[str, Any]]:
    """Goals for the arm that nobody can do, whatever the robot does, and their results."""
    types, client = moving.types, moving.client
    for spoil in (faster, without_accelerations, not_finite, backwards):
        spoiled = deepcopy(trajectory)
        spoil(spoiled)
        goal = types.action.ExecuteTrajectory.Goal(trajectory=spoiled)
        yield spoil.__name__, moving.send(moving.execute, goal).result()[1].error_code.val
    elsewhere = types.action.ExecuteTrajectory.Goal(trajectory=trajectory)
    yield "begins elsewhere", moving.send(moving.execute, elsewhere).result()[1].error_code.val
    bad = joint_goal(types, **{**READY, "panda_joint1": float("nan")})
    code = moving.send(moving.move, moving.goal(bad)).result()[1].error_code
    yield "a goal that is no number", code.val
    code = (
        moving.send(moving.move, moving.goal(joint_goal(types, **READY), scaling=2.0)).result()[1].error_code
    )
    yield "a scaling above 1", code.val
    for what, at in (("a start elsewhere", {"panda_joint1": -1.0}), ("one that hits itself", TOUCHES)):
        asked = moving.goal(joint_goal(types, **READY))
        start = asked.request.start_state.joint_state
        start.name, start.position = list(at), list(at.values())
        yield what, moving.send(moving.move, asked).result()[1].error_code.val
    action = ActionClient(client.node, types.action.MoveGroupSequence, "sequence_move_group")
    assert client.spin_until(action.server_is_ready, PATIENCE)
    items = [types.msg.MotionSequenceItem(req=moving.request(joint_goal(types, **READY))) for _ in range(2)]
    items[1].req.goal_constraints = [bad]
    goal = types.action.MoveGroupSequence.Goal(request=types.msg.MotionSequenceRequest(items=items))
    code = moving.send(action, goal).result()[1].response.error_code
    yield "a sequence with such a goal", code.val
    action.destroy()
    goals = Goals(client)
    sent = goals.send(joint_goals=[joints(panda_joint1=float("nan"))], publish=True)
    yield "optimize_trajectory", sent.result()[1].status.code
    sent = goals.send(joint_goals=[joints(panda_joint1=0.1)], publish=True, solver="nope")
    yield "a solver that nobody knows", sent.result()[1].status.code
    goals.close()
    twists = client.node.create_publisher(TwistStamped, "kinopt/servo/twist", 1)
    statuses: list[ServoStatus] = []
    heard = client.node.create_subscription(ServoStatus, "kinopt/servo/status", statuses.append, 10)
    assert client.spin_until(
        lambda: twists.publish(TwistStamped()) or any(s.status.code != Status.SUCCESS for s in statuses),
        PATIENCE,
    )
    yield "servo", statuses[-1].status.code
    client.node.destroy_publisher(twists)
    client.node.destroy_subscription(heard)
    for name, wrong in (("nowhere", target(pose(float("nan")))), ("on the moon", target(pose(0.4), "moon"))):
        yield name, client.move_to(wrong)[0].status.code


def test_nobody_ends_a_motion_by_a_goal_that_can_never_begin(moving: Moving) -> None:
    """It was taken from the joints first, and looked at then."""
    trajectory = moving.trajectory(joint_goal(moving.types, **{**READY, "panda_joint1": 0.5}))
    far = joint_goal(moving.types, **{**READY, "panda_joint1": 1.5})
    first = moving.send(moving.move, moving.goal(far, scaling=0.03))
    moving.until_it_moves(first)
    for name, code in refused_goals(moving, trajectory):
        assert code not in (moving.types.msg.MoveItErrorCodes.SUCCESS, Status.SUCCESS), name
        before = moving.at()[0]
        assert moving.client.spin_until(lambda before=before: moving.at()[0] > before + 1e-3, PATIENCE), name
        assert not first.done, name
    first.cancel()


def hand_goal(moving: Moving, position: float) -> Any:
    """A goal of the group hand."""
    goal = moving.goal(joint_goal(moving.types, panda_finger_joint1=position))
    goal.request.group_name = "hand"
    return goal


def test_the_hand_has_a_controller_of_its_own(moving: Moving) -> None:
    before = moving.at()
    status, result = moving.send(moving.move, hand_goal(moving, 0.03)).result()
    assert status == SUCCEEDED, result.error_code.message
    assert moving.at()[7] == pytest.approx(0.03)
    np.testing.assert_allclose(moving.at()[:7], before[:7], rtol=0.0, atol=STOOD)
    kind = import_module("control_msgs.action").ParallelGripperCommand
    gripper = ActionClient(moving.client.node, kind, "hand_controller/gripper_cmd")
    assert moving.client.spin_until(gripper.server_is_ready, PATIENCE)
    command = JointState(name=["panda_finger_joint1"], position=[0.0])
    taken = gripper.send_goal_async(kind.Goal(command=command))
    assert moving.client.spin_until(taken.done, PATIENCE)
    closed = taken.result().get_result_async()
    assert moving.client.spin_until(closed.done, PATIENCE)
    assert closed.result().result.reached_goal
    assert moving.at()[7] == pytest.approx(0.0, abs=1e-6)
    gripper.destroy()


def test_arm_and_hand_move_together_as_one_group(moving: Moving) -> None:
    goal = moving.goal(
        joint_goal(moving.types, **{**READY, "panda_joint1": 0.2, "panda_finger_joint1": 0.02})
    )
    goal.request.group_name = "panda_arm_hand"
    status, result = moving.send(moving.move, goal).result()
    assert status == SUCCEEDED, result.error_code.message
    np.testing.assert_allclose(moving.at()[[0, 7]], [0.2, 0.02], atol=1e-4)


def test_the_hand_moves_while_the_arm_does(moving: Moving) -> None:
    first = moving.send(
        moving.move, moving.goal(joint_goal(moving.types, **{**READY, "panda_joint1": 0.6}), scaling=0.1)
    )
    moving.until_it_moves(first)
    position = 0.035 if moving.at()[7] < 0.02 else 0.005
    status, result = moving.send(moving.move, hand_goal(moving, position)).result()
    assert status == SUCCEEDED, result.error_code.message
    assert moving.at()[7] == pytest.approx(position, abs=1e-4)
    assert not first.done
    status, result = first.result()
    assert status == SUCCEEDED, result.error_code.message
    np.testing.assert_allclose(moving.at()[0], 0.6, atol=1e-4)


def test_controllers_by_name(moving: Moving) -> None:
    trajectory = moving.trajectory(joint_goal(moving.types, **{**READY, "panda_joint1": 0.1}))
    for name, said in (("hand_controller", "moves panda_joint1"), ("leg_controller", "unknown controller")):
        goal = moving.types.action.ExecuteTrajectory.Goal(trajectory=trajectory, controller_names=[name])
        status, result = moving.send(moving.execute, goal).result()
        assert (status, result.error_code.val) == (ABORTED, result.error_code.CONTROL_FAILED)
        assert said in result.error_code.message
    goal = moving.types.action.ExecuteTrajectory.Goal(
        trajectory=trajectory, controller_names=["panda_arm_controller"]
    )
    status, result = moving.send(moving.execute, goal).result()
    assert status == SUCCEEDED, result.error_code.message


# Sequences


def sequence(moving: Moving, *goals: dict[str, float], **fields: Any) -> Any:
    """moveit_msgs/MotionSequenceRequest of joint goals, each of the arm or of the hand."""
    items = []
    for goal in goals:
        hand = "panda_finger_joint1" in goal
        made = hand_goal(moving, goal["panda_finger_joint1"]) if hand else None
        request = made.request if made else moving.request(joint_goal(moving.types, **{**READY, **goal}))
        items.append(moving.types.msg.MotionSequenceItem(req=request, **fields))
    return moving.types.msg.MotionSequenceRequest(items=items)


@pytest.fixture(scope="module")
def plan_sequence(moving: Moving) -> Any:
    """Calls plan_sequence_path."""
    kind = moving.types.srv.GetMotionSequence
    client = moving.client.node.create_client(kind, "plan_sequence_path")
    assert moving.client.spin_until(client.service_is_ready, PATIENCE)
    return lambda request: moving.call(client, kind.Request(request=request)).response


def test_a_sequence_is_one_trajectory_that_stands_at_each_goal(moving: Moving, plan_sequence: Any) -> None:
    goals = ({"panda_joint1": 0.2}, {"panda_joint1": 0.2, "panda_joint2": -0.5}, {})
    answer = plan_sequence(sequence(moving, *goals))
    assert answer.error_code.val == 1, answer.error_code.message
    [trajectory] = answer.planned_trajectories
    points = trajectory.joint_trajectory.points
    times = [one.time_from_start.sec + 1e-9 * one.time_from_start.nanosec for one in points]
    assert (np.diff(times) > 0.0).all()
    stops = [one.positions.tolist() for one in points if not np.any(one.velocities)]
    wanted = [[{**READY, **goal}[name] for name in READY] for goal in ({}, *goals)]
    order = list(trajectory.joint_trajectory.joint_names)
    np.testing.assert_allclose(
        [[row[order.index(name)] for name in READY] for row in stops], wanted, atol=1e-4
    )
    assert answer.planning_time > 0.0
    assert len(answer.sequence_start.joint_state.name) >= 8


def test_motions_of_other_joints_are_trajectories_of_their_own(moving: Moving, plan_sequence: Any) -> None:
    goals = ({"panda_joint1": 0.2}, {"panda_finger_joint1": 0.01}, {"panda_joint1": 0.3})
    answer = plan_sequence(sequence(moving, *goals))
    assert answer.error_code.val == 1, answer.error_code.message
    arm, hand, again = (one.joint_trajectory for one in answer.planned_trajectories)
    assert list(hand.joint_names) == ["panda_finger_joint1"]
    np.testing.assert_allclose(again.points[0].positions, arm.points[-1].positions)


@pytest.mark.parametrize(
    ("spoil", "code", "said"),
    [
        (
            lambda items: setattr(items[0], "blend_radius", 0.05),
            "FAILURE",
            r"items[0] has a blend_radius of 0.05",
        ),
        (lambda items: setattr(items[1], "blend_radius", float("nan")), "FAILURE", "blend_radius of nan"),
        (lambda items: items.clear(), "FAILURE", "0 items; allowed is 1 to 100"),
        (lambda items: items.extend(items * 60), "FAILURE", "allowed is 1 to 100"),
        (
            lambda items: setattr(items[1].req.start_state.joint_state, "name", ["panda_joint1"]),
            "INVALID_ROBOT_STATE",
            "items[1] has a start_state",
        ),
        (lambda items: setattr(items[1].req, "group_name", "leg"), "INVALID_GROUP_NAME", "leg"),
    ],
)
def test_sequences_that_are_refused(
    moving: Moving, plan_sequence: Any, spoil: Any, code: str, said: str
) -> None:
    def spoiled() -> Any:
        request = sequence(moving, {"panda_joint1": 0.2}, {"panda_joint1": 0.1})
        items = list(request.items)
        spoil(items)
        request.items = items
        return request

    answer = plan_sequence(spoiled())
    assert answer.error_code.val == getattr(answer.error_code, code), answer.error_code.message
    assert said in answer.error_code.message
    assert not answer.planned_trajectories
    action = ActionClient(moving.client.node, moving.types.action.MoveGroupSequence, "sequence_move_group")
    assert moving.client.spin_until(action.server_is_ready, PATIENCE)
    before = moving.at()
    goal = moving.types.action.MoveGroupSequence.Goal(request=spoiled())
    status, result = moving.send(action, goal).result()
    assert (status, result.response.error_code.val) == (ABORTED, getattr(answer.error_code, code))
    np.testing.assert_allclose(moving.at(), before, rtol=0.0, atol=STOOD)
    action.destroy()


def test_a_sequence_is_done_and_can_be_cancelled(moving: Moving) -> None:
    kind = moving.types.action.MoveGroupSequence
    action = ActionClient(moving.client.node, kind, "sequence_move_group")
    assert moving.client.spin_until(action.server_is_ready, PATIENCE)
    goals = ({"panda_joint1": 0.2}, {"panda_finger_joint1": 0.012}, {"panda_joint1": 0.3})
    planned = kind.Goal(request=sequence(moving, *goals))
    planned.planning_options.plan_only = True
    status, result = moving.send(action, planned).result()
    assert (status, len(result.response.planned_trajectories)) == (SUCCEEDED, 3)
    again = kind.Goal(request=sequence(moving, *goals))
    again.planning_options.replan = True
    status, result = moving.send(action, again).result()
    assert status == ABORTED
    assert "replan is set" in result.response.error_code.message
    sent = moving.send(action, kind.Goal(request=sequence(moving, *goals)))
    status, result = sent.result()
    assert status == SUCCEEDED, result.response.error_code.message
    assert sent.told() == ["PLANNING", "MONITOR", "MONITOR", "MONITOR", "IDLE"]
    np.testing.assert_allclose(moving.at()[[0, 7]], [0.3, 0.012], atol=1e-4)
    kept_limits(moving)
    sent = moving.send(action, kind.Goal(request=sequence(moving, {"panda_joint1": 1.5}, {})))
    moving.until_it_moves(sent)
    status, result = sent.cancel()
    assert (status, result.response.error_code.val) == (CANCELED, result.response.error_code.PREEMPTED)
    stands(moving)
    action.destroy()
