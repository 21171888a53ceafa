"""Goals that lie unread while the executor is at work, and cancels and stops that come after them.

The executor is held back until the test lets it go.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from rclpy.action import ActionClient
from rclpy.parameter import Parameter
from rclpy.subscription import Subscription
from std_srvs.srv import Trigger
from support.looks import Trusting
from support.served import Gate, Served

from kinopt_msgs.action import OptimizeTrajectory
from kinopt_ros.ros.motion.output import EmergencyStopError, MotionOutput
from kinopt_ros.ros.node import KinoptNode
from kinopt_ros.ros.serving import goal_server, guarded_executor
from kinopt_ros.ros.serving.goal_server import LONG_UNREAD
from kinopt_ros.ros.serving.kept_goals import KeptGoal, KeptGoals, _cancelled
from kinopt_ros.ros.topics.emergency_stop import EmergencyStop

ACTION = "unread/optimize_trajectory"


class Goal(KeptGoal):
    """Succeeds as soon as it begins, where the robot may move by it, unless it waits for its end."""

    def begin(self) -> None:
        made.append(self)
        if self.is_over or waits:
            return
        try:
            output[0].claim("a goal", lambda owner: None, self._stops)
        except EmergencyStopError:
            self.end(OptimizeTrajectory.Result(), self.handle.abort, 0)
            return
        self.end(OptimizeTrajectory.Result(), self.handle.succeed, 0)

    def cancel(self) -> None:
        cancelled = self.handle.canceled if self.handle.is_cancel_requested else self.handle.abort
        self.end(OptimizeTrajectory.Result(), cancelled, 0)


made: list[Goal] = []
waits: list[bool] = []
output: list[MotionOutput] = []


class World:
    """An action whose node is at work, and a client of it."""

    def __init__(self) -> None:
        self.served = Served("unread")
        self.gate = Gate()
        node = self.served.node
        node.create_service(Trigger, "~/slow", self.gate.pass_through)
        context: Any = SimpleNamespace(
            node=node, statistics=SimpleNamespace(record=lambda *given: None), joint_states=None
        )
        self.goals: KeptGoals[Goal] = KeptGoals(
            context, self.served.urgent, OptimizeTrajectory, "~/optimize_trajectory", Goal
        )
        output[:] = [MotionOutput(SimpleNamespace(publish=lambda message: None), Trusting())]
        output[0].before_stops(lambda: self.goals.server.tell_unread(Goal.come_before_a_stop))
        self.stop = EmergencyStop(context, output[0], lambda *said: None, list, lambda: None)
        client = self.served.client
        self.slow = client.create_client(Trigger, "unread/slow")
        self.cancels = client.create_client(CancelGoal, f"{ACTION}/_action/cancel_goal")
        self.actions = ActionClient(client, OptimizeTrajectory, ACTION)
        self.served.start()
        self.served.until(
            lambda: (
                self.actions.server_is_ready()
                and self.slow.service_is_ready()
                and self.cancels.service_is_ready()
            )
        )

    def send(self) -> Any:
        return self.actions.send_goal_async(OptimizeTrajectory.Goal())

    def be_at_work(self) -> None:
        """Have the executor at work until the gate is opened."""
        self.slow.call_async(Trigger.Request())
        self.served.until(self.gate.entered.is_set)
        self.until_long_unread()

    def until_long_unread(self) -> None:
        """Wait until the executor has been at work for so long that what has come since lies unread for long."""
        begin = time.monotonic()
        self.served.until(lambda: time.monotonic() - begin > LONG_UNREAD)

    def read_slowly(self, monkeypatch: pytest.MonkeyPatch) -> Gate:
        """Have the action's goals be read until the gate that is returned is opened."""
        gate, server = Gate(), self.goals.server
        execute = server._execute_goal_request

        async def slowly(taken: Any) -> None:
            gate.pass_through()
            await execute(taken)

        monkeypatch.setattr(server, "_execute_goal_request", slowly)
        return gate

    def until_told(self) -> None:
        """Wait until the executor has seen that nothing lies unread."""
        self.served.until(lambda: not self.goals.server._tells)

    def status(self, sent: Any) -> int:
        """Let the executor go on; return how a goal has ended."""
        self.gate.open.set()
        self.served.until(sent.done)
        result = sent.result().get_result_async()
        self.served.until(result.done)
        return int(result.result().status)


@pytest.fixture
def world(ros: None) -> Iterator[World]:
    made.clear()
    waits.clear()
    one = World()
    yield one
    one.gate.open.set()
    one.goals.close()
    one.actions.destroy()
    one.served.close()


