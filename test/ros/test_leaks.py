"""A node that gets one description and one scene after the other stays as large as it is."""

from pathlib import Path

import numpy as np
from std_srvs.srv import Trigger
from support.process_size import size_of
from support.ros_requests import StartNode, ik, pose, set_parameter

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene
from kinopt_ros.ros.client.client import Client
from kinopt_ros.status import Status

POINTS, CLOUDS, DESCRIPTIONS = 20_000, 60, 12
_BALL = '<collision><origin xyz="0.2 0 0"/><geometry><sphere radius="0.05"/></geometry></collision>'
_LIMIT = '<limit lower="-2.5" upper="2.5" velocity="2" effort="1"/>'


def arm(number: int) -> str:
    links = "".join(f'<link name="l{i}">{_BALL}</link>' for i in range(4))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="{0.4 if i else 0} 0 0"/><axis xyz="0 0 1"/>{_LIMIT}</joint>'
        for i in range(3)
    )
    return f'<robot name="arm{number}">{links}{joints}</robot>'


def new_cloud(client: Client, rng: np.random.Generator) -> None:
    points = rng.random((POINTS, 3)) + np.array([3.0, 0.0, 0.0])
    shape = Shape(type="point_cloud", dimensions=[0.01], points=points.ravel().tolist())
    body = CollisionObject(id="cloud", pose=pose(0.0, 0.0, 0.0, (0.0, 0.0, 0.0, 1.0)), shapes=[shape])
    request = ApplyScene.Request(operations=[SceneOperation(operation="add", object=body, replace=True)])
    answer = client.call("apply_scene", request, 60.0)
    assert answer.status.code == Status.SUCCESS, answer.status.message


def until_all_is_prepared(client: Client) -> None:
    """Wait until no compiler is at work, whose memory is none of what is counted here."""
    for _ in range(600):
        if client.call("ready", Trigger.Request()).message.endswith("all is prepared"):
            return
        client.spin(0.2)
    raise AssertionError("not all is prepared")


def test_one_cloud_and_one_description_after_the_other(start_node: StartNode) -> None:
    """Before, 60 clouds took 100 MB, and every description some hundred kilobytes, for ever."""
    process, client = start_node("growing", {"robot_description": arm(0), "ik.timeout": 10.0})
    rng = np.random.default_rng(0)
    here = ik(pose(0.5, 0.2, 0.0), tip_link="l3", orientation_tolerance=4.0)

    def replaced_robot(number: int) -> None:
        result = set_parameter(client, "growing", "robot_description", arm(number))
        assert result.successful, result.reason
        ready = f"ready: robot 'arm{number}'"
        assert client.spin_until(lambda: ready in process.log_text(), 120.0), process.log_text()
        assert client.call("solve_ik", here).status.code == Status.SUCCESS

    for number in range(1, 4):  # what is there once
        replaced_robot(number)
        new_cloud(client, rng)
        until_all_is_prepared(client)
    before = size_of(process.pid)
    for number in range(4, 4 + DESCRIPTIONS):
        replaced_robot(number)
        for _ in range(CLOUDS // DESCRIPTIONS):
            new_cloud(client, rng)
    until_all_is_prepared(client)
    after = size_of(process.pid)
    assert after[0] < before[0] + 60.0, (before, after)
    assert after[1] <= before[1] + 2, (before, after)
    assert after[2] <= before[2] + 4, (before, after)


def test_no_client_names_a_folder_or_file(start_node: StartNode, tmp_path: Path) -> None:
    process, client = start_node("named", {"robot_description": arm(0)})
    names = ("record_failures", "scene_file")
    for name in names:
        result = set_parameter(client, "named", name, str(tmp_path))
        assert not result.successful
        assert "read-only" in result.reason
    for name in ("jax_lm.cache_dir", "hjcd.cache_dir"):
        assert not set_parameter(client, "named", name, str(tmp_path)).successful, (
            "there is no such parameter"
        )
    assert not list(tmp_path.iterdir())
    assert process.running
