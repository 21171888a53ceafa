"""The node beside another one in a process and executor of somebody else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import rclpy
from action_msgs.srv import CancelGoal
from geometry_msgs.msg import PoseStamped
from rclpy.action import ActionClient
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from support.ros_requests import ik, pose, stand

from kinopt_msgs.action import OptimizeTrajectory
from kinopt_msgs.msg import SceneUpdate
from kinopt_ros.pauses import wait_until_nothing_moves
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.node import KinoptNode
from kinopt_ros.status import Status

pytestmark = pytest.mark.timeout(300)


class Other(Node):
    """Somebody else's node, which counts."""

    def __init__(self) -> None:
        super().__init__("other")
        self.count = 0
        self.create_timer(0.02, self._tick)

    def _tick(self) -> None:
        self.count += 1


@pytest.mark.parametrize("kind", [SingleThreadedExecutor, MultiThreadedExecutor])
def test_two_nodes_share_an_executor(ros: None, panda_parameters: dict[str, object], kind: type[Any]) -> None:
    given = [Parameter(name, value=value) for name, value in panda_parameters.items()]
    node, other = KinoptNode(namespace="beside", parameter_overrides=given), Other()
    executor = kind()
    executor.add_node(node)
    executor.add_node(other)
    ends = threading.Event()

    def serve() -> None:
        while rclpy.ok() and not ends.is_set():
            executor.spin_once(timeout_sec=0.1)

    thread = threading.Thread(target=serve)
    thread.start()
    client = Client("beside_client", "/beside/kinopt")
    try:
        client.wait_until_ready(300.0)
        stand(client)
        before = other.count
        assert client.call("solve_ik", ik(pose(x=0.4))).status.code == Status.SUCCESS
        assert client.spin_until(lambda: other.count > before, 60.0)
    finally:
        client.close()
        ends.set()
        thread.join()
        node.close()
        for each in (node, other):
            each.destroy_node()
        executor.shutdown()


def test_a_node_counts_as_moving_until_all_of_it_has_ended(
    ros: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiled program was kept, with Python's lock for 0.17 s, while the node braked at its end."""
    monkeypatch.setattr(MotionOutput, "runs", property(lambda self: True))
    node = KinoptNode(namespace="ends")
    last, end = node._loader.close, node.end_motions
    free: list[bool] = []

    def looked(do: Any) -> Any:
        def look() -> None:
            free.append(wait_until_nothing_moves(0.0))
            do()

        return look

    monkeypatch.setattr(node, "end_motions", looked(end))
    monkeypatch.setattr(node._loader, "close", looked(last))
    node.close()
    assert free == [False, False]
    assert wait_until_nothing_moves(0.0)
    node.destroy_node()


def test_a_node_that_is_closed_does_nothing_in_an_executor_that_goes_on(
    ros: None, panda_parameters: dict[str, object]
) -> None:
    """Its diagnostics raised out of the executor of all nodes, once a publisher was destroyed."""
    given = [Parameter(name, value=value) for name, value in panda_parameters.items()]
    node = KinoptNode(namespace="closed", parameter_overrides=given)
    assert not all(timer.is_canceled() for timer in node.timers)
    node.close()
    assert all(timer.is_canceled() for timer in node.timers)
    node.destroy_node()


@contextmanager
def composed(
    name: str, parameters: dict[str, object]
) -> Iterator[tuple[KinoptNode, SingleThreadedExecutor, Client]]:
    """A node in an executor of the test's own, which the test spins, and a client of it."""
    given = [Parameter(key, value=value) for key, value in parameters.items()]
    node = KinoptNode(namespace=name, parameter_overrides=given)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    client = Client(f"{name}_client", f"/{name}/kinopt")
    try:
        yield node, executor, client
    finally:
        client.close()
        node.close()
        node.destroy_node()
        executor.shutdown()


def until_answered(executor: SingleThreadedExecutor, client: Client, answer: Any) -> None:
    """Let the node serve and the client hear until there is an answer."""

    def answered() -> bool:
        executor.spin_once(timeout_sec=0.05)
        return bool(answer.done())

    assert client.spin_until(answered, 60.0)


def test_what_comes_after_the_end_of_a_node_ends_no_executor(
    ros: None, panda_parameters: dict[str, object]
) -> None:
    """Executors of somebody else raise what callbacks do: a container of nodes ended."""
    with composed("after", panda_parameters) as (node, executor, client):
        goals = ActionClient(client.node, OptimizeTrajectory, "/after/kinopt/optimize_trajectory")
        poses = client.node.create_publisher(PoseStamped, "/after/kinopt/target_pose", 1)
        updates = client.node.create_publisher(SceneUpdate, "/after/kinopt/scene_update", 1)
        try:
            assert client.spin_until(
                lambda: (
                    goals.server_is_ready()
                    and poses.get_subscription_count() == updates.get_subscription_count() == 1
                ),
                60.0,
            )
            node.close()
            sent = goals.send_goal_async(OptimizeTrajectory.Goal())
            poses.publish(PoseStamped())
            updates.publish(SceneUpdate())
            until_answered(executor, client, sent)
            for _ in range(60):
                executor.spin_once(timeout_sec=0.02)
        finally:
            goals.destroy()


def test_a_cancel_where_there_is_no_goal_is_answered_in_anybodys_executor(
    ros: None, panda_parameters: dict[str, object]
) -> None:
    """Nobody served the thread that answers cancels: it stayed, cost half a core, and was of the next goal."""
    with composed("none", panda_parameters) as (_, executor, client):
        name = "/none/kinopt/optimize_trajectory/_action/cancel_goal"
        cancels = client.node.create_client(CancelGoal, name)
        assert client.spin_until(cancels.service_is_ready, 60.0)
        answer = cancels.call_async(CancelGoal.Request())
        until_answered(executor, client, answer)
        assert not answer.result().goals_canceling
