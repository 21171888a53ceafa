"""The simulated robot beside the node: motions are done, not only published."""

import re
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Time as TimeMsg
from geometry_msgs.msg import PoseStamped
from rclpy.action import ActionClient
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from support.forked_nodes import ForkedNode
from support.pages import FIRST_COMMANDS, filled
from support.ros_requests import READY, StartNode, pose, target, until_seen
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.moveit_controllers import entry_of
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.client.simulated_actions import GRIPPERS
from kinopt_ros.ros.client.simulated_robot import SimulatedRobotTopics
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.ros.messages.stamps import SAY_SECONDS
from kinopt_ros.status import Status
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(900)

PANDA = load_robot("panda")
MODULE = "kinopt_ros.ros.client.simulated_robot"
COMMAND = re.compile(
    r"ros2 (?:service call|topic pub --once) (/kinopt/\w+) (\w+)/(?:srv|msg)/(\w+)\s*\\?\s*(?:\"(\{.*\})\")?"
)
FIRST_BLOCK = COMMAND.findall(FIRST_COMMANDS)


class Listener:
    """Listens for where the robot is."""

    def __init__(self, client: Client) -> None:
        self.at: dict[str, float] = {}
        client.node.create_subscription(JointState, "joint_states", self._hear, 10)

    def _hear(self, message: Any) -> None:
        self.at.update(zip(message.name, message.position, strict=True))


def test_the_first_commands_of_the_readme_move_the_robot(
    ros: None, panda_parameters: dict[str, object], tmp_path: Path
) -> None:
    """Both run as panda.launch.py runs them, with its parameters; nobody else says where the robot is."""
    assert {topic for topic, *_ in FIRST_BLOCK} == {
        "/kinopt/solve_ik",
        "/kinopt/compute_fk",
        "/kinopt/ready",
        "/kinopt/target_pose",
    }
    start = {"start": "ready"}
    with (
        NodeProcess(panda_parameters, tmp_path / "node.log") as node,
        NodeProcess(
            start, tmp_path / "robot.log", "simulated_robot", module=MODULE, words=["panda"]
        ) as robot,
    ):
        client = Client()
        listener = Listener(client)
        client.wait_until_ready(600.0, lambda: node.running)
        assert client.spin_until(lambda: bool(listener.at), 60.0), robot.log_text()
        assert {name: listener.at[name] for name in READY} == pytest.approx(READY, abs=1e-3)
        for topic, package, kind, text in FIRST_BLOCK:
            name = topic.removeprefix("/kinopt/")
            values = yaml.safe_load(text) if text else {}
            if name == "target_pose":
                continue
            request = filled(getattr(import_module(f"{package}.srv"), kind).Request(), values)
            answer = client.call(name, request)
            assert getattr(answer, "success", True)
            if hasattr(answer, "status"):
                assert answer.status.code == Status.SUCCESS, answer.status.message
        (text,) = (text for topic, *_, text in FIRST_BLOCK if topic == "/kinopt/target_pose")
        wanted = filled(PoseStamped(), yaml.safe_load(text))
        report, trajectory = client.move_to(wanted, 60.0)
        end = time.monotonic() + 60.0
        while report.status.code == Status.INVALID_ROBOT_STATE and time.monotonic() < end:
            client.spin(0.2)  # the node has not heard of the robot yet, which is as new
            report, trajectory = client.move_to(wanted, 60.0)
        assert report.status.code == Status.SUCCESS, report.status.message
        assert trajectory is not None
        goal = dict(zip(trajectory.joint_names, trajectory.points[-1].positions, strict=True))
        assert client.spin_until(
            lambda: max(abs(listener.at[name] - value) for name, value in goal.items()) < 1e-6, 60.0
        ), robot.log_text()
        q = PANDA.default_q.copy()
        for name in PANDA.variable_names:
            q[PANDA.variable_index[name]] = listener.at[name]
        reached = forward_kinematics(PANDA, q, links=("panda_link0", "panda_link8"))
        expected = matrices_from_poses([wanted.pose])[0]
        np.testing.assert_allclose(np.linalg.inv(reached[0]) @ reached[1], expected, atol=2e-4)
        client.close()
        for process in (node, robot):
            assert process.stop() == 0, process.log_text()
            assert "Traceback" not in process.log_text()


