"""What controllers are told of a motion, and what their results mean, as with move_group."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from action_msgs.msg import GoalStatus
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.robot.moveit_controllers import GRIPPER, PARALLEL_GRIPPER, ControllerEntry, entry_of
from kinopt_ros.ros.motion.controller_kinds import NoControllerError, kind_of

SUCCEEDED, ABORTED, CANCELED = (
    GoalStatus.STATUS_SUCCEEDED,
    GoalStatus.STATUS_ABORTED,
    GoalStatus.STATUS_CANCELED,
)


def opening() -> JointTrajectory:
    """A motion of two fingers."""
    points = [JointTrajectoryPoint(positions=[0.0, 0.0]), JointTrajectoryPoint(positions=[0.03, 0.02])]
    return JointTrajectory(joint_names=["left", "right"], points=points)


@pytest.mark.parametrize(
    ("given", "position"),
    [
        ({}, 0.03),
        ({"joints": ["right"]}, 0.02),
        ({"joints": ["left", "right"]}, 0.03),
        ({"joints": ["left", "right"], "command_joint": "right"}, 0.02),
        ({"joints": ["left", "right"], "parallel": True}, 0.05),
        (
            {"joints": ["left", "mimic"], "parallel": True},
            0.03,
        ),  # as move_group: what follows is in no motion
        ({"command_joint": "elbow"}, 0.03),  # as move_group: the first one
    ],
)
def test_a_gripper_command_has_the_position_at_the_end(
    interface_packages: None, given: dict[str, Any], position: float
) -> None:
    kind = kind_of("hand", entry_of("hand", {"type": GRIPPER, "max_effort": 20, **given}))
    command = kind.goal(import_module("control_msgs.action").GripperCommand, opening()).command
    assert (command.position, command.max_effort) == (pytest.approx(position), 20.0)


@pytest.mark.parametrize(
    ("given", "velocity", "effort"),
    [({}, [], []), ({"max_effort": 5.0, "max_velocity": 0.1}, [0.1], [5.0])],
)
def test_a_parallel_gripper_command_names_the_joint(
    interface_packages: None, given: dict[str, Any], velocity: list[float], effort: list[float]
) -> None:
    kind = kind_of("hand", entry_of("hand", {"type": PARALLEL_GRIPPER, "joints": ["right"], **given}))
    command = kind.goal(import_module("control_msgs.action").ParallelGripperCommand, opening()).command
    assert (list(command.name), list(command.position)) == (["right"], [0.02])
    assert (list(command.velocity), list(command.effort)) == (velocity, effort)


@pytest.mark.parametrize(
    ("type_", "lenient", "state", "stalled", "good"),
    [
        (GRIPPER, False, SUCCEEDED, False, True),
        (GRIPPER, False, SUCCEEDED, True, True),  # a controller with allow_stalling
        (GRIPPER, False, ABORTED, True, False),
        (GRIPPER, True, ABORTED, True, True),
        (GRIPPER, True, ABORTED, False, True),
        (GRIPPER, True, CANCELED, True, False),
        (PARALLEL_GRIPPER, False, ABORTED, True, False),
        (PARALLEL_GRIPPER, True, ABORTED, True, True),
        (PARALLEL_GRIPPER, True, ABORTED, False, False),
    ],
)
def test_what_a_gripper_that_does_not_arrive_may_have_done(
    type_: str, lenient: bool, state: int, stalled: bool, good: bool
) -> None:
    kind = kind_of("hand", ControllerEntry(type_, lenient=lenient))
    result = SimpleNamespace(
        stalled=stalled, reached_goal=not stalled, position=0.01, state=SimpleNamespace(position=[0.01])
    )
    failure, remark = kind.failure(state, result), kind.remark(state, result)
    assert (failure == "") is good
    assert bool(remark) is (good and (state != SUCCEEDED or stalled))
    if state == ABORTED:
        assert "the gripper is at 0.01" in failure + remark


def test_a_controller_of_a_type_that_nobody_knows() -> None:
    with pytest.raises(NoControllerError, match="'hand' is of type 'Other'"):
        kind_of("hand", ControllerEntry("Other"))


def test_what_a_controller_says_is_cut() -> None:
    """A megabyte of it stood in the result of a goal, and in the log."""
    said = kind_of("arm", ControllerEntry()).failure(
        ABORTED, SimpleNamespace(error_code=-4, error_string="far off " * 100_000)
    )
    assert "far off" in said
    assert len(said) < 2_000
