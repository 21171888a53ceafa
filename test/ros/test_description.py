"""Tests of where the robot comes from, and what happens when its description is bad or changes."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from support.forked_nodes import ForkedNode
from support.ros_requests import READY, StartNode, ik, pose, set_parameter, target

from kinopt_msgs.srv import ListSolvers
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.status import Status

ENTITY_BOMB = (
    '<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9))
    + ']><robot name="bomb"><link name="&j;"/></robot>'
)
ONE_JOINT = (
    '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><axis xyz="0 0 1"/>'
    '<limit lower="-1" upper="1" velocity="1" effort="1"/></joint>'
)
LINKS = '<link name="a"/><link name="b"/>'
BROKEN = {
    "not XML": "robot",
    "unclosed": "<robot name='x'><link name='a'>",
    "not a robot": "<html/>",
    "no link": "<robot name='x'/>",
    "cyclic": f"<robot name='x'>{LINKS}{ONE_JOINT.format('j1', 'a', 'b')}{ONE_JOINT.format('j2', 'b', 'a')}</robot>",
    "two roots": f"<robot name='x'>{LINKS}</robot>",
    "missing parent": f"<robot name='x'>{LINKS}{ONE_JOINT.format('j1', 'nobody', 'b')}</robot>",
    "two links of one name": f"<robot name='x'>{LINKS}{LINKS}{ONE_JOINT.format('j1', 'a', 'b')}</robot>",
    "entity bomb": ENTITY_BOMB,
    "enormous": "<robot name='x'>" + "<link name='a'/>" * 1_100_000 + "</robot>",
    "NaN origin": f"<robot name='x'>{LINKS}{ONE_JOINT.format('j1', 'a', 'b')}</robot>".replace(
        "0 0 1", "nan 0 1"
    ),
}


@pytest.fixture(scope="module")
def bare_process(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node without a robot."""
    with ForkedNode({}, tmp_path_factory.mktemp("bare") / "log", name="kinopt_bare") as process:
        yield process
        assert process.running, process.log_text()
        assert "internal error" not in process.log_text(), process.log_text()
        assert process.stop() == 0, process.log_text()


@pytest.fixture(scope="module")
def bare(ros: None, bare_process: NodeProcess) -> Iterator[Client]:
    """A client of that node."""
    client = Client("bare_client", "kinopt_bare")
    client.wait_until_found()
    client.pretend_robot(READY)
    yield client
    client.close()


def publish_description(client: Client, text: str, topic: str = "robot_description") -> None:
    qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = client.node.create_publisher(String, topic, qos)  # stays: a large text takes its time
    assert client.spin_until(lambda: publisher.get_subscription_count() > 0, 60.0)
    publisher.publish(String(data=text))
    client.spin(0.2)


def test_without_a_robot_every_answer_says_so(bare: Client) -> None:
    answer = bare.call("solve_ik", ik(pose()))
    assert answer.status.code == Status.NOT_READY
    assert "robot_description" in answer.status.message
    solvers = bare.call("list_solvers", ListSolvers.Request())
    assert solvers.status.code == Status.NOT_READY
    assert solvers.solvers
    report, trajectory = bare.move_to(target(pose()), patience=0.0)
    assert report.status.code == Status.NOT_READY
    assert trajectory is None


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_description_by_topic_is_reported(bare: Client, kind: str) -> None:
    reports = len(bare.reports)
    publish_description(bare, BROKEN[kind])
    assert bare.spin_until(lambda: len(bare.reports) > reports, 60.0)
    report = bare.reports[-1]
    assert report.status.code == Status.INVALID_ROBOT_DESCRIPTION, report.status.message
    assert len(report.status.message) > 10
    answer = bare.call("solve_ik", ik(pose()))
    assert answer.status.code == Status.INVALID_ROBOT_DESCRIPTION
    assert not bare.trajectories


@pytest.mark.parametrize("kind", [kind for kind in BROKEN if kind != "enormous"])
def test_a_broken_description_by_parameter_is_refused(client: Client, kind: str) -> None:
    result = set_parameter(client, "kinopt", "robot_description", BROKEN[kind])
    assert not result.successful
    assert len(result.reason) > 10
    assert client.call("solve_ik", ik(pose())).status.code == Status.SUCCESS


def test_the_robot_is_rebuilt_when_its_description_changes(
    bare: Client, bare_process: NodeProcess, panda_texts: tuple[str, str]
) -> None:
    urdf, srdf = panda_texts
    before = bare_process.log_text().count("ready: robot")
    publish_description(bare, urdf)
    bare.wait_until_ready(300.0)
    answer = bare.call("list_solvers", ListSolvers.Request())
    assert answer.robot == "panda"
    assert "panda_arm" not in answer.groups  # no SRDF yet: one group per leaf
    publish_description(bare, srdf, "robot_description_semantic")
    assert wait_for(bare, lambda: "panda_arm" in bare.call("list_solvers", ListSolvers.Request()).groups)
    solved = bare.call("solve_ik", ik(pose(), group="panda_arm"))
    assert solved.status.code == Status.SUCCESS
    publish_description(bare, urdf.replace('name="panda"', 'name="renamed"', 1))
    assert wait_for(bare, lambda: bare.call("list_solvers", ListSolvers.Request()).robot == "renamed")
    publish_description(bare, urdf.replace('name="panda"', 'name="renamed"', 1))  # the same again
    bare.spin(0.3)
    assert bare_process.log_text().count("ready: robot") == before + 3


