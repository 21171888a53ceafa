"""Clients of the load test: many in one process, each with service clients and targets of its own.

DDS brings every answer of a service to every client of it, and the clients drop those of others. An executor of rclpy
needs 0.15 ms for each of them, which for 64 clients on one machine is more than the node needs for its work. So there
is none here: whoever waits looks for an answer every half millisecond.
"""

import math
import time
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import rclpy
from rclpy.node import Node

from kinopt_msgs.srv import ComputeFK, SolveIK
from kinopt_ros.ros.load_kinds import KINDS, Kind, Outcome

LOST = "lost"
LOST_SECONDS = 20.0
"""An answer that is not there so long after its request's own timeout is lost."""
_EXAMPLES = 5
_POLL = 5e-4
"""s between two looks."""
_DEPTH = 10
"""Answers, of whomever, that a client keeps: rclpy's default for services."""
_SERVICES: dict[str, Any] = {"solve_ik": SolveIK, "compute_fk": ComputeFK}
_NODE = "kinopt"


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
    """What became of the requests of one kind."""

    outcomes: Counter[str] = field(default_factory=Counter)
    times: "array[float]" = field(default_factory=lambda: array("d"))
    """From request to answer, s."""
    examples: list[str] = field(default_factory=list)
    """Sentences about the first that were not right."""
    batched: int = 0
    """Answers that came with those of others."""
    queue_time: float = 0.0
    """Longest that the node named, s."""

    def count(self, outcome: str, sentence: str = "") -> None:
        """Count one request."""
        self.outcomes[outcome] += 1
        if sentence and len(self.examples) < _EXAMPLES:
            self.examples.append(f"{outcome}: {sentence}")

    def add(self, other: "Tally") -> None:
        """Take in another one of the same kind."""
        self.outcomes += other.outcomes
        self.times.extend(other.times)
        self.examples = (self.examples + other.examples)[:_EXAMPLES]
        self.batched += other.batched
        self.queue_time = max(self.queue_time, other.queue_time)


class _LoadClient:
    """Sends one request at a time."""

    def __init__(self, spec: ClientSpec, node: Node, tally: Tally) -> None:
        self._kind: Kind = KINDS[spec.kind](spec.name, spec.seed)
        self._client: Any = node.create_client(_SERVICES[self._kind.service], f"{_NODE}/{self._kind.service}")
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

    def connected(self) -> bool:
        """Whether the service is there."""
        return bool(self._client.service_is_ready())

    def begin(self, now: float) -> None:
        """Say when the test begins."""
        self.due = now + self._offset

    def send_if_due(self, now: float) -> None:
        """Send the next request if its time has come and the last one is answered."""
        if self._future is None and now >= self.due:
            self.due = max(self.due + self._period, now)
            self._look()  # forget the answers of others
            self._sent = time.monotonic()
            self._future = self._client.call_async(self._kind.request(self._number))

    def take(self) -> None:
        """See whether the answer is there, and judge it."""
        if self._future is None:
            return
        answer = self._look()
        elapsed = time.monotonic() - self._sent
        if answer is not None:
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

    def _look(self) -> Any:
        """The answer that is waited for, if it is there."""
        for _ in range(_DEPTH + 1):
            with self._client.handle:
                header, answer = self._client.handle.take_response(self._client.srv_type.Response)
            if header is None:  # nothing, or the answer to somebody else
                continue
            try:
                future = self._client.get_pending_request(header.request_id.sequence_number)
            except KeyError:  # too late: counted as lost
                continue
            self._client.remove_pending_request(future)
            if future is self._future:
                return answer
        return None


def run_clients(
    specs: Sequence[ClientSpec], number: int, duration: float, connection: "Connection[Any, Any]"
) -> None:
    """Body of a process: connect, say ``ready``, wait for the word to go, send for some seconds, report
    the tallies and the processor time used."""
    rclpy.init(args=[])
    node = Node(f"kinopt_load_{number}")
    try:
        tallies = {spec.kind: Tally() for spec in specs}
        clients = [_LoadClient(spec, node, tallies[spec.kind]) for spec in specs]
        while not all(client.connected() for client in clients):
            time.sleep(0.05)
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
            time.sleep(_POLL)
            for client in clients:
                client.take()
        connection.send((tallies, time.process_time() - used))
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
