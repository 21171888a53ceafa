"""Timed paths: limits by dense samples of scipy's quintics, durations by ruckig, trapezoids and TOPP-RA."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BPoly, make_interp_spline
from scipy.optimize import linprog

from kinopt_ros.errors import InvalidRequestError, InvalidStateError, SolverUnavailableError, StartStateError
from kinopt_ros.trajectory import path_timing
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.path_timing import time_path
from kinopt_ros.trajectory.timing import TimingError, point_to_point
from kinopt_ros.verification.trajectory import TrajectoryLimits, verify_trajectory

VELOCITY = np.array([2.175] * 4 + [2.61] * 3)
ACCELERATION = np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])
LIMITS = (VELOCITY, ACCELERATION, 50.0 * ACCELERATION)
Limits = tuple[np.ndarray, np.ndarray, np.ndarray]


def names(n: int) -> tuple[str, ...]:
    return tuple(f"joint{i}" for i in range(n))


def smooth_path(rng: np.random.Generator, n: int, count: int = 64, waves: int = 3) -> np.ndarray:
    u = np.linspace(0.0, 1.0, count)[:, None]
    size = rng.normal(size=(waves, n)) / np.arange(1, waves + 1)[:, None] ** 1.5
    phase = rng.uniform(0.0, 6.0, (waves, n))
    return sum(size[k] * np.cos(np.pi * (k + 1) * u + phase[k]) for k in range(waves))


def random_limits(rng: np.random.Generator, n: int) -> Limits:
    velocity = 10.0 ** rng.uniform(-0.5, 0.7, n)
    acceleration = velocity * 10.0 ** rng.uniform(-0.3, 1.5, n)
    return velocity, acceleration, acceleration * 10.0 ** rng.uniform(0.0, 3.0, n)


def assert_sound(
    trajectory: JointTrajectory, path: np.ndarray, limits: Limits, start_velocity: np.ndarray | None = None
) -> None:
    n = path.shape[1]
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    report = verify_trajectory(
        trajectory,
        TrajectoryLimits(low, high, *limits),
        path[0],
        0.0,
        start_velocity=start_velocity,
        start_velocity_tolerance=0.0,
    )
    assert report.ok, report.violations
    assert trajectory.time[0] == 0.0
    assert (np.diff(trajectory.nanoseconds) > 0).all()
    np.testing.assert_array_equal(trajectory.nanoseconds / 1e9, trajectory.time)
    np.testing.assert_array_equal(trajectory.position[[0, -1]], path[[0, -1]])
    assert not trajectory.velocity[-1].any()
    assert not trajectory.acceleration[[0, -1]].any()

    # Independent of our quintics and bounds; noise is what float64 positions leave open.
    motion = BPoly.from_derivatives(
        trajectory.time, np.stack([trajectory.position, trajectory.velocity, trajectory.acceleration], axis=1)
    )
    h = np.diff(trajectory.time)
    times = (trajectory.time[:-1] + h * np.linspace(0.001, 0.999, 23)[:, None]).ravel()
    size = np.abs(trajectory.position).max(axis=0)
    unit = 2.3e-16 * (size / h.min() + np.abs(trajectory.velocity).max(axis=0))
    for order, (limit, factor) in enumerate(zip(limits, (10, 40, 240), strict=True), 1):
        noise = factor * unit / h.min() ** (order - 1)
        peak = np.abs(motion(times, nu=order)).max(axis=0)
        assert (peak <= limit * (1.0 + 1e-6) + 10.0 * noise).all(), (order, peak / limit)


def distance_from_path(points: np.ndarray, path: np.ndarray) -> np.ndarray:
    """Return each point's distance to the nearest of the path's edges."""
    edge = np.diff(path, axis=0)
    along = np.einsum("mkn,kn->mk", points[:, None] - path[:-1], edge) / np.einsum("kn,kn->k", edge, edge)
    nearest = path[:-1] + np.clip(along, 0.0, 1.0)[..., None] * edge
    return np.abs(points[:, None] - nearest).max(axis=2).min(axis=1)


@pytest.mark.parametrize("n", [1, 6, 7, 14])
@pytest.mark.parametrize("corners", [False, None])
def test_smooth_paths_are_sound(n: int, corners: bool | None) -> None:
    rng = np.random.default_rng(n)
    for _ in range(3):
        path, limits = smooth_path(rng, n), random_limits(rng, n)
        trajectory = time_path(names(n), path, *limits, corners=corners)
        assert_sound(trajectory, path, limits)
        assert len(trajectory.time) <= 210


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["smooth", "corners", "line"]), st.sampled_from([0, 1, 2]))
def test_any_path_is_sound(seed: int, kind: str, moving: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 6, 7]))
    if kind == "smooth":
        path = smooth_path(rng, n, int(rng.integers(20, 120)), 4)
    elif kind == "corners":
        path = np.cumsum(rng.uniform(-1.0, 1.0, (int(rng.integers(2, 8)), n)), axis=0)
    else:
        path = np.linspace(rng.uniform(-1, 1, n), rng.uniform(-1, 1, n), int(rng.integers(2, 70)))
    if rng.random() < 0.2:
        path = path[0] + (path - path[0]) * 10.0 ** rng.uniform(-6, 0)
    limits = random_limits(rng, n)
    velocity = None
    if moving:
        way = path[1] - path[0] if moving == 1 else rng.uniform(-1, 1, n)
        velocity = way / np.abs(way / limits[0]).max() * rng.uniform(0.01, 0.9)
    assert_sound(time_path(names(n), path, *limits, velocity), path, limits, velocity)


@pytest.mark.parametrize("n", [1, 6, 7, 14])
@pytest.mark.parametrize("count", [2, 3, 64])
def test_straight_paths_take_as_long_as_ruckig(n: int, count: int) -> None:
    rng = np.random.default_rng(10 * n + count)
    for _ in range(3):
        path, limits = np.linspace(rng.uniform(-2, 2, n), rng.uniform(-2, 2, n), count), random_limits(rng, n)
        trajectory = time_path(names(n), path, *limits)
        assert_sound(trajectory, path, limits)
        fastest = point_to_point(names(n), path[0], path[-1], *limits).duration
        assert fastest * (1.0 - 1e-4) <= trajectory.duration <= 1.02 * fastest
        np.testing.assert_allclose(distance_from_path(trajectory.position, path[[0, -1]]), 0.0, atol=1e-12)


def test_a_long_straight_path_takes_as_long_as_a_trapezoid() -> None:
    path = np.linspace(np.zeros(2), np.array([3.0, -1.5]), 40)
    velocity, acceleration = np.array([1.0, 1.0]), np.array([2.0, 2.0])
    trajectory = time_path(names(2), path, velocity, acceleration, np.full(2, 1e5))
    trapezoid = 3.0 / 1.0 + 1.0 / 2.0
    assert trapezoid * (1.0 - 1e-9) <= trajectory.duration <= 1.02 * trapezoid


def acceleration_limited_optimum(path: np.ndarray, limits: Limits, count: int = 400) -> float:
    """Least time without jerk limits along scipy's spline: TOPP-RA (Pham and Pham, T-RO 2018) on a grid."""
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    s = np.concatenate([[0.0], np.cumsum(steps)])
    spline = make_interp_spline(s, path, 5, bc_type=([(3, 0 * path[0]), (4, 0 * path[0])],) * 2)
    grid = np.linspace(0.0, s[-1], count + 1)
    first, second = spline(grid, 1), spline(grid, 2)
    step = grid[1]
    most = (limits[0] / np.maximum(np.abs(first), 1e-12)).min(axis=1) ** 2

    def extreme(i: int, sign: float, bounds: tuple[float, float], target: float) -> np.ndarray:
        """x = squared speed and u = acceleration at i, with x + 2 h u at most the target."""
        rows = np.stack([second[i], first[i]], axis=1)
        a = np.vstack([rows, -rows, [1.0, 2.0 * step], [-1.0, -2.0 * step]])
        b = np.concatenate([limits[1], limits[1], [target, 0.0]])
        goal = [-1.0, 0.0] if sign > 0 else [0.0, -1.0]
        result = linprog(goal, A_ub=a, b_ub=b, bounds=[bounds, (None, None)], method="highs")
        assert result.success
        return np.asarray(result.x)

    reach = np.zeros(count + 1)
    for i in range(count - 1, -1, -1):
        reach[i] = extreme(i, 1.0, (0.0, float(most[i])), reach[i + 1])[0]
    x = np.zeros(count + 1)
    for i in range(count):
        u = extreme(i, -1.0, (x[i], x[i]), reach[i + 1])[1]
        x[i + 1] = max(x[i] + 2.0 * step * u, 0.0)
    speed = np.sqrt(x)
    return float((2.0 * step / (speed[1:] + speed[:-1])).sum())


