"""Clients of the load test: many in one process, each with a name, targets and requests of its own.

DDS brings every answer of a service to everybody who is connected to it, who drops those of others; rclpy needs
0.15 ms for each. With 64 connections on one machine that is more than all the work of the node, and whoever is starved
loses answers. So the clients of a process share one connection per service, which tells their answers apart by their
numbers, as DDS does for threads of a program.
"""

import math
import time
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from kinopt_msgs.srv import ComputeFK, SolveIK
from kinopt_ros.bench.node.kinds import KINDS, Kind, Outcome
from kinopt_ros.ros.messages.qos import QUEUED

LOST = "lost"
LOST_SECONDS = 20.0
"""An answer that is not there so long after its request's own timeout is lost."""
_EXAMPLES = 5
_POLL = 0.005
"""Longest time that the executor waits, s.

It is always the same: with another timeout rclpy forgets what was ready already, and answers were lost that way."""
_SERVICES: dict[str, Any] = {"solve_ik": SolveIK, "compute_fk": ComputeFK}
NODE = "kinopt"


@dataclass(frozen=True)
class ClientSpec:
    """One client."""

    kind: str
    name: str
    seed: int
    rate: float
    """Requests per second; 0: the next as soon as the last is answered."""


@dataclass
class Tally:
    """Outcomes of the requests of one kind."""

    outcomes: Counter[str] = field(default_factory=Counter)
    times: "array[float]" = field(default_factory=lambda: array("d"))
    """Times from request to answer, s."""
    examples: list[str] = field(default_factory=list)
    """Sentences about the first of each outcome that were not right."""
    batched: int = 0
    """Answers that came with those of others."""
    queue_time: float = 0.0
    """Longest that the node named, s."""

    def count(self, outcome: str, sentence: str = "") -> None:
        """Count one request."""
        self.outcomes[outcome] += 1
        if sentence and sum(text.startswith(f"{outcome}: ") for text in self.examples) < _EXAMPLES:
            self.examples.append(f"{outcome}: {sentence}")

    def add(self, other: "Tally") -> None:
        """Take in another one of the same kind."""
        self.outcomes += other.outcomes
        self.times.extend(other.times)
        self.examples += other.examples
        self.batched += other.batched
        self.queue_time = max(self.queue_time, other.queue_time)


class _LoadClient:
    """Sends one request at a time."""

    def __init__(self, spec: ClientSpec, connections: Mapping[str, Any], tally: Tally) -> None:
        self._kind: Kind = KINDS[spec.kind](spec.name, spec.seed)
        self._client = connections[self._kind.service]
        self._tally = tally
        self._period = 1.0 / spec.rate if spec.rate else 0.0
        self._number = 0
        self._future: Any = None
        self._sent = 0.0
        # Not all at once, unless they go as fast as they can.
        self._offset = self._period * float(np.random.default_rng(spec.seed).random())
        self.due = math.inf

    @property
    def waiting(self) -> bool:
        """Whether an answer is still to come."""
        return self._future is not None

    def begin(self, now: float) -> None:
        """Say when the test begins."""
        self.due = now + self._offset

    def send_if_due(self, now: float) -> None:
        """Send the next request if its time has come and the last one is answered."""
        if self._future is None and now >= self.due:
            self.due = max(self.due + self._period, now)
            self._sent = time.monotonic()
            self._future = self._client.call_async(self._kind.request(self._number))

    def take(self) -> None:
        """See whether the answer is there, and judge it."""
        if self._future is None:
            return
        elapsed = time.monotonic() - self._sent
        if self._future.done():
            answer = self._future.result()
            outcome, sentence = self._kind.judge(self._number, answer)
            self._tally.times.append(elapsed)
            self._tally.batched += bool(getattr(answer, "batched_with", 0))
            self._tally.queue_time = max(self._tally.queue_time, getattr(answer, "queue_time", 0.0))
            self._tally.count(outcome.value, sentence if outcome is not Outcome.RIGHT else "")
        elif elapsed > self._kind.timeout + LOST_SECONDS:
            self._client.remove_pending_request(self._future)
            self._tally.count(LOST, f"no answer to a {self._kind.name} request within {elapsed:.0f} s")
        else:
            return
        self._future = None
        self._number += 1


def run_clients(
    specs: Sequence[ClientSpec], number: int, duration: float, connection: "Connection[Any, Any]"
) -> None:
    """Body of a process: connect, say ``ready``, wait for the word to go, send for some seconds, report
    the tallies and the processor time used."""
    rclpy.init(args=[])
    node = Node(f"kinopt_load_{number}")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        connections: dict[str, Any] = {
            name: node.create_client(kind, f"{NODE}/{name}", qos_profile=QUEUED)
            for name, kind in _SERVICES.items()
        }
        tallies = {spec.kind: Tally() for spec in specs}
        clients = [_LoadClient(spec, connections, tallies[spec.kind]) for spec in specs]
        while not all(client.service_is_ready() for client in connections.values()):
            time.sleep(0.05)
        executor.spin_once(timeout_sec=1.0)  # the node's side may be a moment behind ours
        connection.send("ready")
        connection.recv()
        begin, used = time.monotonic(), time.process_time()
        for client in clients:
            client.begin(begin)
        while time.monotonic() < begin + duration or any(client.waiting for client in clients):
            now = time.monotonic()
            if now < begin + duration:
                for client in clients:
                    client.send_if_due(now)
            executor.spin_once(timeout_sec=_POLL)
            for client in clients:
                client.take()
        connection.send((tallies, time.process_time() - used))
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown()
