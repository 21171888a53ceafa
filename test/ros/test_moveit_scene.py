"""MoveIt's planning scene on a running node: it changes by every topic and service, and motions keep clear of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import yaml
from geometry_msgs.msg import Pose
from sensor_msgs.msg import JointState
from std_srvs.srv import Empty
from support.moveit_requests import TIP, joint_goal, motion_request
from support.moveit_scenes import at, attached_object, collision_object, primitive, scene_diff
from support.pages import filled, page
from support.ros_requests import READY, pose, stand

from kinopt_msgs.msg import MotionReport, SceneOperation
from kinopt_msgs.srv import ApplyScene, GetScene
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.status import Status

pytest.importorskip("coal")
# A compiler may be at work on a new and busy machine.
pytestmark = pytest.mark.timeout(1200)

PANDA = load_robot("panda")
LONG = 60.0


@pytest.fixture(scope="module")
def panda_parameters(panda_parameters: dict[str, object], moveit: Any) -> dict[str, object]:
    return panda_parameters


class MoveItClient:
    """What a client written for move_group does."""

    def __init__(self, client: Client, moveit: Any) -> None:
        self.client = client
        self.moveit = moveit
        node = client.node
        self.topics = {
            name: node.create_publisher(kind, name, 10)
            for name, kind in {
                "planning_scene": moveit.msg.PlanningScene,
                "planning_scene_world": moveit.msg.PlanningSceneWorld,
                "collision_object": moveit.msg.CollisionObject,
                "attached_collision_object": moveit.msg.AttachedCollisionObject,
            }.items()
        }
        self._kinds = {
            "get_planning_scene": moveit.srv.GetPlanningScene,
            "apply_planning_scene": moveit.srv.ApplyPlanningScene,
            "clear_octomap": Empty,
            "check_state_validity": moveit.srv.GetStateValidity,
            "plan_kinematic_path": moveit.srv.GetMotionPlan,
            "compute_ik": moveit.srv.GetPositionIK,
        }
        self._services = {name: node.create_client(kind, name) for name, kind in self._kinds.items()}
        self.reports: list[str] = []
        node.create_subscription(
            MotionReport, "kinopt/report", lambda one: self.reports.append(one.status.message), 100
        )
        for name, service in self._services.items():
            assert client.spin_until(service.service_is_ready, LONG), f"{name} is not there"
        for name, topic in self.topics.items():
            assert client.spin_until(lambda topic=topic: topic.get_subscription_count() > 0, LONG), name
        for _ in range(30):  # answers are lost until the node has found the client
            if all(
                client.spin_until(self._services[n].call_async(k.Request()).done, 2.0)
                for n, k in self.quiet()
            ):
                break

    def quiet(self) -> list[tuple[str, Any]]:
        """Services that an empty request changes nothing by."""
        return [(name, self._kinds[name]) for name in ("get_planning_scene", "clear_octomap")]

    def call(self, name: str, **fields: Any) -> Any:
        end = time.monotonic() + 120.0
        while True:
            future = self._services[name].call_async(self._kinds[name].Request(**fields))
            assert self.client.spin_until(future.done, 120.0), f"{name} does not answer"
            # What is compiled once per machine is being prepared beside the tests.
            if "NOT_READY" not in repr(future.result()) or time.monotonic() > end:
                return future.result()
            self.client.spin(1.0)

    def scene(self) -> Any:
        return self.call("get_planning_scene").scene

    def ids(self) -> tuple[set[str], set[str]]:
        scene = self.scene()
        return (
            {one.id for one in scene.world.collision_objects},
            {one.object.id for one in scene.robot_state.attached_collision_objects},
        )

    def apply(self, message: Any) -> bool:
        return bool(self.call("apply_planning_scene", scene=message).success)

    def until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + LONG
        while not holds():
            assert time.monotonic() < end
            self.client.spin(0.05)

    def valid(self, q: np.ndarray) -> Any:
        state = self.moveit.msg.RobotState(is_diff=True)
        state.joint_state = JointState(name=list(READY), position=[float(x) for x in q])
        return self.call("check_state_validity", robot_state=state, group_name="panda_arm")

    def plan(self, q: np.ndarray) -> Any:
        goal = joint_goal(self.moveit, **{name: float(x) for name, x in zip(READY, q, strict=True)})
        given = motion_request(self.moveit, goal).motion_plan_request
        return self.call("plan_kinematic_path", motion_plan_request=given).motion_plan_response


@pytest.fixture(scope="module")
def mover(client: Client, moveit: Any) -> MoveItClient:
    return MoveItClient(client, moveit)


@pytest.fixture(autouse=True)
def standing(mover: MoveItClient) -> None:
    """A free scene around a robot that stands at READY."""
    stand(mover.client)
    clear = ApplyScene.Request(operations=[SceneOperation(operation="clear")])
    assert mover.client.call("apply_scene", clear).status.code == Status.SUCCESS
    mover.reports.clear()


def box(id: str = "box", size: float = 0.1, **rest: Any) -> Any:
    return collision_object(id, primitive("BOX", size, size, size), **rest)


def diff(*objects: Any) -> Any:
    message = scene_diff()
    message.world.collision_objects = list(objects)
    return message


READY_Q = np.array(list(READY.values()))


def T_tip(q: np.ndarray) -> np.ndarray:
    full = PANDA.default_q.copy()
    full[:7] = q
    return forward_kinematics(PANDA, full, links=(TIP,))[0]


def pose_of(T: np.ndarray) -> Pose:
    return at(*(float(x) for x in T[:3, 3]))


def test_the_commands_of_the_page(mover: MoveItClient) -> None:
    ((text,), (empty,)) = (
        re.findall(command + r' "(\{.*\})"$', page("moveit_scene"), re.MULTILINE)
        for command in (
            "^ros2 service call /apply_planning_scene moveit_msgs/srv/ApplyPlanningScene",
            "^ros2 topic pub --once /planning_scene_world moveit_msgs/msg/PlanningSceneWorld",
        )
    )
    assert mover.apply(filled(mover.moveit.msg.PlanningScene(), yaml.safe_load(text)["scene"]))
    assert mover.ids() == ({"crate"}, set())
    assert yaml.safe_load(empty) == {}
    mover.topics["planning_scene_world"].publish(mover.moveit.msg.PlanningSceneWorld())
    mover.until(lambda: mover.ids() == (set(), set()))


def test_every_topic_changes_the_one_scene(mover: MoveItClient) -> None:
    mover.topics["collision_object"].publish(box("a", pose=at(1.0)))
    mover.until(lambda: mover.ids() == ({"a"}, set()))
    mover.topics["planning_scene"].publish(diff(box("b", pose=at(1.5))))
    mover.until(lambda: mover.ids() == ({"a", "b"}, set()))
    mover.topics["attached_collision_object"].publish(attached_object(TIP, collision_object("a")))
    mover.until(lambda: mover.ids() == ({"b"}, {"a"}))
    world = mover.moveit.msg.PlanningSceneWorld(collision_objects=[box("c", pose=at(2.0))])
    mover.topics["planning_scene_world"].publish(world)
    mover.until(lambda: mover.ids() == ({"c"}, {"a"}))
    detached = attached_object("", collision_object("a", operation="REMOVE"))
    mover.topics["attached_collision_object"].publish(detached)
    mover.until(lambda: mover.ids() == ({"a", "c"}, set()))
    ours = mover.client.call("get_scene", GetScene.Request()).scene
    assert {one.id for one in ours.objects} == {"a", "c"}
    assert not mover.reports


def test_topics_keep_their_order(mover: MoveItClient) -> None:
    for k in range(50):
        mover.topics["collision_object"].publish(box("box", pose=at(1.0 + 0.1 * k)))
    mover.topics["collision_object"].publish(collision_object("last", primitive("SPHERE", 0.1), pose=at(9.0)))
    mover.until(lambda: mover.ids()[0] == {"box", "last"})
    (found,) = (one for one in mover.scene().world.collision_objects if one.id == "box")
    assert found.pose.position.x == pytest.approx(5.9)


def test_motions_go_around_what_was_added(mover: MoveItClient) -> None:
    goal = READY_Q.copy()
    goal[0] = 1.2
    middle = READY_Q.copy()
    middle[0] = 0.6
    assert mover.apply(diff(box(size=0.06, pose=pose_of(T_tip(middle)))))
    assert not mover.valid(middle).valid  # so the straight way is blocked
    answer = mover.plan(goal)
    assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
    points = answer.trajectory.joint_trajectory.points
    for point in points[:: max(1, len(points) // 15)]:
        assert mover.valid(np.array(point.positions)).valid


def test_what_is_attached_moves_along_and_collides(mover: MoveItClient) -> None:
    there = READY_Q.copy()
    there[0] = 0.8
    below = T_tip(READY_Q)
    below[:3, 3] += 0.25 * below[:3, 2]
    assert mover.apply(diff(box("cup", size=0.06, pose=pose_of(below))))
    mover.topics["attached_collision_object"].publish(
        attached_object(TIP, collision_object("cup"), "panda_hand", "panda_leftfinger", "panda_rightfinger")
    )
    mover.until(lambda: mover.ids() == (set(), {"cup"}))
    assert mover.valid(there).valid
    at_cup = T_tip(there)
    at_cup[:3, 3] += 0.25 * at_cup[:3, 2]
    assert mover.apply(diff(box("post", size=0.06, pose=pose_of(at_cup))))
    found = mover.valid(there)
    assert not found.valid
    pairs = {frozenset((one.contact_body_1, one.contact_body_2)) for one in found.contacts}
    assert frozenset(("cup", "post")) in pairs
    answer = mover.plan(there)
    assert answer.error_code.val == answer.error_code.GOAL_IN_COLLISION, answer.error_code
    assert mover.valid(READY_Q).valid
    # Left behind, it is an obstacle like any other.
    detached = attached_object(TIP, collision_object("cup", operation="REMOVE"))
    mover.topics["attached_collision_object"].publish(detached)
    mover.until(lambda: mover.ids() == ({"cup", "post"}, set()))
    (cup,) = (one for one in mover.scene().world.collision_objects if one.id == "cup")
    np.testing.assert_allclose(
        [cup.pose.position.x, cup.pose.position.y, cup.pose.position.z], below[:3, 3], atol=1e-6
    )


def test_objects_and_their_subframes_are_frames_of_requests(mover: MoveItClient) -> None:
    table = box(
        "table", size=0.05, pose=at(0.4, 0.3, 0.2), subframe_names=["grasp"], subframe_poses=[at(z=0.3)]
    )
    assert mover.apply(diff(table))
    for frame, z in (("table", 0.35), ("table/grasp", 0.05)):
        request = mover.moveit.msg.PositionIKRequest(group_name="panda_arm")
        request.robot_state.is_diff = True
        request.pose_stamped.header.frame_id = frame
        request.pose_stamped.pose = pose(0.0, 0.0, z)
        answer = mover.call("compute_ik", ik_request=request)
        assert answer.error_code.val == answer.error_code.SUCCESS, answer.error_code.message
        state = answer.solution.joint_state
        values = dict(zip(state.name, state.position, strict=True))
        T = T_tip(np.array([values[name] for name in READY]))
        expected = matrices_from_poses([pose(0.4, 0.3, 0.2 + z if frame == "table" else 0.55)])[0]
        np.testing.assert_allclose(T, expected, atol=2e-4)


def test_what_may_touch_is_asked_for_and_given_back(mover: MoveItClient) -> None:
    assert mover.apply(diff(box(pose=pose_of(T_tip(READY_Q)))))
    assert not mover.valid(READY_Q).valid
    scene = mover.scene()
    matrix = scene.allowed_collision_matrix
    matrix.entry_names.append("box")
    for row in matrix.entry_values:
        row.enabled.append(True)
    row = mover.moveit.msg.AllowedCollisionEntry(enabled=[True] * len(matrix.entry_names))
    matrix.entry_values.append(row)
    assert mover.apply(scene)
    assert mover.valid(READY_Q).valid
    assert mover.apply(mover.scene())  # gives back what it got
    assert mover.valid(READY_Q).valid


def test_the_octomap_is_cleared(mover: MoveItClient) -> None:
    message = scene_diff()
    octomap = message.world.octomap
    octomap.origin = at(0.6)
    octomap.octomap.id, octomap.octomap.binary, octomap.octomap.resolution = "OcTree", False, 0.05
    # A root with one leaf, of 0.05 m * 2^15.
    nodes = np.array([(1.0, 0b1), (1.0, 0)], dtype=[("odds", "<f4"), ("children", "u1")])
    octomap.octomap.data = np.frombuffer(nodes.tobytes(), dtype=np.int8).tolist()
    octomap.origin = at(900.0, 900.0, 900.0)
    assert mover.apply(message)
    assert not mover.valid(READY_Q).valid
    assert mover.scene().world.octomap.octomap.data
    mover.call("clear_octomap")
    assert not mover.scene().world.octomap.octomap.data
    assert mover.valid(READY_Q).valid


def test_monitors_see_changes_and_the_robot(mover: MoveItClient) -> None:
    seen: list[Any] = []
    node = mover.client.node
    heard = node.create_subscription(
        mover.moveit.msg.PlanningScene, "monitored_planning_scene", seen.append, 100
    )
    try:
        mover.until(lambda: any(not one.is_diff for one in seen))
        assert mover.apply(diff(box(pose=at(1.0))))
        mover.until(lambda: any(one.id == "box" for each in seen for one in each.world.collision_objects))
        seen.clear()
        moved = {**READY, "panda_joint1": 0.3}
        mover.client.pretend_robot(moved)
        mover.until(
            lambda: any(0.3 in each.robot_state.joint_state.position for each in seen if each.is_diff)
        )
    finally:
        node.destroy_subscription(heard)


def test_what_cannot_be_used_is_said_and_the_node_goes_on(mover: MoveItClient) -> None:
    assert mover.apply(diff(box("good", pose=at(1.0))))
    assert not mover.apply(diff(box("other", pose=at(2.0)), box("bad", frame="moon")))
    assert not mover.apply(diff(box("bad", pose=at(float("nan")))))
    assert mover.ids() == ({"good"}, set())
    for topic, message, said in (
        ("collision_object", box("", pose=at(2.0)), "the id of an object is ''"),
        ("collision_object", collision_object("a", primitive("BOX", 1.0)), "dimensions"),
        ("planning_scene", diff(box("a", frame="moon")), "'moon'"),
        ("attached_collision_object", attached_object("claw", box("a")), "'claw'"),
        (
            "planning_scene_world",
            mover.moveit.msg.PlanningSceneWorld(collision_objects=[box("panda_hand")]),
            "is the name of a link",
        ),
    ):
        mover.reports.clear()
        mover.topics[topic].publish(message)
        mover.until(lambda said=said: any(said in one for one in mover.reports))
        assert mover.ids() == ({"good"}, set())
