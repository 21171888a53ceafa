"""Disturbances of the node during a soak: a scene that moves, new descriptions, cancelled goals, parameter calls.

All of it comes from one process, and every answer is judged. Motions are judged by Pinocchio and coal, in the scene of
the version that the answer names.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any, ClassVar

import numpy as np
import rclpy
from action_msgs.msg import GoalStatus
from geometry_msgs.msg import Point, Pose, PoseStamped
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    GetParameterTypes,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)
from rclpy.action.client import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState

from kinopt_msgs.action import OptimizeTrajectory
from kinopt_msgs.msg import CollisionObject, MotionReport, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene
from kinopt_ros.bench.node.clients import LOST, Tally
from kinopt_ros.bench.node.kinds import Outcome
from kinopt_ros.bench.trajectory.judge import MotionJudge
from kinopt_ros.bench.verify.robots import Subject
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.problems.trajectory import JointGoal
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.ros.messages.conversions import trajectory_from_message
from kinopt_ros.ros.messages.qos import QUEUED
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

SCENE_HZ = 10.0
GOAL_HZ = 1.0
MOVEIT_HZ = 0.5
SCALING = 0.5
"""Of velocities and accelerations of the motions that are asked for."""
PARAMETER_HZ = 5.0
DESCRIPTION_SECONDS = 60.0
LOST_SECONDS = 60.0
"""An answer that is not there by then is lost; no request here asks for more than a few seconds."""
_POLL = 0.005
_GROUP = "panda_arm"
_BASE = "panda_link0"
_CLOUD_POINTS = 2000
_CLOUD_EVERY = 5
"""Every so many changes of the scene bring a new cloud, out of the arm's reach: the judge knows no clouds."""
_READY = [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785, 0.02]
"""Configuration in which the robot of ~/target_pose is at rest, rad and m."""
_EDGES = (0.2, 0.2, 0.3)
_WHERE_MOTIONS_MAY_FAIL = (
    Status.PLANNING_FAILED,
    Status.TIMED_OUT,
    Status.START_STATE_IN_COLLISION,
    Status.GOAL_IN_COLLISION,
    Status.ENVIRONMENT_CHANGED,
    Status.NOT_READY,
    Status.QUEUE_FULL,
    Status.ROBOT_STATE_STALE,
)


class Disturbance(ABC):
    """One kind, with at most one request under way."""

    name: ClassVar[str]
    period: ClassVar[float]

    def __init__(self) -> None:
        self.tally = Tally()
        self._future: Any = None
        self._sent = 0.0
        self._due = 0.0

    @property
    def waiting(self) -> bool:
        """Whether an answer is still to come."""
        return self._future is not None

    def turn(self, now: float, more: bool) -> None:
        """Send what is due, unless no more shall be sent, and judge what has come."""
        if self._future is not None:
            self._take(now)
        elif more and now >= self._due:
            self._due = max(self._due + self.period, now)
            self._sent = now
            self._future = self._send()

    def _take(self, now: float) -> None:
        self._meanwhile(now - self._sent)
        if self._future.done():
            future, self._future = self._future, None
            outcome, sentence = self._judge(future.result())
            if self._future is None:  # else the answer has a second part, which is waited for
                self.tally.times.append(now - self._sent)
                self.tally.count(outcome.value, sentence if outcome is not Outcome.RIGHT else "")
        elif now - self._sent > LOST_SECONDS:
            self._future = None
            self.tally.count(LOST, f"no answer within {LOST_SECONDS:g} s")

    def _meanwhile(self, elapsed: float) -> None:  # noqa: B027 - most have nothing to do
        """Called while an answer is under way, for so long (s)."""

    def ready(self) -> bool:
        """Whether the node offers what it asks for."""
        return True

    @abstractmethod
    def _send(self) -> Any:
        """Send the next request; the future of its answer."""

    @abstractmethod
    def _judge(self, answer: Any) -> tuple[Outcome, str]:
        """Return what an answer is worth, and why it is wrong if it is."""


