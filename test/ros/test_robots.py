"""Robots that are no plain arm, and clients that are no plain ones: the node serves what can be served."""

import time
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from support.ros_requests import READY, StartNode, ik, pose, stand, target

from kinopt_msgs.srv import ComputeFK, ListSolvers
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import poses_from_matrices
from kinopt_ros.status import Status

SOON_STALE = {"state_timeout": 2.0}
"""s: joint states are stale soon, but not because a machine is busy."""
_REVOLUTE = (
    '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="{3}"/>'
    '<axis xyz="{4}"/><limit lower="-2.8" upper="2.8" velocity="1" effort="1"/></joint>'
)
_AXES = ["0 0 1", "0 1 0", "0 1 0", "0 0 1", "0 1 0", "0 0 1"]
_OFFSETS = ["0 0 0.3", "0 0.1 0", "0 0 0.4", "0 -0.1 0.3", "0 0 0.05", "0 0 0.08"]
ARM = "".join(
    _REVOLUTE.format(f"j{i + 1}", f"l{i}", f"l{i + 1}", _OFFSETS[i], _AXES[i]) for i in range(6)
) + "".join(f'<link name="l{i}"/>' for i in range(7))
LONG = (
    '<robot name="long"><link name="k0"/>'
    + "".join(
        f'<link name="k{i + 1}"/>' + _REVOLUTE.format(f"k{i}", f"k{i}", f"k{i + 1}", "0 0 0.1", _AXES[i % 6])
        for i in range(65)
    )
    + "</robot>"
)
FLOATING = (
    f'<robot name="floating"><link name="world"/>{ARM}<joint name="root" type="floating">'
    '<parent link="world"/><child link="l0"/></joint></robot>'
)
BRANCHES = f'<robot name="branches">{ARM}<link name="k1"/>{_REVOLUTE.format("k", "l0", "k1", "0 0 0", "0 0 1")}</robot>'
NO_TIP = '<robot name="branches"><group name="both"><joint name="j1"/><joint name="k"/></group></robot>'


def test_a_default_group_that_no_solver_can_move_does_not_stop_the_rest(start_node: StartNode) -> None:
    process, client = start_node("kinopt_long", {"robot_description": LONG})
    assert client.spin_until(lambda: "at most 64 variables" in process.log_text(), 100.0)
    assert client.call("list_solvers", ListSolvers.Request()).status.code == Status.SUCCESS
    assert client.call("compute_fk", ComputeFK.Request(links=["k6"])).status.code == Status.SUCCESS
    whole = client.call("solve_ik", ik(pose(0.2, 0.1, 0.9)))
    assert whole.status.code == Status.UNSUPPORTED_FEATURE
    assert "at most 64 variables" in whole.status.message
    any_turn = {"free_axes": ["rx", "ry", "rz"]}
    arm = client.call("solve_ik", ik(pose(0.2, 0.1, 0.5), base_link="k0", tip_link="k7", **any_turn))
    assert arm.status.code == Status.SUCCESS, arm.status.message


def test_a_floating_joint_of_the_description_is_moved(start_node: StartNode) -> None:
    _, client = start_node("kinopt_floating", {"robot_description": FLOATING})
    whole = client.call("solve_ik", ik(pose(20.0, 0.1, 0.9)))
    assert whole.status.code == Status.SUCCESS, whole.status.message
    assert len(whole.joint_names) == 13
    arm = client.call("solve_ik", ik(pose(0.2, 0.1, 0.9), frame="l0", base_link="l0", tip_link="l6"))
    assert arm.status.code == Status.SUCCESS, arm.status.message


