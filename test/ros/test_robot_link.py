"""What a page beside the node needs of it: joint states, reports, and motions to where a gizmo was let go."""

import json
import shlex
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import rclpy
from rclpy._rclpy_pybind11 import RCLError
from rclpy.context import Context
from rclpy.node import Node

import kinopt_ros as ko
from kinopt_msgs.srv import SolveIK
from kinopt_ros.errors import NotReadyError
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.robot_link import RobotLink
from kinopt_ros.viewer.request_text import as_service_call
from kinopt_ros.viewer.session import Session

pytestmark = pytest.mark.ros


@pytest.fixture(scope="module")
def link(client: Client) -> Iterator[RobotLink]:
    link = RobotLink(Node("robot_link"))
    link.start()
    yield link
    link.close()


def test_states_come_in_and_targets_move_the_robot(client: Client, link: RobotLink) -> None:
    states: list[dict[str, float]] = []
    reports: list[str] = []
    link.on_state = lambda positions: states.append(dict(positions))
    link.on_report = reports.append
    looks: list[float] = []
    link.on_look = lambda: looks.append(time.monotonic())
    assert client.spin_until(lambda: len(states) > 3 and len(looks) > 2, 60.0)
    assert min(np.diff(looks)) > 0.05  # also while states come often
    robot = ko.load_robot("panda")
    q = robot.default_q.copy()
    for name, value in states[-1].items():
        q[robot.variable_index[name]] = value
    T = ko.forward_kinematics(robot, q, links=["panda_link8"])[0]
    T[:3, 3] += 0.0, 0.05, 0.05
    said = ""
    for _ in range(60):  # until the node's collision checks are prepared
        link.send(T, "panda_link8", robot)
        client.spin_until(lambda: bool(reports), 60.0)
        said = reports[-1] if reports else ""
        if said and "NOT_READY" not in said:
            break
        reports.clear()
        client.spin(1.0)
    assert said.startswith("the node moves the robot for "), said
    reports.clear()
    link.send(T, "panda_link4", robot)  # a gizmo of another link does not lead the node's tip there
    assert client.spin_until(lambda: bool(reports), 60.0)
    assert "it places 'panda_link8', not 'panda_link4'" in reports[-1]
    reports.clear()
    T[0, 3] += 3.0
    link.send(T, "panda_link8", robot)
    assert client.spin_until(lambda: bool(reports), 60.0)
    assert reports[-1].startswith("the node does not move the robot (")
    assert "out of reach" in reports[-1]
    link.send(np.full((4, 4), np.nan), "panda_link8", robot)
    assert client.spin_until(lambda: len(reports) > 1, 60.0)
    assert "does not move" in reports[-1]


def test_its_thread_ends_with_it(client: Client) -> None:
    """Closed, it went on without a pause until ROS ended: a core's whole time."""
    node = Node("closed_link")
    link = RobotLink(node)
    looked = threading.Event()
    link.on_look = looked.set
    link.start()
    assert looked.wait(60.0)
    link.close()
    node.destroy_node()
    assert not link._thread.is_alive()


def test_ros_may_end_before_it(ros: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error that rclpy raised in its thread then was nobody's."""
    failed: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    context = Context()
    rclpy.init(args=[], context=context)
    link = RobotLink(Node("left_link", context=context))

    def ends(timeout_sec: float | None = None) -> None:
        monkeypatch.setattr(context, "ok", lambda: False)
        raise RCLError("the given context is not valid")

    # Of this link alone: others go on meanwhile. Ended on this thread beside others, rclpy's C code has been seen to go
    # round for ever, with Python's lock.
    monkeypatch.setattr(link._executor, "spin_once", ends)
    link.start()
    link._thread.join(60.0)
    assert not link._thread.is_alive()
    link.close()
    assert not failed
    monkeypatch.undo()
    context.shutdown()


def test_without_a_description_it_says_what_to_do(link: RobotLink) -> None:
    with pytest.raises(NotReadyError, match="kinopt view panda --node"):
        link.description(0.2)


def test_the_copied_service_call_is_one(client: Client) -> None:
    session = Session(ko.load_robot("panda"))
    request = SolveIK.Request()
    fill(request, json.loads(shlex.split(as_service_call(session))[5]))
    request.timeout = 10.0
    request.avoid_collisions = False
    answer = client.call("solve_ik", request)
    assert answer.status.code == answer.status.SUCCESS, answer.status.message


def fill(message: Any, values: dict[str, Any]) -> None:
    """Set fields as `ros2 service call` does, which knows them by name."""
    for name, value in values.items():
        field = getattr(message, name)
        if isinstance(value, dict):
            fill(field, value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            kind = type(message).get_fields_and_field_types()[name]
            assert kind.startswith("sequence<geometry_msgs/Pose"), kind
            from geometry_msgs.msg import Pose

            poses = [Pose() for _ in value]
            for pose, one in zip(poses, value, strict=True):
                fill(pose, one)
            setattr(message, name, poses)
        else:
            setattr(message, name, type(field)(value) if isinstance(field, float) else value)