class MovingScene(Disturbance):
    """A box that goes round the arm, and clouds that come and go. Keeps what is known of every version."""

    name = "scene"
    period = 1.0 / SCENE_HZ

    def __init__(self, node: Node, target: str) -> None:
        super().__init__()
        self._client: Any = node.create_client(ApplyScene, f"{target}/apply_scene", qos_profile=QUEUED)
        self._rng = np.random.default_rng(3)
        self._number = 0
        self._version = 1
        self._box: Any = None
        self.known: dict[int, Scene] = {1: Scene()}

    def ready(self) -> bool:
        """Whether the node offers the service."""
        return bool(self._client.service_is_ready())

    @property
    def version(self) -> int:
        """The version that was confirmed last."""
        return self._version

    def _send(self) -> Any:
        self._number += 1
        angle = 0.05 * self._number
        x, y, z = 0.55 * math.cos(angle), 0.55 * math.sin(angle), 0.3 + 0.2 * math.sin(0.3 * angle)
        T = np.eye(4)
        T[:3, 3] = x, y, z
        shape = Shape(type=Shape.BOX, dimensions=list(_EDGES))
        shape.pose.orientation.w = 1.0
        moved = CollisionObject(id="mover", shapes=[shape])
        moved.pose = Pose(position=Point(x=x, y=y, z=z))
        moved.pose.orientation.w = 1.0
        operations = [SceneOperation(operation=SceneOperation.ADD, replace=True, object=moved)]
        if self._number % _CLOUD_EVERY == 0:
            operations.append(self._cloud())
        box = SceneObject("mover", (PlacedShape(Box(*_EDGES), np.eye(4)),), T)
        # Before it is asked for: a motion may be planned in it before the answer is here.
        self.known[self._version + 1] = Scene(version=self._version + 1, objects={"mover": box})
        self._box = box
        return self._client.call_async(
            ApplyScene.Request(operations=operations, expected_version=self._version)
        )

    def _cloud(self) -> SceneOperation:
        points = self._rng.normal(size=(_CLOUD_POINTS, 3)) * 0.3 + (0.0, 0.0, -4.0)
        shape = Shape(type=Shape.POINT_CLOUD, dimensions=[0.01], points=points.ravel().tolist())
        shape.pose.orientation.w = 1.0
        cloud = CollisionObject(id="cloud", shapes=[shape])
        cloud.pose.orientation.w = 1.0
        return SceneOperation(operation=SceneOperation.ADD, replace=True, object=cloud)

    def _judge(self, answer: Any) -> tuple[Outcome, str]:
        wanted = self._version + 1
        if answer.status.code == Status.SUCCESS and answer.version == wanted:
            self._version = wanted
            for old in [version for version in self.known if version < wanted - 3000]:
                del self.known[old]
            return Outcome.RIGHT, ""
        # A description that came in between leaves the scene as it was, and says so.
        left = answer.status.code == Status.ENVIRONMENT_CHANGED and answer.version == self._version
        if left or answer.status.code == Status.QUEUE_FULL:
            return Outcome.REFUSED, answer.status.message
        self._version = int(answer.version)
        return Outcome.WRONG, f"version {answer.version} instead of {wanted}: {answer.status.message}"


class _PlannedMotions:
    """Random starts and goals of the Panda's arm, and the judge of motions between them."""

    def __init__(self, seed: int) -> None:
        self._robot = load_robot("panda")
        self._rng = np.random.default_rng(seed)
        urdf = find_robot("panda")[0].read_text(encoding="utf-8")
        joints = trajectory_problem(self._robot, self._robot.default_q[:7], group=_GROUP).joints
        self._judge = MotionJudge(Subject("panda", urdf, self._robot, _BASE, ("panda_link8",)), joints)
        self.names = list(self._robot.variable_names)
        self.start = self.goal = self._robot.default_q

    def next(self) -> float:
        """Choose other ones; return when to cancel the goal (s), which may be never."""
        self.start, self.goal = random_configurations(self._robot, 2, int(self._rng.integers(2**31)))
        self.goal[7:] = self.start[7:]
        return float(self._rng.uniform(0.0, 0.3)) if self._rng.random() < 0.5 else math.inf

    def wrong(self, scene: Scene, trajectory: JointTrajectory) -> str:
        """Return what is wrong with a motion between them in a scene."""
        problem = trajectory_problem(
            self._robot,
            JointGoal(self.goal[:7]),
            group=_GROUP,
            start=self.start,
            scene=scene,
            velocity_scaling=SCALING,
            acceleration_scaling=SCALING,
        )
        return "; ".join(self._judge(problem, trajectory))


