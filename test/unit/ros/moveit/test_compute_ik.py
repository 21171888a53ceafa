"""compute_ik: what MoveIt asks in terms of ~/solve_ik."""

from __future__ import annotations

import copy
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")
pytest.importorskip("coal")

from geometry_msgs.msg import PoseStamped
from support.moveit_scenes import SceneWorld, at

from kinopt_msgs.srv import SolveIK
from kinopt_ros.robot.sources import load_robot

PANDA = load_robot("panda")
HAND, ARM = "panda_hand", "panda_arm"


@pytest.fixture
def asked(moveit: ModuleType) -> list[Any]:
    """What was asked of ~/solve_ik."""
    return []


@pytest.fixture
def service(moveit: ModuleType, asked: list[Any]) -> Any:
    from kinopt_ros.ros.moveit.compute_ik import ComputeIk

    world = SceneWorld(PANDA)
    world.context.kinematics[ARM] = SimpleNamespace(timeout=0.25, position_only=True)  # type: ignore[index]
    world.context.remembered.values["default_group"] = ""

    def solve_ik(request: Any, reply: Any) -> Any:
        asked.append(request)
        return SimpleNamespace(asked=None)

    return ComputeIk(world.context, solve_ik)


def request_of(moveit: ModuleType, *frames: str, group: str = ARM) -> Any:
    from moveit_msgs.srv import GetPositionIK

    request = GetPositionIK.Request()
    given = request.ik_request
    given.group_name = group
    poses = [PoseStamped(pose=at(0.1 * k)) for k in range(len(frames))]
    for pose, frame in zip(poses, frames, strict=True):
        pose.header.frame_id = frame
    if len(poses) == 1:
        given.pose_stamped, given.ik_link_name = poses[0], HAND
    else:
        given.pose_stamped_vector = poses
        given.ik_link_names = [HAND, "panda_link8", "panda_link7"][: len(poses)]
    return request


def test_what_is_asked_has_every_field_of_a_request(
    moveit: ModuleType, service: Any, asked: list[Any]
) -> None:
    service.task(request_of(moveit, "panda_link0"), None)
    [ours] = asked
    made = SolveIK.Request(**vars(ours))  # raises for a name, or a type, that is none of the message
    assert made.tip_link == HAND
    assert made.header.frame_id == "panda_link0"
    assert (made.timeout, made.free_axes) == (0.25, ["rx", "ry", "rz"])
    assert set(vars(ours)) == set(SolveIK.Request.get_fields_and_field_types())


def test_requests_share_nothing_that_one_of_them_changes(
    moveit: ModuleType, service: Any, asked: list[Any]
) -> None:
    from kinopt_ros.ros.moveit import compute_ik

    before = copy.deepcopy(compute_ik._NOTHING_ASKED)
    service.task(request_of(moveit, "panda_link0", "panda_link1"), None)
    service.task(request_of(moveit, "panda_link0", "panda_link0", "panda_link0"), None)
    service.task(request_of(moveit, "panda_link1"), None)
    assert before == compute_ik._NOTHING_ASKED
    assert before == {name: getattr(SolveIK.Request(), name) for name in before}
    assert [list(ours.tip_links) for ours in asked] == [
        [HAND, "panda_link8"],
        [HAND, "panda_link8", "panda_link7"],
        [],
    ]
    assert [ours.tip_link for ours in asked] == ["", "", HAND]
