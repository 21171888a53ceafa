"""~/compute_cartesian_path."""

from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from sensor_msgs.msg import JointState
from support.ros_requests import READY, pose
from support.trajectory_goals import joints, until_prepared

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene, ComputeCartesianPath
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.status import Status

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(900)

PANDA = load_robot("panda")
FAST = {"velocity_scaling": 1.0, "acceleration_scaling": 1.0}


@pytest.fixture(scope="module", autouse=True)
def prepared(client: Client) -> None:
    """Paths can be asked for."""
    until_prepared(client)


def path(client: Client, *waypoints: Pose, **fields: Any) -> Any:
    """The node's answer."""
    request = ComputeCartesianPath.Request(waypoints=list(waypoints), **fields)
    return client.call("compute_cartesian_path", request, timeout=60.0)


def tips(answer: Any, link: str = "panda_link8") -> np.ndarray:
    """Poses of a link at the points of the answer's trajectory."""
    q = np.repeat(PANDA.default_q[None], len(answer.trajectory.points), axis=0)
    columns = [PANDA.variable_index[name] for name in answer.trajectory.joint_names]
    q[:, columns] = [point.positions for point in answer.trajectory.points]
    return forward_kinematics(PANDA, q, links=(link,))[:, 0]


def test_two_lines(client: Client) -> None:
    published = len(client.trajectories)
    answer = path(client, pose(0.32, 0.0, 0.5), pose(0.32, 0.15, 0.5), **FAST)
    assert answer.status.code == Status.SUCCESS, answer.status.message
    assert (answer.fraction, answer.waypoints_reached) == (1.0, 2)
    T = tips(answer)
    np.testing.assert_allclose(T[-1, :3, 3], [0.32, 0.15, 0.5], atol=1e-4)
    np.testing.assert_array_equal(answer.trajectory.points[0].positions, list(READY.values()))
    assert {"collisions on the way", "velocity limits"} <= set(answer.checks)
    assert answer.scene_version >= 1
    assert answer.solver_used == "cpu"
    client.spin(0.2)
    assert len(client.trajectories) == published  # a service moves nothing


def test_frame_tool_state_and_orientation(client: Client) -> None:
    request = ComputeCartesianPath.Request(keep_orientation=True, **FAST)
    request.header.frame_id = "panda_link8"
    request.waypoints = [pose(0.0, 0.1, 0.1, q=(0.0, 0.0, 0.0, 1.0))]
    request.tool.position.z = 0.1
    request.state = joints(panda_joint1=0.4)
    answer = client.call("compute_cartesian_path", request, timeout=60.0)
    assert answer.status.code == Status.SUCCESS, answer.status.message
    T = tips(answer)
    assert answer.trajectory.points[0].positions[0] == 0.4
    # The tool was already 0.1 m in front of the link: aside is what is left.
    wanted = T[0, :3, 3] + 0.1 * T[0, :3, 1]
    np.testing.assert_allclose(T[-1, :3, 3], wanted, atol=1e-4)
    assert np.abs(T[:, :3, :3] - T[0, :3, :3]).max() < 0.011


def test_as_far_as_it_goes(client: Client) -> None:
    answer = path(client, pose(0.32, 0.0, 0.5), pose(1.5, 0.0, 0.5), **FAST)
    assert answer.status.code == Status.NO_IK_SOLUTION
    assert "waypoint 1" in answer.status.message
    assert 0.0 < answer.fraction < 1.0
    assert answer.waypoints_reached == 1
    assert answer.trajectory.points
    assert not any(answer.trajectory.points[-1].velocities)


def test_an_obstacle(client: Client) -> None:
    box = CollisionObject(id="box", pose=pose(0.32, 0.35, 0.5, q=(0.0, 0.0, 0.0, 1.0)))
    box.shapes = [Shape(type="box", dimensions=[0.3, 0.1, 0.5])]
    added = client.call(
        "apply_scene", ApplyScene.Request(operations=[SceneOperation(operation="add", object=box)])
    )
    try:
        answer = path(client, pose(0.32, 0.3, 0.55), **FAST)
        blind = path(client, pose(0.32, 0.3, 0.55), ignore_collisions=True, **FAST)
    finally:
        client.call("apply_scene", ApplyScene.Request(operations=[SceneOperation(operation="clear")]))
    assert answer.status.code == Status.PLANNING_FAILED
    assert "box" in answer.status.message
    assert 0.0 < answer.fraction < 1.0
    assert answer.scene_version == added.version
    assert blind.status.code == Status.SUCCESS
    assert blind.scene_version == 0
    assert "collisions on the way" in blind.not_checked


NAN = float("nan")
BAD: list[tuple[dict[str, Any], Status, str]] = [
    ({}, Status.INVALID_GOAL_CONSTRAINTS, "waypoints is empty"),
    ({"waypoints": [pose(NAN)]}, Status.INVALID_GOAL_CONSTRAINTS, "finite"),
    ({"waypoints": [pose()], "group": "legs"}, Status.INVALID_GROUP_NAME, "legs"),
    ({"waypoints": [pose()], "link": "toe"}, Status.INVALID_LINK_NAME, "toe"),
    ({"waypoints": [pose()], "max_step": -0.1}, Status.INVALID_REQUEST, "max_step"),
    ({"waypoints": [pose()], "max_step": 1e-7}, Status.INVALID_REQUEST, "steps"),
    ({"waypoints": [pose()], "jump_factor": 0.5}, Status.INVALID_REQUEST, "jump_factor"),
    ({"waypoints": [pose()], "max_revolute_jump": NAN}, Status.INVALID_REQUEST, "max_revolute_jump"),
    (
        {"waypoints": [pose()], "clearance": 0.1, "ignore_collisions": True},
        Status.INVALID_REQUEST,
        "clearance",
    ),
    ({"waypoints": [pose()], "velocity_scaling": 2.0}, Status.INVALID_REQUEST, "velocity_scaling"),
    ({"waypoints": [pose()], "timeout": -1.0}, Status.INVALID_REQUEST, "timeout"),
    ({"waypoints": [pose()], "solver": "magic"}, Status.UNKNOWN_SOLVER, "magic"),
    (
        {"waypoints": [pose()], "state": JointState(name=["panda_joint9"], position=[0.0])},
        Status.INVALID_JOINT_NAME,
        "",
    ),
]


@pytest.mark.parametrize(("fields", "code", "said"), BAD)
def test_bad_input_is_refused(client: Client, fields: dict[str, Any], code: Status, said: str) -> None:
    answer = client.call("compute_cartesian_path", ComputeCartesianPath.Request(**fields), timeout=60.0)
    assert Status(answer.status.code) is code, answer.status.message
    assert said in answer.status.message
    assert not answer.trajectory.points
    assert answer.fraction == 0.0
