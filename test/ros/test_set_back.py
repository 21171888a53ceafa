"""Controllers that begin what replaces a motion where the robot is measured are found by their own parameters."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from support.ros_requests import StartNode
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.ros.motion.set_back import LOOK_SECONDS, SetBackWatch


@pytest.fixture
def executor(ros: None) -> Iterator[SingleThreadedExecutor]:
    executor = SingleThreadedExecutor()
    yield executor
    for node in executor.get_nodes():
        node.destroy_node()
    executor.shutdown()


def a_controller(executor: SingleThreadedExecutor, name: str, **parameters: bool | int) -> None:
    node = Node(name, namespace="/left")
    for parameter, value in parameters.items():
        node.declare_parameter(parameter, value)
    executor.add_node(node)


def told(executor: SingleThreadedExecutor, names: list[str], looks: int = 200) -> SetBackWatch:
    """A watch that has asked all that it asks."""
    node = Node("asks")
    executor.add_node(node)
    watch = SetBackWatch(node, lambda: [endpoint(name) for name in names])
    look(watch, executor, looks)
    return watch


def endpoint(name: str, number: bytes = b"1") -> Any:
    namespace, _, own = name.rpartition("/")
    return SimpleNamespace(node_namespace=namespace, node_name=own, endpoint_gid=number)


def look(watch: SetBackWatch, executor: SingleThreadedExecutor, looks: int = 200) -> None:
    for _ in range(looks):
        watch.look()
        for _ in range(20):
            executor.spin_once(timeout_sec=0.01)
        if all(one._over for one in watch._asked.values()):
            break
    watch.look()


@pytest.mark.parametrize(
    ("parameters", "sets_back"),
    [
        ({"interpolate_from_desired_state": False}, True),
        ({"open_loop_control": False}, True),
        ({"open_loop_control": False, "interpolate_from_desired_state": False}, True),
        ({"interpolate_from_desired_state": True}, False),
        ({"open_loop_control": True, "interpolate_from_desired_state": False}, False),
        ({"open_loop_control": 0}, False),  # another one of that name
        ({}, False),  # no such controller
    ],
)
def test_what_a_controller_says(
    parameters: dict[str, bool | int], sets_back: bool, executor: SingleThreadedExecutor
) -> None:
    a_controller(executor, "arm_controller", **parameters)
    watch = told(executor, ["/left/arm_controller"])
    assert bool(watch.sentence) == sets_back
    if sets_back:
        assert (
            "/left/arm_controller begins what replaces a motion where the robot is measured" in watch.sentence
        )
        assert "interpolate_from_desired_state: true" in watch.sentence


def test_one_that_goes_is_forgotten(executor: SingleThreadedExecutor) -> None:
    a_controller(executor, "arm_controller", open_loop_control=False)
    names = ["/left/arm_controller"]
    watch = told(executor, names)
    assert watch.sentence
    names.clear()
    watch.look()
    assert not watch.sentence
    assert not watch._asked


def test_one_that_is_started_anew_is_asked_anew(executor: SingleThreadedExecutor) -> None:
    """Within two looks it may be there again, set otherwise."""
    a_controller(executor, "arm_controller", open_loop_control=False)
    names = ["/left/arm_controller"]
    watch = told(executor, names)
    assert watch.sentence
    [controller] = [node for node in executor.get_nodes() if node.get_name() == "arm_controller"]
    controller.set_parameters([Parameter("open_loop_control", value=True)])
    watch.look()
    assert watch.sentence
    watch._controllers = lambda: [endpoint(names[0], b"2")]
    look(watch, executor)
    assert not watch.sentence


def test_a_listener_that_is_no_node_of_ros(executor: SingleThreadedExecutor) -> None:
    """Others than ROS listen, too, and are called as they like."""
    assert not told(executor, ["/", "/no name/a-b"]).sentence


def test_who_never_answers_is_not_asked_for_ever(executor: SingleThreadedExecutor) -> None:
    node = Node("mute", namespace="/left", start_parameter_services=False)
    executor.add_node(node)
    watch = told(executor, ["/left/mute"], looks=10)
    assert not watch.sentence


def test_the_node_says_it_of_who_hears_its_motions(start_node: StartNode) -> None:
    process, client = start_node("asks_controllers", {}, ready=False)
    topic = "/asks_controllers/joint_trajectory"
    client.node.declare_parameter("open_loop_control", False)
    client.node.create_subscription(JointTrajectory, topic, lambda message: None, 1)
    sentence = (
        f"{client.node.get_fully_qualified_name()} begins what replaces a motion where the robot is measured"
    )
    assert client.spin_until(lambda: sentence in process.log_text(), 60.0), process.log_text()
    client.spin(2.0 * LOOK_SECONDS)
    assert process.log_text().count(sentence) == 1  # not at every look
