"""The node beside another one in a process and executor of somebody else."""

import threading
from typing import Any

import pytest
import rclpy
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from support.ros_requests import ik, pose, stand

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
    assert any(node.timers)
    node.close()
    assert not any(node.timers)
    node.destroy_node()
