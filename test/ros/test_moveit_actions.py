"""MoveIt's actions under its names: a client of moveit_msgs alone moves a simulated Panda, stops it, and is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, Pose
from rclpy.action import ActionClient
from std_msgs.msg import String
from support.moveit_requests import TIP, joint_goal, pose_goal
from support.ros_requests import READY, StartNode, pose
from support.trajectory_goals import until_prepared

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.client.simulated_robot import SimulatedRobotTopics
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.status import Status
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(1200)  # a compiler may be at work on a new and busy machine

PANDA = load_robot("panda")
ARM = list(READY)
SUCCEEDED, CANCELED, ABORTED = (
    GoalStatus.STATUS_SUCCEEDED,
    GoalStatus.STATUS_CANCELED,
    GoalStatus.STATUS_ABORTED,
)
PATIENCE = 60.0
CONTROLLERS = ["panda_arm_controller=panda_arm", "hand_controller=hand"]


class Slowly(SimulatedRobotTopics):
    """A simulated robot whose clock stands still while this process does, and that remembers where it was."""

    most = 20_000_000
    """Longest time between two looks at its clock, ns."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.own = 0
        self.path: list[tuple[float, np.ndarray, np.ndarray]] = []
        """Times (s), positions and velocities."""
        super().__init__(*given, **options)

    def now(self) -> int:
        real = super().now()
        self.own = min(real, (self.own or real) + self.most)
        return self.own

    def _advance(self) -> None:
        super()._advance()
        now = self.now()
        _, position, velocity = self.robot.states(now)
        self.path.append((now / 1e9, position[:7], velocity[:7]))


class Moving:
    """A client, the simulated robot beside it, and the node between them."""

    def __init__(self, client: Client, process: NodeProcess, robot: Slowly, types: Any) -> None:
        self.client, self.process, self.robot, self.types = client, process, robot, types
        self.move = ActionClient(client.node, types.action.MoveGroup, "move_action")
        self.execute = ActionClient(client.node, types.action.ExecuteTrajectory, "execute_trajectory")
        self.cartesian = client.node.create_client(types.srv.GetCartesianPath, "compute_cartesian_path")
        self.plan = client.node.create_client(types.srv.GetMotionPlan, "plan_kinematic_path")
        self.events = client.node.create_publisher(String, "trajectory_execution_event", 10)
        for one in (self.move, self.execute):
            assert client.spin_until(one.server_is_ready, PATIENCE)
        for service in (self.cartesian, self.plan):
            assert client.spin_until(service.service_is_ready, PATIENCE)
        client.spin(0.3)

    def request(self, *goals: Any, scaling: float = 0.5, **fields: Any) -> Any:
        """A MotionPlanRequest as MoveGroupInterface makes it."""
        made = self.types.msg.MotionPlanRequest(
            group_name="panda_arm",
            goal_constraints=list(goals),
            num_planning_attempts=1,
            allowed_planning_time=20.0,
            max_velocity_scaling_factor=scaling,
            max_acceleration_scaling_factor=scaling,
        )
        made.start_state.is_diff = True
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    def goal(self, *goals: Any, scaling: float = 0.5, **options: Any) -> Any:
        made = self.types.action.MoveGroup.Goal(request=self.request(*goals, scaling=scaling))
        made.planning_options.planning_scene_diff.is_diff = True
        made.planning_options.planning_scene_diff.robot_state.is_diff = True
        for name, value in options.items():
            setattr(made.planning_options, name, value)
        return made

    def send(self, action: Any, goal: Any) -> Sent:
        feedback: list[str] = []
        future = action.send_goal_async(
            goal, feedback_callback=lambda one: feedback.append(one.feedback.state)
        )
        assert self.client.spin_until(future.done, PATIENCE), "the goal was not taken"
        return Sent(self, future.result(), feedback)

    def call(self, service: Any, request: Any) -> Any:
        future = service.call_async(request)
        assert self.client.spin_until(future.done, PATIENCE)
        return future.result()

    def trajectory(self, *goals: Any, **fields: Any) -> Any:
        """A motion that plan_kinematic_path gives."""
        request = self.types.srv.GetMotionPlan.Request(motion_plan_request=self.request(*goals, **fields))
        answer = self.call(self.plan, request).motion_plan_response
        assert answer.error_code.val == 1, answer.error_code.message
        return answer.trajectory

    def at(self) -> np.ndarray:
        """Where the joints are."""
        return self.robot.robot.states(self.robot.now())[1]

    def tip(self) -> np.ndarray:
        q = PANDA.default_q.copy()
        names, position, _ = self.robot.robot.states(self.robot.now())
        for name, value in zip(names, position, strict=True):
            q[PANDA.variable_index[name]] = value
        return forward_kinematics(PANDA, q, links=(TIP,))[0]

    def until_it_moves(self, by: float = 0.03) -> None:
        begin = self.at()
        assert self.client.spin_until(lambda: np.abs(self.at() - begin).max() > by, PATIENCE)

    def apply(self, *operations: SceneOperation) -> None:
        answer = self.client.call("apply_scene", ApplyScene.Request(operations=list(operations)))
        assert answer.status.code == Status.SUCCESS, answer.status.message


class Sent:
    """A goal that was taken."""

    def __init__(self, moving: Moving, handle: Any, feedback: list[str]) -> None:
        assert handle.accepted
        self._moving, self.handle, self.feedback = moving, handle, feedback
        self._result = handle.get_result_async()

    def result(self) -> tuple[int, Any]:
        assert self._moving.client.spin_until(self._result.done, PATIENCE), "there is no result"
        answer = self._result.result()
        return answer.status, answer.result

    def cancel(self) -> tuple[int, Any]:
        self.handle.cancel_goal_async()
        return self.result()


