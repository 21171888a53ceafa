"""Controllers that are told positions alone: a node hands them the end of motions, and watches what they make of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from std_msgs.msg import Bool
from support.moveit_moves import ABORTED, CANCELED, PANDA, PATIENCE, SLOWLY, STOOD, SUCCEEDED, Moving, Slowly
from support.moveit_requests import joint_goal
from support.ros_requests import READY, StartNode, pose, until_seen
from support.trajectory_goals import Goals, joints, until_prepared
from support.wall import box, free_of_the_wall

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.moveit_controllers import entry_of
from kinopt_ros.ros.client.simulated_actions import GripperAction
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(1200)  # a compiler may be at work on a new and busy machine

FINGER = "panda_finger_joint1"
OPEN, HALF, BLOCKED = 0.03, 0.02, 0.015
"""Positions of the finger, m; something between the fingers keeps it from going further than the last one."""
PACE = 0.02
"""Velocity of the gripper, m/s: a tenth of what the description says, as it has its own."""
ENTRIES: dict[str, dict[str, Any]] = {
    "GripperCommand": {"max_effort": 20.0},
    "ParallelGripperCommand": {"max_effort": 30.0, "max_velocity": 0.5, "allow_stalling": True},
}


class Gripping(Moving):
    """A client, and a simulated Panda whose gripper is slow, and has something between its fingers."""

    def __init__(self, client: Any, kind: str, types: Any) -> None:
        self.kind = kind
        # Not one name for both kinds: a process cannot have two types of one name.
        self.hand = f"{kind}_controller"
        limits = {"max_velocity": PACE, "min_position": BLOCKED, "max_position": 0.04}
        real = apply_joint_limits(PANDA, {FINGER: limits | {"has_velocity_limits": True}})
        arm = [f"panda_joint{k}" for k in range(1, 8)]
        simulated = SimulatedRobot(
            real, {"panda_arm_controller": arm, self.hand: [FINGER]}, {**READY, FINGER: OPEN}
        )
        entries = {self.hand: entry_of(self.hand, entry(kind))}
        robot = Slowly(client.node, simulated, [], entries=entries)
        self.commands: list[Any] = []
        for action in robot._actions:
            if isinstance(action, GripperAction):
                self._note(action)
        super().__init__(client, robot, types)

    def _note(self, action: GripperAction) -> None:
        take = action.take

        def noted(goal: Any) -> None:
            self.commands.append(goal.command)
            take(goal)

        action.take = noted  # type: ignore[method-assign]

    @property
    def finger(self) -> float:
        return float(self.at()[7])

    def told(self) -> float:
        """The position of the only command since the last look."""
        [command] = self.commands
        self.commands.clear()
        if self.kind == "GripperCommand":
            assert command.max_effort == 20.0
            return float(command.position)
        assert list(command.name) == [FINGER]
        assert (list(command.effort), list(command.velocity)) == ([30.0], [0.5])
        return float(command.position[0])

    def hand_goal(self, position: float, **at: float) -> Any:
        """A goal of the gripper, or of a group of all."""
        goal = self.goal(joint_goal(self.types, **{FINGER: position, **at}), scaling=1.0)
        goal.request.group_name = "panda_arm_hand" if at else "hand"
        return goal

    def until_the_finger_moves(self, sent: Any) -> None:
        begin = self.finger
        assert self.client.spin_until(lambda: abs(self.finger - begin) > 2e-3 or sent.done, PATIENCE)
        assert not sent.done, sent.result()

    def stands(self) -> None:
        """Everything stands, on its way."""
        before = self.at()
        self.client.spin(0.3)
        np.testing.assert_allclose(self.at(), before, rtol=0.0, atol=STOOD)


def entry(kind: str) -> dict[str, Any]:
    return {"type": kind, "action_ns": "grip", **ENTRIES[kind]}


def parameters_of(kind: str) -> dict[str, object]:
    name = f"{kind}_controller"
    given = {f"moveit_simple_controller_manager.{name}.{key}": value for key, value in entry(kind).items()}
    return {**SLOWLY, "controllers": ["panda_arm_controller=panda_arm", f"{name}=hand"], **given}


@pytest.fixture(scope="module", params=list(ENTRIES))
def gripping(
    request: Any,
    moveit: Any,
    control_msgs: None,
    start_shared_node: StartNode,
    panda_parameters: dict[str, object],
) -> Iterator[Gripping]:
    process, client = start_shared_node("kinopt", {**panda_parameters, **parameters_of(request.param)})
    made = Gripping(client, request.param, moveit)
    until_seen(client)
    until_prepared(client)
    yield made
    made.robot.close()
    process.stop()  # before the next one begins


@pytest.fixture(autouse=True)
def standing(request: Any) -> None:
    """An open gripper, an arm at READY, a free scene."""
    if "gripping" not in request.fixturenames:
        return
    gripping: Gripping = request.getfixturevalue("gripping")
    gripping.apply(SceneOperation(operation="clear"))
    if np.abs(gripping.at()[:8] - [*READY.values(), OPEN]).max() > STOOD:
        status, result = gripping.send(gripping.move, gripping.hand_goal(OPEN, **READY)).result()
        assert status == SUCCEEDED, result.error_code.message
    gripping.commands.clear()
    gripping.robot.path.clear()


def test_a_goal_of_the_gripper_becomes_a_command(gripping: Gripping) -> None:
    before = gripping.at()
    sent = gripping.send(gripping.move, gripping.hand_goal(HALF))
    status, result = sent.result()
    assert status == SUCCEEDED, result.error_code.message
    assert sent.told() == ["PLANNING", "MONITOR", "IDLE"]
    assert gripping.told() == pytest.approx(HALF)
    assert gripping.finger == pytest.approx(HALF, abs=1e-6)
    np.testing.assert_allclose(gripping.at()[:7], before[:7], rtol=0.0, atol=STOOD)


def test_a_given_trajectory_becomes_a_command(gripping: Gripping) -> None:
    trajectory = gripping.trajectory(joint_goal(gripping.types, **{FINGER: HALF}), group_name="hand")
    for point in trajectory.joint_trajectory.points:
        point.effort = [0.0]
    goal = gripping.types.action.ExecuteTrajectory.Goal(trajectory=trajectory)
    status, result = gripping.send(gripping.execute, goal).result()
    assert status == SUCCEEDED, result.error_code.message
    assert gripping.told() == pytest.approx(HALF)
    assert gripping.finger == pytest.approx(HALF, abs=1e-6)


def test_a_goal_of_optimize_trajectory_becomes_a_command(gripping: Gripping) -> None:
    goals = Goals(gripping.client)
    status, result = goals.send(group="hand", joint_goals=[joints(**{FINGER: HALF})], publish=True).result()
    assert status == SUCCEEDED, result.status.message
    assert gripping.told() == pytest.approx(HALF)
    assert gripping.finger == pytest.approx(HALF, abs=1e-6)
    goals.close()


def test_a_goal_of_optimize_trajectory_says_where_a_gripper_is_that_holds_something(
    gripping: Gripping,
) -> None:
    if gripping.kind != "ParallelGripperCommand":
        pytest.skip("the other one is not let pass")
    goals = Goals(gripping.client)
    status, result = goals.send(group="hand", joint_goals=[joints(**{FINGER: 0.002})], publish=True).result()
    assert status == SUCCEEDED, result.status.message
    assert "the gripper is at 0.015, it has stalled, which allow_stalling lets pass" in result.status.message
    goals.close()


def test_one_motion_of_arm_and_gripper_is_split(gripping: Gripping) -> None:
    sent = gripping.send(gripping.move, gripping.hand_goal(HALF, **{**READY, "panda_joint1": 0.2}))
    status, result = sent.result()
    assert status == SUCCEEDED, result.error_code.message
    assert gripping.told() == pytest.approx(HALF)
    np.testing.assert_allclose(gripping.at()[[0, 7]], [0.2, HALF], atol=1e-4)


def test_a_gripper_that_stays_is_told_nothing(gripping: Gripping) -> None:
    """Told to be where it is, it would let go what it holds."""
    sent = gripping.send(gripping.move, gripping.hand_goal(OPEN, **{**READY, "panda_joint1": 0.2}))
    status, result = sent.result()
    assert status == SUCCEEDED, result.error_code.message
    assert not gripping.commands
    sent = gripping.send(gripping.move, gripping.hand_goal(OPEN))
    status, result = sent.result()
    assert status == SUCCEEDED, result.error_code.message
    assert gripping.told() == pytest.approx(OPEN)  # it was asked for nothing else


def test_a_cancel_cancels(gripping: Gripping) -> None:
    sent = gripping.send(gripping.move, gripping.hand_goal(BLOCKED))
    gripping.until_the_finger_moves(sent)
    status, result = sent.cancel()
    assert status == CANCELED
    assert result.error_code.val == result.error_code.PREEMPTED
    gripping.stands()
    assert gripping.finger > BLOCKED + 1e-3


def test_an_arm_whose_goal_is_cancelled_brakes_and_its_gripper_stops(gripping: Gripping) -> None:
    goal = gripping.hand_goal(BLOCKED, **{**READY, "panda_joint1": 1.5})
    goal.request.max_velocity_scaling_factor = 0.1
    sent = gripping.send(gripping.move, goal)
    gripping.until_it_moves(sent)
    status, result = sent.cancel()
    assert status == CANCELED, result.error_code.message
    gripping.stands()
    assert gripping.at()[0] < 1.4


@pytest.mark.parametrize("together", [False, True])
def test_a_gripper_that_does_not_arrive(gripping: Gripping, together: bool) -> None:
    """One that has something between its fingers may have done what it should, if that is said; else all ends."""
    at = {**READY, "panda_joint1": 1.5} if together else {}
    goal = gripping.hand_goal(0.002, **at)
    goal.request.max_velocity_scaling_factor = 0.3
    status, result = gripping.send(gripping.move, goal).result()
    code = result.error_code
    assert gripping.told() == pytest.approx(0.002)
    assert gripping.finger == pytest.approx(BLOCKED, abs=1e-6)
    if gripping.kind == "ParallelGripperCommand":
        assert status == SUCCEEDED, code.message
        assert "the gripper is at 0.015, it has stalled, which allow_stalling lets pass" in code.message
        assert gripping.at()[0] == pytest.approx(at.get("panda_joint1", 0.0), abs=1e-4)
    else:
        assert (status, code.val) == (ABORTED, code.CONTROL_FAILED)
        assert "the gripper's controller ended the motion as aborted" in code.message
        assert "at 0.015, it has stalled" in code.message
        gripping.stands()
        assert gripping.at()[0] < 1.4


def test_an_emergency_stop_stops_the_gripper(gripping: Gripping) -> None:
    stop = gripping.client.node.create_publisher(Bool, "kinopt/emergency_stop", 1)
    assert gripping.client.spin_until(lambda: stop.get_subscription_count() > 0, PATIENCE)
    sent = gripping.send(gripping.move, gripping.hand_goal(BLOCKED))
    gripping.until_the_finger_moves(sent)
    stop.publish(Bool(data=True))
    status, result = sent.result()
    assert (status, result.error_code.val) == (ABORTED, result.error_code.PREEMPTED)
    gripping.stands()
    assert gripping.finger > BLOCKED + 1e-3
    stop.publish(Bool(data=False))

    def moves_again() -> bool:
        return bool(gripping.send(gripping.move, gripping.hand_goal(OPEN)).result()[0] == SUCCEEDED)

    assert gripping.client.spin_until(moves_again, PATIENCE)
    gripping.client.node.destroy_publisher(stop)


def test_the_arm_moves_while_the_gripper_does(gripping: Gripping) -> None:
    first = gripping.send(gripping.move, gripping.hand_goal(BLOCKED))
    gripping.until_the_finger_moves(first)
    arm = joint_goal(gripping.types, **{**READY, "panda_joint1": 0.05})
    second = gripping.send(gripping.move, gripping.goal(arm, scaling=1.0))
    for sent in (second, first):
        status, result = sent.result()
        assert status == SUCCEEDED, result.error_code.message


def test_a_gripper_that_might_meet_what_the_arm_passes_is_not_moved_with_it(gripping: Gripping) -> None:
    """The fingers open wide beside a post only if they wait until the arm has taken them away from it: as planned they
    do, but their controller has its own pace."""
    status, result = gripping.send(gripping.move, gripping.hand_goal(BLOCKED)).result()
    assert status == SUCCEEDED, result.error_code.message
    post = CollisionObject(id="post", shapes=[Shape(type="box", dimensions=[0.004, 0.004, 0.02])])
    post.pose = pose(0.307, -0.052, 0.485)  # beside a finger that is closed, in one that is open
    gripping.apply(SceneOperation(operation="add", object=post))
    trajectory = gripping.trajectory(
        joint_goal(gripping.types, **{**READY, "panda_joint1": 0.5, FINGER: OPEN}),
        group_name="panda_arm_hand",
    )
    goal = gripping.types.action.ExecuteTrajectory.Goal(trajectory=trajectory)
    status, result = gripping.send(gripping.execute, goal).result()
    assert status == ABORTED
    assert result.error_code.val == result.error_code.INVALID_MOTION_PLAN, result.error_code.message
    assert "goes at its controller's own pace" in result.error_code.message


def test_what_comes_in_the_way_of_arm_and_gripper_stops_both(gripping: Gripping) -> None:
    goal = gripping.hand_goal(BLOCKED, **{**READY, "panda_joint1": 1.5})
    goal.request.max_velocity_scaling_factor = 0.1
    sent = gripping.send(gripping.move, goal)
    gripping.until_it_moves(sent)
    gripping.apply(box(0.35))
    status, result = sent.result()
    code = result.error_code
    assert (status, code.val) == (ABORTED, code.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE), code.message
    assert "wall" in code.message
    gripping.stands()
    free_of_the_wall(position for _, position, _ in gripping.robot.path)


def test_a_gripper_that_is_not_there(gripping: Gripping) -> None:
    gone = [action for action in gripping.robot._actions if isinstance(action, GripperAction)]
    for action in gone:
        action.close()
        gripping.robot._actions.remove(action)
    status, result = gripping.send(gripping.move, gripping.hand_goal(HALF)).result()
    assert (status, result.error_code.val) == (ABORTED, result.error_code.CONTROL_FAILED)
    said = result.error_code.message
    # The node may not have noticed yet that it goes.
    assert f"/grip of type {gripping.kind} is not there" in said or "/grip has gone" in said


def test_a_node_that_is_deactivated_stops_its_gripper(
    moveit: Any, control_msgs: None, start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    kind = "GripperCommand"
    name = "kinopt_managed"
    given = {**panda_parameters, **parameters_of(kind), "managed": True}
    _, client = start_node(name, given, ready=False)
    client.wait_until_found()
    gripping = Gripping(client, kind, moveit)
    changes = client.node.create_client(ChangeState, f"{name}/change_state")
    assert changes.wait_for_service(PATIENCE)

    def change(transition: int) -> None:
        future = changes.call_async(ChangeState.Request(transition=Transition(id=transition)))
        assert client.spin_until(future.done, PATIENCE)
        assert future.result().success

    for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
        change(transition)
    client.wait_until_ready(300.0)
    until_seen(client)
    until_prepared(client)
    sent = gripping.send(gripping.move, gripping.hand_goal(BLOCKED))
    gripping.until_the_finger_moves(sent)
    change(Transition.TRANSITION_DEACTIVATE)
    status, result = sent.result()
    assert (status, result.error_code.val) == (ABORTED, result.error_code.PREEMPTED), result.error_code
    gripping.stands()
    assert gripping.finger > BLOCKED + 1e-3
    gripping.robot.close()
