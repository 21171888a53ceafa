"""Whether joints go on that were to be stopped."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion.paces import Paces
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.trajectory.interpolation import evaluate

PANDA = load_robot("panda")
NAMES = [f"panda_joint{i + 1}" for i in range(7)]
BEGIN = 10**15
MS = 10**6
REST = PANDA.default_q[:7]
TOLD = 1.0
"""When they are told to stop, s from the motion's begin."""


def motion(*speeds: float) -> Published:
    """A motion of the first joint, and a tenth of it of the others, that is so fast in each second."""
    message = JointTrajectory(joint_names=NAMES)
    way, share = 0.0, np.array([1.0, *[0.1] * 6])
    for second, speed in enumerate((*speeds, speeds[-1])):
        point = JointTrajectoryPoint(
            positions=(REST + way * share).tolist(),
            velocities=(speed * share).tolist(),
            accelerations=[0.0] * 7,
        )
        point.time_from_start.sec = second
        message.points.append(point)
        way += 0.5 * (speed + (*speeds, speeds[-1])[second + 1]) if second < len(speeds) else 0.0
    return Published(message, PANDA, BEGIN)


class Robot:
    """Does a motion, at a share of its pace, and something else from when it is told to stop."""

    def __init__(self, one: Published, then: Callable[[float], float], pace: float = 1.0) -> None:
        """``then``: how far it has gone on in the motion's time so many s later, s."""
        self.one, self.then, self.pace = one, then, pace

    def state(self, ms: float, late: float = 0.0) -> tuple[Any, int]:
        """Measure it so many ms after it was told to stop; ``late``: of its joint states, ms."""
        after = 1e-3 * (ms - late)
        at = self.pace * TOLD + (self.then(after) if after > 0.0 else self.pace * after)
        step = 1e-4
        q, qd, _ = evaluate(self.one.motion, np.array([at, at + step]))
        pace = (self.then(after + step) - self.then(after)) / step if after > 0.0 else self.pace
        said = SimpleNamespace(name=NAMES, position=q[0].tolist(), velocity=(pace * qd[0]).tolist())
        now = BEGIN + round((1e3 * TOLD + ms) * MS)
        states = JointStates()
        states.update(said, now - round(late * MS), now)
        return states.of(PANDA), now

    def is_kept(self, ms: float = 200.0, late: float = 0.0, joints: list[str] = NAMES) -> bool:
        """Look each 10 ms until then whether it keeps its pace."""
        paces = Paces(self.one, *self.state(0.0), 0.1)
        kept = False
        for passed in np.arange(10.0, ms + 1.0, 10.0):
            state, now = self.state(passed, late)
            paces.look(state, now)
            kept = paces.are_kept(joints, state, now)
        return kept


@pytest.mark.parametrize("speed", [0.02, 0.2, 1.0])
@pytest.mark.parametrize(
    ("share", "kept"), [(1.5, True), (1.0, True), (0.95, True), (0.85, False), (0.0, False)]
)
def test_what_is_not_stopped_keeps_its_pace(speed: float, share: float, kept: bool) -> None:
    robot = Robot(motion(*[speed] * 4), lambda after: share * after)
    assert robot.is_kept() is kept
    assert robot.is_kept(joints=NAMES[:1]) is kept


def test_the_slower_it_is_the_longer_it_is_looked_at() -> None:
    robot = Robot(motion(*[2e-3] * 4), lambda after: after)
    assert not robot.is_kept(200.0)
    assert robot.is_kept(1000.0)


@pytest.mark.parametrize("kept", [False, True])
def test_a_motion_that_slows_down_itself(kept: bool) -> None:
    """Fast travel and a slow approach: it was taken to stop."""
    robot = Robot(motion(0.8, 0.8, 0.1, 0.1, 0.1), lambda after: after if kept else min(0.05, after))
    assert robot.is_kept() is kept
    assert robot.is_kept(900.0) is kept


def test_what_begins_later_goes_on() -> None:
    assert Robot(motion(0.0, 0.0, 1.0, 1.0), lambda after: after).is_kept(800.0)


@pytest.mark.parametrize("kept", [False, True])
def test_a_robot_that_a_slider_slows_down(kept: bool) -> None:
    robot = Robot(motion(*[0.8] * 4), lambda after: 0.3 * after if kept else 0.0, pace=0.3)
    assert robot.is_kept() is kept


def test_what_brakes_gently_is_not_kept() -> None:
    robot = Robot(motion(*[1.0] * 4), lambda after: after - 0.5 * min(after, 1.0) ** 2)
    assert not robot.is_kept(300.0)
    assert not robot.is_kept(1000.0)


def test_what_was_measured_before_says_nothing() -> None:
    robot = Robot(motion(*[1.0] * 4), lambda after: after)
    assert not robot.is_kept(150.0, late=100.0)
    assert robot.is_kept(300.0, late=100.0)
