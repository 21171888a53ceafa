"""The requests of the README, pasted."""

import re
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from kinopt_msgs.srv import ApplyScene, CheckState, GetScene, SolveIK, TwistToJointVelocity
from kinopt_ros.ros.client import Client
from kinopt_ros.status import Status

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|`]+) \| `(\{.*\})` \|$", README, re.MULTILINE)
SCENES = [(what, request) for what, request in ROWS if request.startswith("{operations:")]
REQUESTS = {what: request for what, request in ROWS if (what, request) not in SCENES}
PLACEHOLDER = "{...}"


@pytest.fixture(scope="module")
def panda_parameters(panda_parameters: dict[str, object]) -> dict[str, object]:
    return {
        **panda_parameters,
        "tool_frames": "{camera: {link: panda_hand, pose: {xyz: [0, 0.05, 0.02]}}}",
    }


def filled(message: Any, values: dict[str, Any]) -> Any:
    """A message with fields as `ros2 service call` takes them."""
    types = message.get_fields_and_field_types()
    for name, value in values.items():
        assert name in types, f"{type(message).__name__} has no {name}"
        part = getattr(message, name)
        if isinstance(value, dict):
            filled(part, value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            kind = re.fullmatch(r"sequence<(\w+)/(\w+)(, \d+)?>", types[name])
            assert kind is not None, types[name]
            made = getattr(import_module(f"{kind[1]}.msg"), kind[2])
            setattr(message, name, [filled(made(), one) for one in value])
        else:
            setattr(message, name, value)
    return message


def test_there_are_requests() -> None:
    assert len(REQUESTS) >= 10
    assert len(SCENES) >= 10


@pytest.mark.parametrize("what", sorted(REQUESTS))
def test_a_request_of_the_table(client: Client, what: str) -> None:
    if PLACEHOLDER in REQUESTS[what]:
        pytest.skip("for a robot with two hands: the Panda has one")
    if "avoid_collisions" in REQUESTS[what]:
        pytest.importorskip("coal")
    request = filled(SolveIK.Request(), yaml.safe_load(REQUESTS[what]))
    answer = client.call("solve_ik", request)
    end = time.monotonic() + 200.0
    while (
        answer.status.code == Status.NOT_READY and time.monotonic() < end
    ):  # collision checks are being prepared
        client.spin(0.5)
        answer = client.call("solve_ik", request)
    expected = Status.NO_IK_SOLUTION if "out of reach" in what else Status.SUCCESS
    assert Status(answer.status.code) is expected, answer.status.message
    if expected is Status.SUCCESS:
        assert answer.positions
    else:
        assert answer.attempt_poses


def test_the_request_for_a_velocity(client: Client) -> None:
    (text,) = re.findall(r'TwistToJointVelocity "(\{.*?\}\}, frame: tip\})"', README)
    request = filled(TwistToJointVelocity.Request(), yaml.safe_load(text))
    answer = client.call("twist_to_joint_velocity", request)
    assert answer.status.code == Status.SUCCESS
    assert answer.achieved.linear.x == pytest.approx(0.05, abs=1e-9)


def test_the_requests_of_the_scene_in_their_order(client: Client) -> None:
    for what, text in SCENES:
        answer = client.call("apply_scene", filled(ApplyScene.Request(), yaml.safe_load(text)))
        assert answer.status.code == Status.SUCCESS, f"{what}: {answer.status.message}"
    scene = client.call("get_scene", GetScene.Request()).scene
    assert (scene.objects, scene.attached) == ([], [])


def test_the_request_that_checks_states(client: Client) -> None:
    pytest.importorskip("coal")
    (text,) = re.findall(r'CheckState "(\{.*?\})"', README, re.DOTALL)
    request = filled(CheckState.Request(), yaml.safe_load(text))
    answer = client.call("check_state", request, timeout=120.0)
    assert answer.status.code == Status.SUCCESS, answer.status.message
    assert list(answer.valid) == [True, True]
