"""A managed node: what its states answer, build and move, and what is left after many of them."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from std_srvs.srv import Trigger
from support.joystick import Joystick
from support.process_size import size_of
from support.ros_requests import READY, StartNode, ik, pose, target
from support.thorough import times
from support.trajectory_goals import ABORTED, SUCCEEDED, Goals, joints, until_prepared

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene, GetScene, SolveIK
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import PREPARED_SECONDS, Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.client.simulated_robot import SimulatedRobotTopics
from kinopt_ros.status import Status
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(900)

NODE = "kinopt_managed"
CYCLES = times(20, 50)


class Managed:
    """A managed node, as a lifecycle manager sees it."""

    def __init__(self, process: NodeProcess, client: Client) -> None:
        self.process = process
        self.client = client
        self._change = client.node.create_client(ChangeState, f"{NODE}/change_state")
        self._state = client.node.create_client(GetState, f"{NODE}/get_state")
        for service in (self._change, self._state):
            assert service.wait_for_service(60.0)

    def change(self, transition: int, patience: float = 120.0) -> bool:
        """Ask for a transition; whether it was made."""
        answer = self._call(self._change, ChangeState.Request(transition=Transition(id=transition)), patience)
        return bool(answer.success)

    @property
    def state(self) -> int:
        """Id of its state."""
        return int(self._call(self._state, GetState.Request(), 120.0).current_state.id)

    def _call(self, service: Any, request: Any, patience: float) -> Any:
        future = service.call_async(request)
        assert self.client.spin_until(future.done, patience), "no answer"
        return future.result()


def manage(start_node: StartNode, parameters: dict[str, object], forked: bool) -> Managed:
    """Start a managed node that is unconfigured, and a robot that stands."""
    process, client = start_node(NODE, {**parameters, "managed": True}, ready=False, forked=forked)
    client.pretend_robot(READY)
    client.wait_until_found()
    return Managed(process, client)


@pytest.fixture
def managed(start_node: StartNode, panda_parameters: dict[str, object]) -> Managed:
    return manage(start_node, panda_parameters, forked=True)


@pytest.fixture
def started(start_node: StartNode, panda_parameters: dict[str, object]) -> Managed:
    """As users start it: what it takes is measured."""
    return manage(start_node, panda_parameters, forked=False)


def request() -> SolveIK.Request:
    """A pose that the Panda reaches."""
    return ik(pose(x=0.4))


def with_box() -> ApplyScene.Request:
    """A box far from the robot is added."""
    box = CollisionObject(id="box", pose=pose(x=3.0), shapes=[Shape(type="box", dimensions=[0.1, 0.1, 0.1])])
    return ApplyScene.Request(operations=[SceneOperation(operation="add", object=box)])


def ready_again(client: Client) -> None:
    """Wait until the robot is in service; what is compiled is there already."""
    client.wait_until_ready(300.0)


def until_all_is_prepared(client: Client) -> None:
    """Wait until nothing is being prepared any more."""
    end = time.monotonic() + PREPARED_SECONDS
    while "all is prepared" not in (sentence := client.wait_until_ready(300.0)):
        assert time.monotonic() < end, sentence
        client.spin(0.2)


def test_each_state_does_what_it_says(managed: Managed) -> None:
    client = managed.client

    def refused() -> None:
        answer = client.call("solve_ik", request())
        assert Status(answer.status.code) is Status.NOT_READY
        assert f"ros2 lifecycle set /{NODE} activate" in answer.status.message
        assert not client.call("ready", Trigger.Request()).success
        report, trajectory = client._move_to(target(pose(x=0.4)), 60.0)
        assert (Status(report.status.code), trajectory) == (Status.NOT_READY, None)

    assert managed.state == State.PRIMARY_STATE_UNCONFIGURED
    refused()
    assert not managed.change(Transition.TRANSITION_ACTIVATE)  # there is no such way
    assert managed.state == State.PRIMARY_STATE_UNCONFIGURED
    assert managed.change(Transition.TRANSITION_CONFIGURE)
    assert managed.state == State.PRIMARY_STATE_INACTIVE
    refused()
    assert managed.change(Transition.TRANSITION_ACTIVATE)
    ready_again(client)
    assert client.call("solve_ik", request()).status.code == Status.SUCCESS
    report, trajectory = client.move_to(target(pose(x=0.4)))
    assert report.status.code == Status.SUCCESS, report.status.message
    assert trajectory is not None
    assert managed.change(Transition.TRANSITION_DEACTIVATE)
    refused()
    assert managed.change(Transition.TRANSITION_CLEANUP)
    assert managed.state == State.PRIMARY_STATE_UNCONFIGURED
    refused()
    assert managed.change(Transition.TRANSITION_UNCONFIGURED_SHUTDOWN)
    assert managed.state == State.PRIMARY_STATE_FINALIZED
    answer = client.call("solve_ik", request())
    assert Status(answer.status.code) is Status.NOT_READY
    assert "start it anew" in answer.status.message
    report, trajectory = client._move_to(target(pose(x=0.4)), 60.0)
    assert (Status(report.status.code), trajectory) == (Status.NOT_READY, None)


def test_clean_up_forgets_the_scene_and_the_robot_comes_again(managed: Managed) -> None:
    client = managed.client
    for wanted in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
        assert managed.change(wanted)
    ready_again(client)
    assert client.call("apply_scene", with_box()).status.code == Status.SUCCESS
    for wanted in (
        Transition.TRANSITION_DEACTIVATE,
        Transition.TRANSITION_ACTIVATE,  # which forgets nothing
    ):
        assert managed.change(wanted)
    before = client.call("get_scene", GetScene.Request()).scene
    assert [one.id for one in before.objects] == ["box"]
    for wanted in (
        Transition.TRANSITION_DEACTIVATE,
        Transition.TRANSITION_CLEANUP,
        Transition.TRANSITION_CONFIGURE,
        Transition.TRANSITION_ACTIVATE,
    ):
        assert managed.change(wanted)
    ready_again(client)
    after = client.call("get_scene", GetScene.Request()).scene
    assert not after.objects
    assert after.version > before.version


def test_what_runs_is_stopped_on_the_way_to_inactive(managed: Managed) -> None:
    client = managed.client
    for wanted in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
        assert managed.change(wanted)
    ready_again(client)
    until_prepared(client)
    goals = Goals(client, NODE)
    try:
        client.spin(0.3)
        # So slowly that it is under way whenever a busy machine comes to the transition.
        slowly = {"velocity_scaling": 0.01, "publish": True}
        status, result = goals.run(joint_goals=[joints(panda_joint1=1.2)], **slowly)
        assert status == SUCCEEDED, result.status.message
        assert client.spin_until(lambda: bool(client.trajectories), 60.0)
        planned = client.trajectories[-1]
        assert managed.change(Transition.TRANSITION_DEACTIVATE)
        assert client.spin_until(lambda: len(client.trajectories) > 1, 60.0), "no stop was published"
        stop = client.trajectories[-1]
        assert not any(stop.points[-1].velocities)
        assert stop.points[-1].positions != planned.points[-1].positions
        status, result = goals.run(joint_goals=[joints(panda_joint1=0.2)], publish=True)
        assert (status, Status(result.status.code)) == (ABORTED, Status.NOT_READY)
        assert managed.change(Transition.TRANSITION_ACTIVATE)
        status, result = goals.run(joint_goals=[joints(panda_joint1=0.2)])
        assert status == SUCCEEDED, result.status.message
    finally:
        goals.close()


def test_a_joystick_that_is_held_all_the_time_moves_nothing_after_activation(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    pause = 1.0  # longer than a busy machine keeps a thread waiting
    managed = manage(start_node, {**panda_parameters, "servo.timeout": pause}, forked=True)
    client = managed.client
    for wanted in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
        assert managed.change(wanted)
    ready_again(client)
    until_prepared(client)
    client.stop_robot()
    robot = SimulatedRobotTopics(
        client.node, SimulatedRobot(load_robot("panda"), start=READY), [f"{NODE}/joint_trajectory"]
    )
    try:
        with Joystick(client, NODE, 0.0, 0.02, 0.0):
            assert client.spin_until(lambda: bool(client.trajectories), 60.0)
            assert managed.change(Transition.TRANSITION_DEACTIVATE)
            assert client.spin_until(robot.at_rest, 60.0)
            sent = len(client.trajectories)
            assert managed.change(Transition.TRANSITION_ACTIVATE)
            client.spin(2.0 * pause)
            assert len(client.trajectories) == sent
        client.spin(1.5 * pause)
        with Joystick(client, NODE, 0.0, 0.02, 0.0):
            assert client.spin_until(lambda: len(client.trajectories) > sent, 60.0)
    finally:
        robot.close()


def test_many_cycles_leave_nothing(started: Managed) -> None:
    managed, client = started, started.client

    def cycle(ready: Callable[[Client], object] = ready_again) -> None:
        assert managed.change(Transition.TRANSITION_CONFIGURE)
        assert managed.change(Transition.TRANSITION_ACTIVATE)
        ready(client)
        assert client.call("solve_ik", request()).status.code == Status.SUCCESS
        assert managed.change(Transition.TRANSITION_DEACTIVATE)
        assert managed.change(Transition.TRANSITION_CLEANUP)

    cycle(until_all_is_prepared)  # that takes memory once, whenever it ends
    for _ in range(9):
        cycle()
    megabytes, threads, files = size_of(managed.process.pid)
    for _ in range(CYCLES - 10):
        cycle()
    client.spin(1.0)
    now = size_of(managed.process.pid)
    assert now[1] <= threads + 2
    assert now[2] <= files + 5
    assert now[0] <= megabytes + 30.0
