"""Many requests at once: who waits, who is refused, what is counted, and that every answer is that of its question."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from support.ros_requests import READY, StartNode, ik, pose, stand

from kinopt_msgs.srv import ComputeFK, SolveIK
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import poses_from_matrices
from kinopt_ros.status import Status

PANDA = load_robot("panda")
STATE = JointState(name=list(READY), position=list(READY.values()))
PATIENCE = 60.0
"""Longest time that a test waits for answers, s."""


def hard(targets: int, **fields: Any) -> Any:
    """Poses for four joints that hardly any of them meets: some milliseconds of vain search each."""
    q = random_configurations(PANDA, targets, 5)
    T = forward_kinematics(PANDA, q, links=("panda_link3", "panda_link8"))
    T = np.linalg.inv(T[:, 0]) @ T[:, 1]
    T[:, 1, 3] += 0.03
    return ik(
        *poses_from_matrices(T),
        frame="panda_link3",
        base_link="panda_link3",
        tip_link="panda_link8",
        state=STATE,
        **fields,
    )


def easy(i: int, **fields: Any) -> Any:
    """A target of its own for every number."""
    return ik(pose(0.35 + 0.004 * (i % 30), 0.01 * (i // 30)), state=STATE, **fields)


def answers(client: Client, requests: Sequence[Any]) -> list[Any]:
    """Return answers to requests that are sent at once, by a client that keeps more than rclpy's default of ten."""
    deep = client.node.create_client(SolveIK, "kinopt/solve_ik", qos_profile=QoSProfile(depth=1000))
    try:
        assert deep.wait_for_service(60.0)
        client.wait_until_heard()
        futures = [deep.call_async(request) for request in requests]
        assert client.spin_until(lambda: all(future.done() for future in futures), PATIENCE), (
            f"{sum(not future.done() for future in futures)} answers were lost"
        )
        return [future.result() for future in futures]
    finally:
        client.node.destroy_client(deep)


@pytest.fixture(scope="module")
def busy(start_shared_node: StartNode, panda_parameters: dict[str, object]) -> Client:
    """A client of a node with two threads (one per lane) and a queue of four."""
    _, client = start_shared_node("kinopt_small", {**panda_parameters, "threads": 2, "queue_size": 4})
    return client


def test_a_quick_request_does_not_wait_for_slow_ones(client: Client) -> None:
    for timeout in (4.0, 40.0):  # on a busy machine quick requests may take longer than the first
        slow = [client.send("solve_ik", hard(3000, timeout=timeout)) for _ in range(3)]
        client.spin(0.3)
        for i in range(10):
            assert client.call("solve_ik", easy(i)).status.code == Status.SUCCESS
            assert client.call("ready", Trigger.Request()).success
            where = client.call("compute_fk", ComputeFK.Request(links=["panda_link8"]))
            assert where.status.code == Status.SUCCESS
        sooner = not any(future.done() for future in slow)
        assert client.spin_until(lambda slow=slow: all(future.done() for future in slow), PATIENCE)
        for future in slow:
            assert future.result().status.code in (Status.NO_IK_SOLUTION, Status.TIMED_OUT)
            assert not len(future.result().positions)
        if sooner:
            return
    pytest.fail("quick requests took longer than slow ones")


def test_a_burst_gets_the_answers_of_single_requests(client: Client) -> None:
    requests = [easy(i, client=f"client {i % 8}") for i in range(64)]
    together = answers(client, requests)
    for request, answer in zip(requests, together, strict=True):
        assert answer.status.code == Status.SUCCESS, answer.status.message
        assert list(answer.positions) == list(client.call("solve_ik", request).positions)


def test_a_full_queue_refuses_with_a_sentence_and_recovers(busy: Client) -> None:
    slow = [busy.send("solve_ik", hard(2000, timeout=5.0, client="slow")) for _ in range(9)]
    assert busy.spin_until(lambda: sum(future.done() for future in slow) >= 4, PATIENCE)
    done = [future.result() for future in slow if future.done()]  # on a busy machine slow ones, too
    refused = [answer for answer in done if answer.status.code == Status.QUEUE_FULL]
    assert refused
    assert "queue_size" in refused[0].status.message
    assert not len(refused[0].positions)
    assert busy.call("ready", Trigger.Request()).success
    assert busy.spin_until(lambda: all(future.done() for future in slow), PATIENCE), "an answer was lost"
    codes = {future.result().status.code for future in slow} - {int(Status.QUEUE_FULL)}
    assert codes <= {int(Status.NO_IK_SOLUTION), int(Status.TIMED_OUT)}
    assert busy.call("solve_ik", easy(0)).status.code == Status.SUCCESS


