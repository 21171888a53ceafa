"""Motions of ~/target_pose and of goals that are published or handed over: what comes in their way stops the robot.

A simulated Panda does them; what it did is judged by the shapes and the limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from support.moveit_moves import PANDA, PATIENCE, STOOD, Slowly, kept_limits
from support.ros_requests import READY, StartNode, pose, target
from support.trajectory_goals import ABORTED, SUCCEEDED, Goal, Goals, joints, until_prepared
from support.wall import AT, box, free_of_the_wall

from kinopt_msgs.msg import SceneOperation
from kinopt_msgs.srv import ApplyScene
from kinopt_ros.ros.client.client import Client
from kinopt_ros.status import Status
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(1200)  # a compiler may be at work on a new and busy machine

NODE = "kinopt_watching"
TRIALS = 3
FAR = {**READY, "panda_joint1": 1.5}
BESIDE = pose(0.05, 0.45, 0.5, (0.7071067811865476, 0.7071067811865476, 0.0, 0.0))
"""Beyond the wall for a robot at READY: a turn of joint 1."""


class Watching:
    """A client, the simulated robot beside it, and the node between them."""

    def __init__(self, client: Client, robot: Slowly) -> None:
        self.client, self.robot = client, robot
        self.goals = Goals(client, NODE)
        self._parameters = client.node.create_client(SetParameters, f"{NODE}/set_parameters")
        assert client.spin_until(self._parameters.service_is_ready, PATIENCE)

    def at(self) -> np.ndarray:
        """Where the joints are."""
        return self.robot.robot.states(self.robot.now())[1]

    def is_at(self, goal: list[float]) -> bool:
        """Whether the arm is in a configuration."""
        return bool(np.abs(self.at()[:7] - goal).max() < 1e-4)

    def apply(self, *operations: SceneOperation) -> None:
        answer = self.client.call("apply_scene", ApplyScene.Request(operations=list(operations)))
        assert answer.status.code == Status.SUCCESS, answer.status.message

    def use(self, *controllers: str) -> None:
        """Have goals done by some controllers."""
        value = ParameterValue(
            type=ParameterType.PARAMETER_STRING_ARRAY, string_array_value=list(controllers)
        )
        request = SetParameters.Request(parameters=[Parameter(name="controllers", value=value)])
        answer = self._parameters.call_async(request)
        self.until(answer.done)
        [result] = answer.result().results
        assert result.successful, result.reason

    def until(self, condition: Any) -> None:
        assert self.client.spin_until(condition, PATIENCE), [r.status for r in self.client.reports]

    def until_it_moves(self, by: float = 0.05) -> None:
        begin = self.at()
        self.until(lambda: np.abs(self.at() - begin).max() > by)

    def begin(self, end: dict[str, float], by: float) -> Goal:
        """Send a goal that is to move the robot, until it has; a node that has not heard yet that the robot stands
        refuses it."""
        for _ in range(20):
            at = self.at()
            goal = self.goals.send(joint_goals=[joints(**end)], publish=True)
            goal.accepted()

            def moved(at: np.ndarray = at) -> bool:
                return bool(np.abs(self.at() - at).max() > by)

            def refused(goal: Goal = goal) -> bool:
                return goal.done and goal.result()[1].status.code == Status.START_STATE_INVALID

            self.until(lambda moved=moved, refused=refused: moved() or refused())
            if moved():
                return goal
            self.client.spin(0.5)
        raise AssertionError(goal.result()[1].status.message)

    def stands(self) -> None:
        """The robot stands, and has kept the limits and away from the wall."""
        self.until(self.robot.at_rest)
        before = self.at()
        self.client.spin(0.3)
        np.testing.assert_allclose(self.at(), before, rtol=0.0, atol=STOOD)
        kept_limits(self, braked=True)  # type: ignore[arg-type]
        free_of_the_wall(position for _, position, _ in self.robot.path)

    def codes(self) -> list[Status]:
        return [Status(report.status.code) for report in self.client.reports]


@pytest.fixture(scope="module")
def node(
    control_msgs: None, start_shared_node: StartNode, panda_parameters: dict[str, object]
) -> Iterator[Watching]:
    _, client = start_shared_node(NODE, {**panda_parameters, "state_timeout": 30.0})
    robot = Slowly(client.node, SimulatedRobot(PANDA, start=READY), [f"{NODE}/joint_trajectory"])
    client.spin(0.3)
    until_prepared(client)
    yield Watching(client, robot)
    robot.close()


@pytest.fixture
def watching(node: Watching) -> Iterator[Watching]:
    """A robot that stands at READY in a free scene, and hears what is published."""
    node.apply(SceneOperation(operation="clear"))
    node.use()
    fast = {"velocity_scaling": 1.0, "acceleration_scaling": 1.0}
    for _ in range(10):
        if np.abs(node.at()[:7] - list(READY.values())).max() <= 1e-4:
            break
        # A robot that stands a moment before the node has heard so is refused.
        node.goals.run(joint_goals=[joints(**READY)], publish=True, **fast)
        node.client.spin(0.3)
        node.until(node.robot.at_rest)
        node.client.spin(1.0)
    np.testing.assert_allclose(node.at()[:7], list(READY.values()), atol=1e-4)
    node.robot.path.clear()
    node.client.reports.clear()
    yield node
    node.until(node.robot.at_rest)


@pytest.mark.parametrize("by", [0.03, 0.06])
def test_an_obstacle_in_the_way_of_a_target_stops_the_robot_before_it(watching: Watching, by: float) -> None:
    """It was hit: the last look was before the motion began."""
    watching.client.publish_target(target(BESIDE))
    watching.until_it_moves(by)
    watching.apply(box(AT[1]))
    watching.until(lambda: len(watching.client.reports) == 2)
    assert watching.codes() == [Status.SUCCESS, Status.ENVIRONMENT_CHANGED]
    report = watching.client.reports[1]
    assert "'wall'" in report.status.message
    assert report.header.frame_id == watching.client.reports[0].header.frame_id
    assert report.duration == 0.0
    assert np.isnan(report.position_error)
    watching.stands()
    # And it goes on from there, when it is asked to.
    watching.client.publish_target(target(pose()))
    watching.until(lambda: len(watching.client.reports) == 3)
    assert watching.codes()[2] == Status.SUCCESS, watching.client.reports[2].status.message
    watching.until_it_moves(0.02)
    watching.stands()


def test_an_obstacle_in_the_way_of_a_published_goal_stops_the_robot_before_it(watching: Watching) -> None:
    status, result = watching.begin(FAR, 0.05).result()
    assert status == SUCCEEDED, result.status.message  # it has been sent
    watching.apply(box(AT[1]))
    watching.until(lambda: bool(watching.client.reports))
    [report] = watching.client.reports
    assert report.status.code == Status.ENVIRONMENT_CHANGED
    assert "'wall'" in report.status.message
    watching.stands()


def test_an_obstacle_in_the_way_of_a_controllers_motion_stops_the_robot_before_it(watching: Watching) -> None:
    watching.use("panda_arm_controller=panda_arm")
    goal = watching.begin(FAR, 0.05)
    watching.apply(box(AT[1]))
    status, result = goal.result()
    assert (status, Status(result.status.code)) == (ABORTED, Status.ENVIRONMENT_CHANGED), (
        result.status.message
    )
    assert "'wall'" in result.status.message
    watching.stands()
    assert not watching.client.reports  # the goal has told it


@pytest.mark.parametrize("handed_over", [False, True])
def test_what_is_not_in_the_way_stops_nothing(watching: Watching, handed_over: bool) -> None:
    if handed_over:
        watching.use("panda_arm_controller=panda_arm")
    end = {**READY, "panda_joint1": 0.15}
    goal = watching.begin(end, 0.02)
    watching.apply(box(0.6))
    watching.apply(SceneOperation(operation="remove", object=box(0.6).object))
    status, result = goal.result()
    assert status == SUCCEEDED, result.status.message
    watching.until(watching.robot.at_rest)
    np.testing.assert_allclose(watching.at()[:7], list(end.values()), atol=1e-4)
    assert not watching.client.reports


def test_a_newer_target_takes_the_place_of_the_one_that_is_watched(watching: Watching) -> None:
    """Nobody brakes for what is in the way of a motion that has been left."""
    watching.client.publish_target(target(BESIDE))
    watching.until_it_moves(0.03)
    watching.client.publish_target(target(pose()))
    watching.until(lambda: len(watching.client.reports) == 2)
    watching.until_it_moves(0.02)
    watching.apply(box(AT[1]))
    watching.until(watching.robot.at_rest)
    watching.client.spin(0.3)
    assert watching.codes() == [Status.SUCCESS, Status.SUCCESS]
    watching.stands()


def test_a_goal_that_comes_while_the_robot_hardly_moves_begins_where_the_motion_before_ends(
    watching: Watching,
) -> None:
    """Below a twentieth of its velocity limit a joint counts as standing: the next motion began where it was then.

    On a busy machine the controller may be late itself, and still move when its motion has ended by the node's time. So
    it may take some trials.
    """
    slowly = {"velocity_scaling": 0.04, "acceleration_scaling": 1.0, "publish": True}
    for trial in range(1, TRIALS + 1):
        end = {**READY, "panda_joint1": READY["panda_joint1"] + 0.03 * trial}
        status, before = watching.goals.run(joint_goals=[joints(**end)], **slowly)
        assert status == SUCCEEDED, before.status.message
        after = {**end, "panda_joint4": READY["panda_joint4"] - 0.03 * trial}
        status, result = watching.goals.run(joint_goals=[joints(**after)], **slowly)
        assert status == SUCCEEDED, result.status.message
        first = dict(zip(result.trajectory.joint_names, result.trajectory.points[0].positions, strict=True))
        beside = abs(first["panda_joint1"] - end["panda_joint1"])
        watching.until(partial(watching.is_at, list(after.values())))
        if beside < 1e-4:
            break
    assert beside < 1e-4
    watching.stands()
