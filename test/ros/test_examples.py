"""Programs of examples/ that talk to the node, as a user runs them, beside a simulated robot."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from support.forked_nodes import ForkedNode
from support.pages import ROOT
from support.ros_requests import pose, target

from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(900)

EXAMPLES = ROOT / "examples"
PANDA = load_robot("panda")
MODULE = "kinopt_ros.ros.client.simulated_robot"


class Robot:
    """Where the simulated robot is."""

    def __init__(self, client: Client) -> None:
        self.q = PANDA.default_q.copy()
        self.heard = False
        client.node.create_subscription(JointState, "joint_states", self._hear, 10)

    def _hear(self, message: JointState) -> None:
        for name, position in zip(message.name, message.position, strict=True):
            if name in PANDA.variable_index:  # not the finger that follows another
                self.q[PANDA.variable_index[name]] = position
        self.heard = True

    def place(self, link: str) -> np.ndarray:
        """Where a link is in the root link, m, (3,)."""
        return forward_kinematics(PANDA, self.q, links=[link])[0, :3, 3]


@pytest.fixture(scope="module")
def client(process: NodeProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of the node, beside a simulated robot in place of a pretended one."""
    log = tmp_path_factory.mktemp("robot") / "robot.log"
    with ForkedNode({"start": "ready"}, log, "simulated_robot", module=MODULE, words=["panda"]) as robot:
        connected = Client("examples_client")
        connected.wait_until_ready(180.0, lambda: process.running)
        yield connected
        connected.close()
        assert robot.stop() == 0, robot.log_text()


@pytest.fixture(scope="module")
def robot(client: Client) -> Robot:
    listening = Robot(client)
    assert client.spin_until(lambda: listening.heard, 60.0)
    return listening


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run an example until it ends."""
    command = [sys.executable, str(EXAMPLES / words[0]), *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=400.0)


def test_pick_and_move_only_looks(client: Client, robot: Robot) -> None:
    before = robot.q.copy()
    done = run("pick_and_move.py", "0.45", "0.2", "0.4", "--tip", "panda_hand", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "not sent; checked: " in done.stdout
    client.spin(0.3)
    np.testing.assert_allclose(robot.q, before, atol=1e-6)


def test_pick_and_move_moves(client: Client, robot: Robot) -> None:
    done = run("pick_and_move.py", "0.45", "0.2", "0.4", "--tip", "panda_hand")
    assert done.returncode == 0, done.stderr
    assert "moving; checked: " in done.stdout
    wanted = np.array([0.45, 0.2, 0.4])
    assert client.spin_until(lambda: np.linalg.norm(robot.place("panda_hand") - wanted) < 1e-3, 60.0)


def test_pick_and_move_says_why_not(client: Client) -> None:
    done = run("pick_and_move.py", "3.0", "0.0", "0.4")
    assert done.returncode == 1
    assert "no motion (" in done.stderr


def test_serve_camera_poses(client: Client, robot: Robot, tmp_path: Path) -> None:
    """A thing that a camera sees: the tool goes above it; what is old does not count."""
    above = robot.place("panda_link8")
    log = tmp_path / "serve.log"
    with log.open("w") as output:
        serving = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "serve_camera_poses.py"), "--ros-args", "-p", "height:=0.2"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    try:
        detections = client.node.create_publisher(PoseStamped, "detections", qos_profile_sensor_data)
        assert client.spin_until(lambda: detections.get_subscription_count() > 0, 60.0)
        seen = target(pose(*(above + np.array([0.02, -0.02, -0.2])).tolist()), "panda_link0")

        def publish(age: float) -> None:
            now = client.node.get_clock().now().nanoseconds - int(age * 1e9)
            seen.header.stamp.sec, seen.header.stamp.nanosec = divmod(now, 10**9)
            detections.publish(seen)

        def refused() -> bool:
            publish(10.0)  # best effort: the first ones may be lost
            return "does not count" in log.read_text()

        assert client.spin_until(refused, 60.0), log.read_text()
        np.testing.assert_allclose(robot.place("panda_link8"), above, atol=1e-3)
        timer = client.node.create_timer(0.05, lambda: publish(0.0))
        wanted = above + np.array([0.02, -0.02, 0.0])
        arrived = client.spin_until(lambda: np.linalg.norm(robot.place("panda_link8") - wanted) < 2e-3, 90.0)
        assert arrived, (robot.place("panda_link8"), wanted, log.read_text())
        client.node.destroy_timer(timer)
    finally:
        serving.send_signal(signal.SIGINT)
        serving.wait(timeout=30.0)
    assert "servo: " in log.read_text()
    assert "Traceback" not in log.read_text()
