"""~/solve_ik and ~/target_pose without collisions: with the scene as it is when the request comes."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose
from support.ros_requests import READY, StartNode, ik, pose, set_parameter, target

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene, CheckState, ComputeFK, SolveIK
from kinopt_ros.cli import main
from kinopt_ros.ros.client.client import Client
from kinopt_ros.status import Status
from kinopt_ros.verification.verify import ON_THE_WAY

pytest.importorskip("coal")


def solve(client: Client, *poses: Pose, timeout: float = 30.0, **fields: object) -> SolveIK.Response:
    """An answer without collisions, as soon as the node can give one."""
    end = time.monotonic() + 200.0
    while True:
        request = ik(*poses, timeout=timeout, avoid_collisions=True, **fields)
        answer = client.call("solve_ik", request, timeout=60.0)
        if answer.status.code != Status.NOT_READY or time.monotonic() > end:
            return answer
        client.spin(0.5)


def apply(client: Client, *operations: SceneOperation) -> int:
    answer = client.call("apply_scene", ApplyScene.Request(operations=list(operations)))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    return int(answer.version)


def ball(id: str, radius: float, *at: float) -> SceneOperation:
    given = CollisionObject(id=id, shapes=[Shape(type="sphere", dimensions=[radius])])
    given.pose = Pose(position=Point(x=at[0], y=at[1], z=at[2]))
    return SceneOperation(operation="add", object=given)


def op(operation: str, id: str = "", **rest: object) -> SceneOperation:
    return SceneOperation(operation=operation, object=CollisionObject(id=id), **rest)


@pytest.fixture
def empty(client: Client) -> Iterator[Client]:
    apply(client, op("clear"))
    yield client
    apply(client, op("clear"))


def is_clear(client: Client, answer: SolveIK.Response, clearance: float = 0.0) -> list[bool]:
    checked = client.call(
        "check_state",
        CheckState.Request(
            joint_names=answer.joint_names,
            positions=answer.positions,
            clearance=clearance,
            contacts_only=True,
        ),
        timeout=60.0,
    )
    assert checked.status.code == Status.SUCCESS, checked.status.message
    return list(checked.valid)


def test_a_clear_answer_says_what_was_checked(empty: Client) -> None:
    answer = solve(empty, pose())
    assert answer.status.code == Status.SUCCESS, answer.status.message
    assert {"self collision", "world collision"} <= set(answer.checks)
    assert not {"self collision", "world collision"} & set(answer.not_checked)
    assert answer.scene_version == apply(empty, op("clear")) - 1
    assert is_clear(empty, answer) == [True]
    without = empty.call("solve_ik", ik(pose()))
    assert "self collision" in without.not_checked
    assert without.scene_version == 0


def test_the_answer_goes_around_an_obstacle(empty: Client) -> None:
    """A ball where the elbow of the usual answer is: another one is given, and all of several are clear."""
    usual = empty.call("solve_ik", ik(pose()))
    from_elbow = empty.call(
        "compute_fk",
        ComputeFK.Request(links=["panda_link4"], joint_names=usual.joint_names, positions=usual.positions),
    )
    p = from_elbow.poses[0].position
    version = apply(empty, ball("ball", 0.04, p.x, p.y, p.z))
    assert is_clear(empty, usual) == [False]
    answer = solve(empty, pose())
    assert answer.status.code == Status.SUCCESS, answer.status.message
    assert answer.scene_version == version
    assert is_clear(empty, answer) == [True]
    several = solve(empty, pose(), num_solutions=5, clearance=0.01)
    assert several.status.code == Status.SUCCESS, several.status.message
    found = np.array(several.positions).reshape(-1, 7)
    several.positions = found[np.isfinite(found).all(axis=1)].ravel().tolist()
    assert all(is_clear(empty, several, clearance=0.01))


def test_a_goal_in_collision_names_the_pairs_and_depths(empty: Client) -> None:
    apply(empty, ball("ball", 0.15, 0.4, 0.1, 0.5))
    answer = solve(empty, pose(), pose(0.3, -0.4, 0.5))
    assert list(answer.codes) == [Status.GOAL_IN_COLLISION, Status.SUCCESS]
    assert re.search(r"'panda_\w+' and 'ball' by 0\.\d+ m", answer.messages[0]), answer.messages[0]
    first, second = np.array(answer.positions).reshape(2, 7)
    assert np.isnan(first).all()
    assert np.isfinite(second).all()
    apply(empty, op("remove", "ball"))
    assert solve(empty, pose()).status.code == Status.SUCCESS


def test_a_short_deadline_is_answered_with_what_was_found(empty: Client) -> None:
    """Not with a sentence about a wait that was none."""
    cage = CollisionObject(id="cage", shapes=[Shape(type="box", dimensions=[8.0, 8.0, 8.0])])
    apply(empty, SceneOperation(operation="add", object=cage))
    solve(empty, pose())  # from now on the scene is prepared
    answers = [
        solve(empty, pose(), timeout=0.05) for _ in range(6)
    ]  # a busy machine may let one of them wait
    assert {a.status.code for a in answers} <= {Status.TIMED_OUT, Status.GOAL_IN_COLLISION}
    assert any("in collision" in a.status.message and "world collision" in a.checks for a in answers[1:])


def test_what_the_robot_carries_counts(empty: Client) -> None:
    floor = CollisionObject(id="floor", shapes=[Shape(type="plane")])
    floor.pose.position.z = -0.01
    apply(empty, SceneOperation(operation="add", object=floor), op("allow", names=["floor", "panda_link0"]))
    low = pose(0.5, 0.0, 0.25)
    assert solve(empty, low).status.code == Status.SUCCESS
    rod = CollisionObject(id="rod", shapes=[Shape(type="cylinder", dimensions=[0.3, 0.01])])
    rod.pose.position.z = 0.3  # in front of the hand
    apply(empty, SceneOperation(operation="attach", object=rod, link="panda_hand"))
    answer = solve(empty, low)
    assert answer.status.code == Status.GOAL_IN_COLLISION, answer.status.message
    assert "'rod' and 'floor'" in answer.status.message
    assert solve(empty, pose(0.5, 0.0, 0.6)).status.code == Status.SUCCESS


def test_answers_belong_to_the_scene_that_they_name(empty: Client) -> None:
    """While the scene changes all the time."""
    solve(empty, pose())
    versions: dict[int, bool] = {}
    pending = []
    for round_ in range(12):
        blocked = bool(round_ % 2)
        operation = ball("ball", 0.15, 0.4, 0.1, 0.5) if blocked else op("clear")
        versions[apply(empty, operation)] = blocked
        request = ik(pose(), timeout=30.0, avoid_collisions=True)
        pending += [empty.send("solve_ik", request) for _ in range(3)]
    assert empty.spin_until(lambda: all(future.done() for future in pending), 120.0)
    for future in pending:
        answer = future.result()
        blocked = versions[answer.scene_version]
        expected = Status.GOAL_IN_COLLISION if blocked else Status.SUCCESS
        assert Status(answer.status.code) is expected, answer.status.message


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ik(pose(), clearance=0.01), "but avoid_collisions is not set"),
        (ik(pose(), avoid_collisions=True, clearance=-0.01), "clearance is -0.01"),
        (ik(pose(), avoid_collisions=True, clearance=float("nan")), "clearance is nan"),
        (ik(pose(), avoid_collisions=True, clearance=1e3), "allowed is 0 to 10 m"),
    ],
)
def test_bad_clearances(empty: Client, request_: SolveIK.Request, words: str) -> None:
    answer = empty.call("solve_ik", request_)
    assert answer.status.code == Status.INVALID_REQUEST
    assert words in answer.status.message


def test_motions_keep_clear_unless_a_parameter_says_otherwise_and_requests_say_so_themselves(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    _, client = start_node("careful", {**panda_parameters, "ik.clearance": 0.01, "ik.timeout": 8.0})
    client.pretend_robot(READY)
    assert solve(client, pose()).status.code == Status.SUCCESS
    version = apply(client, ball("ball", 0.15, 0.4, 0.1, 0.5))
    assert client.call("solve_ik", ik(pose())).scene_version == 0
    answer = solve(client, pose())
    assert answer.status.code == Status.GOAL_IN_COLLISION
    assert answer.scene_version == version
    assert "a clearance of 0.01 m is wanted" in answer.status.message
    report, trajectory = client.move_to(target(pose()))
    assert report.status.code == Status.GOAL_IN_COLLISION
    assert trajectory is None
    apply(client, op("clear"))
    report, trajectory = client.move_to(target(pose()))
    assert report.status.code == Status.SUCCESS, report.status.message
    assert trajectory is not None
    assert "world collision at the goal" in report.checks
    assert ON_THE_WAY in report.checks
    apply(client, ball("ball", 0.15, 0.4, 0.1, 0.5))
    assert set_parameter(client, "careful", "ik.avoid_collisions", False).successful
    report, trajectory = client.move_to(target(pose()))
    assert report.status.code == Status.SUCCESS, report.status.message
    assert {"world collision", ON_THE_WAY} <= set(report.not_checked)


def test_failures_are_recorded_with_their_scene(
    start_node: StartNode, panda_parameters: dict[str, object], tmp_path: Path
) -> None:
    _, client = start_node("recorder", {**panda_parameters, "record_failures": str(tmp_path)})
    assert solve(client, pose()).status.code == Status.SUCCESS
    before = set(tmp_path.glob("*.yaml"))  # what was asked before the node was ready is none
    assert not before
    apply(client, ball("ball", 0.15, 0.4, 0.1, 0.5))
    assert solve(client, pose()).status.code == Status.GOAL_IN_COLLISION
    assert client.spin_until(lambda: bool(list(tmp_path.glob("*.yaml"))), 60.0)
    client.spin(0.5)
    assert len(list((tmp_path / "scenes").glob("*.yaml"))) == 1
    assert main(["replay", str(tmp_path)]) == 0


def test_without_coal_everything_else_is_served(
    start_node: StartNode,
    panda_parameters: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "coal.py").write_text("raise ImportError('hidden')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process, client = start_node("uncoaled", panda_parameters)
    answer = solve(client, pose())
    checked = client.call("check_state", CheckState.Request(), timeout=60.0)
    for status in (answer.status, checked.status):
        assert status.code == Status.UNSUPPORTED_FEATURE, status.message
        assert "pip install coal" in status.message
    assert client.call("solve_ik", ik(pose())).status.code == Status.SUCCESS
    apply(client, ball("ball", 0.1, 0.0, 0.0, 0.5))
    assert client.spin_until(
        lambda: "collision checks need the package coal" in process.log_text(), 200.0
    )  # said once the solvers are compiled