def test_a_node_finds_the_description_of_a_simulated_robot(start_node: StartNode, tmp_path: Path) -> None:
    """`kinopt_simulated_robot panda` in place of robot_state_publisher and controllers, one of them chosen."""
    _, client = start_node("kinopt_found", {}, ready=False)
    parameters = {"controllers": ["arm=panda_arm"], "trajectory_topics": ["kinopt_found/joint_trajectory"]}
    with ForkedNode(
        parameters, tmp_path / "robot.log", "simulated_robot", module=MODULE, words=["panda"]
    ) as robot:
        assert "panda" in client.wait_until_ready(600.0, lambda: robot.running)
        topics = dict(client.node.get_topic_names_and_types())
        assert "/arm/joint_trajectory" in topics
        assert robot.stop() == 0, robot.log_text()


def test_a_description_that_no_topics_can_be_made_of_ends_nothing(
    start_node: StartNode, panda_texts: tuple[str, str], tmp_path: Path
) -> None:
    urdf, srdf = panda_texts
    _, client = start_node("kinopt_watcher", {}, ready=False)
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    description = client.node.create_publisher(String, "robot_description", latched)
    semantic = client.node.create_publisher(String, "robot_description_semantic", latched)
    semantic.publish(String(data=srdf.replace('"panda_arm"', f'"{"g" * 200}"')))
    description.publish(String(data=urdf))
    with ForkedNode({}, tmp_path / "robot.log", "simulated_robot", module=MODULE) as robot:
        said = "no topic can be called after the controller"
        assert client.spin_until(lambda: said in robot.log_text() or not robot.running, 60.0), (
            robot.log_text()
        )
        semantic.publish(String(data=srdf))
        assert client.spin_until(lambda: "simulated robot 'panda'" in robot.log_text(), 60.0), (
            robot.log_text()
        )
        assert robot.stop() == 0, robot.log_text()
        assert "Traceback" not in robot.log_text()


