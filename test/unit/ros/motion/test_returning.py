"""Motions that come to where they end before they are over."""

from collections.abc import Sequence

import pytest
from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.motion.returning import times_at_end

PANDA = load_robot("panda")


def through(places: Sequence[float], others: Sequence[float] | None = None) -> Published:
    """A motion of a joint, and of another one, that rest at places, a second apart."""
    points = [
        JointTrajectoryPoint(
            positions=[place, other],
            velocities=[0.0, 0.0],
            accelerations=[0.0, 0.0],
            time_from_start=Duration(sec=second),
        )
        for second, (place, other) in enumerate(zip(places, others or [0.0] * len(places), strict=True))
    ]
    return Published(JointTrajectory(joint_names=["panda_joint1", "panda_joint2"], points=points), PANDA, 0)


@pytest.mark.parametrize(
    ("places", "times"),
    [
        ((0.0, 1.0), 1),
        ((0.0, 0.02), 1),  # too short to be elsewhere
        ((0.0, 0.5, 0.0), 1),  # a loop comes back once
        ((0.0, 1.0, 0.0, 1.0), 2),
        ((0.0, 1.0, 0.5, 1.0, 0.5, 1.0), 3),
        ((0.0, 1.0, 0.98, 1.0), 1),  # it stays there, nearly
        ((0.0, 0.9, 1.0), 1),  # past nothing
        ((0.0, 2.0, 1.0), 2),  # through its end, and back
    ],
)
def test_times_at_the_end(places: tuple[float, ...], times: int) -> None:
    one = through(places)
    assert times_at_end(one) == times
    assert one.progress.times_at_end == times  # counted once


def test_all_joints_have_to_be_there() -> None:
    assert times_at_end(through((0.0, 1.0, 0.0, 1.0, 0.0, 1.0), (0.0, 0.5, 0.5, 0.5, 0.5, 0.5))) == 3
    assert times_at_end(through((0.0, 1.0, 0.0, 1.0), (0.0, 0.0, 0.3, 0.6))) == 1
