"""An emergency stop, a cancel and ~/ready are heard while everything else waits.

Nothing here measures time: what must not be waited for is held back until the test lets it go.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Pose
from rclpy.action import ActionClient
from rclpy.action.server import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger
from support.looks import Trusting, Unwatched
from support.served import LONG, Gate, Served
from trajectory_msgs.msg import JointTrajectory

from kinopt_msgs.action import OptimizeTrajectory
from kinopt_msgs.msg import ServoStatus
from kinopt_msgs.srv import SolveIK
from kinopt_ros import pauses
from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.scheduler import Scheduler, Task
from kinopt_ros.planning.statistics import Statistics
from kinopt_ros.ros.actions import optimize_trajectory as optimize_trajectory_action
from kinopt_ros.ros.actions.optimize_trajectory import OptimizeTrajectoryAction
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.motion.controller_hand_over import ControllerHandOver
from kinopt_ros.ros.motion.controller_kinds import FOLLOWS, PARAMETER, action_type
from kinopt_ros.ros.motion.controllers import ChosenControllers, Controllers
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.node import KinoptNode
from kinopt_ros.ros.serving.goal_server import GoalServer
from kinopt_ros.ros.serving.retries import Retries
from kinopt_ros.status import Status


@pytest.fixture
def served(ros: None) -> Iterator[Served]:
    """A node to which the test adds what it needs before it starts it."""
    one = Served("served_twice")
    yield one
    one.close()


def test_simulated_time_passes_while_the_rest_is_at_work(ros: None) -> None:
    """It stood still while a large message was read: motions left one another too late, and the robot jumped."""
    node = KinoptNode(parameter_overrides=[Parameter("use_sim_time", value=True)])
    simulation = Node("simulation")
    clock = simulation.create_publisher(Clock, "/clock", 10)
    try:
        end = time.monotonic() + LONG
        while node.get_clock().now().nanoseconds != 7 * 10**9:
            assert time.monotonic() < end
            clock.publish(Clock(clock=Time(sec=7)))
            node.urgent.spin_once(timeout_sec=0.05)  # and nobody serves the rest
    finally:
        node.close()
        node.urgent.shutdown(timeout_sec=0.0)
        node.destroy_node()
        simulation.destroy_node()


def test_what_is_urgent_is_answered_while_the_rest_is_at_work(served: Served) -> None:
    gate = Gate()
    served.node.create_service(Trigger, "~/slow", gate.pass_through)
    served.node.create_service(
        Trigger,
        "~/ready",
        lambda request, response: Trigger.Response(success=True),
        callback_group=served.urgent.group,
    )
    slow = served.client.create_client(Trigger, "served_twice/slow")
    ready = served.client.create_client(Trigger, "served_twice/ready")
    served.start()
    served.until(lambda: slow.service_is_ready() and ready.service_is_ready())
    waiting = slow.call_async(Trigger.Request())
    served.until(gate.entered.is_set)
    for _ in range(10):
        answer = ready.call_async(Trigger.Request())
        served.until(answer.done)
        assert answer.result().success
        assert not waiting.done()
    gate.open.set()
    served.until(waiting.done)


def test_services_are_answered_while_a_change_of_the_scene_is_read(served: Served) -> None:
    """A box in the way of a motion came by a service, behind a mesh that took seconds to read."""
    gate = Gate()
    served.node.create_subscription(
        String, "scene", gate.pass_through, 10, callback_group=served.scenes.group
    )
    served.node.create_service(Trigger, "~/box", lambda request, response: Trigger.Response(success=True))
    mesh = served.client.create_publisher(String, "scene", 10)
    box = served.client.create_client(Trigger, "served_twice/box")
    served.start()
    served.until(lambda: box.service_is_ready() and mesh.get_subscription_count())
    mesh.publish(String())
    served.until(gate.entered.is_set)
    for _ in range(10):
        answer = box.call_async(Trigger.Request())
        served.until(answer.done)
        assert answer.result().success
    gate.open.set()


def test_topics_of_the_scene_are_read_on_a_thread_of_their_own(ros: None) -> None:
    node = KinoptNode()
    try:
        names = ["/kinopt/scene_update"]
        if importlib.util.find_spec("moveit_msgs"):
            names += [
                *("/planning_scene", "/planning_scene_world", "/collision_object"),
                "/attached_collision_object",
            ]
        read = [one.topic_name for one in node.subscriptions if one.callback_group is node.scenes.group]
        assert sorted(read) == sorted(names)
    finally:
        node.close()
        node.destroy_node()


def test_the_rest_gives_way_to_stops(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "GIVES_WAY", LONG)
    gate = Gate()
    gate.open.set()
    served.node.create_service(Trigger, "~/slow", gate.pass_through)
    slow = served.client.create_client(Trigger, "served_twice/slow")
    served.start()
    served.until(slow.service_is_ready)
    with pauses.urgent():
        waiting = slow.call_async(Trigger.Request())
        served.pause(0.3)
        assert not gate.entered.is_set()
    served.until(waiting.done)


class Ending:
    """Goals that are accepted, and end when they are cancelled, as those of the node do."""

    def __init__(self, served: Served) -> None:
        self.handles: list[Any] = []
        self.accepting = Gate()
        self.accepting.open.set()
        self.server = GoalServer(
            served.node,
            OptimizeTrajectory,
            "~/optimize_trajectory",
            execute_callback=lambda handle: None,
            goal_callback=lambda goal: GoalResponse.ACCEPT,
            handle_accepted_callback=self._accept,
            cancel_callback=self._cancel,
            urgent=served.urgent,
            cancel_unread=lambda goal: None,
        )

    def _accept(self, handle: Any) -> None:
        with self.server.changing:
            self.server.listen(True)
            handle.execute()
        self.handles.append(handle)
        self.accepting.pass_through()

    def _cancel(self, handle: Any) -> CancelResponse:
        def conclude(ended: Any) -> Any:
            ended.canceled()
            return OptimizeTrajectory.Result()

        self.server.afterwards(lambda: self.server.notify_execute(handle, conclude))
        return CancelResponse.ACCEPT


def test_a_cancel_is_answered_and_its_goal_ended_while_the_rest_is_at_work(served: Served) -> None:
    gate = Gate()
    served.node.create_service(Trigger, "~/slow", gate.pass_through)
    ending = Ending(served)
    slow = served.client.create_client(Trigger, "served_twice/slow")
    actions = ActionClient(served.client, OptimizeTrajectory, "served_twice/optimize_trajectory")
    served.start()
    try:
        served.until(lambda: slow.service_is_ready() and actions.server_is_ready())
        sent = [actions.send_goal_async(OptimizeTrajectory.Goal()) for _ in range(5)]
        served.until(lambda: all(future.done() for future in sent))
        goals = [future.result() for future in sent]
        results = [goal.get_result_async() for goal in goals]
        end = time.monotonic() + 1.0
        served.until(lambda: len(ending.handles) == 5 and time.monotonic() > end)  # results were asked for
        waiting = slow.call_async(Trigger.Request())
        served.until(gate.entered.is_set)
        for goal, result in zip(goals, results, strict=True):
            answer = goal.cancel_goal_async()
            served.until(lambda answer=answer, result=result: answer.done() and result.done())
            assert len(answer.result().goals_canceling) == 1
            assert result.result().status == GoalStatus.STATUS_CANCELED
            assert not waiting.done()
        gate.open.set()
        served.until(waiting.done)
    finally:
        gate.open.set()
        ending.server.close()
        actions.destroy()


def test_a_cancel_while_the_next_goal_is_taken(served: Served) -> None:
    ending = Ending(served)
    actions = ActionClient(served.client, OptimizeTrajectory, "served_twice/optimize_trajectory")
    served.start()
    try:
        served.until(actions.server_is_ready)
        first = actions.send_goal_async(OptimizeTrajectory.Goal())
        served.until(first.done)
        served.until(lambda: ending.handles)
        ending.accepting.open.clear()
        ending.accepting.entered.clear()
        second = actions.send_goal_async(OptimizeTrajectory.Goal())
        served.until(lambda: second.done() and ending.accepting.entered.is_set())
        for goal in (first.result(), second.result()):
            answer = goal.cancel_goal_async()
            served.until(answer.done)
            assert len(answer.result().goals_canceling) == 1
            assert not ending.accepting.open.is_set()
    finally:
        ending.accepting.open.set()
        ending.server.close()
        actions.destroy()


def test_a_goal_that_ends_while_all_are_cancelled_keeps_no_other_one_from_it(served: Served) -> None:
    ending = Ending(served)
    actions = ActionClient(served.client, OptimizeTrajectory, "served_twice/optimize_trajectory")
    told: list[Any] = []

    def cancel(handle: Any) -> CancelResponse:
        told.append(bytes(handle.goal_id.uuid))
        if len(told) == 2:  # as its own thread may do right then
            handle.abort()
        return CancelResponse.ACCEPT

    ending.server.register_cancel_callback(cancel)
    served.start()
    try:
        served.until(actions.server_is_ready)
        sent = [actions.send_goal_async(OptimizeTrajectory.Goal()) for _ in range(5)]
        served.until(lambda: all(future.done() for future in sent) and len(ending.handles) == 5)
        everything = CancelGoal.Request()  # no number and no time: all goals
        cancels = served.client.create_client(
            CancelGoal, "served_twice/optimize_trajectory/_action/cancel_goal"
        )
        served.until(cancels.service_is_ready)
        answer = cancels.call_async(everything)
        served.until(answer.done)
        numbers = {bytes(future.result().goal_id.uuid) for future in sent}
        assert set(told) == numbers
        cancelling = {bytes(goal.goal_id.uuid) for goal in answer.result().goals_canceling}
        assert cancelling == numbers - {told[1]}
        assert [handle.is_cancel_requested for handle in ending.handles].count(True) == 4
    finally:
        ending.server.close()
        actions.destroy()


def test_an_emergency_stop_overtakes_a_large_request(client: Client) -> None:
    """The large request to the node is sent first and answered last."""
    statuses: list[ServoStatus] = []
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    subscription = client.node.create_subscription(
        ServoStatus, "kinopt/servo/status", statuses.append, latched
    )
    stops = client.node.create_publisher(Bool, "kinopt/emergency_stop", 10)

    def said(stopped: bool) -> bool:
        code = Status.EMERGENCY_STOP if stopped else Status.SUCCESS
        return bool(statuses) and statuses[-1].status.code == code

    for stopped in (True, False):  # until both sides have found each other
        for _ in range(int(LONG)):
            stops.publish(Bool(data=stopped))
            if client.spin_until(lambda stopped=stopped: said(stopped), 1.0):
                break
        assert said(stopped)
    before = len(statuses)
    large = client.send("solve_ik", SolveIK.Request(poses=[Pose() for _ in range(100_000)]))
    ready: list[Any] = []
    order: list[str] = []

    def urge() -> None:
        """What the transport loses beside a large message, it sends again after seconds only."""
        ready.append(client.send("ready", Trigger.Request()))
        stops.publish(Bool(data=True))

    def note() -> bool:
        for name, there in (
            ("large", large.done()),
            ("ready", any(answer.done() for answer in ready)),
            ("stop", len(statuses) > before),
        ):
            if there and name not in order:
                order.append(name)
        return len(order) == 3

    urge()
    try:
        for _ in range(int(LONG / 0.05)):
            if client.spin_until(note, 0.05):
                break
            urge()
    finally:
        stops.publish(Bool(data=False))
        client.spin_until(lambda: len(statuses) > before + 1, LONG)
        client.node.destroy_publisher(stops)
        client.node.destroy_subscription(subscription)
    assert statuses[before].status.code == Status.EMERGENCY_STOP
    assert large.result().status.code == Status.INVALID_REQUEST
    assert set(order) == {"large", "ready", "stop"}
    assert order[-1] == "large"


class Waiting(Task):
    """Stand-in for a goal's task: what it needs is never there."""

    def __init__(self, client: str, goal: Any, asked: Any) -> None:
        super().__init__(client, slow=True)

    def must_wait(self) -> bool:
        return True

    def quick(self, others: Sequence[Task], hurried: bool = False) -> Sequence[Task]:
        raise AssertionError

    def slow(self) -> None:
        raise AssertionError

    def refuse(self, error: KinoptError) -> None:
        """The goal was told before."""


