"""MoveIt's actions of a node without controllers: motions are published, and count as done where they have led.

And what becomes of motions when the node stops all, or ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from std_msgs.msg import Bool
from support.moveit_moves import (
    ABORTED,
    CANCELED,
    PANDA,
    SLOWLY,
    STOOD,
    SUCCEEDED,
    Moving,
    Slowly,
    kept_limits,
)
from support.moveit_requests import joint_goal
from support.ros_requests import READY, StartNode, until_seen
from support.trajectory_goals import until_prepared

from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(1200)  # a compiler may be at work on a new and busy machine


@pytest.fixture
def moving(
    moveit: Any, start_node: StartNode, panda_parameters: dict[str, object], request: pytest.FixtureRequest
) -> Iterator[Moving]:
    """With a robot that follows what is published, or (parameter) does not hear it."""
    hears = getattr(request, "param", True)
    _, client = start_node("kinopt", {**panda_parameters, **SLOWLY})
    topics = ["kinopt/joint_trajectory"] if hears else []
    robot = Slowly(client.node, SimulatedRobot(PANDA, start=READY), topics)
    until_seen(client)
    until_prepared(client)
    yield Moving(client, robot, moveit)
    robot.close()


def test_a_published_motion_is_done_where_it_has_led_and_is_stopped_by_another_one(moving: Moving) -> None:
    goal = {**READY, "panda_joint1": 0.3}
    status, result = moving.send(moving.move, moving.goal(joint_goal(moving.types, **goal))).result()
    assert status == SUCCEEDED, result.error_code.message
    np.testing.assert_allclose(moving.at()[:7], list(goal.values()), atol=1e-4)
    far = joint_goal(moving.types, **{**READY, "panda_joint1": -1.0})
    sent = moving.send(moving.move, moving.goal(far, scaling=0.1))
    moving.until_it_moves(sent)
    status, result = sent.cancel()
    assert (status, result.error_code.val) == (CANCELED, result.error_code.PREEMPTED)
    stopped = moving.at()
    moving.client.spin(0.3)
    np.testing.assert_allclose(moving.at(), stopped, rtol=0.0, atol=STOOD)
    assert stopped[0] > -0.9
    kept_limits(moving, braked=True)


@pytest.mark.parametrize("moving", [False], indirect=True)
def test_a_published_motion_that_nobody_does_is_no_success(moving: Moving) -> None:
    goal = moving.goal(joint_goal(moving.types, **{**READY, "panda_joint1": 0.2}))
    status, result = moving.send(moving.move, goal).result()
    assert (status, result.error_code.val) == (ABORTED, result.error_code.CONTROL_FAILED)
    assert "the motion ends with 'panda_joint1' at 0.2" in result.error_code.message
    fingers = moving.goal(joint_goal(moving.types, panda_finger_joint1=0.04))
    fingers.request.group_name = "hand"
    status, result = moving.send(moving.move, fingers).result()
    assert (status, result.error_code.val) == (ABORTED, result.error_code.CONTROL_FAILED)
    assert "has not moved since the motion was sent" in result.error_code.message


@pytest.mark.parametrize("how", ["emergency stop", "end of the node"])
def test_what_stops_all_stops_motions_of_moveit(
    moveit: Any, control_msgs: None, start_node: StartNode, panda_parameters: dict[str, object], how: str
) -> None:
    controllers = {"controllers": ["panda_arm_controller=panda_arm"]}
    process, client = start_node("kinopt", {**panda_parameters, **SLOWLY, **controllers})
    robot = Slowly(client.node, SimulatedRobot(PANDA, start=READY), [])
    until_seen(client)
    until_prepared(client)
    moving = Moving(client, robot, moveit)
    far = joint_goal(moveit, **{**READY, "panda_joint1": 1.5})
    sent = moving.send(moving.move, moving.goal(far, scaling=0.1))
    moving.until_it_moves(sent)
    if how == "emergency stop":
        stop = client.node.create_publisher(Bool, "kinopt/emergency_stop", 10)
        assert client.spin_until(lambda: stop.get_subscription_count() > 0, 60.0)
        stop.publish(Bool(data=True))
    else:
        process.interrupt()
    status, result = sent.result()
    assert (status, result.error_code.val) == (ABORTED, result.error_code.PREEMPTED)
    assert client.spin_until(robot.at_rest, 60.0)
    stopped = moving.at()
    client.spin(0.3)
    np.testing.assert_allclose(moving.at(), stopped, rtol=0.0, atol=STOOD)
    assert stopped[0] < 1.4
    if how == "emergency stop":
        status, result = moving.send(moving.move, moving.goal(far)).result()
        assert status == ABORTED
        assert "EMERGENCY_STOP" in result.error_code.message
        np.testing.assert_allclose(moving.at(), stopped, rtol=0.0, atol=STOOD)
    else:
        assert client.spin_until(lambda: not process.running, 60.0)
        assert process.stop() == 0, process.log_text()
    robot.close()
