"""Frames of tf at the stamp of a request, and poses of the base per state.

tf2_ros is none of the wheels: a buffer of the tests' own with its interface takes its place.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Pose, Quaternion, Transform, TransformStamped, Vector3
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from std_msgs.msg import Header
from support.ros_requests import READY, StartNode
from support.trajectory_goals import Goals

from kinopt_msgs.srv import ComputeFK, PlanTrajectory, SolveIK
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.status import Status

BUFFER = Path(__file__).parents[1] / "support" / "tf2_buffer"
PANDA = load_robot("panda")
TIP = "panda_hand_tcp"
ROOT = PANDA.root_link
NAN = float("nan")
PATIENCE = 20.0
"""tf_timeout of the node, s: waits are ended by transforms that the tests send, not by the clock."""
SRDF = (
    '<robot name="panda"><group name="panda_arm"><chain base_link="panda_link0" tip_link="panda_hand_tcp"/></group>'
    '<virtual_joint name="drive" type="planar" parent_frame="hall" child_link="panda_link0"/></robot>'
)


class Tf:
    """Sends transforms, and asks for poses in their frames."""

    def __init__(self, client: Client) -> None:
        from tf2_msgs.msg import TFMessage

        self.client = client
        self._message = TFMessage
        self._set = client.node.create_client(SetParameters, "kinopt/set_parameters")
        assert client.spin_until(self._set.service_is_ready, 60.0)
        self._publisher = client.node.create_publisher(TFMessage, "/tf", 100)
        assert client.spin_until(lambda: self._publisher.get_subscription_count() > 0, 60.0)

    def send(
        self, frame: str, x: float, sec: int, parent: str = ROOT, rotation: Quaternion | None = None
    ) -> None:
        stamped = TransformStamped(child_frame_id=frame)
        stamped.header.frame_id = parent
        stamped.header.stamp.sec = sec
        stamped.transform.translation.x = x
        stamped.transform.rotation = rotation or Quaternion(w=1.0)
        self._publisher.publish(self._message(transforms=[stamped]))

    def fk(self, frame: str, sec: int = 0, **fields: Any) -> Any:
        request = ComputeFK.Request(links=[ROOT], **fields)
        request.header.frame_id, request.header.stamp.sec = frame, sec
        return self.client.call("compute_fk", request)

    def wait_at_most(self, seconds: float) -> None:
        value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=seconds)
        request = SetParameters.Request(parameters=[Parameter(name="tf_timeout", value=value)])
        done = self._set.call_async(request)
        assert self.client.spin_until(done.done, 60.0)
        assert done.result().results[0].successful

    def until_known(self, frame: str, x: float) -> None:
        """Wait until the newest pose of a frame is the one that was sent last."""
        end = time.monotonic() + 60.0
        while True:
            answer = self.fk(frame)
            if answer.poses and abs(answer.poses[0].position.x + x) < 1e-9:
                return
            assert time.monotonic() < end, answer.status
            self.client.spin(0.05)


@pytest.fixture(scope="module")
def tf(
    interface_packages: None,
    start_shared_node: StartNode,
    panda_parameters: dict[str, object],
) -> Tf:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(BUFFER), prepend=":")
        own = {"tf_timeout": PATIENCE, "moveit_services": False}  # another node offers those, too
        _, client = start_shared_node("kinopt", {**panda_parameters, **own})
    client.pretend_robot(READY)
    client.spin(0.3)
    return Tf(client)


def ik(frame: str, sec: int, x: float) -> SolveIK.Request:
    request = SolveIK.Request(poses=[Pose(orientation=Quaternion(x=1.0, w=0.0))], tip_link=TIP)
    request.header.frame_id, request.header.stamp.sec = frame, sec
    p = request.poses[0].position
    p.x, p.y, p.z = 0.4 - x, 0.1, 0.5
    return request


def reached(answer: SolveIK.Response) -> np.ndarray[Any, np.dtype[np.float64]]:
    q = PANDA.default_q.copy()
    q[[PANDA.variable_index[name] for name in answer.joint_names]] = answer.positions
    return np.asarray(forward_kinematics(PANDA, q, links=(TIP,))[0, :3, 3])


def test_a_stamp_that_is_no_time_is_refused_with_a_sentence(tf: Tf) -> None:
    """It was an internal error, with all its lines in the log."""
    status = tf.fk("moon", -5).status
    assert Status(status.code) is Status.FRAME_TRANSFORM_FAILURE
    assert "-5 s" in status.message
    assert "allowed are" in status.message


@pytest.mark.parametrize(
    ("name", "length", "said"),
    [("flat", 0.0, "length 0"), ("stretched", 3.0, "length 3"), ("lost", NAN, "finite")],
)
def test_a_transform_that_is_none_is_refused(tf: Tf, name: str, length: float, said: str) -> None:
    """With a quaternion of length 0 the frame had the robot's orientation."""
    tf.send(name, 0.1, 100, rotation=Quaternion(w=length))
    end = time.monotonic() + 60.0
    while "does not exist" in (status := tf.fk(name).status).message:
        assert time.monotonic() < end
        tf.client.spin(0.05)
    assert Status(status.code) is Status.FRAME_TRANSFORM_FAILURE
    assert f"tf's transforms from '{name}'" in status.message
    assert said in status.message


