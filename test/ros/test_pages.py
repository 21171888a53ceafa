"""The requests of the pages, pasted."""

import re
import time
from importlib import import_module
from typing import Any

import pytest
import yaml
from support.book_blocks import blocks
from support.pages import ROOT, filled, page
from support.trajectory_goals import COMPILER, SUCCEEDED, Goals

from kinopt_msgs.action import OptimizeTrajectory
from kinopt_msgs.srv import (
    ApplyScene,
    CheckState,
    ComputeCartesianPath,
    GetScene,
    PlanTrajectory,
    SolveIK,
    TwistToJointVelocity,
)
from kinopt_ros.ros.client.client import Client
from kinopt_ros.status import Status

ROW = re.compile(r"^\| ([^|`]+) \| `(\{.*\})` \|$", re.MULTILINE)
MOTIONS = ROW.findall(page("trajectories"))
PATHS = {what: request for what, request in MOTIONS if request.startswith(("{waypoints:", "{header:"))}
GOALS = {what: request for what, request in MOTIONS if what not in PATHS}
SCENES = ROW.findall(page("scene"))
REQUESTS = dict(ROW.findall(page("ros")))
PLACEHOLDER = "{...}"
COMMAND = re.compile(
    r"^ros2 (?:service call|action send_goal(?: --feedback)?|topic pub(?: --once| -r \d+)) "
    r'(/\S+) (\w+)/(srv|action|msg)/(\w+) "(\{.*\})"$',
    re.MULTILINE,
)
TUTORIALS = [
    (tutorial.stem, *found)
    for tutorial in sorted((ROOT / "docs" / "tutorials").glob("*.md"))
    for block in blocks(tutorial)
    if block.language == "bash"
    for found in COMMAND.findall(block.code)
]
"""Commands of the tutorials in their order: page, name, package, kind, type, values."""
PUBLISHED = re.findall(r'`ros2 topic pub [^`]*(/kinopt/\S+) (\w+)/msg/(\w+) "(\{.*\})"`', page("servo"))


@pytest.fixture(scope="module")
def panda_parameters(panda_parameters: dict[str, object]) -> dict[str, object]:
    return {
        **panda_parameters,
        "tool_frames": "{camera: {link: panda_hand, pose: {xyz: [0, 0.05, 0.02]}}}",
    }


def test_there_are_requests() -> None:
    assert len(REQUESTS) >= 10
    assert len(SCENES) >= 10
    assert len(GOALS) >= 9
    assert len(PATHS) >= 2
    assert len(PUBLISHED) >= 5
    lines = [line for line in all_lines() if line.startswith("ros2 ")]
    assert len(TUTORIALS) == len(lines) >= 15


def all_lines() -> list[str]:
    """Lines of the tutorials' blocks of commands."""
    return [
        line
        for tutorial in (ROOT / "docs" / "tutorials").glob("*.md")
        for block in blocks(tutorial)
        if block.language == "bash"
        for line in block.code.splitlines()
    ]


def prepared(client: Client, service: str, request: Any) -> Any:
    """The answer, once what it needs is prepared: on a new machine a compiler is at work."""
    answer = client.call(service, request, timeout=60.0)
    end = time.monotonic() + COMPILER
    while answer.status.code == Status.NOT_READY and time.monotonic() < end:
        client.spin(0.5)
        answer = client.call(service, request, timeout=60.0)
    return answer


@pytest.mark.timeout(900)
@pytest.mark.parametrize("what", sorted(REQUESTS))
def test_a_request_of_the_table(client: Client, what: str) -> None:
    if PLACEHOLDER in REQUESTS[what]:
        pytest.skip("for a robot with two hands: the Panda has one")
    if "avoid_collisions" in REQUESTS[what]:
        pytest.importorskip("coal")
    request = filled(SolveIK.Request(), yaml.safe_load(REQUESTS[what]))
    answer = prepared(client, "solve_ik", request)
    nearest = Status.NEAREST if request.nearest else Status.SUCCESS
    expected = Status.NO_IK_SOLUTION if "out of reach" in what else nearest
    assert Status(answer.status.code) is expected, answer.status.message
    if expected is Status.SUCCESS:
        assert answer.positions
    else:
        assert answer.attempt_poses


def test_the_request_for_a_velocity(client: Client) -> None:
    (text,) = re.findall(r'TwistToJointVelocity "(\{.*?\}\}, frame: tip\})"', page("ros"))
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