def test_an_srdf_that_follows_is_waited_for(ros: None, panda_texts: tuple[str, str], tmp_path: Path) -> None:
    """Without it the group of a parameter would be unknown, and the first robot another one."""
    # In a namespace: descriptions of other tests are still published.
    own = {"later": {"default_group": "panda_arm"}}
    with ForkedNode({}, tmp_path / "log", namespaces=own) as process:
        client = Client("later_client", "/later/kinopt")
        client.wait_until_found()
        qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        names = ("/later/robot_description", "/later/robot_description_semantic")  # the URDF first
        publishers = [client.node.create_publisher(String, name, qos) for name in names]
        assert client.spin_until(lambda: all(p.get_subscription_count() > 0 for p in publishers), 60.0)
        for publisher, text in zip(publishers, panda_texts, strict=True):
            publisher.publish(String(data=text))
        client.wait_until_ready(300.0)
        client.spin(1.0)
        client.close()
        assert "default_group" not in process.log_text()
        assert process.log_text().count("ready: robot") == 1, process.log_text()


def test_a_broken_description_leaves_the_robot_in_service(bare: Client) -> None:
    reports = len(bare.reports)
    publish_description(bare, BROKEN["cyclic"])
    assert bare.spin_until(lambda: len(bare.reports) > reports, 60.0)
    assert bare.call("solve_ik", ik(pose(), group="panda_arm")).status.code == Status.SUCCESS


LIMITS = "robot_description_planning.joint_limits.panda_joint1."


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("velocity_scaling", 0.0, "allowed is"),
        ("velocity_scaling", 1.5, "allowed is"),
        ("velocity_scaling", float("nan"), "allowed is"),
        ("velocity_scaling", "fast", "float"),
        ("cpu.max_restarts", -1, "allowed is"),
        ("cpu.max_restarts", 1.5, "whole number"),
        ("ik.timeout", -1.0, "allowed is"),
        ("max_batch", 0, "allowed is"),
        ("allow_fallback", "perhaps", "true or false"),
        ("solver", "ikfast", "cpu"),
        ("threads", 8, "read"),
        ("default_group", "panda_amr", "panda_arm"),
        ("controller_joints", [1.0, 2.0], "names"),
        ("controller_joints", ["panda_joint1", "elbow"], "elbow"),
        ("controller_joints", ["panda_finger_joint2"], "follows"),
        ("controller_joints", None, "unset"),
        (f"{LIMITS}max_velocity", -1.0, "positive"),
        (f"{LIMITS}max_velocity", "slow", "number"),
        (f"{LIMITS}min_position", 9.0, "upper"),
    ],
)
def test_parameters_are_validated_before_they_apply(
    client: Client, name: str, value: object, words: str
) -> None:
    result = set_parameter(client, "kinopt", name, value)
    assert not result.successful
    assert words in result.reason, result.reason
    assert client.call("solve_ik", ik(pose())).status.code == Status.SUCCESS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ik.timeout", 0.5),
        ("velocity_scaling", 1),
        ("controller_joints", "panda_joint1"),
        ("controller_joints", []),
        (f"{LIMITS}max_velocity", 1),
    ],
)
def test_parameters_can_be_changed_and_whole_numbers_do(client: Client, name: str, value: object) -> None:
    result = set_parameter(client, "kinopt", name, value)
    assert result.successful, result.reason
    client.wait_until_ready()
    assert client.call("solve_ik", ik(pose())).status.code == Status.SUCCESS


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"velocity_scaling": 2.0}, "velocity_scaling"),
        ({"velocity_scaling": "fast"}, "velocity_scaling takes a float"),
        ({"threads": 0}, "threads"),
        ({"controller_joints": [1, 2]}, "controller_joints"),
    ],
)
def test_a_bad_parameter_at_the_start_ends_the_node_with_a_sentence(
    ros: None, parameters: dict[str, object], words: str
) -> None:
    with ForkedNode(parameters, name="kinopt_never") as process:
        assert process.wait(60.0) == 1
        text = process.log_text()
    assert words in text
    assert "Traceback" not in text


@pytest.mark.parametrize("delay", [0.3, 1.0, 2.0])
def test_interrupts_while_starting_and_twice_leave_no_traceback(
    ros: None, panda_parameters: dict[str, object], delay: float
) -> None:
    with ForkedNode(panda_parameters, name="kinopt_brief") as process:
        time.sleep(delay)
        process.interrupt()
        time.sleep(0.05)
        process.interrupt()
        assert process.wait(60.0) is not None
        # Before main() runs, Python itself answers an interrupt with a traceback; nobody can help that.
        text = process.log_text()
        assert "Traceback" not in text or "kinopt_ros/ros/node.py" not in text, text


def wait_for(client: Client, condition: Callable[[], bool], timeout: float = 60.0) -> bool:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if condition():
            return True
        client.spin(0.1)
    return False


@pytest.mark.parametrize("name", ["solver", "ik.solver", "fallback_chain"])
def test_a_solver_that_does_not_exist_ends_the_start(start_node: StartNode, name: str) -> None:
    value = ["nope"] if name == "fallback_chain" else "nope"
    process, _ = start_node("kinopt_solverless", {name: value}, ready=False)
    assert process.wait(60.0) == 1
    assert f"parameter {name}: unknown solver 'nope'" in process.log_text()


def test_names_that_the_robot_lacks_are_warned_of(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    wrong = {"default_group": "legs", "controller_joints": ["panda_joint1", "hip"]}
    process, client = start_node("kinopt_misnamed", {**panda_parameters, **wrong})
    for sentence in (
        "[WARN]",
        "parameter default_group: unknown group 'legs'",
        "parameter controller_joints: unknown joint 'hip'",
    ):
        assert client.spin_until(lambda sentence=sentence: sentence in process.log_text(), 60.0), sentence