def test_the_stamp_says_when(tf: Tf) -> None:
    for sec, x in ((100, 0.1), (200, 0.2), (300, 0.3)):
        tf.send("table", x, sec)
    tf.until_known("table", 0.3)
    for sec, x in ((100, 0.1), (200, 0.2), (0, 0.3)):
        assert tf.fk("table", sec).poses[0].position.x == pytest.approx(-x)
        answer = tf.client.call("solve_ik", ik("table", sec, x))
        assert answer.status.code == Status.SUCCESS, answer.status
        np.testing.assert_allclose(reached(answer), [0.4, 0.1, 0.5], atol=2e-4)


def test_what_is_not_there_yet_is_waited_for(tf: Tf) -> None:
    tf.send("belt", 0.1, 100)
    tf.until_known("belt", 0.1)
    pending = tf.client.send("solve_ik", ik("belt", 150, 0.2))
    tf.client.spin(0.3)
    assert not pending.done()
    assert tf.fk("belt").poses  # nobody waits for it
    tf.send("belt", 0.2, 150)
    assert tf.client.spin_until(pending.done, 60.0)
    answer = pending.result()
    assert answer.status.code == Status.SUCCESS, answer.status
    np.testing.assert_allclose(reached(answer), [0.4, 0.1, 0.5], atol=2e-4)


def test_who_has_waited_long_enough_is_told(tf: Tf) -> None:
    tf.send("cart", 0.1, 100)
    tf.until_known("cart", 0.1)
    tf.wait_at_most(0.05)
    try:
        asked = {
            "solve_ik": ik("cart", 150, 0.1),
            "plan_trajectory": PlanTrajectory.Request(poses=[Pose()]),
            "compute_fk": ComputeFK.Request(links=[TIP]),
        }
        for name, request in asked.items():
            request.header.frame_id, request.header.stamp = "cart", Time(sec=150, nanosec=5)
            status = tf.client.call(name, request).status
            assert status.code == Status.FRAME_TRANSFORM_FAILURE, (name, status)
            for part in ("'cart'", "150.000000005", "0.05 s", "tf_timeout", "into the future"):
                assert part in status.message, (name, status.message)
        header = Header(frame_id="cart", stamp=Time(sec=150))
        status = Goals(tf.client).send(poses=[Pose()], header=header).result()[1].status
        assert status.code == Status.FRAME_TRANSFORM_FAILURE
        assert "tf_timeout" in status.message
        newest = tf.fk("moon").status  # no stamp: nothing is waited for
        assert newest.code == Status.FRAME_TRANSFORM_FAILURE
        assert "tf_timeout" not in newest.message
    finally:
        tf.wait_at_most(PATIENCE)


