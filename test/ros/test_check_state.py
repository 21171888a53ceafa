"""~/check_state: limits, self-collision, collisions with the scene, clearance; one state or many."""

from collections.abc import Iterator

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose
from support.ros_requests import READY

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene, CheckState, ComputeFK
from kinopt_ros.ros.client.client import Client
from kinopt_ros.status import Status

pytest.importorskip("coal")

ARM = list(READY)
FREE = list(READY.values())
NAN = float("nan")


def check(client: Client, *states: list[float], **rest: object) -> CheckState.Response:
    request = CheckState.Request(
        joint_names=ARM if states else [], positions=[v for state in states for v in state], **rest
    )
    answer = client.call("check_state", request, timeout=120.0)
    assert answer.status.code == Status.SUCCESS, answer.status.message
    return answer


def apply(client: Client, *operations: SceneOperation) -> int:
    answer = client.call("apply_scene", ApplyScene.Request(operations=list(operations)))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    return int(answer.version)


def ball(operation: str, id: str, radius: float, *at: float, **rest: object) -> SceneOperation:
    given = CollisionObject(id=id, shapes=[Shape(type="sphere", dimensions=[radius])])
    given.pose = Pose(position=Point(x=at[0], y=at[1], z=at[2]))
    if operation == "add":
        given.header.frame_id = "panda_hand"
    return SceneOperation(operation=operation, object=given, **rest)


@pytest.fixture
def empty(client: Client) -> Iterator[Client]:
    apply(client, SceneOperation(operation="clear"))
    yield client
    apply(client, SceneOperation(operation="clear"))


def test_the_present_state_is_free(empty: Client) -> None:
    answer = check(empty)
    assert (list(answer.valid), list(answer.codes), answer.messages) == ([True], [Status.SUCCESS], [""])
    assert not answer.contacts
    assert {"self collision", "world collision", "joint limits"} <= set(answer.checks)
    [closest] = answer.closest
    assert closest.distance > 0.0
    assert {closest.first, closest.second} <= set(empty.call("compute_fk", ComputeFK.Request()).link_names)
    a, b = (np.array([p.x, p.y, p.z]) for p in answer.closest_points)
    assert np.linalg.norm(a - b) == pytest.approx(closest.distance, abs=1e-6)


def test_outside_of_the_limits(empty: Client) -> None:
    answer = check(empty, FREE, [9.0, *FREE[1:]])
    assert list(answer.valid) == [True, False]
    assert answer.codes[1] == Status.START_STATE_INVALID
    assert answer.messages[1].startswith("'panda_joint1' is 9; allowed is -2.")


def test_self_collision(empty: Client) -> None:
    folded = [0.8, -0.8, -2.7, -3.0, 1.8, 3.4, 0.6]  # the hand is in the base
    answer = check(empty, folded, FREE)
    assert list(answer.codes) == [Status.START_STATE_IN_COLLISION, Status.SUCCESS]
    assert answer.contacts
    assert all(contact.state == 0 and contact.distance < 0.0 for contact in answer.contacts)
    assert (answer.contacts[0].first, answer.contacts[0].second) == ("panda_link0", "panda_hand")
    assert f"'{answer.contacts[0].first}' and '{answer.contacts[0].second}' are" in answer.messages[0]
    assert answer.closest[0].distance == pytest.approx(answer.contacts[0].distance, abs=1e-9)


def test_distances_to_the_scene_are_those_of_geometry(empty: Client) -> None:
    """Two balls far in front of the hand, one of which it carries: 2 cm apart, or 1 cm in each other."""
    version = apply(
        empty,
        ball("attach", "carried", 0.05, 0.0, 0.0, 0.6, link="panda_hand"),
        ball("add", "outside", 0.03, 0.1, 0.0, 0.6),
    )
    answer = check(empty)
    assert answer.scene_version == version
    assert list(answer.valid) == [True]
    assert {answer.closest[0].first, answer.closest[0].second} == {"carried", "outside"}
    assert answer.closest[0].distance == pytest.approx(0.02, abs=1e-6)
    a, b = (np.array([p.x, p.y, p.z]) for p in answer.closest_points)
    assert np.linalg.norm(a - b) == pytest.approx(0.02, abs=1e-6)
    answer = check(empty, clearance=0.025)
    assert list(answer.codes) == [Status.START_STATE_IN_COLLISION]
    assert [c.distance for c in answer.contacts] == pytest.approx([0.02], abs=1e-6)
    assert "0.02 m apart, less than the clearance of 0.025 m" in answer.messages[0]
    apply(empty, SceneOperation(operation="pad", names=["outside"], padding=0.03))
    answer = check(empty)
    assert [c.distance for c in answer.contacts] == pytest.approx([-0.01], abs=1e-6)
    apply(empty, SceneOperation(operation="allow", names=["outside", "carried"]))
    assert list(check(empty).valid) == [True]


def test_many_states_without_distances(empty: Client) -> None:
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 7)) * 0.1 + FREE
    answer = check(empty, *states.tolist(), contacts_only=True)
    assert len(answer.valid) == len(answer.codes) == len(answer.messages) == 50
    assert not answer.closest
    assert not answer.closest_points


def test_fingers_follow_when_they_are_named(empty: Client) -> None:
    request = CheckState.Request(joint_names=["panda_finger_joint1"], positions=[0.5])
    answer = empty.call("check_state", request)
    assert answer.codes[0] == Status.START_STATE_INVALID
    assert "'panda_finger_joint1' is 0.5" in answer.messages[0]


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        (CheckState.Request(joint_names=["elbow"], positions=[0.0]), Status.INVALID_JOINT_NAME, "'elbow'"),
        (CheckState.Request(joint_names=ARM, positions=[0.0] * 8), Status.INVALID_ROBOT_STATE, "8 positions"),
        (
            CheckState.Request(joint_names=ARM, positions=[NAN] * 7),
            Status.INVALID_ROBOT_STATE,
            "panda_joint1",
        ),
        (CheckState.Request(positions=[0.0]), Status.INVALID_REQUEST, "no joint_names"),
        (CheckState.Request(clearance=-0.1), Status.INVALID_REQUEST, "clearance is -0.1"),
        (CheckState.Request(clearance=NAN), Status.INVALID_REQUEST, "clearance is nan"),
        (
            CheckState.Request(joint_names=ARM, positions=[0.0] * 7 * 10_001),
            Status.INVALID_REQUEST,
            "10001 states",
        ),
    ],
)
def test_bad_requests(empty: Client, request_: CheckState.Request, code: Status, words: str) -> None:
    answer = empty.call("check_state", request_, timeout=60.0)
    assert Status(answer.status.code) is code, answer.status.message
    assert words in answer.status.message
    assert not answer.valid
    assert list(check(empty).valid) == [True]