@pytest.mark.parametrize("seed", [0, 1])
def test_a_curved_path_takes_little_more_than_without_jerk_limits(seed: int) -> None:
    path = smooth_path(np.random.default_rng(seed), 3)
    limits = (np.full(3, 2.0), np.full(3, 8.0), np.full(3, 8000.0))
    optimum = acceleration_limited_optimum(path, limits)
    trajectory = time_path(names(3), path, *limits, corners=False)
    assert 0.99 * optimum <= trajectory.duration <= 1.05 * optimum


def test_the_interpolated_motion_stays_on_the_curve() -> None:
    path = smooth_path(np.random.default_rng(5), 7)
    trajectory = time_path(names(7), path, *LIMITS, corners=False)
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    s = np.concatenate([[0.0], np.cumsum(steps)])
    spline = make_interp_spline(s, path, 5, bc_type=([(3, np.zeros(7)), (4, np.zeros(7))],) * 2)
    position, _, _ = evaluate(trajectory, np.linspace(0.0, trajectory.duration, 700))
    assert distance_from_path(position, spline(np.linspace(0.0, s[-1], 2000))).max() < 1e-5
    assert distance_from_path(path, trajectory.position).max() < 1e-2


@pytest.mark.parametrize("deviation", [1e-3, 1e-2, 1e-1])
def test_corners_are_cut_by_the_deviation_and_no_more(deviation: float) -> None:
    rng = np.random.default_rng(3)
    path = np.cumsum(rng.uniform(-1.0, 1.0, (5, 7)), axis=0)
    trajectory = time_path(names(7), path, *LIMITS, deviation=deviation)
    assert_sound(trajectory, path, LIMITS)
    position, _, _ = evaluate(trajectory, np.linspace(0.0, trajectory.duration, 2000))
    assert 0.1 * deviation < distance_from_path(position, path).max() <= deviation + 1e-4
    assert distance_from_path(path, position).max() <= deviation + 1e-4