class Goals(Disturbance):
    """Goals of an action for motions to random joint values, half of them cancelled at a random moment; the results of
    the others are judged."""

    def __init__(self, client: Any, scene: MovingScene, seed: int) -> None:
        """``client``: of the action."""
        super().__init__()
        self._client = client
        self._scene = scene
        self._judged = _PlannedMotions(seed)
        self._handle: Any = None
        self._cancel_after = math.inf

    def ready(self) -> bool:
        """Whether the node offers the action."""
        return bool(self._client.server_is_ready())

    @abstractmethod
    def _goal(self, names: Sequence[str], start: Sequence[float], goal: Sequence[float]) -> Any:
        """Return the goal of a motion of the arm, from a state of all joints to values of the arm's, the first of
        them."""

    @abstractmethod
    def _judge_result(self, succeeded: bool, result: Any) -> tuple[Outcome, str]:
        """Return what a result is worth that was not cancelled, and why it is wrong if it is."""

    def _send(self) -> Any:
        self._cancel_after = self._judged.next()
        self._handle = None
        start, goal = self._judged.start.tolist(), self._judged.goal[:7].tolist()
        return self._client.send_goal_async(self._goal(self._judged.names, start, goal))

    def _meanwhile(self, elapsed: float) -> None:
        if self._handle is not None and elapsed > self._cancel_after:
            self._cancel_after = math.inf
            self._handle.cancel_goal_async()

    def _judge(self, answer: Any) -> tuple[Outcome, str]:
        if self._handle is None:  # the goal was taken; its result follows
            if not answer.accepted:
                return Outcome.WRONG, "a goal was rejected"
            self._handle = answer
            self._future = answer.get_result_async()
            return Outcome.RIGHT, ""
        self._handle = None
        if answer.status == GoalStatus.STATUS_CANCELED:
            return Outcome.RIGHT, ""
        return self._judge_result(answer.status == GoalStatus.STATUS_SUCCEEDED, answer.result)


class CancelledGoals(Goals):
    """Goals of ~/optimize_trajectory, whose answers name the scene that they hold in."""

    name = "motion"
    period = 1.0 / GOAL_HZ

    def __init__(self, node: Node, target: str, scene: MovingScene) -> None:
        super().__init__(ActionClient(node, OptimizeTrajectory, f"{target}/optimize_trajectory"), scene, 5)

    def _goal(self, names: Sequence[str], start: Sequence[float], goal: Sequence[float]) -> Any:
        return OptimizeTrajectory.Goal(
            group=_GROUP,
            joint_goals=[JointState(name=names[:7], position=goal)],
            state=JointState(name=names, position=start),
            timeout=10.0,
            velocity_scaling=SCALING,
            acceleration_scaling=SCALING,
        )

    def _judge_result(self, succeeded: bool, result: Any) -> tuple[Outcome, str]:
        if not succeeded:
            if result.status.code in _WHERE_MOTIONS_MAY_FAIL and not result.trajectory.points:
                return Outcome.UNSOLVED, result.status.message
            return Outcome.WRONG, f"code {result.status.code}: {result.status.message}"
        scene = self._scene.known.get(int(result.scene_version))
        if scene is None:
            return Outcome.WRONG, f"planned in version {result.scene_version} of the scene, which was none"
        wrong = self._judged.wrong(scene, trajectory_from_message(result.trajectory))
        return (Outcome.WRONG, wrong) if wrong else (Outcome.RIGHT, "")


