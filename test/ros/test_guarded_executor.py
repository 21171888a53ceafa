"""Nothing that a callback raises ends the thread that serves the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import String
from std_srvs.srv import Trigger

from kinopt_ros.errors import NotReadyError
from kinopt_ros.ros.serving import guarded_executor
from kinopt_ros.ros.serving.executor_thread import ExecutorThread
from kinopt_ros.ros.serving.guarded_executor import GuardedExecutor


class Defect(Exception):
    pass


@pytest.fixture
def node(ros: None) -> Iterator[Node]:
    made = Node("guarded")
    yield made
    made.destroy_node()


@pytest.fixture
def executor(node: Node) -> Iterator[GuardedExecutor]:
    made = GuardedExecutor()
    made.add_node(node)
    yield made
    made.shutdown()


def spin(executor: GuardedExecutor, done: Callable[[], bool], rounds: int = 400) -> bool:
    for _ in range(rounds):
        if done():
            return True
        executor.spin_once(timeout_sec=0.05)
    return done()


class Raises:
    """A callback that raises at its first call and counts all."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *given: Any) -> Any:
        self.calls += 1
        if self.calls == 1:
            raise Defect("a defect")
        return given[-1] if given else None


def test_a_timer_goes_on(node: Node, executor: GuardedExecutor, capfd: pytest.CaptureFixture[str]) -> None:
    raises = Raises()
    node.create_timer(0.01, lambda: raises())
    assert spin(executor, lambda: raises.calls > 2)
    assert "internal error in Timer" in (said := capfd.readouterr().err)
    assert "Defect: a defect" in said


def test_a_subscription_goes_on(
    node: Node, executor: GuardedExecutor, capfd: pytest.CaptureFixture[str]
) -> None:
    raises = Raises()
    node.create_subscription(String, "heard", lambda message: raises(message), 10)
    publisher = node.create_publisher(String, "heard", 10)
    for count in (1, 2):
        publisher.publish(String())
        assert spin(executor, lambda count=count: raises.calls >= count)
    assert "internal error in /heard" in capfd.readouterr().err


def test_a_service_goes_on(node: Node, executor: GuardedExecutor) -> None:
    raises = Raises()
    node.create_service(Trigger, "asked", lambda request, response: raises(request, response))
    client = node.create_client(Trigger, "asked")
    assert client.wait_for_service(60.0)
    lost = client.call_async(Trigger.Request())
    assert spin(executor, lambda: raises.calls == 1)
    answered = client.call_async(Trigger.Request())
    assert spin(executor, answered.done)
    assert not lost.done()


def test_a_message_that_cannot_be_taken_is_dropped(
    node: Node,
    executor: GuardedExecutor,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """rclpy alone would leave the callback group as if it were busy for ever: no callback ran any more."""
    heard: list[Any] = []
    node.create_subscription(String, "heard", heard.append, 10)
    publisher = node.create_publisher(String, "heard", 10)
    take = executor._take_subscription

    def broken(subscription: Any) -> Any:
        monkeypatch.setattr(executor, "_take_subscription", take)
        take(subscription)
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    monkeypatch.setattr(executor, "_take_subscription", broken)
    publisher.publish(String(data="lost"))
    assert spin(executor, lambda: executor._take_subscription == take)
    publisher.publish(String(data="heard"))
    assert spin(executor, lambda: len(heard) == 1)
    assert heard[0].data == "heard"
    assert "on /heard cannot be read" in capfd.readouterr().err


def test_a_task_goes_on(executor: GuardedExecutor, capfd: pytest.CaptureFixture[str]) -> None:
    raises = Raises()
    for _ in range(2):
        executor.create_task(raises)
    assert spin(executor, lambda: raises.calls == 2)
    assert "Defect" in capfd.readouterr().err


def test_work_of_other_threads_is_done_here(node: Node, executor: GuardedExecutor) -> None:
    here = ExecutorThread(node)
    threads: list[int] = []
    errors: list[Exception] = []

    def work() -> None:
        here.do(lambda: threads.append(threading.get_ident()) for _ in range(2000))
        try:
            here.do([Raises()])
        except Defect as error:
            errors.append(error)

    other = threading.Thread(target=work)
    other.start()
    assert spin(executor, lambda: not other.is_alive(), 2000)
    assert set(threads) == {threading.get_ident()}
    assert len(threads) == 2000
    assert len(errors) == 1


def test_nobody_waits_for_a_node_that_ends(node: Node) -> None:
    here = ExecutorThread(node)
    here.close()
    with pytest.raises(NotReadyError, match="shutting down"):
        here.do([lambda: None])


class Rounds(GuardedExecutor):
    """Counts how often it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def get_nodes(self) -> Any:
        self.waits += 1
        return super().get_nodes()


@pytest.fixture
def rounds(node: Node) -> Iterator[Rounds]:
    made = Rounds()
    made.add_node(node)
    yield made
    made.shutdown()


def test_a_callback_does_not_wake_the_thread_that_it_runs_on(node: Node, rounds: Rounds) -> None:
    calls: list[int] = []
    timer = node.create_timer(0.01, lambda: calls.append(1))
    assert spin(rounds, lambda: bool(calls))
    timer.cancel()
    for _ in range(20):  # what has come meanwhile
        rounds.spin_once(timeout_sec=0.01)
    timer.reset()
    calls.clear()
    assert spin(rounds, lambda: bool(calls))
    timer.cancel()
    rounds.waits = 0
    rounds.spin_once(timeout_sec=0.1)
    assert rounds.waits == 1


def test_others_wake_it(rounds: Rounds) -> None:
    done = threading.Event()
    spinning = threading.Thread(target=lambda: spin(rounds, done.is_set, 2))
    rounds.spin_once(timeout_sec=0.0)
    spinning.start()
    rounds.create_task(done.set)
    assert done.wait(30.0)
    spinning.join(30.0)


def test_a_callback_wakes_it_for_work_that_it_leaves(node: Node, rounds: Rounds) -> None:
    done: list[int] = []
    timer = node.create_timer(0.01, lambda: (timer.cancel(), rounds.create_task(lambda: done.append(1))))
    assert spin(rounds, lambda: bool(done), 5000)


def test_partners_that_do_not_fit_are_still_told(
    node: Node, executor: GuardedExecutor, capfd: pytest.CaptureFixture[str]
) -> None:
    node.create_subscription(String, "unfit", lambda message: None, QoSProfile(depth=1))
    silent = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    node.create_publisher(String, "unfit", silent)
    said: list[str] = []

    def told() -> bool:
        said.append("".join(capfd.readouterr()))
        return "incompatible QoS" in "".join(said)

    assert spin(executor, told)


def test_what_comes_between_two_callbacks_is_no_waiting(
    executor: GuardedExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Garbage is collected there, and who stops meanwhile took the executor for one that has nothing to do."""
    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep)
    monkeypatch.setattr(guarded_executor, "time", clock)
    executor.spin_once(timeout_sec=0.0)
    begin = now[0]

    def work() -> None:
        now[0] += 0.5

    for _ in range(2):
        executor.create_task(work)
    assert spin(executor, lambda: now[0] == begin + 1.0)
    assert executor.busy_for() >= 1.0
    now[0] += 1.0  # nothing else comes
    assert executor.busy_for() == 0.0