def test_wider_corners_are_faster_and_none_is_slowest() -> None:
    path = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    limits = (np.full(2, 1.0), np.full(2, 5.0), np.full(2, 500.0))
    times = [time_path(names(2), path, *limits, deviation=size).duration for size in (0.0, 1e-2, 1e-1)]
    assert times[0] > times[1] > times[2]
    edges = [point_to_point(names(2), path[i], path[i + 1], *limits).duration for i in range(3)]
    assert times[0] == pytest.approx(sum(edges), rel=0.02)


def test_without_deviation_it_stops_at_every_corner() -> None:
    path = np.cumsum(np.random.default_rng(4).uniform(-1.0, 1.0, (4, 7)), axis=0)
    for duration in (None, 20.0):
        trajectory = time_path(names(7), path, *LIMITS, deviation=0.0, duration=duration)
        assert_sound(trajectory, path, LIMITS)
        for corner in path:
            (row,) = np.flatnonzero((trajectory.position == corner).all(axis=1))
            assert not trajectory.velocity[row].any()
    assert trajectory.duration == 20.0


def test_dense_paths_are_passed_through_and_sparse_ones_have_corners() -> None:
    path = smooth_path(np.random.default_rng(8), 7, 64)
    chosen, curve = (time_path(names(7), path, *LIMITS, corners=corners) for corners in (None, False))
    np.testing.assert_array_equal(chosen.position, curve.position)
    sparse = path[::9]
    chosen, edges = (time_path(names(7), sparse, *LIMITS, corners=corners) for corners in (None, True))
    np.testing.assert_array_equal(chosen.position, edges.position)


def test_a_path_that_turns_back_is_sound() -> None:
    u = np.linspace(0.0, 1.0, 64)[:, None]
    for path in (
        np.sin(4.0 * u),
        np.array([[0.0], [1.0], [0.5]]),
        np.array([[0.0, 0.0], [1.0, 0.5], [0.0, 0.0]]),
    ):
        limits = tuple(np.full(path.shape[1], value) for value in (1.0, 3.0, 60.0))
        trajectory = time_path(names(path.shape[1]), path, *limits)
        assert_sound(trajectory, path, limits)
        assert distance_from_path(path, trajectory.position).max() < 0.011


def test_repeated_points_change_nothing() -> None:
    path = smooth_path(np.random.default_rng(9), 7, 50)
    again = np.repeat(path, np.random.default_rng(0).integers(1, 4, 50), axis=0)
    expected = time_path(names(7), path, *LIMITS)
    np.testing.assert_array_equal(time_path(names(7), again, *LIMITS).position, expected.position)


