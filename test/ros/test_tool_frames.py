"""Tool frames and attached objects as tips, through a real node."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from sensor_msgs.msg import JointState
from support.ros_requests import READY, ik, pose, set_parameter, target

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene, ComputeFK, GetJacobian
from kinopt_ros.kinematics.differential import frame_jacobian
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.messages.conversions import matrices_from_poses, poses_from_matrices
from kinopt_ros.status import Status

PANDA = load_robot("panda")
FRAMES = "{camera: {link: panda_link8, pose: {xyz: [0, 0.05, 0.1], rpy: [0, 0, 1.5]}}}"
CAMERA = pose(0.0, 0.05, 0.1, (0.0, 0.0, float(np.sin(0.75)), float(np.cos(0.75))))
PEN = pose(0.02, 0.0, 0.2, (0.0, 0.6, 0.0, 0.8))
WHERE = {"camera": CAMERA, "pen": PEN}
STATE = JointState(name=list(READY), position=list(READY.values()))


@pytest.fixture(scope="module")
def panda_parameters(panda_parameters: dict[str, object]) -> dict[str, object]:
    return {**panda_parameters, "tool_frames": FRAMES}


@pytest.fixture(scope="module")
def carrying(client: Client) -> Client:
    """Let the robot carry a pen on link 8."""
    pen = CollisionObject(id="pen", pose=PEN, shapes=[Shape(type="sphere", dimensions=[0.01])])
    attach = SceneOperation(operation="attach", link="panda_link8", object=pen)
    answer = client.call("apply_scene", ApplyScene.Request(operations=[attach]))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    return client


@pytest.fixture
def tip_parameter(process: NodeProcess, carrying: Client) -> Iterator[object]:
    """Sets parameters of the node; they are unset afterwards."""

    def set_to(name: str, value: str) -> tuple[bool, str]:
        result = set_parameter(carrying, "kinopt", name, value)
        return bool(result.successful), str(result.reason)

    yield set_to
    set_to("target_pose.tip_link", "")
    set_to("tool_frames", FRAMES)


def configuration(names: list[str], values: list[float]) -> np.ndarray:
    q = PANDA.default_q.copy()
    for name, value in (READY | dict(zip(names, values, strict=True))).items():
        q[PANDA.variable_index[name]] = value
    return q


def placed(tip: str, q: np.ndarray) -> np.ndarray:
    """Return where a tip is, by forward kinematics of its link."""
    T = forward_kinematics(PANDA, q, links=("panda_link8",))[0]
    return np.asarray(T @ matrices_from_poses([WHERE[tip]])[0])


def reachable(tip: str) -> Pose:
    """Return where a tip is after a turn of every joint."""
    q = configuration([], [])
    q[:7] += 0.2
    return poses_from_matrices(placed(tip, q)[None])[0]


@pytest.mark.parametrize("tip", WHERE)
def test_inverse_kinematics_of_a_frame(carrying: Client, tip: str) -> None:
    goal = reachable(tip)
    answer = carrying.call("solve_ik", ik(goal, tip_link=tip, group="panda_arm", state=STATE))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    q = configuration(list(answer.joint_names), list(answer.positions))
    np.testing.assert_allclose(placed(tip, q), matrices_from_poses([goal])[0], atol=1e-3)


def test_a_tool_in_a_frame_and_several_tips(carrying: Client) -> None:
    q = configuration([], [])
    elbow = forward_kinematics(PANDA, q, links=("panda_link4",))[0]
    tool = pose(0.0, 0.0, 0.05, (0.0, 0.0, 0.0, 1.0))
    T_tool = matrices_from_poses([tool])[0]
    wanted = [placed("camera", q) @ T_tool, elbow @ T_tool]
    request = ik(
        *poses_from_matrices(np.array(wanted)),
        tip_links=["camera", "panda_link4"],
        tool=tool,
        group="panda_arm",
        state=STATE,
    )
    answer = carrying.call("solve_ik", request)
    assert answer.status.code == Status.SUCCESS, answer.status.message
    found = configuration(list(answer.joint_names), list(answer.positions))
    np.testing.assert_allclose(placed("camera", found) @ T_tool, wanted[0], atol=1e-3)
    np.testing.assert_allclose(
        forward_kinematics(PANDA, found, links=("panda_link4",))[0] @ T_tool, wanted[1], atol=1e-3
    )


def test_forward_kinematics_of_frames(carrying: Client) -> None:
    answer = carrying.call("compute_fk", ComputeFK.Request(links=["pen", "panda_link8", "camera"]))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    assert list(answer.link_names) == ["pen", "panda_link8", "camera"]
    pen, _, camera = matrices_from_poses(answer.poses)
    np.testing.assert_allclose(pen, placed("pen", configuration([], [])), atol=1e-9)
    np.testing.assert_allclose(camera, placed("camera", configuration([], [])), atol=1e-9)


@pytest.mark.parametrize("tip", WHERE)
def test_the_jacobian_of_a_frame(carrying: Client, tip: str) -> None:
    answer = carrying.call("get_jacobian", GetJacobian.Request(tip_link=tip, group="panda_arm", frame="tip"))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    tool = matrices_from_poses([WHERE[tip]])[0]
    expected = frame_jacobian(
        PANDA, "panda_link0", "panda_link8", np.arange(7), configuration([], []), "tip", tool
    )
    np.testing.assert_allclose(np.array(answer.jacobian).reshape(6, 7), expected.J, atol=1e-9)


@pytest.mark.parametrize("tip", WHERE)
def test_a_motion_brings_a_frame_to_its_target(carrying: Client, tip_parameter, tip: str) -> None:
    assert tip_parameter("target_pose.tip_link", tip)[0]
    goal = reachable(tip)
    report, trajectory = carrying.move_to(target(goal))
    for _ in range(30):  # no robot does the motion of the test before, which is over after a while
        if report.status.code != Status.START_STATE_INVALID:
            break
        carrying.spin(0.5)
        report, trajectory = carrying.move_to(target(goal))
    assert report.status.code == Status.SUCCESS, report.status.message
    assert trajectory is not None
    q = configuration(list(trajectory.joint_names), list(trajectory.points[-1].positions))
    np.testing.assert_allclose(placed(tip, q), matrices_from_poses([goal])[0], atol=1e-3)


def test_unknown_names_are_refused_with_a_sentence(carrying: Client, tip_parameter) -> None:
    fk = ComputeFK.Request(links=["camra"])
    for service, request in (
        ("solve_ik", ik(pose(), tip_link="camra")),
        ("solve_ik", ik(pose(), tip_links=["camra"])),
        ("compute_fk", fk),
        ("get_jacobian", GetJacobian.Request(tip_link="camra")),
    ):
        status = carrying.call(service, request).status
        assert status.code == Status.INVALID_LINK_NAME, (service, status)
        assert "unknown link, tool frame or attached object 'camra'" in status.message
        assert "camera" in status.message
    assert tip_parameter("target_pose.tip_link", "camra")[0]  # an object of that name may still come
    report, trajectory = carrying.move_to(target(pose()))
    assert report.status.code == Status.INVALID_LINK_NAME
    assert trajectory is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{a: {link: panda_link99}}", "tool frame 'a': unknown link 'panda_link99'"),
        ("{panda_hand: {link: panda_link8}}", "called like a link"),
        ("[camera]", "mapping"),
        ("{a: {link: panda_link8, pose: 3}}", "pose of tool frame 'a'"),
    ],
)
def test_frames_that_cannot_be_are_refused(carrying: Client, tip_parameter, text: str, words: str) -> None:
    accepted, reason = tip_parameter("tool_frames", text)
    assert not accepted
    assert words in reason
    again = carrying.call("compute_fk", ComputeFK.Request(links=["camera"]))
    assert again.status.code == Status.SUCCESS  # the old ones serve


def test_frames_can_change_while_the_node_serves(carrying: Client, tip_parameter) -> None:
    assert tip_parameter("tool_frames", "{probe: {link: panda_hand}}")[0]
    assert carrying.call("compute_fk", ComputeFK.Request(links=["probe"])).status.code == Status.SUCCESS
    gone = carrying.call("compute_fk", ComputeFK.Request(links=["camera"]))
    assert gone.status.code == Status.INVALID_LINK_NAME
