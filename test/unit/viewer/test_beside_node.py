"""The page beside a node, which is pretended here."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

pytest.importorskip("viser", reason="viser is not installed: pip install 'kinopt_ros[view]'")
from support.viewer_client import ViewerClient

import kinopt_ros as ko
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.viewer.page.beside_node import BesideNode
from kinopt_ros.viewer.page.page import GOAL, SEND, Page
from kinopt_ros.viewer.server import url_of


class PretendedNode:
    """Remembers what it is asked."""

    def __init__(self) -> None:
        self.on_state: Callable[[Mapping[str, float]], None] = lambda positions: None
        self.on_report: Callable[[str], None] = lambda sentence: None
        self.on_look: Callable[[], None] = lambda: None
        self.asked: list[np.ndarray] = []

    def send(self, T_root_tip: np.ndarray, tip: str, robot: ko.RobotModel) -> None:
        assert (tip, robot.root_link) == ("panda_link8", "panda_link0")
        self.asked.append(T_root_tip)


def test_the_node_moves_the_robot_and_is_asked_when_a_gizmo_is_let_go(page: Page) -> None:
    node = PretendedNode()
    BesideNode(page, node)
    assert page.mode.options == (SEND, GOAL)
    client = ViewerClient(url_of(page.server))
    assert client.wait_for("ReplayDoneMessage") is not None
    node.on_state({"panda_joint1": 0.5, "wheel": 1.0})
    assert page.session.q[0] == 0.5
    assert client.wait_for("SetPositionMessage", name="/robot/8") is not None
    before = page.session.q
    T = page.session.targets["panda_link8"].copy()
    T[:3, 3] += 0.0, 0.1, 0.0
    client.drag(T[:3, 3], matrix_to_quaternion(T[:3, :3]))
    client.send("TransformControlsDragEndMessage", name="/gizmo/0", owner="")
    for _ in range(200):
        list(client.messages(0.05))
        if node.asked:
            break
    assert len(node.asked) == 1
    assert node.asked[0] == pytest.approx(T, abs=1e-9)
    assert (page.session.q == before).all()  # only the node moves it
    node.on_report("the node moves the robot for 1.00 s")
    assert any("moves the robot for 1.00 s" in str(message) for message in client.messages(1.0))
    lost = ViewerClient(url_of(page.server))
    assert lost.wait_for("ReplayDoneMessage") is not None
    lost.send("TransformControlsDragStartMessage", name="/gizmo/0", owner="")
    lost.drag(T[:3, 3] + 0.05, matrix_to_quaternion(T[:3, :3]))
    for _ in range(400):
        if page.session.targets["panda_link8"][0, 3] == pytest.approx(T[0, 3] + 0.05, abs=1e-9):
            break
        list(client.messages(0.05))
    clients = len(page.server.get_clients())
    lost.close()
    for _ in range(400):
        if len(page.server.get_clients()) < clients:
            break
        list(client.messages(0.05))
    list(client.messages(0.5))
    assert page.session.targets["panda_link8"][0, 3] == pytest.approx(T[0, 3] + 0.05, abs=1e-9)
    assert len(node.asked) == 1  # a connection that is lost in the middle of a drag lets nothing go
    client.close()


def test_it_says_since_when_nothing_is_heard_of_the_robot(page: Page) -> None:
    node, now = PretendedNode(), [100.0]
    beside = BesideNode(page, node, lambda: now[0])
    said = beside._silence
    node.on_look()
    assert not said.visible
    now[0] += 1.5
    node.on_look()
    assert said.visible
    assert "joint\\_states has not said yet where the robot is" in said.content
    joints = [f"panda_joint{i + 1}" for i in range(7)]
    node.on_state(dict.fromkeys(joints, 0.1))
    node.on_look()
    assert not said.visible
    now[0] += 0.9
    node.on_state({"panda_finger_joint1": 0.0, "panda_joint7": 0.2, "wheel": 1.0})
    now[0] += 0.9
    node.on_look()
    assert said.visible
    assert "panda\\_joint1, panda\\_joint2, panda\\_joint3, ... (6 in all) for 2 s (since " in said.content
    assert "panda\\_joint7" not in said.content
    now[0] += 60.0
    node.on_look()
    assert "nothing of the robot for 62 s (since " in said.content
    node.on_state(dict.fromkeys(joints, 0.1))
    node.on_look()
    assert not said.visible