def test_staying_takes_the_least_or_the_given_time() -> None:
    path = np.tile(np.arange(7.0), (5, 1))
    for duration, expected in ((None, 0.01), (3.0, 3.0)):
        trajectory = time_path(names(7), path, *LIMITS, duration=duration)
        assert_sound(trajectory, path, LIMITS)
        assert trajectory.duration == expected


@pytest.mark.parametrize("exponent", [-9, -7, -5, -3, -1])
def test_tiny_paths_are_sound(exponent: int) -> None:
    path = smooth_path(np.random.default_rng(11), 7)
    path = path[0] + (path - path[0]) * 10.0**exponent
    trajectory = time_path(names(7), path, *LIMITS)
    assert_sound(trajectory, path, LIMITS)
    assert trajectory.duration >= 0.01


def test_starts_along_the_path_lose_no_time() -> None:
    path = smooth_path(np.random.default_rng(12), 7)
    at_rest = time_path(names(7), path, *LIMITS, corners=False)
    way = path[1] - path[0]
    for share in (0.02, 0.3, 0.7):
        velocity = share * way / np.abs(way / VELOCITY).max()
        trajectory = time_path(names(7), path, *LIMITS, velocity, corners=False)
        assert_sound(trajectory, path, LIMITS, velocity)
        assert trajectory.duration < at_rest.duration
        position, _, _ = evaluate(trajectory, np.linspace(0.0, trajectory.duration, 500))
        assert distance_from_path(position, path).max() < 0.012


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("corners", [False, True])
def test_starts_in_any_direction_keep_limits_and_come_back_to_the_path(share: float, corners: bool) -> None:
    rng = np.random.default_rng(13)
    path = smooth_path(rng, 7) if not corners else np.cumsum(rng.uniform(-1, 1, (4, 7)), axis=0)
    for _ in range(2):
        velocity = share * VELOCITY * rng.choice([-1.0, 1.0], 7)
        trajectory = time_path(names(7), path, *LIMITS, velocity, corners=corners)
        assert_sound(trajectory, path, LIMITS, velocity)
        position, _, _ = evaluate(trajectory, np.linspace(0.0, trajectory.duration, 500))
        # Braking with the slowest joint's means takes 0.5 v (v / a + a / j) at most.
        way = np.linalg.norm(velocity) * 0.5 * (2.61 / 7.5 + 1.0 / 50.0) + 0.02
        assert distance_from_path(position, path).max() < 2.5 * share * way + 0.03
        assert distance_from_path(position[-200:], path).max() < 0.011


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("factor", [1.01, 1.3, 3.0, 30.0])
def test_a_given_duration_is_kept_to_the_nanosecond(moving: bool, factor: float) -> None:
    path = smooth_path(np.random.default_rng(14), 7)
    way = path[1] - path[0]
    velocity = 0.4 * way / np.abs(way / VELOCITY).max() if moving else None
    least = time_path(names(7), path, *LIMITS, velocity, corners=False).duration
    wanted = round(least * factor, 6)
    trajectory = time_path(names(7), path, *LIMITS, velocity, corners=False, duration=wanted)
    assert_sound(trajectory, path, LIMITS, velocity)
    assert trajectory.duration == wanted


def test_too_short_a_duration_is_refused_with_the_least_one() -> None:
    path = smooth_path(np.random.default_rng(14), 7)
    least = time_path(names(7), path, *LIMITS).duration
    assert time_path(names(7), path, *LIMITS, duration=least).duration == least
    with pytest.raises(TimingError, match=rf"cannot be passed in 0\.5 s.* takes {least:.9g} s"):
        time_path(names(7), path, *LIMITS, duration=0.5)
    with pytest.raises(TimingError, match="stops at its corners"):
        time_path(names(7), path[::20], *LIMITS, duration=0.5, deviation=0.0)
    with pytest.raises(TimingError, match="within the limits"):
        time_path(names(7), path, *LIMITS, 0.5 * VELOCITY, duration=0.1)
    with pytest.raises(TimingError, match="brake and return"):
        time_path(names(7), path[[0, 0]], *LIMITS, 0.5 * VELOCITY, duration=0.05)


def test_time_scales_with_the_limits() -> None:
    path = smooth_path(np.random.default_rng(15), 7)
    reference = time_path(names(7), path, *LIMITS).duration
    for factor in (0.1, 0.5):
        scaled = tuple(limit * factor ** (k + 1) for k, limit in enumerate(LIMITS))
        trajectory = time_path(names(7), path, *scaled)
        assert_sound(trajectory, path, scaled)
        assert trajectory.duration == pytest.approx(reference / factor, rel=5e-3)