def test_links_need_no_tf(tf: Tf) -> None:
    assert tf.fk(TIP, sec=150).status.code == Status.SUCCESS


def at(x: float, y: float) -> Pose:
    pose = Pose()
    pose.position.x, pose.position.y = x, y
    return pose


STATES = {"joint_names": ["panda_joint1", "panda_joint4"], "positions": [0.3, -2.0, -0.4, -1.0]}


def fk(tf: Tf, **fields: Any) -> ComputeFK.Response:
    request = ComputeFK.Request(links=[TIP], **fields)
    request.header.frame_id = "hall"
    return tf.client.call("compute_fk", request)


def test_a_pose_of_the_base_for_each_state(tf: Tf) -> None:
    turned = at(1.0, 2.0)
    turned.orientation = Quaternion(z=np.sqrt(0.5), w=np.sqrt(0.5))
    inside = ComputeFK.Request(links=[TIP], **STATES)
    own = matrices_from_poses(tf.client.call("compute_fk", inside).poses)
    bases = matrices_from_poses([at(-3.0, 0.5), turned])
    answer = fk(tf, base_pose=[at(-3.0, 0.5), turned], **STATES)
    assert answer.status.code == Status.SUCCESS
    np.testing.assert_allclose(matrices_from_poses(answer.poses), bases @ own, atol=1e-12)
    for_all = fk(tf, base_pose=[turned], **STATES)
    np.testing.assert_allclose(matrices_from_poses(for_all.poses), bases[1] @ own, atol=1e-12)
    one_state = {"joint_names": STATES["joint_names"], "positions": STATES["positions"][:2]}
    along = fk(tf, base_pose=[at(-3.0, 0.5), turned], **one_state)
    np.testing.assert_allclose(matrices_from_poses(along.poses), bases @ own[0], atol=1e-12)


@pytest.mark.parametrize(
    ("frame", "poses", "said"),
    [
        ("hall", 3, "3 poses for 2 states"),
        (TIP, 1, "is a link of the robot"),
        ("hall", 0, "'hall'"),
    ],
)
def test_poses_of_the_base_that_do_not_fit_are_refused(tf: Tf, frame: str, poses: int, said: str) -> None:
    request = ComputeFK.Request(links=[TIP], base_pose=[Pose()] * poses, **STATES)
    request.header.frame_id = frame
    status = tf.client.call("compute_fk", request).status
    assert status.code != Status.SUCCESS
    assert said in status.message


def test_a_moveit_state_says_where_the_base_is(
    moveit: Any, start_shared_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    _, client = start_shared_node(
        "kinopt_driving",
        {
            **panda_parameters,
            "robot_description_semantic": SRDF,
            "virtual_joint": True,
            "default_group": "panda_arm",
        },
    )
    call = client.node.create_client(moveit.srv.GetPositionFK, "compute_fk")
    assert client.spin_until(call.service_is_ready, 60.0)
    poses = []
    for x, y, angle in ((0.0, 0.0, 0.0), (2.0, -1.0, 0.7)):
        request = moveit.srv.GetPositionFK.Request(fk_link_names=[TIP])
        state = request.robot_state
        state.joint_state.name, state.joint_state.position = list(READY), list(READY.values())
        state.multi_dof_joint_state.joint_names = ["drive"]
        turn = Quaternion(z=np.sin(angle / 2), w=np.cos(angle / 2))
        state.multi_dof_joint_state.transforms = [Transform(translation=Vector3(x=x, y=y), rotation=turn)]
        pending = call.call_async(request)
        assert client.spin_until(pending.done, 60.0)
        answer = pending.result()
        assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code
        assert answer.pose_stamped[0].header.frame_id == "hall"
        poses.append(matrices_from_poses([answer.pose_stamped[0].pose])[0])
    T_hall_base = np.eye(4)
    T_hall_base[:2, :2] = [[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]]
    T_hall_base[:2, 3] = 2.0, -1.0
    np.testing.assert_allclose(poses[1], T_hall_base @ poses[0], atol=1e-9)
