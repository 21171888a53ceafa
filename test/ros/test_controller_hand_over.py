"""Motions handed to a controller's action, and what becomes of them when the node ends."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import rclpy
from rclpy.action.server import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from support.looks import Trusting, Unwatched
from support.ros_requests import READY, StartNode, stand, until_seen
from support.trajectory_goals import ABORTED, CANCELED, SUCCEEDED, Goal, Goals, joints, until_prepared

from kinopt_msgs.msg import Cost
from kinopt_ros.errors import StartStateError
from kinopt_ros.ros.actions.optimize_trajectory import OptimizeTrajectory, _Goal
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.motion import controller_hand_over
from kinopt_ros.ros.motion.controller_hand_over import LOOKS, ControllerHandOver, _Client
from kinopt_ros.ros.motion.controller_kinds import FOLLOWS, NoControllerError
from kinopt_ros.ros.motion.controllers import ChosenControllers, begun_later
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.robot import parameters
from kinopt_ros.status import Status

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(900)

AWAY = joints(panda_joint1=0.3)
ACTION = "/arm_controller/follow_joint_trajectory"
ELSEWHERE = {**READY, "panda_joint7": READY["panda_joint7"] + 1e-3}
"""Near READY: joint states by which the node is seen to hear them."""
STANDS = {"arrival_tolerance": 1e3}
"""For a robot that stands still whatever its pretended controller says."""
SHARED_ACTION = "/shared_controller/follow_joint_trajectory"


def started(start: StartNode, name: str, parameters: dict[str, object]) -> tuple[NodeProcess, Goals]:
    process, client = start(name, parameters)
    stand(client)
    sender = Goals(client, name)
    until_prepared(client)
    return process, sender


@pytest.fixture
def node(
    control_msgs: None, start_node: StartNode, panda_parameters: dict[str, object]
) -> Iterator[tuple[NodeProcess, Goals]]:
    """A node of the test's own, which it may end, that hands motions to a controller, and who sends goals to it."""
    made = started(
        start_node, "kinopt_hand_over", {**panda_parameters, **STANDS, "controller_action": ACTION}
    )
    yield made
    made[1].close()


@pytest.fixture(scope="module")
def goals(
    control_msgs: None, start_shared_node: StartNode, panda_parameters: dict[str, object]
) -> Iterator[Goals]:
    """Sends goals to such a node, which the tests of this module share, as its controller."""
    parameters = {**panda_parameters, **STANDS, "controller_action": SHARED_ACTION}
    _, sender = started(start_shared_node, "kinopt_shared", parameters)
    yield sender
    sender.close()


class Controller:
    """A pretended joint_trajectory_controller: it says what a test wants, after some time."""

    def __init__(self, client: Client, action: str) -> None:
        from control_msgs.action import FollowJointTrajectory

        self._type = FollowJointTrajectory
        self._running: list[tuple[float, Any]] = []
        self.begin_anew()
        self._server = ActionServer(
            client.node,
            FollowJointTrajectory,
            action,
            execute_callback=self._result,
            goal_callback=lambda goal: GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT,
            handle_accepted_callback=self._begin,
            cancel_callback=self._cancel,
            callback_group=ReentrantCallbackGroup(),
        )
        self._timer = client.node.create_timer(0.02, self._advance)
        self._node = client.node

    def begin_anew(self) -> None:
        """Say and know nothing of what was before."""
        self.goals: list[Any] = []
        self.cancelled = 0
        self.seconds = 0.2
        self.error_code = 0
        self.accepts = True
        self.stops = True

    @property
    def runs(self) -> bool:
        """Whether the controller is doing a motion."""
        return bool(self._running)

    def _begin(self, handle: Any) -> None:
        self.goals.append(handle.request)
        self._running.append((time.monotonic() + self.seconds, handle))

    def _cancel(self, handle: Any) -> CancelResponse:
        del handle
        self.cancelled += 1
        return CancelResponse.ACCEPT if self.stops else CancelResponse.REJECT

    def _advance(self) -> None:
        for entry in list(self._running):
            end, handle = entry
            if time.monotonic() >= end or handle.is_cancel_requested:
                self._running.remove(entry)
                handle.execute()

    def _result(self, handle: Any) -> Any:
        if handle.is_cancel_requested:
            handle.canceled()
        elif self.error_code:
            handle.abort()
        else:
            handle.succeed()
        return self._type.Result(
            error_code=self.error_code, error_string="" if not self.error_code else "too far off"
        )

    def close(self) -> None:
        """Leave the graph."""
        self._node.destroy_timer(self._timer)
        self._server.destroy()


