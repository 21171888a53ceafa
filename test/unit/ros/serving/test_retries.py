"""Requests that need newer joint states than those that were read are put off, as some may lie unread."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from support.clock import Clock

from kinopt_ros.errors import InvalidRequestError, StaleStateError
from kinopt_ros.ros.actions import optimize_trajectory
from kinopt_ros.ros.actions.optimize_trajectory import OptimizeTrajectory, _Goal
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.robot.joint_states import UNREAD_SECONDS
from kinopt_ros.ros.serving import kept_goals, retries
from kinopt_ros.ros.serving.retries import MOST_WAITING, Retries
from kinopt_ros.ros.serving.serving import Serving


class Node:
    """Has one timer, which the test lets run out."""

    def __init__(self) -> None:
        self.look: Any = None
        self.counts = True

    def create_timer(self, period: float, look: Any, clock: Any) -> Any:
        self.look = look

        def reset() -> None:
            self.counts = True

        def cancel() -> None:
            self.counts = False

        self.timer = SimpleNamespace(reset=reset, cancel=cancel)
        return self.timer


class Office:
    """Requests whose joint states are too old until ``fresh``, and what became of them."""

    def __init__(self, clock: Clock) -> None:
        self.node, self.clock = Node(), clock
        self.retries = Retries(self.node)
        self.fresh = False
        self.reads = 0
        self.begun: list[str] = []
        self.refused: list[tuple[str, Exception]] = []
        scheduler: Any = SimpleNamespace(submit=self.begun.append, answer=self.begun.append)
        context: Any = SimpleNamespace(parameter=lambda name: 100)
        self.serving = Serving(context, scheduler, self.retries)

    def send(self, name: str, error: type[Exception] = StaleStateError) -> None:
        """A request arrives."""

        def make_task() -> Any:
            self.reads += 1
            if not self.fresh:
                raise error(name)
            return name

        reply: Any = SimpleNamespace(
            arrived=self.clock.now, refuse=lambda error: self.refused.append((name, error)), entries=0
        )
        self.serving.work_on(OptimizeTrajectory.Goal(), make_task, reply, alone=True)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch, retries, optimize_trajectory, kept_goals)


@pytest.fixture
def office(clock: Clock) -> Office:
    return Office(clock)


def test_a_request_is_served_when_newer_joint_states_are_read(office: Office) -> None:
    """Requests right after something had held Python's lock were refused as ROBOT_STATE_STALE."""
    office.send("a")
    assert (office.begun, office.refused, office.node.counts) == ([], [], True)
    office.node.look()
    assert office.begun == []
    office.fresh = True
    office.node.look()
    assert (office.begun, office.refused, office.node.counts) == (["a"], [], False)


def test_who_has_waited_long_enough_is_refused(office: Office) -> None:
    office.send("a")
    office.clock.now += UNREAD_SECONDS
    office.node.look()
    assert office.begun == []
    assert [(name, type(error)) for name, error in office.refused] == [("a", StaleStateError)]
    assert not office.node.counts


def test_other_errors_are_told_at_once(office: Office) -> None:
    office.send("a", InvalidRequestError)
    assert [name for name, _ in office.refused] == ["a"]
    assert not office.node.counts


def test_not_more_wait_than_there_is_room_for(office: Office) -> None:
    for number in range(MOST_WAITING + 3):
        office.send(str(number))
    assert [name for name, _ in office.refused] == [str(MOST_WAITING + k) for k in range(3)]


def test_a_round_ends_when_others_have_waited_for_it(office: Office) -> None:
    """Attempts that take long share rounds, and each has its turn."""
    tried: list[str] = []

    def attempt(name: str) -> Any:
        def one() -> bool:
            tried.append(name)
            office.clock.now += 1.0
            return False

        return one

    for name in "abc":
        office.retries.add(attempt(name))
    for _ in range(4):
        office.node.look()
    assert tried == ["a", "b", "c", "a"]


def test_the_end_of_the_node_leaves_nobody_without_an_answer(office: Office) -> None:
    office.send("a")
    office.retries.close()
    assert [name for name, _ in office.refused] == ["a"]
    office.send("b")
    assert [name for name, _ in office.refused] == ["a", "b"]


@pytest.mark.parametrize(
    ("publish", "wrong"), [(False, ""), (True, ""), (True, "joint_goals names no joint")]
)
def test_a_goal_begins_when_newer_joint_states_are_read(
    office: Office, monkeypatch: pytest.MonkeyPatch, publish: bool, wrong: str
) -> None:
    asked: Any = SimpleNamespace(
        loaded=SimpleNamespace(pool=None), problem=SimpleNamespace(scene=None), timeout=1.0
    )
    ended: list[Any] = []

    def read(*arguments: Any, unseen: bool = False, **options: Any) -> Any:
        if wrong and unseen:
            raise InvalidRequestError(wrong)
        if not (office.fresh or unseen):
            raise StaleStateError("the joint state of 'j1' is 2 s old")
        return asked

    monkeypatch.setattr(optimize_trajectory, "read_trajectory_request", read)
    monkeypatch.setattr(_Goal, "_check", lambda goal, asked: None)
    output = MotionOutput(None, None)  # type: ignore[arg-type]
    lost: list[str] = []
    output.claim("the test", lost.append)
    node = SimpleNamespace(get_logger=lambda: SimpleNamespace(error=print))
    action: Any = SimpleNamespace(
        context=SimpleNamespace(
            parameter=lambda name: 100,
            now=lambda: 10**18,
            node=node,
            statistics=SimpleNamespace(record=lambda *arguments: None),
        ),
        scheduler=SimpleNamespace(submit=lambda task: office.begun.append("goal")),
        output=output,
        retries=office.retries,
        controllers=SimpleNamespace(chosen=lambda: None),
    )
    goals: Any = SimpleNamespace(
        context=action.context,
        name="optimize_trajectory",
        server=SimpleNamespace(notify_execute=lambda handle, conclude: ended.append(handle)),
    )
    request = OptimizeTrajectory.Goal(publish=publish)
    number = SimpleNamespace(uuid=[0] * 16)
    handle: Any = SimpleNamespace(goal_id=number, request=request, abort=print)
    goal = _Goal(action, goals, handle)
    if wrong:  # whatever joint states will say: it ends nobody's motion
        assert goal.read()
        assert (lost, office.begun, ended) == ([], [], [handle])
        return
    assert not goal.read()
    # The newest who asks for the robot has it: one that came later must not lose it to this one.
    assert lost == ["another goal of ~/optimize_trajectory"] * publish
    office.fresh = True
    assert goal.read()
    assert (office.begun, ended) == (["goal"], [])

    office.fresh = False
    late = _Goal(action, goals, handle)
    office.clock.now += UNREAD_SECONDS
    assert late.read()
    assert ended == [handle]


def test_a_request_that_another_thread_puts_off_is_looked_at(office: Office) -> None:
    """The executor found nobody waiting and stopped the timer, between the start of the timer and the entry: the
    request, and all that came later, had no answer for ever."""
    looks: list[threading.Thread] = []
    reset = office.node.timer.reset

    def started() -> None:
        reset()
        looks.append(threading.Thread(target=office.node.look))
        looks[0].start()
        looks[0].join(0.2)

    office.node.timer.reset = started
    office.send("a")
    looks[0].join()
    assert office.node.counts
    office.fresh = True
    office.node.look()
    assert office.begun == ["a"]