def test_goals_that_wait_get_a_result_when_the_node_ends(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimize_trajectory_action, "read_trajectory_request", lambda *given: None)
    monkeypatch.setattr(optimize_trajectory_action, "_GoalTask", Waiting)
    scheduler = Scheduler(quick_threads=0, slow_threads=1, capacity=10)
    context: Any = SimpleNamespace(node=served.node, parameter=lambda name: 10_000, statistics=Statistics())
    controllers = Controllers(context, served.urgent)
    output = MotionOutput(None, Trusting())
    retries = Retries(served.node)
    action = OptimizeTrajectoryAction(
        context, scheduler, output, controllers, Unwatched(), served.urgent, retries
    )
    actions = ActionClient(served.client, OptimizeTrajectory, "served_twice/optimize_trajectory")
    served.start()
    try:
        served.until(actions.server_is_ready)
        sent = [actions.send_goal_async(OptimizeTrajectory.Goal()) for _ in range(3)]
        served.until(lambda: all(future.done() for future in sent))
        results = [future.result().get_result_async() for future in sent]
        served.until(lambda: scheduler.waiting == (0, 3))
        served.pause(0.5)  # until the results were asked for
    finally:
        action.close()
        scheduler.close()
    try:
        served.until(lambda: all(result.done() for result in results))
        for result in results:
            assert result.result().status == GoalStatus.STATUS_ABORTED
            assert result.result().result.status.code == Status.PREEMPTED
            assert "shutting down" in result.result().result.status.message
    finally:
        actions.destroy()


