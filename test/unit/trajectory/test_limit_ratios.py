"""Bounds of motions beside their limits: what samples show, and what numpy's bounds say."""

import numpy as np
import pytest

from kinopt_ros.trajectory.bounds import upper_bounds
from kinopt_ros.trajectory.interpolation import control_points, evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

limit_ratios = pytest.importorskip("kinopt_ros.trajectory.kernels.limit_ratios").limit_ratios

GAP = 1e-4


def random_motion(seed: int, n: int, points: int = 12) -> JointTrajectory:
    rng = np.random.default_rng(seed)
    time = np.concatenate([[0.0], np.cumsum(rng.uniform(0.01, 0.4, points - 1))])
    rows = [rng.normal(size=(points, n)) * scale for scale in (0.3, 1.0, 4.0)]
    return JointTrajectory(tuple("abcdefgh"[:n]), np.round(time, 9), *rows)


def ratios_of(motion: JointTrajectory, limits: np.ndarray, floor: float = 1.0) -> np.ndarray:
    out = np.empty((3, len(motion.time) - 1))
    limit_ratios(
        motion.nanoseconds, motion.position, motion.velocity, motion.acceleration, limits, floor, GAP, out
    )
    return out


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_never_too_low_and_close_above_the_limits(seed: int, n: int) -> None:
    motion = random_motion(seed, n)
    limits = np.random.default_rng(seed + 100).uniform(0.1, 2.0, (3, n)) * np.array([[10.0], [300.0], [2e4]])
    found = ratios_of(motion, limits)
    control = control_points(motion)
    for k, curve in enumerate((control.velocity, control.acceleration, control.jerk)):
        scaled = curve / limits[k]
        both = np.concatenate([scaled, -scaled], axis=1)
        exact, _ = upper_bounds(both, np.full(both.shape[1:], -np.inf))
        exact = exact.reshape(2, -1, n).max(axis=(0, 2))
        assert (found[k] >= exact * (1.0 - 1e-9)).all()
        over = exact > 1.0
        magnitude = np.abs(scaled).max(axis=(0, 2))
        assert (found[k] <= exact + GAP * magnitude + 1e-9)[over].all()
        assert (found[k] <= np.maximum(magnitude, exact)).all()
    assert (found > 1.0).any()
    assert (found < 1.0).any()


def test_samples_are_below_the_bounds() -> None:
    motion = random_motion(3, 4)
    limits = np.ones((3, 4)) * np.array([[1.0], [5.0], [50.0]])
    found = ratios_of(motion, limits)
    for i in range(len(motion.time) - 1):
        _, velocity, acceleration = evaluate(motion, np.linspace(motion.time[i], motion.time[i + 1], 400))
        assert np.abs(velocity).max() / 1.0 <= found[0, i] * (1.0 + 1e-9)
        assert np.abs(acceleration).max() / 5.0 <= found[1, i] * (1.0 + 1e-9)


def test_joints_without_a_limit_never_pass_it() -> None:
    motion = random_motion(1, 2)
    limits = np.array([[np.inf, np.inf], [1.0, 1.0], [1.0, 1.0]])
    found = ratios_of(motion, limits)
    assert (found[0] == 0.0).all()
    assert (found[1:] > 0.0).all()


def test_what_rounding_does_beyond_a_limit_is_granted() -> None:
    """Positions near 1e6 are known to 1e-10: in a microsecond that is 1e-4 rad/s, and more of what follows."""
    time = np.array([0.0, 1e-6])
    still = np.zeros((2, 1))
    motion = JointTrajectory(("a",), time, np.array([[1e6], [np.nextafter(1e6, 2e6)]]), still, still)
    assert ratios_of(motion, np.full((3, 1), 1e-3)).max() <= 1.0


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, 1, 2])
def test_what_is_no_number_is_beyond_all_limits(row: int, wrong: float) -> None:
    motion = random_motion(2, 3)
    rows = [motion.position.copy(), motion.velocity.copy(), motion.acceleration.copy()]
    rows[row][4, 1] = wrong
    found = ratios_of(JointTrajectory(motion.joint_names, motion.time, *rows), np.full((3, 3), 1e6))
    assert (found[:, 3:5] == np.inf).all()
    assert np.isfinite(np.delete(found, [3, 4], axis=1)).all()
