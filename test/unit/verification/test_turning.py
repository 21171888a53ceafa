"""Bounds of angular velocities, against differences of rotations."""

import numpy as np
import pytest

from kinopt_ros.kinematics.quaternion_products import quaternion_of_angles
from kinopt_ros.kinematics.se3 import quaternion_to_matrix, so3_log
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.turning import fastest_turn

COLUMNS = np.array([1, 2, 3])


def motion_of(rng: np.random.Generator, scale: float = 1.0) -> JointTrajectory:
    """Any numbers: four columns, of which the last three are angles."""
    time = np.cumsum(rng.uniform(0.1, 0.6, 6)) - 0.1
    time[0] = 0.0
    angles = rng.uniform(-4.0, 4.0, (6, 4))
    return JointTrajectory(
        ("x", "a", "b", "c"),
        time,
        scale * angles,
        scale * rng.normal(size=(6, 4)),
        scale * 5.0 * rng.normal(size=(6, 4)),
    )


def speeds_of(motion: JointTrajectory, count: int = 40_001) -> tuple[np.ndarray, np.ndarray]:
    """Speeds by differences of rotations, halfway between."""
    times = np.linspace(0.0, motion.duration, count)
    R = quaternion_to_matrix(quaternion_of_angles(evaluate(motion, times)[0][:, 1:]))
    turns = np.linalg.norm(so3_log(np.swapaxes(R[:-1], 1, 2) @ R[1:]), axis=1)
    return 0.5 * (times[1:] + times[:-1]), turns / np.diff(times)


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_the_truth(seed: int) -> None:
    motion = motion_of(np.random.default_rng(seed))
    bound, when = fastest_turn(motion, COLUMNS)
    times, speeds = speeds_of(motion)
    assert bound >= speeds.max() * (1.0 - 1e-6)
    assert bound <= speeds.max() * (1.0 + 1.1e-3)
    near = np.abs(times - when) <= 1e-3 * motion.duration
    assert speeds[near].max() >= 0.99 * bound


def test_what_is_below_the_floor_is_bounded_all_the_same() -> None:
    motion = motion_of(np.random.default_rng(3), 0.01)
    truth = speeds_of(motion)[1].max()
    bound, _ = fastest_turn(motion, COLUMNS, 100.0)
    assert truth <= bound <= 100.0


def test_about_one_axis_it_is_the_rate_of_the_angle() -> None:
    n = 9
    time = np.linspace(0.0, 2.0, n)
    position, still = np.zeros((n, 4)), np.zeros((n, 4))
    position[:, 1], velocity = 0.7 * time, np.zeros((n, 4))
    velocity[:, 1] = 0.7
    motion = JointTrajectory(("x", "a", "b", "c"), time, position, velocity, still)
    assert fastest_turn(motion, COLUMNS, 0.7)[0] == pytest.approx(0.7, rel=1e-9)


def test_a_long_way_at_one_speed_does_not_take_for_ever() -> None:
    """Everything is as fast as everything else: parts must not be halved without end."""
    n = 2001
    time = np.linspace(0.0, 1000.0, n)
    position, velocity = np.zeros((n, 4)), np.zeros((n, 4))
    for k, rate in enumerate((0.1, 0.3, 0.2)):
        position[:, 1 + k], velocity[:, 1 + k] = rate * time, rate
    motion = JointTrajectory(("x", "a", "b", "c"), time, position, velocity, np.zeros((n, 4)))
    bound, _ = fastest_turn(motion, COLUMNS)
    assert bound == pytest.approx(np.sqrt(0.01 + 0.09 + 0.04 + 2.0 * 0.1 * 0.2), rel=2e-3)
