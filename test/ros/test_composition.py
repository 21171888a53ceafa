"""The node beside another one in a process and executor of somebody else."""

import threading
from typing import Any

import pytest
import rclpy
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from support.ros_requests import ik, pose, stand

from kinopt_ros.ros.client.client import Client
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