def test_waiting_counts_against_the_timeout(busy: Client) -> None:
    first = busy.send("solve_ik", hard(5000, timeout=3.0))
    busy.spin(0.3)
    late = busy.call("solve_ik", hard(100, timeout=0.2), PATIENCE)
    assert late.status.code == Status.TIMED_OUT
    assert "waited" in late.status.message
    assert busy.spin_until(first.done, PATIENCE)


def test_clients_take_turns(busy: Client) -> None:
    """Two requests of a modest client overtake the last of three of a greedy one."""
    busy.send("solve_ik", hard(3000, timeout=3.0, client="somebody"))
    busy.spin(0.2)
    done: list[str] = []
    for name in ("greedy", "greedy", "greedy", "modest"):
        future = busy.send("solve_ik", hard(500, timeout=30.0, client=name))
        future.add_done_callback(lambda _, name=name: done.append(name))
    assert busy.spin_until(lambda: len(done) == 4, PATIENCE)
    assert done.index("modest") < 2


def test_the_node_ends_in_time_with_requests_waiting(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    process, client = start_node("kinopt_leaving", {**panda_parameters, "threads": 2})
    for _ in range(6):
        client.send("solve_ik", hard(5000, timeout=30.0))
    client.spin(0.5)
    process.interrupt()
    assert process.wait(60.0) == 0, process.log_text()  # no traceback: see the fixture


def test_diagnostics_tell_of_node_services_and_solvers(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    messages = pytest.importorskip("diagnostic_msgs.msg")
    _, client = start_node("kinopt_observed", panda_parameters)
    seen: list[Any] = []
    client.node.create_subscription(
        messages.DiagnosticArray, "/diagnostics", seen.append, QoSProfile(depth=10)
    )
    stand(client)
    for i in range(5):
        assert client.call("solve_ik", easy(i)).status.code == Status.SUCCESS
    answer = client.call("solve_ik", hard(60, timeout=30.0))
    assert answer.status.code == Status.NO_IK_SOLUTION  # a first try is not enough
    client.call("solve_ik", ik(pose(), group="nowhere"))
    assert client.call("solve_ik", ik(pose(9.0), nearest=True)).status.code == Status.NEAREST

    def newest() -> dict[str, Any]:
        mine = [array for array in seen if array.status[0].name.startswith("kinopt_observed:")]
        return {status.name.partition(": ")[2]: status for status in mine[-1].status} if mine else {}

    def requests() -> int:
        status = newest().get("~/solve_ik")
        return int(dict_of(status)["requests"]) if status else 0

    assert client.spin_until(lambda: requests() == 8, 60.0), f"seen: {list(newest())}"
    statuses = newest()
    assert all(status.level == b"\x00" for status in statuses.values()), [
        s.message for s in statuses.values()
    ]
    node = dict_of(statuses["node"])
    assert node["robot"] == "panda"
    assert node["joints with a state"] == "7 of 8"
    assert node["queue_size"] == "256"
    service = dict_of(statuses["~/solve_ik"])
    assert service["answers SUCCESS"] == "5"
    assert service["answers INVALID_GROUP_NAME"] == "1"
    assert service["answers NEAREST"] == "1"
    assert "1 came as near as possible" in statuses["~/solve_ik"].message
    assert float(service["success rate"]) == pytest.approx(5 / 7, abs=1e-3)
    assert 0.0 < float(service["time p50 (ms)"]) <= float(service["time p99 (ms)"])
    assert "queue time p95 (ms)" in service
    solver = dict_of(statuses["solver cpu"])
    assert (solver["requests"], solver["answers SUCCESS"], solver["answers NO_IK_SOLUTION"]) == (
        "7",
        "5",
        "1",
    )


def dict_of(status: Any) -> dict[str, str]:
    return {pair.key: pair.value for pair in status.values}