def never_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no look for work count as waiting: on a busy machine one may take as long."""
    monkeypatch.setattr(guarded_executor, "_IDLE_SECONDS", 1e9)


def test_a_goal_that_lay_unread_through_an_emergency_stop_moves_nothing(world: World) -> None:
    """It moved the robot by 1.2 rad after the stop's end, beside a request of 100,000 poses."""
    world.be_at_work()
    sent = world.send()
    world.stop.stop_all("the emergency stop")
    output[0].release()
    assert world.status(sent) == GoalStatus.STATUS_ABORTED
    world.until_told()
    assert world.status(world.send()) == GoalStatus.STATUS_SUCCEEDED


def test_a_goal_that_lay_unread_is_told_what_came_after_it(world: World) -> None:
    world.be_at_work()
    sent = [world.send() for _ in range(3)]
    for _ in range(1000):
        world.goals.server.tell_unread(Goal.cancel)  # as the event 'stop' does
    assert len(world.goals.server._tells) == 1
    assert [world.status(each) for each in sent] == 3 * [GoalStatus.STATUS_ABORTED]
    world.until_told()
    assert world.status(world.send()) == GoalStatus.STATUS_SUCCEEDED


def test_what_a_goal_is_told_that_was_taken_already_is_not_told_the_next_one(world: World) -> None:
    """ROS may say once more that a goal is there: who stopped then, and asked for the next motion, did not get it."""
    server = world.goals.server
    server._next_told = []
    server.tell_unread(Goal.cancel)
    server._is_goal_request_ready = True
    server._is_cancel_request_ready = server._is_result_request_ready = False
    assert "goal" not in server.take_data()
    assert world.status(world.send()) == GoalStatus.STATUS_SUCCEEDED