@pytest.mark.timeout(900)
@pytest.mark.parametrize("what", sorted(GOALS))
def test_a_goal_of_the_table(client: Client, what: str) -> None:
    pytest.importorskip("coal")
    goals = Goals(client)
    goal = filled(OptimizeTrajectory.Goal(timeout=30.0), yaml.safe_load(GOALS[what]))
    request = PlanTrajectory.Request()
    names = request.get_fields_and_field_types()
    for name in names:
        setattr(request, name, getattr(goal, name))
    answer = prepared(client, "plan_trajectory", request)
    assert answer.status.code == Status.SUCCESS, answer.status.message
    published = len(client.trajectories)
    status, result = goals.run(**{name: getattr(goal, name) for name in (*names, "publish")})
    assert status == SUCCEEDED, result.status.message
    assert result.published == goal.publish
    assert client.spin_until(lambda: len(client.trajectories) == published + goal.publish, 60.0)
    goals.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("what", sorted(PATHS))
def test_a_path_of_the_table(client: Client, what: str) -> None:
    pytest.importorskip("coal")
    request = filled(ComputeCartesianPath.Request(timeout=30.0), yaml.safe_load(PATHS[what]))
    answer = prepared(client, "compute_cartesian_path", request)
    if "as far as it goes" in what:
        assert answer.status.code != Status.SUCCESS
        assert 0.0 < answer.fraction < 1.0
    else:
        assert answer.status.code == Status.SUCCESS, answer.status.message
        assert answer.fraction == 1.0
    assert answer.trajectory.points


def test_the_request_that_checks_states(client: Client) -> None:
    pytest.importorskip("coal")
    (text,) = re.findall(r'CheckState "(\{.*?\})"', page("scene"), re.DOTALL)
    request = filled(CheckState.Request(), yaml.safe_load(text))
    answer = client.call("check_state", request, timeout=120.0)
    assert answer.status.code == Status.SUCCESS, answer.status.message
    assert list(answer.valid) == [True, True]


@pytest.mark.parametrize(("topic", "package", "kind", "text"), PUBLISHED)
def test_a_message_that_is_published_has_its_topic(
    client: Client, topic: str, package: str, kind: str, text: str
) -> None:
    filled(getattr(import_module(f"{package}.msg"), kind)(), yaml.safe_load(text))

    def listened_to() -> bool:
        found = client.node.get_subscriptions_info_by_topic(topic)
        return any(one.topic_type == f"{package}/msg/{kind}" for one in found)

    assert client.spin_until(listened_to, 60.0)


def answered(client: Client, name: str, made: Any) -> Any:
    """The answer of one of the node's services, once what it needs is prepared."""
    if hasattr(made, "timeout"):
        made.timeout = 30.0
    answer = client.call(name, made, timeout=160.0)
    end = time.monotonic() + COMPILER
    while (
        getattr(answer, "status", None) and answer.status.code == Status.NOT_READY and time.monotonic() < end
    ):
        client.spin(0.5)
        answer = client.call(name, made, timeout=160.0)
    return answer


@pytest.mark.timeout(900)
def test_the_commands_of_the_tutorials_in_their_order(client: Client) -> None:
    pytest.importorskip("coal")
    goals = Goals(client)
    for tutorial, name, package, kind, typename, text in TUTORIALS:
        if package == "moveit_msgs":  # test_moveit_services.py pastes those
            continue
        form = getattr(import_module(f"{package}.{kind}"), typename)
        values, short = yaml.safe_load(text), name.removeprefix("/kinopt/")
        where = f"{tutorial}: {name}"
        if kind == "srv":
            answer = answered(client, short, filled(form.Request(), values))
            status = getattr(answer, "status", None)
            assert answer.success if status is None else status.code == Status.SUCCESS, f"{where}: {answer}"
        elif kind == "action":
            goal = filled(form.Goal(timeout=30.0), values)
            fields = {field: getattr(goal, field) for field in goal.get_fields_and_field_types()}
            result, end = goals.run(**fields)[1], time.monotonic() + 60.0
            while result.status.code == Status.START_STATE_INVALID and time.monotonic() < end:
                result = goals.run(**fields)[
                    1
                ]  # the motion of a goal before, published moments ago, is not over
            assert result.status.code == Status.SUCCESS, f"{where}: {result.status.message}"
        else:
            filled(form(), values)
            found = client.node.get_subscriptions_info_by_topic
            assert client.spin_until(
                lambda found=found, name=name, typename=typename: any(
                    one.topic_type.endswith(f"/{typename}") for one in found(name)
                ),
                60.0,
            ), where
    goals.close()