def test_controllers_that_nobody_needs_any_more_are_forgotten(
    served: Served, control_msgs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ["/none"]
    context: Any = SimpleNamespace(
        node=served.node, parameter=lambda name: {PARAMETER: wanted[-1]}.get(name, ())
    )
    controllers = Controllers(context, served.urgent)

    def chosen() -> ChosenControllers:
        made = controllers.chosen()
        assert made is not None
        return made

    goals = [chosen()]
    controllers.needed_by(lambda controller: any(one.uses(controller) for one in goals))
    before = len(list(served.node.waitables))
    for number in range(20):
        wanted.append(f"/arm_{number}")
        [moving] = chosen().clients.values()
    assert set(controllers.clients) == {"/none", "/arm_19"}
    assert len(list(served.node.waitables)) == before + 1
    monkeypatch.setattr(ControllerHandOver, "moves", property(lambda one: one is moving))
    goals.clear()
    wanted.append("/arm_20")
    chosen()
    assert set(controllers.clients) == {"/arm_19", "/arm_20"}
    served.start()


class Dawdling:
    """A lock after whose release the thread of a test does nothing for a while."""

    def __init__(self, thread: threading.Thread) -> None:
        self._lock = threading.Lock()
        self._thread = thread

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        if threading.current_thread() is self._thread:
            time.sleep(0.5)


def test_a_controller_hears_a_stop_while_the_executor_is_busy(served: Served, control_msgs: None) -> None:
    """A motion can be cancelled when the answer of the controller that takes it is read."""
    accepted: list[Any] = []
    server = ActionServer(
        served.client,
        action_type(FOLLOWS.type),
        "/arm/follow",
        execute_callback=lambda handle: None,
        handle_accepted_callback=accepted.append,
        cancel_callback=lambda handle: CancelResponse.ACCEPT,
    )
    hand_over = ControllerHandOver(served.node, "/arm/follow", served.urgent)
    busy, over = threading.Event(), threading.Event()

    def keep_busy() -> None:
        busy.set()
        assert over.wait(LONG)

    timer = served.node.create_timer(0.01, keep_busy)
    served.start()
    served.until(lambda: hand_over._client.server_is_ready() and busy.is_set())
    timer.cancel()
    try:
        hand_over.send(JointTrajectory(), lambda done, why: None)
        served.until(lambda: accepted)
        hand_over.cancel()
        served.until(lambda: accepted[0].is_cancel_requested)
    finally:
        over.set()
    server.destroy()


def test_a_controller_may_answer_while_a_motion_is_being_sent(served: Served, control_msgs: None) -> None:
    """Otherwise nobody hears what becomes of the motion, and nobody can stop it."""
    kind = action_type(FOLLOWS.type)
    accepted: list[Any] = []
    server = ActionServer(
        served.client,
        kind,
        "/arm/follow",
        execute_callback=lambda handle: None,
        handle_accepted_callback=accepted.append,
        cancel_callback=lambda handle: CancelResponse.ACCEPT,
    )
    hand_over = ControllerHandOver(served.node, "/arm/follow", served.urgent)
    served.start()
    served.until(hand_over._client.server_is_ready)
    ended: list[str] = []
    sender = threading.Thread(
        target=lambda: hand_over.send(JointTrajectory(), lambda done, why: ended.append(why))
    )
    hand_over._client._lock = Dawdling(sender)
    sender.start()
    served.until(lambda: accepted and not sender.is_alive())
    hand_over.cancel()
    served.until(lambda: accepted[0].is_cancel_requested)
    assert not hand_over._client._futures  # one for each motion would be left
    server.destroy()
