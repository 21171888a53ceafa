"""``kinopt bench load --moveit``: clients that send random requests under all of MoveIt's names, good and bad.

Each request must be answered, and each goal must end; what the answers say is the matter of the tests.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import rclpy
from rclpy.action.client import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile

from kinopt_ros.bench.node.defects import defects_in
from kinopt_ros.bench.node.load import growth_of, used
from kinopt_ros.errors import InvalidRequestError, MissingPackageError
from kinopt_ros.ros.client.client import Client, NodeTimeoutError
from kinopt_ros.ros.client.isolation import isolate
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.robot.bundled import bundled_parameters

CONTROLLERS = ["panda_arm_controller=panda_arm", "hand_controller=hand"]
LONGEST = 120.0
"""Time after which a request without an answer, or a goal without a result, counts as lost, s."""
_FOUND_SECONDS, _AGAIN_SECONDS = 600.0, 10.0
_LOOK_SECONDS = 0.5
_DEEP = QoSProfile(depth=1000)
"""Answers of a service come to all of its clients: with rclpy's ten, those to others would push a client's own out."""
_TOPICS, _ACTIONS = 0.1, 0.25
"""Shares of what is sent that are messages, and goals."""
_CANCELLED = 0.3
"""Share of the goals that are cancelled within a second."""


def measure_moveit(
    clients: int, duration: float, seed: int, report: Callable[[float], object] = lambda share: None
) -> dict[str, Any]:
    """Let clients, each on a thread of its own, send random requests to a node that moves a simulated Panda.

    Args:
        clients: how many.
        duration: s.
        seed: of the requests; the order in which they arrive is up to the machine.
        report: is told the share of the time that has passed.

    Raises:
        InvalidRequestError: no client, or no time.
        MissingPackageError: moveit_msgs or control_msgs is not there.
        NodeTimeoutError: the node did not start, or a client broke off.
    """
    if clients < 1 or not duration > 0.0:
        raise InvalidRequestError(
            f"--clients is {clients} and --duration {duration:g}; allowed are 1 or more clients and a duration above 0"
        )
    for package in ("moveit_msgs", "control_msgs"):
        if find_spec(package) is None:
            raise MissingPackageError(
                f"--moveit speaks to the node by {package}, which is not there; `make interfaces` builds it, and says "
                "what to source"
            )
    ours = not rclpy.ok()
    if ours:  # else who has called it is isolated already
        isolate()
        rclpy.init(args=[])
    panda = {**bundled_parameters("panda"), "controllers": CONTROLLERS}
    observer = Client("kinopt_load_observer")
    try:
        with (
            NodeProcess(
                panda | {"start": "ready"},
                name="simulated_robot",
                module="kinopt_ros.ros.client.simulated_robot",
            ),
            NodeProcess({**panda, "default_group": "panda_arm"}) as process,
        ):
            observer.wait_until_ready(600.0, alive=lambda: process.running)
            result = _under_load(observer, process, clients, duration, seed, report)
            log = process.log_text()
    finally:
        observer.close()
        if ours:
            rclpy.try_shutdown()
    return {**result, **defects_in(log)}


def answered_all(result: dict[str, Any]) -> bool:
    """Whether each request was answered, each goal has ended, and the node lives without a defect."""
    return bool(result["node_alive"] and not result["lost"] and not result["internal_errors"])


def _under_load(
    observer: Client,
    process: NodeProcess,
    clients: int,
    duration: float,
    seed: int,
    report: Callable[[float], object],
) -> dict[str, Any]:
    senders = [_Sender(number, seed + number) for number in range(clients)]
    samples: list[tuple[float, ...]] = []
    for sender in senders:
        sender.start()
    try:
        while not all(sender.found.is_set() for sender in senders) and process.running:
            _check(senders)
            observer.spin(_LOOK_SECONDS)
        begin = time.monotonic()
        for sender in senders:
            sender.go(begin, begin + duration)
        while any(sender.is_alive() for sender in senders) and process.running:
            _check(senders)
            elapsed = time.monotonic() - begin
            samples.append((elapsed, *used(process.pid)))
            report(min(elapsed / duration, 1.0))
            observer.spin(max(_LOOK_SECONDS, duration / 1000.0))
    finally:  # of an error, too
        for sender in senders:
            sender.stop()
    alive = process.running
    for sender in senders:
        sender.join(LONGEST if alive else 1.0)
    names, codes = Counter[str](), Counter[str]()
    for sender in senders:
        names.update(dict(sender.answered))  # one that is still at work may count on
        codes.update(dict(sender.codes))
    _check(senders)
    return {
        "clients": clients,
        "duration_s": duration,
        "seed": seed,
        "answered": dict(sorted(names.items())),
        "codes": dict(sorted(codes.items())),
        "lost": [one for sender in senders for one in sender.lost],
        "node_alive": alive,
        **growth_of(samples),
    }


def _check(senders: "Sequence[_Sender]") -> None:
    """Raise NodeTimeoutError if a client cannot go on: nobody would ask what it should have asked."""
    failed = [sender.failure for sender in senders if sender.failure]
    if failed:
        raise NodeTimeoutError("; ".join(failed))


class _Sender(threading.Thread):
    """One client."""

    def __init__(self, number: int, seed: int) -> None:
        super().__init__(name=f"moveit_client_{number}", daemon=True)
        self.answered: Counter[str] = Counter()
        """Answers and results by the name of what was asked; messages that were sent likewise."""
        self.codes: Counter[str] = Counter()
        self.lost: list[str] = []
        self.failure = ""
        self.found = threading.Event()
        """Set when all that is asked has answered it."""
        self._number = number
        self._begin = self._end = 0.0
        self._goes = threading.Event()
        # Here, not on the thread: rclpy cannot load a type on two at once.
        from kinopt_ros.bench.node.moveit_requests import MoveItRequests

        self._requests = MoveItRequests(seed)
        self._node = Node(f"moveit_client_{number}")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._services: dict[str, Any] = {
            name: self._node.create_client(kind, name, qos_profile=_DEEP)
            for name, (kind, _) in self._requests.services.items()
        }
        self._actions: dict[str, Any] = {
            name: ActionClient(
                self._node,
                kind,
                name,
                goal_service_qos_profile=_DEEP,
                result_service_qos_profile=_DEEP,
                cancel_service_qos_profile=_DEEP,
            )
            for name, (kind, _) in self._requests.actions.items()
        }
        self._topics: dict[str, Any] = {
            name: self._node.create_publisher(kind, name, 10)
            for name, (kind, _) in self._requests.topics.items()
        }

    def go(self, begin: float, end: float) -> None:
        """Let it send, between two times (s, of the steady clock)."""
        self._begin, self._end = begin, end
        self._goes.set()

    def stop(self) -> None:
        """Let it send nothing more."""
        self._end = 0.0
        self._goes.set()

    def run(self) -> None:
        """Find the node, and then send until the time is up, one request after the other."""
        try:
            if not self._find():
                return
            self.found.set()
            while not self._goes.is_set():
                self._executor.spin_once(timeout_sec=0.05)
            while time.monotonic() < self._end:
                self._send_one()
        except Exception as error:  # who measures has to hear of it: nobody asked anything after that
            self.failure = f"client {self._number} broke off: {type(error).__name__}: {error}"
        finally:
            self._executor.shutdown(timeout_sec=0.0)
            self._node.destroy_node()

    def _send_one(self) -> None:
        requests = self._requests
        share = requests.random.random()
        if share < _TOPICS:
            name = requests.random.choice([*self._topics])
            self._topics[name].publish(requests.topics[name][1]())
            self.answered[name] += 1
            self._executor.spin_once(timeout_sec=0.01)
        elif share < _TOPICS + _ACTIONS:
            name = requests.random.choice([*self._actions])
            self._act(name, requests)
        else:
            name = requests.random.choice([*self._services])
            self._ask(name, requests.services[name][1]())

    def _find(self) -> bool:
        """Wait until the node answers: it drops answers to clients that it has not discovered yet."""
        end = time.monotonic() + _FOUND_SECONDS
        for name, service in self._services.items():
            while not service.service_is_ready() and time.monotonic() < end:
                self._executor.spin_once(timeout_sec=0.05)
            done = False
            while not done and time.monotonic() < end:
                done = self._wait(service.call_async(service.srv_type.Request()), 2.0)
            if not done:
                self.failure = f"client {self._number} got no answer of {name} within {_FOUND_SECONDS:g} s"
                return False
        for name, action in self._actions.items():
            while not action.server_is_ready():
                self._executor.spin_once(timeout_sec=0.05)
                if time.monotonic() > end:
                    self.failure = f"client {self._number} did not find {name} within {_FOUND_SECONDS:g} s"
                    return False
        self._wait(None, 1.0)
        return True

    def _wait(self, future: Any, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while (future is None or not future.done()) and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.1)
        return future is not None and bool(future.done())

    def _has(self, future: Any, what: str) -> bool:
        """Wait for an answer, and count it or its loss."""
        done = self._wait(future, LONGEST)
        if done:
            self.answered[what] += 1
        else:
            since = time.monotonic() - LONGEST - self._begin
            self.lost.append(f"client {self._number}: {what} after {since:.0f} s")
        return done

    def _ask(self, name: str, request: Any) -> None:
        future = self._services[name].call_async(request)
        if self._has(future, name):
            self._note(future.result())

    def _act(self, name: str, requests: Any) -> None:
        sent = self._actions[name].send_goal_async(requests.actions[name][1]())
        if not self._has(sent, f"{name}: taken"):
            return
        handle = sent.result()
        result = handle.get_result_async()
        if requests.random.random() < _CANCELLED:
            self._wait(result, requests.random.uniform(0.0, 1.0))
            handle.cancel_goal_async()
        if self._has(result, f"{name}: result"):
            self._note(result.result().result)
        else:  # so that one knows whether the goal has ended, or its end was lost on the way
            heard = self._wait(handle.get_result_async(), _AGAIN_SECONDS)
            self.lost[-1] += f"; asked once more: {'answered' if heard else 'not answered'}"

    def _note(self, answer: Any) -> None:
        """Count the error code of an answer, if it has one."""
        for part in ("motion_plan_response", "response"):
            answer = getattr(answer, part, answer)
        code = getattr(answer, "error_code", None)
        if code is not None:
            self.codes[str(code.val)] += 1