def test_a_group_without_a_tip_does_not_make_the_first_request_wait(start_node: StartNode) -> None:
    parameters = {"robot_description": BRANCHES, "robot_description_semantic": NO_TIP}
    _, client = start_node("kinopt_no_tip", parameters)
    start = time.monotonic()
    answer = client.call("solve_ik", ik(pose(0.2, 0.1, 0.9), base_link="l0", tip_link="l6"))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    assert time.monotonic() - start < 20.0  # compilers take longer
    refused = client.call("solve_ik", ik(pose(0.2, 0.1, 0.9)))
    assert refused.status.code == Status.INVALID_REQUEST
    assert "tip_link" in refused.status.message


def test_the_node_ends_in_time_while_a_request_is_at_work(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    process, client = start_node("kinopt_busy", panda_parameters)
    request = ik(*[pose(0.75, 0.0, 0.1, (0.0, 0.0, 0.0, 1.0))] * 10_000, timeout=60.0)
    client.send("solve_ik", request)
    client.spin(1.0)
    start = time.monotonic()
    assert client.call("ready", Trigger.Request()).success  # requests run beside each other
    assert time.monotonic() - start < 10.0
    process.interrupt()
    time.sleep(0.05)
    process.interrupt()
    assert process.wait(40.0) == 0, process.log_text()  # sooner than the request ends


def test_timeouts_are_bounded(client: Client) -> None:
    answer = client.call("solve_ik", ik(pose(), timeout=1e9))
    assert answer.status.code == Status.INVALID_REQUEST
    assert "ik.max_timeout" in answer.status.message


def test_the_bound_of_timeouts_is_no_trap_for_requests_without_one(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    _, client = start_node("kinopt_bounded", {**panda_parameters, "ik.max_timeout": 0.8})  # below ik.timeout
    answer = client.call("solve_ik", ik(pose()))
    assert answer.status.code == Status.SUCCESS, answer.status.message


def test_hostile_names_cost_little_and_are_not_echoed_whole(client: Client) -> None:
    names = [f"panda_joint{i}" for i in range(50_000)] * 2
    start = time.monotonic()
    answers = [
        client.call("solve_ik", ik(pose(), state=JointState(name=names, position=[0.0] * len(names)))),
        client.call("solve_ik", ik(pose(), frame="x" * 1_000_000)),
        client.call("solve_ik", ik(pose(), group="y" * 200_000)),
        client.call("solve_ik", ik(pose(), solver="z" * 200_000)),
    ]
    assert time.monotonic() - start < 30.0
    for answer in answers:
        assert answer.status.code not in (Status.SUCCESS, Status.FAILURE)
        assert len(answer.status.message) < 1000


def fk(client: Client, link: str, **fields: Any) -> Any:
    """The node's answer where a link is."""
    return client.call("compute_fk", ComputeFK.Request(links=[link], **fields))


def until_stale(client: Client, link: str) -> None:
    """Wait until joint states of what moves a link are too old."""
    stale = lambda: fk(client, link).status.code == Status.ROBOT_STATE_STALE  # noqa: E731
    assert client.spin_until(stale, 60.0)


def test_joints_that_do_not_matter_may_be_stale(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    _, client = start_node("kinopt_stale", {**panda_parameters, **SOON_STALE})
    finger = JointState(name=["panda_finger_joint1"], position=[0.01])
    client.publish_joint_state(finger)
    assert client.spin_until(lambda: "finger" not in fk(client, "panda_leftfinger").status.message, 60.0)
    stand(client)
    until_stale(client, "panda_leftfinger")
    assert client.call("solve_ik", ik(pose())).status.code == Status.SUCCESS
    assert fk(client, "panda_link8").status.code == Status.SUCCESS
    named = fk(
        client,
        "panda_leftfinger",
        joint_names=["panda_finger_joint1", "panda_finger_joint2"],  # as joint_states has them
        positions=[0.03, 0.03],
    )
    assert named.status.code == Status.SUCCESS


def test_joints_above_the_chain_do_not_matter(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    _, client = start_node("kinopt_above", {**panda_parameters, **SOON_STALE})
    client.publish_joint_state(JointState(name=["panda_joint1", "panda_joint2"], position=[0.0, -0.8]))
    assert client.spin_until(lambda: "panda_joint" not in fk(client, "panda_link2").status.message, 60.0)
    client.pretend_robot({name: value for name, value in READY.items() if name[-1] > "2"})
    until_stale(client, "panda_link8")
    down = ik(pose(0.1, -0.3, 0.2), frame="panda_link3", base_link="panda_link3", tip_link="panda_link8")
    assert client.call("solve_ik", down).status.code in (Status.SUCCESS, Status.NO_IK_SOLUTION)
    request = ComputeFK.Request(links=["panda_link8"])
    request.header.frame_id = "panda_link3"
    assert client.call("compute_fk", request).status.code == Status.SUCCESS


def test_seeds_of_each_target_are_its_own(client: Client) -> None:
    robot = load_robot("panda")
    q = random_configurations(robot, 4, 9)
    T = forward_kinematics(robot, q, links=("panda_link8",))[:, 0]
    away = JointState(name=list(READY), position=[2.0, 1.5, 2.0, -0.2, 2.0, 3.5, 2.0])
    for num_seeds in (0, 1):
        request = ik(
            *poses_from_matrices(T), seeds=q[:, :7].ravel().tolist(), num_seeds=num_seeds, state=away
        )
        answer = client.call("solve_ik", request)
        assert answer.status.code == Status.SUCCESS, answer.status.message
    wrong = client.call("solve_ik", ik(pose(), seeds=[0.0] * 14))
    assert wrong.status.code == Status.INVALID_ROBOT_STATE
    assert "num_seeds" in wrong.status.message


def test_what_nobody_published_is_named(start_node: StartNode, panda_parameters: dict[str, object]) -> None:
    _, client = start_node("kinopt_blind", panda_parameters)
    answer = client.call("compute_fk", ComputeFK.Request(links=["panda_link2"]))
    assert answer.status.code == Status.SUCCESS
    assert "panda_joint1, panda_joint2" in answer.status.message
    assert client.call("solve_ik", ik(pose())).status.message == ""
    said = "joint_states has no value for panda_joint1, panda_joint2"
    for fields in ({"prefer": "closest"}, {"prefer": "rest"}):
        answer = client.call("solve_ik", ik(pose(), **fields))
        assert answer.status.code == Status.SUCCESS
        assert said in answer.status.message
        assert "the default is assumed" in answer.status.message
    named = JointState(name=list(READY), position=list(READY.values()))
    answer = client.call("solve_ik", ik(pose(), prefer="closest", state=named))
    assert answer.status.message == ""
    answer = client.call("solve_ik", ik(pose(), prefer="rest", rest=named))
    assert answer.status.message == ""
    held = client.call("solve_ik", ik(pose(0.3, 0.0, 0.3), base_link="panda_link2", tip_link="panda_link8"))
    assert held.status.code == Status.SUCCESS or held.status.code == Status.NO_IK_SOLUTION
    report, trajectory = client.move_to(target(pose()))
    assert report.status.code == Status.INVALID_ROBOT_STATE
    assert trajectory is None


def test_parallel_clients_get_their_own_answers(client: Client) -> None:
    """Four clients at once, each with targets of its own; every answer is that of its question."""
    clients = [Client(f"parallel_{i}") for i in range(4)]
    try:
        futures = []
        for i, other in enumerate(clients):
            other.wait_until_found()
            poses = [pose(0.3 + 0.02 * i, 0.01 * k, 0.5) for k in range(20)]
            request = ik(*poses, state=JointState(name=list(READY), position=list(READY.values())))
            futures.append((other, other.send("solve_ik", request), request))
        for other, future, request in futures:
            assert other.spin_until(future.done, 60.0)
            serial = client.call("solve_ik", request)
            np.testing.assert_array_equal(future.result().positions, serial.positions)
    finally:
        for other in clients:
            other.close()
