"""Jerk-limited moves: limits by an independent dense sampler, duration by ruckig itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinopt_ros.errors import (
    InvalidGoalError,
    InvalidRequestError,
    InvalidStateError,
    StartStateError,
)
from kinopt_ros.status import Status
from kinopt_ros.trajectory import timing
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.ruckig_module import ruckig_module
from kinopt_ros.trajectory.timing import TimingError, nearest_equivalent, point_to_point, scaled_limits
from kinopt_ros.verification.trajectory import TrajectoryLimits, verify_trajectory

NAMES = tuple(f"joint{i}" for i in range(7))
VELOCITY = np.array([2.175] * 4 + [2.61] * 3)
ACCELERATION = np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])
JERK = 500.0 * ACCELERATION
START = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8])
GOAL = np.array([1.0, 0.3, -0.5, -1.0, 0.0, 2.6, -1.4])


def sampled_peaks(trajectory: JointTrajectory, per_segment: int = 33) -> np.ndarray:
    """Largest |velocity|, |acceleration|, |jerk| (3, n) of quintics solved from a 6x6 system per segment."""
    tau = np.linspace(0.0, 1.0, per_segment)[:, None]
    powers = np.arange(6)
    ends = np.array([[1.0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 2, 0, 0, 0]])
    system = np.vstack([ends, np.ones(6), powers, powers * (powers - 1.0)])
    h = np.diff(np.rint(trajectory.time * 1e9))[:, None] / 1e9
    p, v, a = trajectory.position, trajectory.velocity, trajectory.acceleration
    way = p[1:] - p[:-1]
    right = [np.zeros_like(way), v[:-1] * h, a[:-1] * h**2, way, v[1:] * h, a[1:] * h**2]
    coefficients = np.linalg.solve(system, np.stack(right).reshape(6, -1)).reshape(6, *way.shape)
    peaks = []
    for order in (1, 2, 3):
        factor = np.prod([powers - i for i in range(order)], axis=0)
        basis = factor * tau ** np.maximum(powers - order, 0)
        values = np.einsum("sc,ckn->skn", basis, coefficients) / h**order
        # Positions of float64 precision say no more than this about derivatives of a short segment.
        noise = [0, 10, 40, 240][order] * 2.3e-16 * (np.abs(p).max(axis=0) / h + np.abs(v).max(axis=0))
        peaks.append((np.abs(values) - noise / h ** (order - 1)).max(axis=(0, 1)))
    return np.array(peaks)


def assert_sound(
    trajectory: JointTrajectory,
    start: np.ndarray,
    goal: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray, np.ndarray],
    start_velocity: np.ndarray | None = None,
) -> None:
    n = len(start)
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    report = verify_trajectory(
        trajectory, TrajectoryLimits(low, high, *limits), start, 0.0, start_velocity=start_velocity
    )
    assert report.ok, report.violations
    assert (sampled_peaks(trajectory) <= np.array(limits) * (1.0 + 1e-6) + 1e-12).all()
    np.testing.assert_array_equal(trajectory.position[0], start)
    np.testing.assert_array_equal(trajectory.position[-1], goal)
    assert not trajectory.velocity[-1].any()
    assert not trajectory.acceleration[-1].any()
    assert trajectory.time[0] == 0.0
    assert (np.diff(trajectory.nanoseconds) > 0).all()
    np.testing.assert_array_equal(trajectory.nanoseconds / 1e9, trajectory.time)


def ruckig_duration(
    move: np.ndarray, velocity: np.ndarray, limits: tuple[np.ndarray, ...], minimum: float
) -> float:
    n, ruckig = len(move), ruckig_module()
    request = ruckig.InputParameter(n)
    request.current_position, request.target_position = [0.0] * n, move.tolist()
    request.current_velocity = velocity.tolist()
    request.max_velocity, request.max_acceleration, request.max_jerk = (x.tolist() for x in limits)
    request.minimum_duration = minimum
    planned = ruckig.Trajectory(n)
    ruckig.Ruckig(n).calculate(request, planned)
    return float(planned.duration)


@st.composite
def moves(draw: st.DrawFn) -> tuple[np.random.Generator, int, bool]:
    return (
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        draw(st.integers(1, 12)),
        draw(st.booleans()),
    )


@settings(max_examples=250, deadline=None)
@given(moves(), st.booleans())
def test_random_moves_are_sound(move: tuple[np.random.Generator, int, bool], straight: bool) -> None:
    rng, n, moving = move
    velocity = 10.0 ** rng.uniform(-2, 1, n)
    acceleration = velocity * 10.0 ** rng.uniform(-1, 2, n)
    limits = (velocity, acceleration, acceleration * 10.0 ** rng.uniform(-0.5, 3, n))
    start = rng.uniform(-3, 3, n)
    goal = np.where(rng.random(n) < 0.2, start, rng.uniform(-3, 3, n))
    start_velocity = rng.uniform(-1, 1, n) * velocity * (rng.random(n) < 0.7) if moving else None
    names = tuple(f"joint{i}" for i in range(n))
    trajectory = point_to_point(names, start, goal, *limits, start_velocity, straight=straight)
    assert_sound(trajectory, start, goal, limits, start_velocity)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-10, 0))
def test_moves_of_any_size_are_sound(seed: int, exponent: float) -> None:
    rng = np.random.default_rng(seed)
    start = rng.uniform(-3, 3, 7)
    goal = start + rng.uniform(-1, 1, 7) * 10.0**exponent
    trajectory = point_to_point(NAMES, start, goal, VELOCITY, ACCELERATION, JERK)
    assert_sound(trajectory, start, goal, (VELOCITY, ACCELERATION, JERK))


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("scaling", [1.0, 0.1])
def test_duration_is_that_of_ruckig(moving: bool, scaling: float) -> None:
    limits = (*scaled_limits(VELOCITY, ACCELERATION, scaling, scaling), scaling * JERK)
    velocity = 0.5 * limits[0] * np.array([1, -1, 0.5, 0, 1, -0.3, 0]) * moving
    trajectory = point_to_point(NAMES, START, GOAL, *limits, velocity, straight=False)
    wanted = ruckig_duration(GOAL - START, velocity, limits, 0.01)
    assert wanted * (1 - 1e-9) <= trajectory.duration <= wanted * (1 + 1e-4)


def test_a_straight_move_takes_as_long_as_ruckig_along_the_line() -> None:
    limits = (VELOCITY, ACCELERATION, JERK)
    way = np.abs(GOAL - START)
    along = tuple(np.array([(limit[way > 0] / way[way > 0]).min()]) for limit in limits)
    wanted = ruckig_duration(np.ones(1), np.zeros(1), along, 0.01)
    trajectory = point_to_point(NAMES, START, GOAL, *limits)
    assert wanted * (1 - 1e-9) <= trajectory.duration <= wanted * (1 + 1e-4)
    fastest = ruckig_duration(GOAL - START, np.zeros(7), limits, 0.01)
    assert trajectory.duration <= 1.1 * fastest


def test_a_straight_move_is_straight() -> None:
    trajectory = point_to_point(NAMES, START, GOAL, VELOCITY, ACCELERATION, JERK)
    share = (trajectory.position[:, 0] - START[0]) / (GOAL[0] - START[0])
    np.testing.assert_allclose(trajectory.position, START + share[:, None] * (GOAL - START), atol=1e-14)
    np.testing.assert_array_equal(trajectory.position[:, 4], START[4])


def test_jerk_too_high_for_a_controller_is_not_used() -> None:
    # Closed form with a ramp of 1 ms: d/v + v/a + ramp.
    limits = (np.array([1.0]), np.array([4.0]), np.array([1e9]))
    trajectory = point_to_point(["a"], np.zeros(1), np.array([2.0]), *limits)
    assert trajectory.duration == pytest.approx(2.0 / 1.0 + 1.0 / 4.0 + 0.001, rel=1e-4)
    assert np.diff(trajectory.time).min() >= 0.0009
    assert_sound(trajectory, np.zeros(1), np.array([2.0]), limits)


def test_gaps_are_filled_as_asked() -> None:
    def gaps(largest: float | None) -> np.ndarray:
        return np.diff(point_to_point(["a"], [0.0], [5.0], [1.0], [5.0], [50.0], largest_gap=largest).time)

    assert gaps(None).max() <= 0.1 + 1e-9
    assert gaps(0.01).max() <= 0.01 + 1e-9
    assert len(gaps(np.inf)) == 7
    long = point_to_point(["a"], [0.0], [100.0], [1.0], [5.0], [50.0])
    assert len(long.time) < 120


@pytest.mark.parametrize("straight", [True, False])
def test_a_move_to_where_it_is_has_two_points(straight: bool) -> None:
    trajectory = point_to_point(NAMES, START, START, VELOCITY, ACCELERATION, JERK, straight=straight)
    np.testing.assert_array_equal(trajectory.time, [0.0, timing.MINIMUM_DURATION])
    assert_sound(trajectory, START, START, (VELOCITY, ACCELERATION, JERK))


def test_stopping_and_coming_back_to_the_start() -> None:
    velocity = 0.5 * VELOCITY
    trajectory = point_to_point(NAMES, START, START, VELOCITY, ACCELERATION, JERK, velocity)
    assert trajectory.duration > 0.1
    assert_sound(trajectory, START, START, (VELOCITY, ACCELERATION, JERK), velocity)


def test_minimum_duration_is_kept() -> None:
    trajectory = point_to_point(NAMES, START, GOAL, VELOCITY, ACCELERATION, JERK, minimum_duration=4.0)
    assert trajectory.duration == 4.0
    assert_sound(trajectory, START, GOAL, (VELOCITY, ACCELERATION, JERK))


def test_a_little_more_time_helps_where_ruckig_leaves_the_limits() -> None:
    # Found by random search: ruckig's own solution exceeds a limit by 3e-4, at lower limits by far more.
    move = np.array(
        [
            -3.9180012703271068,
            -2.0657942000776646,
            -1.4496446206250546,
            -4.762004969643021,
            -2.863060763401089,
            0.0,
            -2.390508071197908,
            2.299055212875418,
            -1.608764001754098,
            3.3747418932374615,
            3.5042031799522984,
            1.5430435160957034,
        ]
    )
    start_velocity = np.array(
        [
            -0.0,
            -0.0,
            0.0,
            0.5650477506605563,
            -1.3251057795627836,
            0.016124890464159693,
            0.02590910588797003,
            0.0,
            0.00901986509315118,
            0.29108038752675497,
            1.3480153554189809,
            -1.1703128170731645,
        ]
    )
    velocity = np.array(
        [
            3.1595047352178653,
            0.018251623237559196,
            0.021715631638245643,
            0.62585928597694,
            4.299436226065941,
            0.018023742969518287,
            0.08646748127507692,
            0.49573638978519924,
            0.04380151299157898,
            0.871787238129311,
            1.3527977815034748,
            2.7419390996731474,
        ]
    )
    acceleration = np.array(
        [
            144.6166453043203,
            1.0130012631657368,
            0.005829003016435676,
            0.8525081646441637,
            10.593679454250482,
            0.3063918728513942,
            0.015342730546826801,
            0.4169449418612583,
            0.20647317404983342,
            0.12198746226044192,
            109.58105803013879,
            5.996474230374009,
        ]
    )
    jerk = np.array(
        [
            14660.495835059251,
            657.8761598019152,
            1.9028948709778954,
            231.50512545197867,
            164.67443339939203,
            1.4939131173220495,
            13.006305016209193,
            0.9214774104335797,
            0.08291936981752497,
            4.908236579965191,
            5254.96742789812,
            2.4403863013942884,
        ]
    )
    start, limits = np.zeros(12), (velocity, acceleration, jerk)
    names = tuple(f"joint{i}" for i in range(12))
    trajectory = point_to_point(names, start, move, *limits, start_velocity)
    assert_sound(trajectory, start, move, limits, start_velocity)
    assert trajectory.duration < 1.02 * 113.3


def test_velocity_may_be_unlimited() -> None:
    free = np.full(7, np.inf)
    trajectory = point_to_point(NAMES, START, GOAL, free, ACCELERATION, JERK)
    assert_sound(trajectory, START, GOAL, (free, ACCELERATION, JERK))


def test_the_trajectory_is_read_only_and_the_input_untouched() -> None:
    start = START.copy()
    trajectory = point_to_point(NAMES, start, GOAL, VELOCITY, ACCELERATION, JERK)
    assert start.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        trajectory.position[0, 0] = 1.0


def test_the_same_input_gives_the_same_numbers() -> None:
    one, two = (point_to_point(NAMES, START, GOAL, VELOCITY, ACCELERATION, JERK) for _ in range(2))
    np.testing.assert_array_equal(one.position, two.position)
    np.testing.assert_array_equal(one.time, two.time)


def put(array: np.ndarray, value: float) -> np.ndarray:
    changed = array.copy()
    changed[3] = value
    return changed


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"start": put(START, np.nan)}, InvalidStateError, "start of joint 'joint3' is nan"),
        ({"start": START[:6]}, InvalidStateError, "7 joints need"),
        ({"start": ["x"] * 7}, InvalidStateError, "not an array of numbers"),
        ({"goal": put(GOAL, np.inf)}, InvalidGoalError, "goal of joint 'joint3' is inf"),
        ({"goal": GOAL[None]}, InvalidGoalError, "shape"),
        (
            {"velocity_limit": put(VELOCITY, 0.0)},
            InvalidRequestError,
            "velocity limit of joint 'joint3' is 0.0",
        ),
        ({"velocity_limit": put(VELOCITY, np.nan)}, InvalidRequestError, "velocity limit of joint 'joint3'"),
        ({"velocity_limit": "fast"}, InvalidRequestError, "not an array of numbers"),
        (
            {"acceleration_limit": put(ACCELERATION, -1.0)},
            InvalidRequestError,
            "acceleration limit of joint 'joint3'",
        ),
        ({"acceleration_limit": put(ACCELERATION, np.inf)}, InvalidRequestError, "positive and finite"),
        ({"jerk_limit": put(JERK, np.inf)}, InvalidRequestError, "positive and finite"),
        ({"jerk_limit": JERK[:2]}, InvalidRequestError, "7 joints need"),
        (
            {"start_velocity": put(VELOCITY, -3.0)},
            StartStateError,
            "start velocity of joint 'joint3' is -3.0",
        ),
        ({"start_velocity": put(VELOCITY, np.nan)}, InvalidStateError, "start velocity of joint 'joint3'"),
        ({"joint_names": ("a",) * 7}, InvalidRequestError, "differ"),
        ({"joint_names": ()}, InvalidRequestError, "joint names"),
        ({"minimum_duration": 0.0}, InvalidRequestError, "minimum_duration"),
        ({"minimum_duration": np.inf}, InvalidRequestError, "minimum_duration"),
        ({"largest_gap": 0.0}, InvalidRequestError, "largest_gap"),
        ({"largest_gap": np.nan}, InvalidRequestError, "largest_gap"),
    ],
)
def test_bad_input_is_refused_by_name(
    changes: dict[str, object], error: type[Exception], message: str
) -> None:
    request: dict[str, object] = {
        "joint_names": NAMES,
        "start": START,
        "goal": GOAL,
        "velocity_limit": VELOCITY,
        "acceleration_limit": ACCELERATION,
        "jerk_limit": JERK,
    }
    with pytest.raises(error, match=message):
        point_to_point(**(request | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("found", [False, True])
def test_no_motion_within_the_limits_is_an_error(monkeypatch: pytest.MonkeyPatch, found: bool) -> None:
    # ruckig finds none, or none that keeps the limits after rounding.
    if found:
        monkeypatch.setattr(timing, "_LIMIT_TOLERANCE", -1.0)
        monkeypatch.setattr(timing, "_LAST_TOLERANCE", -1.0)
    else:
        monkeypatch.setattr(timing, "plan_phases", lambda *_: None)
    with pytest.raises(TimingError, match="no jerk-limited motion") as caught:
        point_to_point(NAMES, START, GOAL, VELOCITY, ACCELERATION, JERK)
    assert caught.value.status is Status.PLANNING_FAILED


def test_nearest_equivalent_turns_only_continuous_joints() -> None:
    start = np.array([3.0, 3.0, -7.0, 0.0])
    goal = np.array([-3.0, -3.0, 7.0, np.pi])
    near = nearest_equivalent(goal, start, np.array([True, False, True, True]))
    np.testing.assert_allclose(near, [2.0 * np.pi - 3.0, -3.0, 7.0 - 4.0 * np.pi, np.pi])
    with pytest.raises(InvalidRequestError, match="shapes"):
        nearest_equivalent(goal, start, np.array([True]))


def test_scaling_defaults_to_a_tenth() -> None:
    velocity, acceleration = scaled_limits(VELOCITY, ACCELERATION)
    np.testing.assert_allclose(velocity, 0.1 * VELOCITY)
    np.testing.assert_allclose(acceleration, 0.1 * ACCELERATION)
    velocity, acceleration = scaled_limits(VELOCITY, ACCELERATION, 1.0, 0.5)
    np.testing.assert_array_equal(velocity, VELOCITY)
    np.testing.assert_array_equal(acceleration, 0.5 * ACCELERATION)


@pytest.mark.parametrize("factor", [0.0, -0.1, 1.0001, np.nan, np.inf])
def test_scaling_out_of_range_is_refused(factor: float) -> None:
    with pytest.raises(InvalidRequestError, match=r"velocity_scaling .* above 0, up to 1"):
        scaled_limits(VELOCITY, ACCELERATION, factor)
    with pytest.raises(InvalidRequestError, match=r"acceleration_scaling .* above 0, up to 1"):
        scaled_limits(VELOCITY, ACCELERATION, 1.0, factor)


def test_a_start_at_its_limits_of_velocity_is_timed() -> None:
    """After velocity_scaling was set back, a target that left a motion was refused: no attempt was within 2e-7."""
    move = np.array([-0.28009828197349845, 0.2337796410388991, 0.015395996283240593, 0.37637093716931447])
    move = np.append(move, [-0.23907236532724413, -0.16156991315251057, 0.23653552485440932])
    velocity = np.array([1.5612807635277337, -1.4209850833015256, 0.36332120336618273, -1.8420178703596126])
    velocity = np.append(velocity, [0.5006019241438352, -0.039874640829665554, -1.0614696704937856])
    limit = np.maximum(np.abs(velocity), [0.6525, 0.6525, 0.6525, 0.6525, 0.783, 0.783, 0.783])
    acceleration = np.array([4.5, 2.25, 3.0, 3.75, 4.5, 6.0, 6.0])
    names = tuple(f"j{k}" for k in range(7))
    timed = point_to_point(
        names, np.zeros(7), move, limit, acceleration, 1000.0 * acceleration, start_velocity=velocity
    )
    _, speed, pull = evaluate(timed, np.linspace(0.0, timed.duration, 5000))
    assert (np.abs(speed) <= limit * (1.0 + 1e-6)).all()
    assert (np.abs(pull) <= acceleration * (1.0 + 1e-6)).all()
