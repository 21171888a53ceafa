"""The quintic between waypoints, its control points and their bounds, against independent evaluations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinopt_ros.trajectory.bounds import halve, upper_bounds
from kinopt_ros.trajectory.interpolation import control_points, evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory


def random_trajectory(seed: int, points: int = 5, joints: int = 3) -> JointTrajectory:
    rng = np.random.default_rng(seed)
    time = np.concatenate([[0.0], np.cumsum(np.round(rng.uniform(0.05, 2.0, points - 1), 3))])
    p, v, a = rng.normal(size=(3, points, joints)) * np.array([1.0, 2.0, 5.0])[:, None, None]
    return JointTrajectory(tuple("abcdef"[:joints]), time, p, v, a)


def solved_quintic(trajectory: JointTrajectory, segment: int) -> np.ndarray:
    """Monomial coefficients (6, n) in seconds since the segment's start, from the six end conditions."""
    h = trajectory.time[segment + 1] - trajectory.time[segment]
    rows = [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 2, 0, 0, 0],
        [h**i for i in range(6)],
        [0, *(i * h ** (i - 1) for i in range(1, 6))],
        [0, 0, *(i * (i - 1) * h ** (i - 2) for i in range(2, 6))],
    ]
    ends = [
        values[row]
        for row in (segment, segment + 1)
        for values in (trajectory.position, trajectory.velocity, trajectory.acceleration)
    ]
    return np.linalg.solve(np.array(rows, dtype=np.float64), np.array(ends))


@pytest.mark.parametrize("seed", range(5))
def test_evaluation_and_control_points_agree_with_the_solved_quintic(seed: int) -> None:
    trajectory = random_trajectory(seed)
    control = control_points(trajectory)
    for segment in range(len(trajectory.time) - 1):
        h = trajectory.time[segment + 1] - trajectory.time[segment]
        local = np.linspace(0.0, h, 23)
        coefficients = np.polynomial.Polynomial
        found = evaluate(trajectory, trajectory.time[segment] + local)
        for joint in range(3):
            curve = coefficients(solved_quintic(trajectory, segment)[:, joint])
            wanted = [curve, curve.deriv(), curve.deriv(2), curve.deriv(3)]
            inside = slice(0, -1)  # the segment's end belongs to the next segment, where only jerk differs
            for got, derivative in zip(found, wanted, strict=False):
                np.testing.assert_allclose(
                    got[inside, joint], derivative(local[inside]), rtol=1e-8, atol=1e-8
                )
            sets = (control.position, control.velocity, control.acceleration, control.jerk)
            for points, derivative in zip(sets, wanted, strict=True):
                values = bernstein(points[:, segment, joint], local / h)
                scale = np.abs(derivative(local)).max()
                np.testing.assert_allclose(values, derivative(local), rtol=0, atol=1e-9 * scale + 1e-12)


def bernstein(points: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """de Casteljau, one parameter at a time."""
    table = np.repeat(points[:, None], len(tau), axis=1)
    while len(table) > 1:
        table = (1.0 - tau) * table[:-1] + tau * table[1:]
    return table[0]


def test_times_outside_give_the_nearest_end() -> None:
    trajectory = random_trajectory(0)
    position, velocity, acceleration = evaluate(trajectory, np.array([-1.0, trajectory.duration + 1.0]))
    np.testing.assert_allclose(position, trajectory.position[[0, -1]], atol=1e-12)
    np.testing.assert_allclose(velocity, trajectory.velocity[[0, -1]], atol=1e-11)
    np.testing.assert_allclose(acceleration, trajectory.acceleration[[0, -1]], atol=1e-10)


def test_one_point_is_held() -> None:
    row = np.array([[1.0, 2.0]])
    trajectory = JointTrajectory(("a", "b"), np.zeros(1), row, row * 0.0, row * 0.0)
    position, _, _ = evaluate(trajectory, np.array([0.0, 3.0]))
    np.testing.assert_array_equal(position, [[1.0, 2.0], [1.0, 2.0]])


def test_a_cubic_is_reproduced_exactly_and_has_constant_jerk() -> None:
    time = np.array([0.0, 0.3, 1.0])
    curve = np.polynomial.Polynomial([0.2, -1.0, 0.5, 2.0])
    position, velocity, acceleration = (curve.deriv(i)(time)[:, None] for i in range(3))
    trajectory = JointTrajectory(("a",), time, position, velocity, acceleration)
    np.testing.assert_allclose(control_points(trajectory).jerk, 12.0, rtol=1e-11)
    at = np.linspace(0.0, 1.0, 50)
    np.testing.assert_allclose(evaluate(trajectory, at)[0][:, 0], curve(at), atol=1e-14)


def test_halves_are_the_same_curve() -> None:
    points = np.random.default_rng(0).normal(size=(6, 4))
    left, right = halve(points)
    tau = np.linspace(0.0, 1.0, 11)
    for whole, first, second in zip(points.T, left.T, right.T, strict=True):
        np.testing.assert_allclose(bernstein(first, tau), bernstein(whole, tau / 2.0), atol=1e-14)
        np.testing.assert_allclose(bernstein(second, tau), bernstein(whole, 0.5 + tau / 2.0), atol=1e-14)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_bounds_are_rigorous_and_tight(seed: int, degree: int) -> None:
    control = np.random.default_rng(seed).normal(size=(degree + 1, 3, 2))
    bound, where = upper_bounds(control, np.full((3, 2), -np.inf))
    tau = np.linspace(0.0, 1.0, 401)
    for k in range(3):
        for j in range(2):
            reached = bernstein(control[:, k, j], tau).max()
            assert bound[k, j] >= reached - 1e-12
            # 401 samples miss a peak by at most the curvature, here below 100, times (1/800)^2 / 2.
            assert bound[k, j] <= reached + 2e-4
            at = bernstein(control[:, k, j], np.array([where[k, j]]))[0]
            assert at == pytest.approx(bound[k, j], abs=1e-8)


def test_bounds_below_the_floor_stay_rigorous() -> None:
    control = np.random.default_rng(3).normal(size=(6, 50, 4))
    floor = np.full((50, 4), 0.7)
    bound, _ = upper_bounds(control, floor)
    exact, _ = upper_bounds(control, np.full((50, 4), -np.inf))
    assert (bound >= exact - 1e-9).all()
    assert ((bound <= floor) == (exact <= floor)).all()


def test_overflow_is_never_within_bounds() -> None:
    control = np.array([[0.0, 0.0], [np.inf, np.nan], [0.0, 0.0]])[..., None]
    with np.errstate(invalid="ignore"):
        bound, _ = upper_bounds(control, np.full((2, 1), 1.0))
    assert not (bound <= 1.0).any()