class MoveItGoals(Goals):
    """Goals of MoveIt's move_action that are planned only. Its answers name no scene, so a motion must be right in one
    of those that there were meanwhile."""

    name = "move_action"
    period = 1.0 / MOVEIT_HZ

    def __init__(self, node: Node, target: str, scene: MovingScene) -> None:
        self._action = import_module("moveit_msgs.action").MoveGroup
        self._types: Any = import_module("moveit_msgs.msg")
        namespace, slash, _ = target.rpartition("/")
        super().__init__(ActionClient(node, self._action, f"{namespace}{slash}move_action"), scene, 11)
        self._first = 0

    def _send(self) -> Any:
        self._first = self._scene.version
        return super()._send()

    def _goal(self, names: Sequence[str], start: Sequence[float], goal: Sequence[float]) -> Any:
        given = self._action.Goal()
        given.request.group_name = _GROUP
        given.request.allowed_planning_time = 10.0
        given.request.max_velocity_scaling_factor = given.request.max_acceleration_scaling_factor = SCALING
        given.request.start_state.joint_state = JointState(name=names, position=start)
        given.request.goal_constraints = [
            self._types.Constraints(
                joint_constraints=[
                    self._types.JointConstraint(
                        joint_name=name,
                        position=value,
                        tolerance_above=1e-4,
                        tolerance_below=1e-4,
                        weight=1.0,
                    )
                    for name, value in zip(names[:7], goal, strict=True)
                ]
            )
        ]
        given.planning_options.plan_only = True
        given.planning_options.planning_scene_diff.is_diff = True
        return given

    def _judge_result(self, succeeded: bool, result: Any) -> tuple[Outcome, str]:
        code, motion = result.error_code, result.planned_trajectory.joint_trajectory
        said = f"code {code.val}: {getattr(code, 'message', '')}"
        if not succeeded:
            internal = code.val in (0, code.SUCCESS) or motion.points
            return (Outcome.WRONG if internal else Outcome.UNSOLVED), said
        if code.val != code.SUCCESS or not motion.points:
            return Outcome.WRONG, f"a goal succeeded, with {len(motion.points)} points and {said}"
        trajectory, wrong = trajectory_from_message(motion), ""
        # The last one may have been asked for, and planned in, before its answer was read.
        for version in range(self._first, self._scene.version + 2):
            if version in self._scene.known:
                wrong = self._judged.wrong(self._scene.known[version], trajectory)
                if not wrong:
                    return Outcome.RIGHT, ""
        return Outcome.WRONG, wrong


class NewDescriptions(Disturbance):
    """Sends the robot's description with another comment in it, so that all that was derived from it is made anew."""

    name = "description"
    period = DESCRIPTION_SECONDS

    def __init__(self, node: Node, target: str) -> None:
        super().__init__()
        self._client: Any = node.create_client(SetParameters, f"{target}/set_parameters", qos_profile=QUEUED)
        self._urdf = find_robot("panda")[0].read_text(encoding="utf-8")
        self._number = 0

    def _send(self) -> Any:
        self._number += 1
        text = f"{self._urdf}<!-- {self._number} -->\n"
        return self._client.call_async(SetParameters.Request(parameters=[_text("robot_description", text)]))

    def _judge(self, answer: Any) -> tuple[Outcome, str]:
        [result] = answer.results
        return (Outcome.RIGHT, "") if result.successful else (Outcome.WRONG, result.reason)


class ParameterCalls(Disturbance):
    """All six services of parameters, with values that are allowed and others."""

    name = "parameters"
    period = 1.0 / PARAMETER_HZ

    def __init__(self, node: Node, target: str) -> None:
        super().__init__()
        types = {
            "set_parameters": SetParameters,
            "set_parameters_atomically": SetParametersAtomically,
            "get_parameters": GetParameters,
            "get_parameter_types": GetParameterTypes,
            "describe_parameters": DescribeParameters,
            "list_parameters": ListParameters,
        }
        self._clients: dict[str, Any] = {
            name: node.create_client(kind, f"{target}/{name}", qos_profile=QUEUED)
            for name, kind in types.items()
        }
        self._rng = np.random.default_rng(7)
        self._expected: bool | None = None

    def _send(self) -> Any:
        number = int(self._rng.integers(8))
        self._expected = None
        some = ["ik.timeout", "solver", "nothing_of_that_name", "x" * 1000][: int(self._rng.integers(1, 5))]
        if number == 0:
            return self._clients["list_parameters"].call_async(ListParameters.Request())
        if number == 1:
            return self._clients["get_parameters"].call_async(GetParameters.Request(names=some))
        if number == 2:
            return self._clients["get_parameter_types"].call_async(GetParameterTypes.Request(names=some))
        if number == 3:
            return self._clients["describe_parameters"].call_async(DescribeParameters.Request(names=some))
        self._expected = number < 6
        # Allowed values are chosen so that no other client of the soak notices the change.
        given = (
            _number("servo.gain", float(self._rng.uniform(1.0, 10.0)))
            if self._expected
            else (
                _number("servo.gain", math.nan),
                _number("ik.timeout", -1.0),
                _text("solver", "x" * 10_000),
                _text("tool_frames", "a: " + "[" * 1000),
                Parameter(name="ik.timeout", value=ParameterValue(type=10)),
            )[int(self._rng.integers(5))]
        )
        if number % 2:
            request = SetParametersAtomically.Request(parameters=[given])
            return self._clients["set_parameters_atomically"].call_async(request)
        return self._clients["set_parameters"].call_async(SetParameters.Request(parameters=[given]))

    def _judge(self, answer: Any) -> tuple[Outcome, str]:
        if self._expected is None:
            return Outcome.RIGHT, ""
        result = answer.results[0] if hasattr(answer, "results") else answer.result
        if result.successful == self._expected:
            return Outcome.RIGHT, ""
        return Outcome.WRONG, f"successful is {result.successful}: {result.reason}"