@pytest.fixture(scope="module")
def moving(
    moveit: Any, control_msgs: None, start_shared_node: StartNode, panda_parameters: dict[str, object]
) -> Iterator[Moving]:
    parameters = {**panda_parameters, "controllers": CONTROLLERS, "state_timeout": 3.0}
    process, client = start_shared_node("kinopt", parameters)
    robot = Slowly(client.node, SimulatedRobot(PANDA, start=READY), [])
    client.spin(0.3)
    until_prepared(client)
    yield Moving(client, process, robot, moveit)
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
    assert sent.feedback == ["PLANNING", "MONITOR", "IDLE"]
    kept_limits(moving)


def kept_limits(moving: Moving, gentle: float = 1.0) -> None:
    """Judge joint states: no step, velocities and accelerations within the limits."""
    times = np.array([time for time, *_ in moving.robot.path])
    position, velocity = (np.array([row[k] for row in moving.robot.path]) for k in (1, 2))
    moved = np.diff(times) > 1e-6
    dt = np.diff(times)[moved, None]
    limits = PANDA.limits
    speed = np.diff(position, axis=0)[moved] / dt
    assert (np.abs(speed) <= gentle * limits.velocity[:7] + 1e-6).all()
    assert (np.abs(velocity) <= gentle * limits.velocity[:7] + 1e-6).all()
    acceleration = np.diff(velocity, axis=0)[moved] / dt
    share = (np.abs(acceleration) / limits.acceleration[:7]).max()
    assert share <= 1.0 + 1e-6


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
    assert sent.feedback == ["PLANNING", "IDLE"]
    np.testing.assert_array_equal(moving.at(), before)


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
    assert sent.feedback == ["MONITOR", "IDLE"]
    kept_limits(moving)


def stands(moving: Moving) -> None:
    """The robot stands, before the goal."""
    before = moving.at()
    moving.client.spin(0.3)
    np.testing.assert_array_equal(moving.at(), before)
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
    moving.until_it_moves()
    if how == "cancel":
        status, result = sent.cancel()
        assert status == CANCELED
    else:
        moving.events.publish(String(data="stop"))
        status, result = sent.result()
        assert status == ABORTED
    assert result.error_code.val == result.error_code.PREEMPTED, result.error_code
    stands(moving)
    kept_limits(moving)


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
    np.testing.assert_array_equal(moving.at(), before)


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
    np.testing.assert_array_equal(moving.at(), before)


def box(y: float) -> SceneOperation:
    """A wall beside the robot, in the way of joint 1."""
    given = CollisionObject(id="wall", shapes=[Shape(type="box", dimensions=[0.6, 0.02, 0.6])])
    given.pose = Pose(position=Point(x=0.4, y=y, z=0.5))
    return SceneOperation(operation="add", object=given)


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
    moving.until_it_moves(0.03 * (1 + number))
    moving.apply(box(0.35))
    status, result = sent.result()
    assert status == ABORTED
    code = result.error_code
    assert code.val == code.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE, code
    assert "wall" in code.message
    stands(moving)
    kept_limits(moving)
    free_of_the_wall(moving)
    moving.apply(SceneOperation(operation="clear"))


def free_of_the_wall(moving: Moving) -> None:
    """Judge the way of the robot by the shapes themselves."""
    from kinopt_ros.verification.collision import check_collisions

    scene = wall_scene()
    q = np.repeat(PANDA.default_q[None], len(moving.robot.path), axis=0)
    q[:, :7] = [position for _, position, _ in moving.robot.path]
    assert check_collisions(PANDA, scene, q, contacts=False).free.all()


def wall_scene() -> Any:
    from kinopt_ros.geometry.shapes import Box, PlacedShape
    from kinopt_ros.scene.scene import Scene, SceneObject

    T = np.eye(4)
    T[:3, 3] = 0.4, 0.35, 0.5
    return Scene(objects={"wall": SceneObject("wall", (PlacedShape(Box(0.6, 0.02, 0.6), np.eye(4)),), T)})


def test_what_comes_in_the_way_is_planned_around_if_that_is_wanted(moving: Moving) -> None:
    goal = joint_goal(moving.types, **{**READY, "panda_joint1": 1.5})
    sent = moving.send(
        moving.move, moving.goal(goal, scaling=0.1, replan=True, replan_attempts=3, replan_delay=0.1)
    )
    moving.until_it_moves()
    given = CollisionObject(id="ball", shapes=[Shape(type="sphere", dimensions=[0.04])])
    given.pose = Pose(position=Point(x=0.24, y=0.2, z=0.55))
    moving.apply(SceneOperation(operation="add", object=given))
    status, result = sent.result()
    assert status == SUCCEEDED, result.error_code.message
    assert sent.feedback.count("PLANNING") == 2
    np.testing.assert_allclose(moving.at()[0], 1.5, atol=1e-4)


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
    moving.until_it_moves()
    goal = {**READY, "panda_joint1": -0.2}
    second = moving.send(moving.move, moving.goal(joint_goal(moving.types, **goal)))
    status, result = first.result()
    assert (status, result.error_code.val) == (ABORTED, result.error_code.PREEMPTED)
    status, result = second.result()
    assert status == SUCCEEDED, result.error_code.message
    np.testing.assert_allclose(moving.at()[:7], list(goal.values()), atol=1e-4)
    kept_limits(moving)