@pytest.fixture
def own_controller(node: tuple[NodeProcess, Goals]) -> Iterator[Controller]:
    client = node[1].client
    made = Controller(client, ACTION)
    client.wait_until_heard()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_controller(goals: Goals) -> Iterator[Controller]:
    made = Controller(goals.client, SHARED_ACTION)
    goals.client.wait_until_heard()
    yield made
    made.close()


def begun(goals: Goals, controller: Controller, seconds: float) -> Goal:
    """A goal whose motion a controller has taken, which says for so many seconds that it is at it."""
    controller.seconds = seconds
    goal = goals.send(joint_goals=[AWAY], publish=True)
    goal.accepted()
    assert goals.client.spin_until(lambda: bool(controller.goals), 60.0)
    return goal


@pytest.fixture
def controller(goals: Goals, shared_controller: Controller) -> Controller:
    """The one that the tests share, as if it were new."""
    # A cancelled goal of the test before has its result sooner than the controller.
    assert goals.client.spin_until(lambda: not shared_controller.runs, 60.0)
    shared_controller.begin_anew()
    goals.client.trajectories.clear()
    return shared_controller


def test_without_control_msgs_a_sentence_says_so(
    start_node: StartNode,
    panda_parameters: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "control_msgs.py").write_text("raise ImportError('hidden')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    _, client = start_node("kinopt_alone", {**panda_parameters, "controller_action": ACTION})
    client.pretend_robot(READY)
    goals = Goals(client, "kinopt_alone")
    until_prepared(client)
    status, result = goals.run(joint_goals=[AWAY], publish=True)
    assert (status, Status(result.status.code)) == (ABORTED, Status.UNSUPPORTED_FEATURE)
    assert "control_msgs" in result.status.message
    assert "controller_action" in result.status.message
    assert goals.run(joint_goals=[AWAY])[0] == SUCCEEDED  # planning needs no controller
    goals.close()


def test_a_controller_that_is_not_there(node: tuple[NodeProcess, Goals]) -> None:
    status, result = node[1].run(joint_goals=[AWAY], publish=True)
    assert status == ABORTED
    assert ACTION in result.status.message


def test_a_motion_is_done_by_the_controller(goals: Goals, controller: Controller) -> None:
    begin = time.monotonic()
    status, result = goals.run(joint_goals=[AWAY], publish=True)
    assert status == SUCCEEDED, result.status.message
    assert result.published
    assert time.monotonic() - begin >= controller.seconds
    [goal] = controller.goals
    lead = goal.trajectory.points[0].time_from_start  # until its controller is where the robot is measured
    assert 100_000_000 <= lead.nanosec <= 200_000_000  # as it is not known, or far
    assert goal.trajectory == begun_later(result.trajectory, lead.nanosec)
    assert not goals.client.trajectories  # the topic is not used as well


def test_a_controller_that_gives_up_or_refuses(goals: Goals, controller: Controller) -> None:
    controller.error_code = -4
    status, result = goals.run(joint_goals=[AWAY], publish=True)
    assert (status, Status(result.status.code)) == (ABORTED, Status.CONTROL_FAILED)
    assert "too far off" in result.status.message
    controller.accepts = False
    status, result = goals.run(joint_goals=[AWAY], publish=True)
    assert status == ABORTED
    assert "refuses" in result.status.message


def test_cancel_is_forwarded(goals: Goals, controller: Controller) -> None:
    goal = begun(goals, controller, 30.0)
    goals.client.spin(0.2)
    assert goal.cancel() < 0.5 * controller.seconds
    assert goal.result()[0] == CANCELED
    assert goals.client.spin_until(lambda: controller.cancelled == 1, 60.0)


@pytest.mark.parametrize("emergency", [True, False])
def test_a_controller_that_refuses_to_stop_is_sent_a_brake(
    goals: Goals, controller: Controller, emergency: bool
) -> None:
    """It went on to the goal."""
    node = goals.client.node
    stop = node.create_publisher(Bool, "kinopt_shared/emergency_stop", 1)
    goals.client.wait_until_heard()
    goal = begun(goals, controller, 30.0)
    controller.stops, controller.seconds = False, 0.1
    try:
        if emergency:
            stop.publish(Bool(data=True))
        else:
            goal.cancel()
        assert goals.client.spin_until(lambda: len(controller.goals) == 2, 60.0)
        assert goal.result()[0] == (ABORTED if emergency else CANCELED)
        assert len(controller.goals[1].trajectory.points) == 1  # from wherever it is to rest
    finally:
        controller.stops = True
        controller._running = [(0.0, handle) for _, handle in controller._running]
        stop.publish(Bool(data=False))
        goals.client.spin(0.2)
        node.destroy_publisher(stop)


def test_a_newer_motion_stops_the_one_that_is_done(goals: Goals, controller: Controller) -> None:
    first = begun(goals, controller, 30.0)
    controller.seconds = 0.1
    status, result = goals.run(joint_goals=[joints(panda_joint1=-0.3)], publish=True)
    assert status == SUCCEEDED, result.status.message
    status, result = first.result()
    assert (status, Status(result.status.code)) == (ABORTED, Status.PREEMPTED)
    assert goals.client.spin_until(lambda: controller.cancelled == 1, 60.0)


@pytest.mark.parametrize("moving", [False, True])
def test_a_goal_that_is_refused_for_what_it_says_ends_no_motion(
    goals: Goals, controller: Controller, moving: bool
) -> None:
    """What the planner alone looked at ended what a controller did: a solver that nobody knows, a wrong number."""
    client = goals.client
    first = begun(goals, controller, 600.0)
    client.stop_robot()
    velocity = [0.5 if moving else 0.0] * len(READY)

    def tell() -> None:
        message = JointState(name=list(READY), position=list(ELSEWHERE.values()), velocity=velocity)
        message.header.stamp = client.node.get_clock().now().to_msg()
        client.publish_joint_state(message)

    timer = client.node.create_timer(0.02, tell)
    try:
        until_seen(client, ELSEWHERE)
        for code, what, fields in (
            (Status.UNKNOWN_SOLVER, "nope", {"solver": "nope"}),
            (Status.INVALID_REQUEST, "velocity_scaling is 2", {"velocity_scaling": 2.0}),
            (Status.INVALID_REQUEST, "num_points is 3", {"num_points": 3}),
            (Status.INVALID_REQUEST, "cost 'nope'", {"objective": [Cost(cost="nope")]}),
            (
                Status.UNSUPPORTED_FEATURE,
                "cannot have a duration",
                {"objective": [Cost(cost="rest")], "duration": 9.0},
            ),
        ):
            status, result = goals.run(joint_goals=[joints(panda_joint1=-0.3)], publish=True, **fields)
            assert (status, Status(result.status.code)) == (ABORTED, code), result.status.message
            assert what in result.status.message
        assert not first.done
        assert controller.cancelled == 0
    finally:
        client.node.destroy_timer(timer)
        stand(client)
        first.cancel()


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_goal_waits_until_the_robot_stands_that_the_one_before_moves(
    goals: Goals, controller: Controller, cancelled: bool
) -> None:
    """The one before went on, or it was refused because the robot had not come to rest a moment after a cancel."""
    client = goals.client
    first = begun(goals, controller, 30.0)
    client.stop_robot()
    names, still = list(READY), [0.0] * len(READY)

    def tell() -> None:
        stopped[0] += controller.cancelled > 0
        moving = [0.5, *still[1:]] if stopped[0] < 15 else still
        message = JointState(name=names, position=list(ELSEWHERE.values()), velocity=moving)
        message.header.stamp = client.node.get_clock().now().to_msg()
        client.publish_joint_state(message)

    stopped = [0]
    timer = client.node.create_timer(0.02, tell)
    try:
        until_seen(client, ELSEWHERE)
        if cancelled:
            first.cancel()
        controller.seconds = 0.1
        status, result = goals.run(joint_goals=[joints(panda_joint1=-0.3)], publish=True)
    finally:
        client.node.destroy_timer(timer)
        stand(client)
    assert status == SUCCEEDED, result.status.message
    assert stopped[0] >= 15
    assert first.result()[0] == (CANCELED if cancelled else ABORTED)


def test_a_goal_for_a_robot_that_goes_on_moving_is_refused(goals: Goals, controller: Controller) -> None:
    """After a while, in which it does not keep the node from its work."""
    client = goals.client
    client.stop_robot()
    timer = client.node.create_timer(
        0.02,
        lambda: client.publish_joint_state(
            JointState(name=list(READY), position=list(ELSEWHERE.values()), velocity=[0.5] * len(READY))
        ),
    )
    try:
        until_seen(client, ELSEWHERE)
        status, result = goals.run(joint_goals=[AWAY], publish=True)
    finally:
        client.node.destroy_timer(timer)
        stand(client)
    assert (status, Status(result.status.code)) == (ABORTED, Status.START_STATE_INVALID)
    assert "moves at a velocity" in result.status.message
    assert not controller.goals
    assert result.wall_time >= 2.0


def test_a_robot_that_has_moved_meanwhile_is_not_sent_anywhere(goals: Goals, controller: Controller) -> None:
    status, result = goals.run(joint_goals=[AWAY], publish=True, state=joints(panda_joint1=0.05))
    assert (status, Status(result.status.code)) == (ABORTED, Status.START_STATE_INVALID)
    assert not controller.goals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_end_of_the_node_stops_the_controller_and_waits_for_it(
    node: tuple[NodeProcess, Goals], own_controller: Controller, number: int
) -> None:
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("the signal is ignored here, as nohup has it, and so it is by the node")
    process, goals = node
    controller = own_controller
    goal = begun(goals, controller, 60.0)
    goals.client.spin(0.3)
    os.kill(process.pid, number)
    os.kill(process.pid, number)  # who is impatient must not leave the arm moving
    assert goals.client.spin_until(lambda: controller.cancelled == 1, 60.0)
    assert goals.client.spin_until(lambda: not process.running, 60.0)
    assert process.stop() == 0, process.log_text()
    assert controller.cancelled == 1
    assert "has not said" not in process.log_text()
    status, result = goal.result()
    assert (status, Status(result.status.code)) == (ABORTED, Status.PREEMPTED)


def test_the_end_of_the_node_does_not_wait_for_ever(
    node: tuple[NodeProcess, Goals], own_controller: Controller
) -> None:
    process, goals = node
    controller = own_controller
    controller.seconds = 60.0
    goals.send(joint_goals=[AWAY], publish=True).accepted()
    assert goals.client.spin_until(lambda: bool(controller.goals), 60.0)
    goals.client.spin(0.3)
    process.interrupt()  # the controller hears nothing any more: nobody spins it
    assert process.wait(60.0) == 0, process.log_text()
    assert f"the controller {ACTION} was told to stop, but has not said" in process.log_text()


def named(number: int) -> Any:
    """A goal in the answer to a cancel."""
    return SimpleNamespace(goal_id=SimpleNamespace(uuid=[number]))


class Pretended:
    """A hand-over whose controller says what a test wants."""

    def __init__(self) -> None:
        self.logged: list[str] = []
        self.ended: list[str] = []
        self.servers = [b"1"]
        self.taken: list[Any] = []
        self.cancels: list[Any] = []
        self.results: list[Any] = []
        self.given_up: list[Any] = []
        """Cancels for whose answers nobody waits any more."""
        self.one: Any = ControllerHandOver.__new__(ControllerHandOver)
        self.one.name, self.one.kind = ACTION, FOLLOWS
        self.one._node = SimpleNamespace(
            get_logger=lambda: SimpleNamespace(error=self.logged.append),
            get_publishers_info_by_topic=lambda topic: [
                SimpleNamespace(endpoint_gid=list(server)) for server in self.servers
            ],
        )
        self.one._running, self.one._closed = set(), False
        self.one._type = SimpleNamespace(Goal=lambda trajectory: trajectory)
        self.numbers: list[Any] = []
        self.unheard: list[Any] = []

        def send(goal: Any, goal_uuid: Any) -> Any:
            self.numbers.append(goal_uuid)
            return SimpleNamespace(add_done_callback=self.taken.append)

        self.one._client = SimpleNamespace(send_goal_async=send)
        self.one._unanswered = lambda: SimpleNamespace(
            goal_id=SimpleNamespace(uuid=[len(self.numbers)]),
            status=0,
            cancel_goal_async=lambda: self._future(self.unheard),
            get_result_async=lambda: SimpleNamespace(add_done_callback=self.results.append),
        )
        self.one.send(None, lambda done, sentence: self.ended.append(sentence))

    def _future(self, told: list[Any]) -> Any:
        """The answer to a cancel, when it comes."""
        return SimpleNamespace(
            add_done_callback=told.append, cancel=lambda told=told: self.given_up.append(told[-1])
        )

    def take(self) -> None:
        """The controller takes the motion."""
        self.handle = handle = SimpleNamespace(
            accepted=True,
            status=1,
            cancel_goal_async=lambda: self._future(self.cancels),
            get_result_async=lambda: SimpleNamespace(add_done_callback=self.results.append),
        )
        self.taken[0](SimpleNamespace(result=lambda: handle))

    def answer_cancel(self, code: int, *goals: int) -> None:
        """The controller answers the newest cancel."""
        answer = SimpleNamespace(return_code=code, goals_canceling=[named(goal) for goal in goals])
        self.cancels[-1](SimpleNamespace(result=lambda: answer))

    def end(self) -> None:
        """The motion has ended as cancelled."""
        ended = SimpleNamespace(status=5, result=SimpleNamespace(error_code=0, error_string=""))
        self.results[0](SimpleNamespace(result=lambda: ended))


def test_motions_of_a_controller_that_is_no_longer_used_are_ended_too() -> None:
    pretended = Pretended()
    assert pretended.one.moves
    pretended.one.cancel()  # before the controller has answered
    pretended.take()
    assert len(pretended.cancels) == 1
    assert pretended.one.moves
    pretended.end()
    assert not pretended.one.moves


def test_a_result_that_was_lost_is_asked_for_again() -> None:
    """The robot had arrived, and the motion ended as one that took too long: 2 of 91."""
    pretended = Pretended()
    pretended.take()
    pretended.one.look()
    assert len(pretended.results) == 1
    pretended.handle.status = 4  # as its status topic says
    pretended.one.look()
    pretended.one.look()
    assert len(pretended.results) == 2
    assert pretended.one.moves
    done = SimpleNamespace(status=4, result=SimpleNamespace(error_code=0, error_string=""))
    pretended.results[1](SimpleNamespace(result=lambda: done))
    assert not pretended.one.moves
    pretended.end()  # late
    assert pretended.ended == [""]


def test_who_waits_for_a_controller_when_the_node_ends_is_no_defect() -> None:
    pretended = Pretended()

    def gone(timeout_sec: float) -> bool:
        raise RuntimeError("cannot use Destroyable because destruction was requested")

    pretended.one._client.wait_for_server = gone
    with pytest.raises(RuntimeError, match="Destroyable"):
        pretended.one.wait()
    pretended.one._closed = True
    with pytest.raises(NoControllerError):
        pretended.one.wait()


def test_a_client_that_is_destroyed_before_it_is_closed_is_no_defect() -> None:
    pretended = Pretended()

    def gone(timeout_sec: float) -> bool:
        raise InvalidHandle("cannot use Destroyable because destruction was requested")

    pretended.one._client.wait_for_server = gone
    with pytest.raises(NoControllerError):
        pretended.one.wait()


def test_a_controller_that_does_not_end_its_motion_is_waited_for_and_gets_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would stop as it likes, by a motion that begins where it should have been at rest."""
    pretended = Pretended()
    pretended.take()
    pretended.one._client.wait_for_server = lambda timeout_sec: True
    seconds, patience = [0.0], [np.inf]

    def sleep(some: float) -> None:
        seconds[0] += some
        if seconds[0] > patience[0]:
            pretended.end()

    clock = SimpleNamespace(monotonic=lambda: seconds[0], sleep=sleep)
    monkeypatch.setattr(controller_hand_over, "time", clock)
    with pytest.raises(StartStateError, match=f"{ACTION} has not ended the motion"):
        pretended.one.wait()
    patience[0] = seconds[0] + 0.5
    pretended.one.wait()
    assert not pretended.one.moves


def test_a_controller_that_refuses_to_stop_is_named_and_told_again() -> None:
    pretended = Pretended()
    pretended.take()
    pretended.one.cancel()
    pretended.one.cancel()
    assert len(pretended.cancels) == 1  # it has not answered
    pretended.answer_cancel(1)
    assert pretended.logged == [f"the controller {ACTION} was told to stop: it refuses, with return code 1"]
    pretended.one.cancel()
    pretended.answer_cancel(0, 0)
    pretended.one.cancel()
    assert len(pretended.cancels) == 2  # it stops
    assert len(pretended.logged) == 1
    pretended.end()
    assert not pretended.one.moves


def test_a_controller_that_stops_another_goal_does_not_stop_this_one() -> None:
    """It was believed, and the robot went on to its goal."""
    pretended = Pretended()
    pretended.take()
    pretended.one.cancel()
    pretended.answer_cancel(0, 7)
    assert pretended.logged == [
        f"the controller {ACTION} was told to stop: it says that it stops, but names another goal"
    ]
    pretended.one.cancel()
    assert len(pretended.cancels) == 2
    pretended.answer_cancel(0, 7, 0)
    pretended.one.cancel()
    assert len(pretended.cancels) == 2


def test_a_controller_that_has_taken_a_motion_unheard_is_told_to_stop() -> None:
    """ROS loses answers to those whom the other side has not discovered yet: the robot moves, and nobody knows."""
    pretended = Pretended()
    pretended.one.cancel()
    unknown = SimpleNamespace(return_code=2, goals_canceling=[])
    pretended.unheard[-1](SimpleNamespace(result=lambda: unknown))  # it has not read the goal yet
    assert pretended.one.moves
    pretended.one.look()
    assert len(pretended.unheard) == 2
    stops = SimpleNamespace(return_code=0, goals_canceling=[named(0)])
    pretended.unheard[-1](SimpleNamespace(result=lambda: stops))
    pretended.one.look()
    assert len(pretended.unheard) == 2
    pretended.end()
    assert not pretended.one.moves
    assert "as cancelled" in pretended.ended[0]


def test_a_motion_that_its_controller_does_not_take_in_time_is_stopped() -> None:
    """A controller that hangs would begin with it minutes later, among obstacles that came meanwhile."""
    pretended = Pretended()
    for _ in range(LOOKS - 1):
        pretended.one.look()
    assert not pretended.unheard
    pretended.one.look()
    assert len(pretended.unheard) == 1
    assert "has not said within 5 s that it takes the motion" in pretended.logged[0]
    pretended.take()  # now
    assert len(pretended.cancels) == 1
    pretended.answer_cancel(0, 0)
    pretended.end()
    assert not pretended.one.moves
    assert "as cancelled" in pretended.ended[0]


def test_a_controller_that_has_lost_a_cancel_or_refuses_it_is_told_until_it_stops() -> None:
    """Else the robot goes on until somebody asks once more."""
    pretended = Pretended()
    pretended.take()
    pretended.one.cancel()
    for number in range(1, 4):
        pretended.one.look()
        assert len(pretended.cancels) == 1 + number
        assert len(pretended.given_up) == number  # rclpy keeps what is waited for
    pretended.answer_cancel(1)  # it refuses
    pretended.one.look()
    assert len(pretended.cancels) == 5
    pretended.answer_cancel(0, 0)
    pretended.one.look()
    assert len(pretended.cancels) == 5
    assert len(pretended.logged) == 1


def test_a_controller_that_never_takes_a_motion_is_not_told_to_stop_for_ever() -> None:
    pretended = Pretended()
    pretended.one.cancel()
    unknown = SimpleNamespace(return_code=2, goals_canceling=[])
    for _ in range(LOOKS):
        pretended.unheard[-1](SimpleNamespace(result=lambda: unknown))
        pretended.one.look()
    assert len(pretended.unheard) == LOOKS
    assert not pretended.one.moves
    assert "never said that it takes the motion" in pretended.ended[0]


@pytest.mark.parametrize("taken", [True, False])
def test_a_stop_that_is_repeated_for_hours_asks_a_controller_that_has_gone_once(taken: bool) -> None:
    """rclpy keeps every request that is never answered."""
    pretended = Pretended()
    if taken:
        pretended.take()
    pretended.servers = []
    for _ in range(LOOKS):
        pretended.one.look()
    for _ in range(1000):
        pretended.one.cancel()
        pretended.one.look()
    asked = pretended.cancels if taken else pretended.unheard
    assert len(asked) == 1
    pretended.servers = [b"1"]
    pretended.one.look()
    assert len(asked) == 2


def test_a_controller_that_says_that_it_stops_and_does_not_is_named() -> None:
    """What it was asked for keeps other motions from beginning: not for ever."""
    pretended = Pretended()
    pretended.take()
    pretended.one.cancel()
    pretended.answer_cancel(0, 0)
    for _ in range(LOOKS - 1):
        pretended.one.look()
    assert pretended.one.moves
    assert not pretended.logged
    pretended.one.look()
    assert "it has said that it does, but not within 5 s that it has" in pretended.logged[0]
    assert not pretended.one.moves
    pretended.end()  # later
    assert len(pretended.ended) == 1


def test_a_motion_that_was_over_when_its_controller_was_told_to_stop_is_no_refusal() -> None:
    pretended = Pretended()
    pretended.take()
    pretended.one.cancel()
    pretended.answer_cancel(3)  # ERROR_GOAL_TERMINATED
    assert not pretended.logged


def test_a_controller_that_has_gone_ends_its_motion() -> None:
    pretended = Pretended()
    pretended.take()
    for _ in range(LOOKS - 1):
        pretended.servers = []
        pretended.one.look()
    pretended.servers = [b"1"]
    pretended.one.look()  # nothing was lost but messages of the graph
    pretended.servers = []
    for _ in range(LOOKS - 1):
        pretended.one.look()
    assert pretended.one.moves
    pretended.one.look()
    assert not pretended.one.moves
    assert pretended.ended == [f"the controller {ACTION} has gone: what became of the motion is not known"]
    pretended.end()  # too late
    assert len(pretended.ended) == 1


def test_a_controller_that_was_started_anew_ends_its_motion() -> None:
    """The new one has the name of the one before, and knows nothing of the motion."""
    pretended = Pretended()
    pretended.take()
    pretended.servers = [b"2"]
    for _ in range(LOOKS):
        pretended.one.look()
    assert pretended.ended == [f"the controller {ACTION} has gone: what became of the motion is not known"]
    assert not pretended.one.moves


def test_a_controller_that_does_not_know_the_motion_ends_it() -> None:
    pretended = Pretended()
    pretended.take()
    pretended.one.cancel()
    pretended.answer_cancel(2)  # ERROR_UNKNOWN_GOAL_ID
    assert not pretended.one.moves
    assert "started anew" in pretended.ended[0]
    assert not pretended.logged


def test_a_controller_that_was_out_of_reach_is_told_to_stop() -> None:
    """It has gone on with the motion, which has ended as failed meanwhile."""
    pretended = Pretended()
    pretended.take()
    pretended.servers = []
    for _ in range(LOOKS):
        pretended.one.look()
    assert len(pretended.ended) == 1
    pretended.one.cancel()  # an emergency stop, which it does not hear
    before = len(pretended.cancels)
    pretended.servers = [b"1"]
    pretended.one.look()
    assert len(pretended.cancels) == before + 1
    pretended.answer_cancel(1)  # it refuses
    assert len(pretended.logged) == 1
    pretended.one.cancel()  # another emergency stop
    assert len(pretended.cancels) == before + 2
    pretended.end()
    pretended.one.cancel()
    pretended.one.look()
    assert len(pretended.cancels) == before + 2


def test_a_controller_that_refuses_at_once_holds_nobody_up() -> None:
    ended: list[Any] = []

    def send(motion: Any, tell: Any) -> Any:
        tell(False, "the controller refuses the motion")  # on this thread, while the motion is being sent
        return SimpleNamespace(cancel=lambda: None, over=True)

    context: Any = SimpleNamespace(
        parameter=lambda name: "",
        statistics=SimpleNamespace(record=lambda *arguments: None),
        now=lambda: 0,
        joint_states=SimpleNamespace(
            of=lambda robot: SimpleNamespace(seen_velocity=np.zeros(1), age=np.zeros(1))
        ),
    )
    output, watched = MotionOutput(None, Trusting()), Unwatched()
    action: Any = SimpleNamespace(context=context, output=output, watched=watched)
    goals: Any = SimpleNamespace(
        context=action.context,
        name="optimize_trajectory",
        server=SimpleNamespace(notify_execute=lambda handle, conclude: ended.append(handle)),
    )
    number = SimpleNamespace(uuid=[0] * 16)
    handle = SimpleNamespace(goal_id=number, request=None, abort=lambda: None, succeed=lambda: None)
    goal: Any = _Goal(action, goals, handle)
    controller: Any = SimpleNamespace(wait=lambda: None, send=send, kind=FOLLOWS)
    goal.chosen = ChosenControllers({"arm": controller}, None, action.context)
    claim = output.claim("a goal", lambda owner: None)
    goal._claim = claim
    limits = SimpleNamespace(velocity=np.ones(1))
    robot = SimpleNamespace(variable_index={"a": 0}, variable_names=("a",), limits=limits)
    asked = SimpleNamespace(
        loaded=SimpleNamespace(model=robot),
        problem=SimpleNamespace(start=np.zeros(1), scene=None, clearance=0.0),
        controller_joints=(),
    )
    result = OptimizeTrajectory.Result()
    result.trajectory.joint_names = ["a"]

    def work() -> None:
        goal._publish(asked, claim, result)
        [(run, tell)] = watched.begun
        tell(run.watch())

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(30.0)
    assert not worker.is_alive()
    assert ended == [handle]
    assert result.status.code == Status.CONTROL_FAILED


@pytest.mark.parametrize(
    "name", ["bad name", "a//b", "1x", "~x/y", "a/", "{bad}/x", "arm\0/x", "x" * 240, "x" * 5000]
)
def test_what_no_action_can_be_called_is_refused(name: str) -> None:
    answer = parameters.check([Parameter("controller_action", value=name)])
    assert not answer.successful
    assert answer.reason.startswith("controller_action is ")
    assert "which no action can be called" in answer.reason
    assert len(answer.reason) < 500


@pytest.mark.parametrize("name", ["", "/arm/follow", "arm/follow", "~/follow"])
def test_names_of_actions_are_taken(name: str) -> None:
    assert parameters.check([Parameter("controller_action", value=name)]).successful


def test_a_client_can_be_waited_for_while_it_is_made(ros: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The urgent thread finds it in the node before rclpy has made all of it."""
    node = rclpy.create_node("makes_a_client")
    add = node.add_waitable
    counts = []

    def asked_at_once(waitable: Any) -> None:
        add(waitable)
        counts.append(waitable.get_num_entities().num_clients)

    monkeypatch.setattr(node, "add_waitable", asked_at_once)
    urgent: Any = SimpleNamespace(group=node.default_callback_group, wake=lambda: None)
    client = _Client(node, OptimizeTrajectory, "nowhere", urgent)
    assert counts == [3]
    client.destroy()
    node.destroy_node()