class Targets(Disturbance):
    """Poses on ~/target_pose, one after the other, for a robot that stands still: each gets a report."""

    name = "target_pose"
    period = 2.0

    def __init__(self, node: Node, target: str) -> None:
        super().__init__()
        self._node = node
        self._publisher = node.create_publisher(PoseStamped, f"{target}/target_pose", 1)
        node.create_subscription(MotionReport, f"{target}/report", self._take_report, 100)
        namespace, slash, _ = target.rpartition("/")
        self._joint_states = node.create_publisher(JointState, f"{namespace}{slash}joint_states", 10)
        node.create_timer(0.02, self._publish_state)
        robot = load_robot("panda")
        self._state = JointState(name=list(robot.variable_names), position=_READY)
        self._state.velocity = [0.0] * len(_READY)
        self._rng = np.random.default_rng(9)
        self._stamp: Any = None

    def _publish_state(self) -> None:
        self._state.header.stamp = self._node.get_clock().now().to_msg()
        self._joint_states.publish(self._state)

    def _take_report(self, report: MotionReport) -> None:
        # A motion that the scene gets in the way of is reported once more.
        if self._future is not None and not self._future.done() and report.header.stamp == self._stamp:
            self._future.set_result(report)

    def _send(self) -> Any:
        target = PoseStamped()
        target.header.frame_id = _BASE
        target.header.stamp = self._stamp = self._node.get_clock().now().to_msg()
        x, y, z = self._rng.uniform((0.3, -0.3, 0.3), (0.6, 0.3, 0.7))
        target.pose.position = Point(x=float(x), y=float(y), z=float(z))
        target.pose.orientation.x, target.pose.orientation.w = 1.0, 0.0
        self._publisher.publish(target)
        return Future()

    def _judge(self, answer: Any) -> tuple[Outcome, str]:
        if answer.status.code == Status.SUCCESS:
            return Outcome.RIGHT, ""
        if answer.status.code == Status.START_STATE_INVALID:
            # This robot does nothing of what it is told, which the node cannot know at once.
            return Outcome.REFUSED, answer.status.message
        may_fail = (*_WHERE_MOTIONS_MAY_FAIL, Status.NO_IK_SOLUTION)
        outcome = Outcome.UNSOLVED if answer.status.code in may_fail else Outcome.WRONG
        return outcome, f"code {answer.status.code}: {answer.status.message}"


def _number(name: str, value: float) -> Parameter:
    return Parameter(name=name, value=ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value))


def _text(name: str, value: str) -> Parameter:
    return Parameter(name=name, value=ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=value))


def run_disturbances(target: str, duration: float, connection: "Connection[Any, Any]") -> None:
    """Body of a process, as ``load_clients.run_clients``: connect, say ``ready``, wait for the word to go, disturb for
    some seconds, report the tallies and the processor time used."""
    rclpy.init(args=[])
    node = Node("kinopt_disturbances")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        scene = MovingScene(node, target)
        goals = CancelledGoals(node, target, scene)
        # As the node: without MoveIt's messages its actions are not offered.
        moveit = [MoveItGoals(node, target, scene)] if find_spec("moveit_msgs") else []
        all_of_them: tuple[Disturbance, ...] = (
            scene,
            goals,
            *moveit,
            NewDescriptions(node, target),
            ParameterCalls(node, target),
            Targets(node, target),
        )
        while not all(one.ready() for one in all_of_them):
            executor.spin_once(timeout_sec=0.05)
        executor.spin_once(timeout_sec=1.0)
        connection.send("ready")
        connection.recv()
        begin, used = time.monotonic(), time.process_time()
        while (now := time.monotonic()) < begin + duration or any(one.waiting for one in all_of_them):
            for one in all_of_them:
                one.turn(now, now < begin + duration)
            executor.spin_once(timeout_sec=_POLL)
        tallies: Mapping[str, Tally] = {one.name: one.tally for one in all_of_them}
        connection.send((tallies, time.process_time() - used))
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown()