def test_who_stops_and_at_once_asks_for_the_next_motion_gets_that(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As MoveGroupInterface's stop() and move() do: the executor waits, and nothing lies unread."""
    monkeypatch.setattr(goal_server, "LONG_UNREAD", 5.0)  # a busy machine may stop the executor in a callback
    for _ in range(20):
        world.goals.server.tell_unread(Goal.cancel)
        assert world.status(world.send()) == GoalStatus.STATUS_SUCCEEDED


def test_goals_behind_many_short_callbacks_lie_unread_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them began anew to count: of 40 goals that lay unread all moved the robot after a stop's end."""
    never_idle(monkeypatch)
    world.be_at_work()
    sent = [world.send() for _ in range(6)]
    gates = {2: Gate(), 3: Gate()}
    begin = Goal.begin

    def slowly(goal: Goal) -> None:
        if len(made) in gates:
            gates[len(made)].pass_through()
        begin(goal)

    monkeypatch.setattr(Goal, "begin", slowly)
    world.served.pause(0.5)  # until ROS has received them
    world.gate.open.set()
    world.served.until(gates[2].entered.is_set)
    world.until_long_unread()
    gates[2].open.set()
    world.served.until(gates[3].entered.is_set)
    world.stop.stop_all("the emergency stop")
    output[0].release()
    gates[3].open.set()
    last = sent[-1]
    assert world.status(last) == GoalStatus.STATUS_ABORTED


def test_goals_behind_short_callbacks_of_others_lie_unread_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each callback began anew to count: 15 of 15 goals moved the robot after a stop's end, behind eight of 15 ms."""
    never_idle(monkeypatch)
    gates = [Gate(), Gate()]
    world.be_at_work()
    for gate in gates:  # which the executor runs without a look between them
        world.served.rest.create_task(gate.pass_through)
    world.gate.open.set()
    world.served.until(lambda: any(gate.entered.is_set() for gate in gates))
    # In the order that the executor of this ROS has.
    first, second = gates if gates[0].entered.is_set() else reversed(gates)
    sent = world.send()
    world.until_long_unread()
    first.open.set()
    world.served.until(second.entered.is_set)
    world.stop.stop_all("the emergency stop")
    output[0].release()
    second.open.set()
    assert world.status(sent) == GoalStatus.STATUS_ABORTED


def test_goals_of_an_action_beside_a_long_one_of_another_lie_unread_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor asks for what is there once for all actions, and tells each when it comes to it."""
    never_idle(monkeypatch)
    other: KeptGoals[Goal] = KeptGoals(
        world.goals.context, world.served.urgent, OptimizeTrajectory, "~/other", Goal
    )
    reading = world.read_slowly(monkeypatch)
    actions = ActionClient(world.served.client, OptimizeTrajectory, "unread/other")
    world.served.until(actions.server_is_ready)
    second = Gate()
    world.send()
    world.served.until(reading.entered.is_set)
    sent = actions.send_goal_async(OptimizeTrajectory.Goal())
    world.served.rest.create_task(second.pass_through)
    world.until_long_unread()
    reading.open.set()
    world.served.until(second.entered.is_set)
    other.server.tell_unread(Goal.cancel)
    second.open.set()
    assert world.status(sent) == GoalStatus.STATUS_ABORTED
    other.close()
    actions.destroy()


def test_a_stop_of_a_goal_that_was_just_accepted_is_of_that_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client knows first: 'stop' right after that let 2 of 15 goals go on to their ends, on a busy node 9 of 20."""
    monkeypatch.setattr(goal_server, "LONG_UNREAD", 1e9)  # nothing else lies unread
    between = Gate()
    make = world.goals._make

    def slowly(*given: Any) -> Goal:
        between.pass_through()
        return make(*given)

    monkeypatch.setattr(world.goals, "_make", slowly)
    first = world.send()
    world.served.until(first.done)
    world.goals.server.tell_unread(Goal.cancel)
    world.served.until(between.entered.is_set)
    second = world.send()
    between.open.set()
    assert world.status(first) == GoalStatus.STATUS_ABORTED
    assert world.status(second) == GoalStatus.STATUS_SUCCEEDED


def test_a_stop_by_the_executor_itself_is_of_nothing_that_it_leaves_unread(world: World) -> None:
    """It reads the next message as soon as the callback is over that stops."""
    told: list[Any] = []

    def stop(*given: Any) -> Any:
        world.gate.pass_through()
        world.goals.server.tell_unread(Goal.cancel)
        told.append(world.goals.server.take_tells())
        return given[-1]

    world.served.node.create_service(Trigger, "~/stop", stop)
    stops = world.served.client.create_client(Trigger, "unread/stop")
    world.served.until(stops.service_is_ready)
    answer = stops.call_async(Trigger.Request())
    world.until_long_unread()
    world.gate.open.set()
    world.served.until(answer.done)
    assert told == [[]]


def test_who_tells_does_not_wait_for_what_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An emergency stop waited for a goal of 100,000 points that was being read."""
    reading = world.read_slowly(monkeypatch)
    sent = world.send()
    world.served.until(reading.entered.is_set)
    world.until_long_unread()
    world.stop.stop_all("the emergency stop")
    output[0].release()
    reading.open.set()
    assert world.status(sent) == GoalStatus.STATUS_ABORTED


def test_a_cancel_of_all_is_of_goals_that_lie_unread_too(world: World) -> None:
    """They ran to their ends."""
    waits.append(True)
    first = world.send()
    world.served.until(first.done)
    world.be_at_work()
    second = world.send()
    answer = world.cancels.call_async(CancelGoal.Request())  # no number and no time
    world.served.until(answer.done)
    assert not world.gate.open.is_set()
    assert answer.result().return_code == CancelGoal.Response.ERROR_NONE
    number = bytes(first.result().goal_id.uuid)
    assert [bytes(goal.goal_id.uuid) for goal in answer.result().goals_canceling] == [number]
    assert world.status(second) == GoalStatus.STATUS_CANCELED
    assert world.status(first) == GoalStatus.STATUS_CANCELED


def test_a_cancel_of_all_after_another_end_of_the_same_goals_is_no_defect(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    world.be_at_work()
    sent = [world.send() for _ in range(5)]
    world.goals.server.tell_unread(Goal.cancel)
    world.goals.server.tell_unread(_cancelled)  # as a cancel of all does
    assert len(world.goals.server._tells) == 2
    for each in sent:
        assert world.status(each) in (GoalStatus.STATUS_ABORTED, GoalStatus.STATUS_CANCELED)
    assert "internal error" not in capfd.readouterr().err


def test_ros_tells_when_what_moves_the_robot_came(ros: None, panda_parameters: dict[str, object]) -> None:
    """It does so for callbacks alone that cannot do without it."""
    given = [
        Parameter(name, value=value)
        for name, value in {**panda_parameters, "markers.interactive": True}.items()
    ]
    node = KinoptNode(namespace="told", parameter_overrides=given)
    try:
        told = {
            one.topic_name.removeprefix("/told/kinopt/")
            for one in node.subscriptions
            if one._callback_type is Subscription.CallbackType.WithMessageInfo
        }
        assert told == {"target_pose", "servo/twist", "servo/target_pose", "interactive_markers/feedback"}
    finally:
        node.close()
        node.destroy_node()
