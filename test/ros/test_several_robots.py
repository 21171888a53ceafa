"""Several robots in one process: each has its own namespace, parameters, state and scene."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.parameter import Parameter
from support.forked_nodes import ForkedNode
from support.ros_requests import READY, ik, stand

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene, ComputeFK, GetScene
from kinopt_ros.errors import KinoptError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.circles import RADIUS, RATE, parameters_of, robots_of, track
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.messages.conversions import poses_from_matrices
from kinopt_ros.ros.spinning import spin
from kinopt_ros.status import Status

ROBOTS = {"left": "panda", "right": "ur5"}
TIPS = {"left": "panda_link8", "right": "tool0"}
Clients = dict[str, Client]


@pytest.fixture(scope="module")
def process(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    log = tmp_path_factory.mktemp("nodes") / "nodes.log"
    parameters = parameters_of(ROBOTS)
    parameters["right"]["ik.timeout"] = 2.5
    with ForkedNode({}, log, namespaces=parameters) as running:
        yield running
        assert running.running, running.log_text()
        assert "internal error" not in running.log_text(), running.log_text()
        assert running.stop() == 0, running.log_text()


@pytest.fixture(scope="module")
def clients(process: NodeProcess) -> Iterator[Clients]:
    made = {name: Client(f"client_{name}", f"/{name}/kinopt") for name in ROBOTS}
    for client in made.values():
        client.wait_until_ready(600.0, lambda: process.running)
    yield made
    for client in made.values():
        client.close()


@pytest.fixture(scope="module")
def models() -> dict[str, RobotModel]:
    return {name: load_robot(robot) for name, robot in ROBOTS.items()}


def test_each_namespace_serves_its_robot(clients: Clients) -> None:
    assert "panda" in clients["left"].wait_until_ready()
    assert "ur5" in clients["right"].wait_until_ready()


def test_answers_at_the_same_time_are_not_mixed_up(clients: Clients, models: dict[str, RobotModel]) -> None:
    wrong: list[str] = []

    def ask(name: str) -> None:
        model, tip = models[name], TIPS[name]
        for q in random_configurations(model, 25, 4):
            T = forward_kinematics(model, q, links=(tip,))
            answer = clients[name].call(
                "solve_ik", ik(*poses_from_matrices(T), tip_link=tip, timeout=10.0), 30.0
            )
            if answer.status.code != Status.SUCCESS:
                wrong.append(f"{name}: {answer.status.message}")
                continue
            found = model.default_q.copy()
            found[[model.variable_index[joint] for joint in answer.joint_names]] = answer.positions
            off = np.abs(forward_kinematics(model, found, links=(tip,)) - T).max()
            if off > 1e-3:
                wrong.append(f"{name}: off by {off}")

    threads = [threading.Thread(target=ask, args=(name,)) for name in ROBOTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_links_of_the_other_robot_are_unknown(clients: Clients) -> None:
    for name, other in (("left", "right"), ("right", "left")):
        answer = clients[name].call("compute_fk", ComputeFK.Request(links=[TIPS[other]]))
        assert answer.status.code == Status.INVALID_LINK_NAME


def test_joint_states_of_one_are_not_those_of_the_other(
    clients: Clients, models: dict[str, RobotModel]
) -> None:
    stand(clients["left"])
    try:
        q = models["left"].default_q.copy()
        q[[models["left"].variable_index[name] for name in READY]] = list(READY.values())
        expected = {"left": q, "right": models["right"].default_q}
        for name, client in clients.items():
            answer = client.call("compute_fk", ComputeFK.Request(links=[TIPS[name]]))
            T = forward_kinematics(models[name], expected[name], links=(TIPS[name],))[0]
            at = answer.poses[0].position
            np.testing.assert_allclose([at.x, at.y, at.z], T[:3, 3], atol=1e-9)
            assert ("nobody" in answer.status.message or "no value" in answer.status.message) == (
                name == "right"
            )
    finally:
        clients["left"].stop_robot()


def test_parameters_and_scenes_are_their_own(clients: Clients) -> None:
    def of_node(name: str, kind: type, service: str, request: object) -> Any:
        node = clients[name].node
        asking = node.create_client(kind, f"/{name}/kinopt/{service}")
        assert asking.wait_for_service(60.0)
        future = asking.call_async(request)
        assert clients[name].spin_until(future.done, 60.0)
        node.destroy_client(asking)
        return future.result()

    def timeouts() -> dict[str, float]:
        request = GetParameters.Request(names=["ik.timeout"])
        return {
            name: of_node(name, GetParameters, "get_parameters", request).values[0].double_value
            for name in ROBOTS
        }

    assert timeouts() == {"left": 1.0, "right": 2.5}
    change = SetParameters.Request(parameters=[Parameter("ik.timeout", value=0.7).to_parameter_msg()])
    assert of_node("left", SetParameters, "set_parameters", change).results[0].successful
    assert timeouts() == {"left": 0.7, "right": 2.5}

    box = CollisionObject(id="box", shapes=[Shape(type="box", dimensions=[0.1, 0.1, 0.1])])
    box.pose.position.x, box.pose.orientation.w = 3.0, 1.0
    added = clients["right"].call(
        "apply_scene", ApplyScene.Request(operations=[SceneOperation(operation="add", object=box)])
    )
    assert added.status.code == Status.SUCCESS, added.status.message
    scenes = {name: client.call("get_scene", GetScene.Request()).scene for name, client in clients.items()}
    assert [body.id for body in scenes["right"].objects] == ["box"]
    assert not scenes["left"].objects


def test_both_track_circles(clients: Clients, process: NodeProcess) -> None:
    tracked = track(ROBOTS, duration=1.5)
    for one in tracked:
        assert one.asked >= 3  # fewer than 30 on a busy machine, which leaves out what comes too soon
        assert one.asked + one.late == 1.5 * RATE
        assert one.solved == one.asked, one.failures
        assert one.largest_error <= 1e-4
        assert one.largest_step < math.pi / 4
        moved = one.T_base_start[:3, 3] - one.target[:3, 3]
        assert 0.0 < np.linalg.norm(moved) <= 2.0 * RADIUS + 1e-9
    assert process.running


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["left", "left"], "the namespaces left, left are not different"),
        (["--namespace", "left"], "unknown argument '--namespace'"),
    ],
)
def test_what_names_no_nodes_is_refused_with_a_sentence(arguments: list[str], words: str) -> None:
    with pytest.raises(KinoptError, match=words):
        spin(["kinopt_node", *arguments])


def test_nodes_of_the_same_name_are_refused(ros: None) -> None:
    arguments = ["left", "right", "--ros-args", "-r", "__ns:=/same"]
    ended = subprocess.run(
        [sys.executable, "-m", "kinopt_ros.ros.main", *arguments], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert "two nodes /same/kinopt" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("words", [["panda"], ["=panda"], ["a="], ["a=panda", "a=ur5"], ["a=nobody"]])
def test_robots_that_cannot_track_are_refused(words: list[str]) -> None:
    with pytest.raises(KinoptError):
        robots_of(words)