def test_a_clock_that_says_no_times_ends_nothing_and_fills_no_log(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Each such message was an error with all its lines, and the end of the simulated robot."""
    process, client = start_node("kinopt_timeless", {"use_sim_time": True}, ready=False)
    clock = client.node.create_publisher(Clock, "/clock", 10)
    states: list[Any] = []
    client.node.create_subscription(JointState, "joint_states", states.append, 10)
    wrong = [
        TimeMsg(sec=-5),
        TimeMsg(sec=3, nanosec=4 * 10**9),
        TimeMsg(sec=2**31 - 1),
        TimeMsg(sec=0),
        TimeMsg(sec=10**9),
    ]
    with NodeProcess(
        {"use_sim_time": True}, tmp_path / "robot.log", "simulated_robot", module=MODULE, words=["panda"]
    ) as robot:
        nodes = (process, robot)

        def goes_on() -> bool:  # in time that passes
            clock.publish(
                Clock(clock=TimeMsg(sec=100 + int(time.monotonic()) % 1000, nanosec=time.time_ns() % 10**9))
            )
            return len(states) > before + 5 or not all(node.running for node in nodes)

        before, begin = 0, time.monotonic()
        assert client.spin_until(goes_on, 60.0)
        until_ready = time.monotonic() + 60.0
        while not all("/clock says -5 s" in node.log_text() for node in nodes):
            assert time.monotonic() < until_ready, [node.log_text() for node in nodes]
            for stamp in wrong:
                clock.publish(Clock(clock=stamp))
            client.spin(0.02)
        for stamp in wrong * 40:
            clock.publish(Clock(clock=stamp))
            client.spin(0.005)
        before = len(states)
        assert client.spin_until(goes_on, 60.0)
        for node in nodes:
            assert node.running, node.log_text()
            assert "Traceback" not in node.log_text()
            assert node.log_text().count("/clock says") <= 2 + (time.monotonic() - begin) / SAY_SECONDS
        assert robot.stop() == 0


def test_a_wrong_robot_is_told_in_a_sentence(ros: None, tmp_path: Path) -> None:
    for words, parameters, said in (
        (["nobody"], {}, "nobody"),
        (["panda", "panda"], {}, "2 robots"),
        (["panda"], {"controllers": ["arm"]}, "NAME=GROUP"),
        (["panda"], {"controllers": ["arm=legs"]}, "legs"),
        (["panda"], {"rate": 0.0}, "rate is 0"),
        (["panda"], {"start": "lying"}, "lying"),
        (["panda"], {"gripper_action": "Grip"}, "'Grip'; allowed are ParallelGripperCommand, GripperCommand"),
        (
            ["panda"],
            {"controllers": [f"{'x' * 230}=panda_arm"]},
            "no topic can be called after the controller",
        ),
    ):
        with ForkedNode(
            parameters, tmp_path / "robot.log", "simulated_robot", module=MODULE, words=words
        ) as robot:
            assert robot.wait(60.0) == 1, robot.log_text()
            assert said in robot.log_text()
            assert "Traceback" not in robot.log_text(), robot.log_text()


@pytest.fixture
def arm(control_msgs: None, ros: None) -> Iterator[tuple[Client, SimulatedRobotTopics]]:
    """A simulated Panda in this process."""
    client = Client("arm_client", "nobody")
    topics = SimulatedRobotTopics(client.node, SimulatedRobot(PANDA), ["anywhere"])
    yield client, topics
    topics.close()
    client.close()


def trajectory(to: float, seconds: float = 1.0) -> JointTrajectory:
    message = JointTrajectory(joint_names=[f"panda_joint{i + 1}" for i in range(7)])
    point = JointTrajectoryPoint(positions=[to, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
    point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(seconds * 1e9), 10**9)
    message.points = [point]
    return message


class Sender:
    """Sends goals to a controller."""

    def __init__(self, client: Client) -> None:
        self.kind = import_module("control_msgs.action").FollowJointTrajectory
        self.client = client
        self.actions = ActionClient(client.node, self.kind, "panda_arm_controller/follow_joint_trajectory")
        assert client.spin_until(self.actions.server_is_ready, 60.0)

    def send(self, message: JointTrajectory) -> Any:
        future = self.actions.send_goal_async(self.kind.Goal(trajectory=message))
        assert self.client.spin_until(future.done, 60.0)
        return future.result()

    def result(self, handle: Any, within: float = 20.0) -> tuple[int, Any]:
        future = handle.get_result_async()
        assert self.client.spin_until(future.done, within)
        return future.result().status, future.result().result


def test_a_goal_is_done_and_ends_when_the_motion_does(arm: tuple[Client, SimulatedRobotTopics]) -> None:
    client, topics = arm
    sender = Sender(client)
    begin = time.monotonic()
    handle = sender.send(trajectory(0.5, 0.5))
    assert handle.accepted
    status, result = sender.result(handle)
    assert (status, result.error_code) == (GoalStatus.STATUS_SUCCEEDED, 0)
    assert time.monotonic() - begin > 0.45
    assert topics.robot.states(topics.now())[1][0] == 0.5
    assert topics.at_rest()


def test_goals_that_a_controller_refuses(arm: tuple[Client, SimulatedRobotTopics]) -> None:
    client, topics = arm
    sender = Sender(client)
    few = trajectory(0.5)
    few.joint_names = few.joint_names[:3]
    for bad in (few, JointTrajectory(joint_names=trajectory(0.0).joint_names)):
        assert not sender.send(bad).accepted
    assert topics.at_rest()


def test_a_cancelled_goal_stops_the_robot(arm: tuple[Client, SimulatedRobotTopics]) -> None:
    client, topics = arm
    sender = Sender(client)
    handle = sender.send(trajectory(2.0, 60.0))
    client.spin(0.3)
    handle.cancel_goal_async()
    assert sender.result(handle)[0] == GoalStatus.STATUS_CANCELED
    assert topics.at_rest()
    _, position, velocity = topics.robot.states(topics.now())
    assert 0.0 < position[0] < 1.0
    assert not velocity.any()


def test_whatever_comes_next_takes_the_place_of_a_goal(arm: tuple[Client, SimulatedRobotTopics]) -> None:
    client, topics = arm
    sender = Sender(client)
    first = sender.send(trajectory(2.0, 60.0))
    second = sender.send(trajectory(1.0, 60.0))
    status, result = sender.result(first)
    assert status == GoalStatus.STATUS_CANCELED
    assert result.error_code == result.INVALID_GOAL
    assert "taken its place" in result.error_string
    publisher = client.node.create_publisher(JointTrajectory, "panda_arm_controller/joint_trajectory", 10)
    assert client.spin_until(lambda: publisher.get_subscription_count() > 0, 60.0)
    publisher.publish(trajectory(0.25, 0.1))
    assert sender.result(second)[0] == GoalStatus.STATUS_CANCELED
    assert client.spin_until(topics.at_rest, 60.0)
    assert topics.robot.states(topics.now())[1][0] == 0.25


def test_topics_for_all_controllers_choose_by_joints(arm: tuple[Client, SimulatedRobotTopics]) -> None:
    client, topics = arm
    publisher = client.node.create_publisher(JointTrajectory, "anywhere", 10)
    assert client.spin_until(lambda: publisher.get_subscription_count() > 0, 60.0)
    hand = trajectory(0.0)
    hand.joint_names = ["panda_finger_joint1"]
    hand.points[0].positions = [0.03]
    nobody = trajectory(1.0, 0.01)
    nobody.joint_names[0] = "elbow"
    for message in (nobody, trajectory(0.3, 0.05), hand):
        publisher.publish(message)

    def arrived() -> bool:
        _, position, _ = topics.robot.states(topics.now())
        return bool(position[0] == 0.3 and position[7] == 0.03)

    assert client.spin_until(arrived, 60.0)


def commanded(kind: str, name: str, position: float) -> Any:
    goal = getattr(import_module("control_msgs.action"), kind).Goal()
    if kind == "ParallelGripperCommand":
        goal.command = JointState(name=[name], position=[position])
    else:  # it names no joint
        goal.command.position = position
    return goal


@pytest.mark.parametrize("kind", list(GRIPPERS))
@pytest.mark.parametrize(
    ("wanted", "there", "status"),
    [(0.03, 0.03, GoalStatus.STATUS_SUCCEEDED), (0.2, 0.04, GoalStatus.STATUS_ABORTED)],
)
def test_a_gripper_goes_where_it_is_told_or_stalls(
    control_msgs: None, ros: None, kind: str, wanted: float, there: float, status: int
) -> None:
    client = Client("gripper_client", "nobody")
    # Not one name for both: a process cannot have two types of one name.
    robot = SimulatedRobot(PANDA, {kind: ["panda_finger_joint1"]})
    topics = SimulatedRobotTopics(client.node, robot, [], gripper=kind)
    listener = Listener(client)
    action = getattr(import_module("control_msgs.action"), kind)
    gripper = ActionClient(client.node, action, f"{kind}/gripper_cmd")
    assert client.spin_until(gripper.server_is_ready, 60.0)
    bad = [commanded(kind, "panda_finger_joint1", float("nan"))]
    if kind == "ParallelGripperCommand":
        bad.append(commanded(kind, "panda_joint1", 0.0))
    for goal in bad:
        refused = gripper.send_goal_async(goal)
        assert client.spin_until(refused.done, 60.0)
        assert not refused.result().accepted
    taken = gripper.send_goal_async(commanded(kind, "panda_finger_joint1", wanted))
    assert client.spin_until(taken.done, 60.0)
    result = taken.result().get_result_async()
    assert client.spin_until(result.done, 60.0)
    answer = result.result()
    assert answer.status == status
    said = answer.result
    assert (said.state.position[0] if "Parallel" in kind else said.position) == pytest.approx(there)
    assert said.reached_goal == (status == GoalStatus.STATUS_SUCCEEDED)
    assert said.stalled != said.reached_goal
    fingers = ("panda_finger_joint1", "panda_finger_joint2")  # clients wait for both
    assert client.spin_until(
        lambda: all(listener.at.get(name) == pytest.approx(there) for name in fingers), 20.0
    )
    topics.close()
    client.close()


def test_a_parallel_gripper_of_two_joints_is_told_their_sum(control_msgs: None, ros: None) -> None:
    client = Client("parallel_client", "nobody")
    joints = ["panda_joint6", "panda_joint7"]
    given = {"type": "GripperCommand", "action_ns": "", "joints": joints, "parallel": True}
    robot = SimulatedRobot(PANDA, {"grip": joints}, {"panda_joint6": 0.5})
    topics = SimulatedRobotTopics(client.node, robot, [], entries={"grip": entry_of("grip", given)})
    gripper = ActionClient(client.node, import_module("control_msgs.action").GripperCommand, "grip")
    assert client.spin_until(gripper.server_is_ready, 60.0)
    taken = gripper.send_goal_async(commanded("GripperCommand", "", 1.2))
    assert client.spin_until(taken.done, 60.0)
    result = taken.result().get_result_async()
    assert client.spin_until(result.done, 60.0)
    assert result.result().result.position == pytest.approx(1.2)
    _, position, _ = robot.states(topics.now())
    assert list(position[5:7]) == pytest.approx([0.6, 0.6])
    topics.close()
    client.close()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "Other"}, "'grip' is of type 'Other'; allowed are FollowJointTrajectory, GripperCommand"),
        ({"type": "GripperCommand"}, "the gripper 'grip' has the joints panda_joint6, panda_joint7"),
    ],
)
def test_grippers_that_are_not_simulated_are_refused(
    control_msgs: None, ros: None, given: dict[str, str], said: str
) -> None:
    client = Client("refused_client", "nobody")
    robot = SimulatedRobot(PANDA, {"grip": ["panda_joint6", "panda_joint7"]}, {"panda_joint6": 0.5})
    with pytest.raises(InvalidRequestError, match=re.escape(said)):
        SimulatedRobotTopics(client.node, robot, [], entries={"grip": entry_of("grip", given)})
    client.close()


class Patient(SimulatedRobotTopics):
    """A simulated robot whose clock stands still while this process does, so that no motion is over, and no stop comes
    too late, because the machine is busy."""

    most = 20_000_000
    """Longest time between two looks at its clock, ns."""
    ahead = 0
    """By how much its clock is ahead of the node's, ns."""

    def now(self) -> int:
        real = super().now() + self.ahead
        self.own = min(real, getattr(self, "own", real) + self.most)
        return self.own


class Ahead(Patient):
    """One whose clock nobody has set: it drops stops that begin at a time of the node's, as they are over by that."""

    ahead = 10**18


@pytest.mark.parametrize("kind", [Patient, Ahead])
def test_the_end_of_the_node_stops_the_motion_that_it_has_published(
    start_node: StartNode, panda_parameters: dict[str, object], kind: type[Patient]
) -> None:
    long = {"velocity_scaling": 0.02}
    process, client = start_node("kinopt_ends", {**panda_parameters, **long})
    topics = kind(client.node, SimulatedRobot(PANDA, start=READY), ["kinopt_ends/joint_trajectory"])
    until_seen(client)
    report, motion = client.move_to(target(pose(0.1, 0.5, 0.4)))
    assert report.status.code == Status.SUCCESS, report.status.message
    assert motion is not None
    assert client.spin_until(lambda: not topics.at_rest(), 60.0)
    process.interrupt()
    assert client.spin_until(lambda: client.trajectories[-1] is not motion, 60.0), process.log_text()
    assert client.spin_until(topics.at_rest, 60.0), process.log_text()
    stop = client.trajectories[-1]
    assert not np.abs(stop.points[-1].velocities).any()
    _, position, velocity = topics.robot.states(topics.now())
    assert not velocity.any()
    np.testing.assert_allclose(position[:7], stop.points[-1].positions, atol=1e-9)
    assert np.abs(position[:7] - motion.points[-1].positions).max() > 0.05  # it has not gone on to its end
    assert process.stop() == 0, process.log_text()
    assert "shutdown: the robot brakes" in process.log_text()
    # It is stopped where it is measured if joint states tell of another clock: a patient one may be far behind, too.
    said = ("from where it was measured", "within the limits")
    assert any(one in process.log_text() for one in said), process.log_text()
    topics.close()


def test_joint_states_are_stamped_with_the_time_at_which_the_robot_is_there() -> None:
    """On a busy machine it seemed to jump: a state was stamped later than it was of, and the next one came soon."""
    ticks = iter(range(10**9, 2 * 10**9, 50_000_000))  # each look at the clock is a little later
    clock = SimpleNamespace(now=lambda: Time(nanoseconds=next(ticks)))
    asked: list[int] = []
    sent: list[Any] = []

    def states(now: int) -> Any:
        asked.append(now)
        return ("joint",), np.zeros(1), np.zeros(1)

    topics: Any = SimulatedRobotTopics.__new__(SimulatedRobotTopics)
    topics._node = SimpleNamespace(get_clock=lambda: clock)
    topics._latest, topics._actions = 0, []
    topics._states = SimpleNamespace(publish=sent.append)
    topics.robot = SimpleNamespace(states=states, controllers={})
    topics._advance()
    assert [Time.from_msg(message.header.stamp).nanoseconds for message in sent] == asked