def test_the_order_of_joints_and_the_direction_matter_little() -> None:
    path = smooth_path(np.random.default_rng(16), 7)
    reference = time_path(names(7), path, *LIMITS, corners=False).duration
    order = np.random.default_rng(0).permutation(7)
    permuted = time_path(names(7), path[:, order], *(limit[order] for limit in LIMITS), corners=False)
    assert permuted.duration == pytest.approx(reference, rel=5e-3)
    back = time_path(names(7), path[::-1], *LIMITS, corners=False)
    assert back.duration == pytest.approx(reference, rel=1e-2)


def test_infinite_velocity_limits() -> None:
    path = smooth_path(np.random.default_rng(17), 7)
    limits = (np.full(7, np.inf), *LIMITS[1:])
    trajectory = time_path(names(7), path, *limits)
    assert_sound(trajectory, path, limits)
    assert trajectory.duration < time_path(names(7), path, *LIMITS).duration


def test_more_segments_are_faster() -> None:
    path = smooth_path(np.random.default_rng(18), 7)
    durations = [time_path(names(7), path, *LIMITS, segments=count).duration for count in (40, 200)]
    assert durations[1] < durations[0] < 1.05 * durations[1]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"path": [[0.0, 0.0]]}, InvalidRequestError, "1 points; at least 2"),
        ({"path": "far"}, InvalidRequestError, "not an array of numbers"),
        ({"path": [[0.0, 0.0], [1.0]]}, InvalidRequestError, "not an array of numbers"),
        ({"path": [[0.0], [1.0]]}, InvalidStateError, "path point 0 has shape"),
        ({"path": [[0.0, 0.0], [1.0, np.nan]]}, InvalidStateError, "path point 1 of joint 'joint1' is nan"),
        ({"joint_names": ("a", "a")}, InvalidRequestError, "differ from one another"),
        ({"velocity_limit": [1.0, 0.0]}, InvalidRequestError, "velocity limit of joint 'joint1' is 0"),
        ({"acceleration_limit": [1.0, np.inf]}, InvalidRequestError, "positive and finite"),
        ({"jerk_limit": [1.0]}, InvalidRequestError, "jerk limits have shape"),
        ({"start_velocity": [2.0, 0.0]}, StartStateError, "its limit is 1"),
        ({"start_velocity": [np.nan, 0.0]}, InvalidStateError, "finite"),
        ({"duration": 0.0}, InvalidRequestError, "duration is 0.0 s"),
        ({"duration": np.inf}, InvalidRequestError, "duration is inf s"),
        ({"deviation": -1.0}, InvalidRequestError, "deviation is -1.0"),
        ({"segments": 3}, InvalidRequestError, "segments is 3; allowed: 16 to 10000"),
    ],
)
def test_bad_input_is_refused(change: dict[str, object], error: type[Exception], message: str) -> None:
    arguments: dict[str, object] = {
        "joint_names": names(2),
        "path": [[0.0, 0.0], [1.0, 0.5]],
        "velocity_limit": np.ones(2),
        "acceleration_limit": np.ones(2),
        "jerk_limit": np.ones(2),
    }
    with pytest.raises(error, match=message):
        time_path(**(arguments | change))  # type: ignore[arg-type]


def test_without_numba_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kinopt_ros.trajectory.kernels.speed_up", None)
    with pytest.raises(SolverUnavailableError, match="numba"):
        time_path(names(1), [[0.0], [1.0]], np.ones(1), np.ones(1), np.ones(1))


def test_no_deadline_waits_for_the_compiler(tmp_path: Path) -> None:
    """Nothing was compiled on this machine before."""
    asked = (
        "from kinopt_ros.errors import NotReadyError\n"
        "from kinopt_ros.trajectory import path_timing\n"
        "from kinopt_ros.trajectory.kernels import speed_up as compiled\n"
        "try:\n"
        "    path_timing.check_compiled()\n"
        "except NotReadyError as error:\n"
        "    kernels = [f for f in vars(compiled).values() if hasattr(f, 'signatures')]\n"
        "    print('warm_up' in str(error), len(kernels) > 5, any(f.signatures for f in kernels))\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, text=True)
    assert done.stdout == "True True False\n", done.stderr


def test_what_is_compiled_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    path_timing.warm_up()
    monkeypatch.setattr(path_timing, "_ready", False)
    path_timing.check_compiled()
    assert path_timing._ready
