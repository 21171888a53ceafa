"""Every check of a trajectory fails on exactly what it is there for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.timing import point_to_point
from kinopt_ros.verification.trajectory import TrajectoryLimits, TrajectoryReport, verify_trajectory

NAMES = ("shoulder", "elbow", "wrist")
START, GOAL = np.array([0.0, -1.0, 0.5]), np.array([1.0, 0.5, -1.5])
LIMITS: dict[str, Any] = {
    "lower": np.full(3, -2.0),
    "upper": np.full(3, 2.0),
    "velocity": np.array([1.0, 2.0, 3.0]),
    "acceleration": np.array([4.0, 5.0, 6.0]),
    "jerk": np.array([40.0, 50.0, 60.0]),
}
ALL_CHECKS = (
    "joint names",
    "array shapes",
    "finite numbers",
    "increasing times",
    "start position",
    "start velocity",
    "final velocity",
    "position limits",
    "velocity limits",
    "acceleration limits",
    "jerk limits",
)


def good() -> JointTrajectory:
    return point_to_point(NAMES, START, GOAL, LIMITS["velocity"], LIMITS["acceleration"], LIMITS["jerk"])


def check(trajectory: JointTrajectory, **changes: Any) -> TrajectoryReport:
    asked = {**LIMITS, "start": START} | changes
    limits = TrajectoryLimits(**{name: asked.pop(name) for name in LIMITS})
    return verify_trajectory(trajectory, limits, **asked)


def failed(report: TrajectoryReport) -> set[str]:
    assert report.ok is (not report.violations)
    for violation in report.violations:
        assert violation.message[0].isupper()
        assert violation.message.endswith(".")
        assert str(violation) == violation.message
        assert violation.check in report.checks
    return {violation.check for violation in report.violations}


def changed(field: str, row: int, column: int, value: float) -> JointTrajectory:
    trajectory = good()
    array = getattr(trajectory, field).copy()
    array[(row, column) if array.ndim == 2 else row] = value
    return replace(trajectory, **{field: array})


def test_a_good_trajectory_passes_all_checks() -> None:
    report = check(good())
    assert report.ok
    assert report.checks == ALL_CHECKS
    assert report.not_checked == ()


BROKEN_STRUCTURE: list[tuple[str, Callable[[], JointTrajectory], str]] = [
    ("joint names", lambda: replace(good(), joint_names=("a", "a", "b")), "differ"),
    ("joint names", lambda: replace(good(), joint_names=()), "must be given"),
    ("joint names", lambda: replace(good(), joint_names=("a", "", "b")), "must be given"),
    ("array shapes", lambda: replace(good(), joint_names=("a", "b")), "position array has shape"),
    ("array shapes", lambda: replace(good(), time=good().time[:-1]), "position array has shape"),
    ("array shapes", lambda: replace(good(), time=good().time[None]), "at least two points"),
    ("array shapes", lambda: replace(good(), velocity=good().velocity[:, :2]), "velocity array has shape"),
    ("array shapes", lambda: replace(good(), acceleration=good().acceleration[:2]), "acceleration array"),
    (
        "array shapes",
        lambda: JointTrajectory(NAMES, np.zeros(0), *np.zeros((3, 0, 3))),
        "at least two points",
    ),
    (
        "array shapes",
        lambda: JointTrajectory(NAMES, np.zeros(1), *np.zeros((3, 1, 3))),
        "at least two points",
    ),
    ("finite numbers", lambda: changed("time", 2, 0, np.nan), "The time at point 2 is nan"),
    (
        "finite numbers",
        lambda: changed("position", 3, 1, np.nan),
        "position of joint 'elbow' at point 3 is nan",
    ),
    ("finite numbers", lambda: changed("velocity", 3, 2, np.inf), "velocity of joint 'wrist'"),
    ("finite numbers", lambda: changed("acceleration", 0, 0, -np.inf), "acceleration of joint 'shoulder'"),
    ("increasing times", lambda: changed("time", 0, 0, -0.001), "must be from 0"),
    ("increasing times", lambda: changed("time", -1, 0, 2.0**31), "below 2\\^31"),
    ("increasing times", lambda: changed("time", 2, 0, float(good().time[1])), "not after"),
    # Different as float seconds, the same in whole nanoseconds.
    ("increasing times", lambda: changed("time", 2, 0, float(good().time[1]) + 2e-10), "whole nanoseconds"),
    ("increasing times", lambda: changed("time", 2, 0, 0.0), "not after"),
]


@pytest.mark.parametrize(("name", "broken", "message"), BROKEN_STRUCTURE)
def test_broken_structure(name: str, broken: Callable[[], JointTrajectory], message: str) -> None:
    report = check(broken())
    assert failed(report) == {name}
    assert report.checks == ALL_CHECKS[: ALL_CHECKS.index(name) + 1]
    # What could not be checked is named.
    assert [text.split(" (")[0] for text in report.not_checked] == list(ALL_CHECKS[len(report.checks) :])
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(report.violations[0].message)


def test_start_position() -> None:
    report = check(good(), start=START + np.array([0.0, 2e-6, 0.0]))
    assert failed(report) == {"start position"}
    (violation,) = report.violations
    assert violation.joint == "elbow"
    assert violation.time == 0.0
    assert violation.value == -1.0
    assert check(good(), start=START + 0.9e-6).ok
    assert check(good(), start=START + 0.009, start_tolerance=0.01).ok


def test_start_velocity() -> None:
    report = check(good(), start_velocity=np.array([0.0, 0.0, 0.1]))
    assert failed(report) == {"start velocity"}
    assert report.violations[0].joint == "wrist"
    assert check(good(), start_velocity=np.full(3, 0.5e-6)).ok
    moving = np.array([0.5, 0.0, 0.0])
    limits = (LIMITS["velocity"], LIMITS["acceleration"], LIMITS["jerk"])
    started = point_to_point(NAMES, START, GOAL, *limits, moving)
    assert failed(check(started)) == {"start velocity"}
    assert check(started, start_velocity=moving).ok


def test_final_velocity() -> None:
    assert "final velocity" in failed(check(changed("velocity", -1, 1, 2e-7)))
    assert check(changed("velocity", -1, 1, 0.9e-7)).ok
    assert check(changed("velocity", -1, 1, 2e-7), final_velocity_tolerance=1e-6).ok


@pytest.mark.parametrize(("side", "sign"), [("upper", 1.0), ("lower", -1.0)])
def test_position_limits(side: str, sign: float) -> None:
    limit = LIMITS[side].copy()
    joint = 1 if sign > 0 else 2
    limit[joint] = GOAL[joint] - sign * 2e-8
    report = check(good(), **{side: limit})
    assert failed(report) == {"position limits"}
    (violation,) = report.violations
    assert violation.joint == NAMES[joint]
    assert violation.value == pytest.approx(GOAL[joint])
    assert violation.limit == limit[joint]
    assert violation.time == pytest.approx(good().duration)
    limit[joint] = GOAL[joint] - sign * 0.9e-8
    assert check(good(), **{side: limit}).ok


def test_a_start_a_hair_outside_its_limits_is_granted() -> None:
    upper = LIMITS["upper"].copy()
    upper[2] = START[2] - 0.9e-8
    assert check(good(), upper=upper).ok
    assert failed(check(good(), upper=upper, position_tolerance=0.0)) == {"position limits"}


@pytest.mark.parametrize("quantity", ["velocity", "acceleration", "jerk"])
@pytest.mark.parametrize("joint", range(3))
def test_derivative_limits(quantity: str, joint: int) -> None:
    """Limits just below the peak that a dense evaluation finds fail; just above it they pass."""
    trajectory = good()
    at = np.linspace(0.0, trajectory.duration, 20001)
    values = evaluate(trajectory, at)
    if quantity == "jerk":
        curve = np.diff(values[2][:, joint]) / np.diff(at)
    else:
        curve = values[("position", "velocity", "acceleration").index(quantity)][:, joint]
    peak = np.abs(curve).max()
    limit = LIMITS[quantity].copy()
    limit[joint] = peak * (1.0 - 1e-5)
    report = check(trajectory, **{quantity: limit})
    assert failed(report) == {f"{quantity} limits"}
    (violation,) = report.violations
    assert violation.joint == NAMES[joint]
    assert abs(violation.value or 0.0) == pytest.approx(peak, rel=1e-6)
    assert abs(violation.limit or 0.0) == limit[joint]
    limit[joint] = peak * (1.0 + 1e-6)
    assert check(trajectory, **{quantity: limit}).ok


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_limits_hold_between_waypoints_too(sign: float) -> None:
    """Both waypoints are inside every limit; the quintic between them is not."""
    zero = np.zeros((2, 1))
    wave = JointTrajectory(("a",), np.array([0.0, 1.0]), zero, zero, sign * np.array([[8.0], [8.0]]))
    # With p = v = 0 and a = 8 at both ends: p = 4 t^2 (1 - t)^2 * ... peaks in the middle at 8/32.
    peak = float(np.abs(evaluate(wave, np.array([0.5]))[0]).max())
    speed = float(np.abs(evaluate(wave, np.linspace(0, 1, 10001))[1]).max())
    wide: dict[str, Any] = {
        "lower": np.array([-9.0]),
        "upper": np.array([9.0]),
        "velocity": np.array([9.0]),
        "acceleration": np.array([99.0]),
        "jerk": np.array([999.0]),
        "start": np.zeros(1),
    }
    assert check(wave, **wide).ok
    side = "upper" if sign > 0 else "lower"
    position = check(wave, **(wide | {side: np.array([sign * peak * 0.999])}))
    assert failed(position) == {"position limits"}
    assert position.violations[0].time == pytest.approx(0.5, abs=1e-4)
    assert check(wave, **(wide | {side: np.array([sign * peak * 1.0001])})).ok
    velocity = check(wave, **(wide | {"velocity": np.array([speed * 0.999])}))
    assert failed(velocity) == {"velocity limits"}
    assert check(wave, **(wide | {"velocity": np.array([speed * 1.0001])})).ok


def test_positions_that_belie_their_velocities_are_found() -> None:
    trajectory = good()
    row = len(trajectory.time) // 2
    nudged = changed("position", row, 0, float(trajectory.position[row, 0]) + 0.01)
    assert "jerk limits" in failed(check(nudged))
    still = replace(trajectory, velocity=np.zeros_like(trajectory.velocity))
    assert "jerk limits" in failed(check(still))


def test_the_worst_of_each_joint_is_reported_once() -> None:
    report = check(good(), velocity=np.full(3, 0.1))
    assert [violation.joint for violation in report.violations] == list(NAMES)


def test_what_has_no_limit_is_named_as_not_checked() -> None:
    free = np.full(3, np.inf)
    some = np.array([np.inf, 50.0, 60.0])
    report = check(good(), lower=-free, upper=free, velocity=free, jerk=some)
    assert report.ok
    assert "velocity limits" not in report.checks
    assert "position limits" not in report.checks
    assert "jerk limits" in report.checks
    everyone = "none given for shoulder, elbow, wrist"
    assert report.not_checked == (
        f"position limits ({everyone})",
        f"velocity limits ({everyone})",
        "jerk limits (none given for shoulder)",
    )


def test_a_one_sided_position_limit_is_checked() -> None:
    report = check(good(), lower=np.full(3, -np.inf))
    assert report.not_checked == ()
    assert failed(check(good(), lower=np.full(3, -np.inf), upper=np.full(3, 0.9))) == {"position limits"}


def test_overflowing_numbers_fail() -> None:
    assert not check(changed("position", 3, 0, 1e308)).ok
    assert not check(changed("acceleration", 3, 0, -1e308)).ok


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": np.zeros(2)}, "start has shape"),
        ({"start": np.array([0.0, np.nan, 0.0])}, "start of joint 'elbow'"),
        ({"start_velocity": np.array([0.0, np.nan, 0.0])}, "start_velocity of joint 'elbow'"),
        ({"velocity": np.array([1.0, -1.0, 1.0])}, "velocity of joint 'elbow'"),
        ({"jerk": np.array([1.0, np.nan, 1.0])}, "jerk of joint 'elbow'"),
        ({"lower": np.array([0.0, np.nan, 0.0])}, "lower of joint 'elbow'"),
        ({"lower": np.full(3, 3.0)}, "above the upper"),
        ({"relative_tolerance": -1e-3}, "tolerance"),
        ({"start_tolerance": np.nan}, "tolerance"),
    ],
)
def test_unusable_arguments_raise(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        check(good(), **changes)


def from_outside(*elbow: float, start: float = 2.0005) -> JointTrajectory:
    """The shoulder goes from ``start``, which is outside its limit, through the given positions."""
    parts = [
        point_to_point(
            NAMES,
            np.array([a, -1.0, 0.5]),
            np.array([b, -1.0, 0.5]),
            LIMITS["velocity"],
            LIMITS["acceleration"],
            LIMITS["jerk"],
        )
        for a, b in zip((start, *elbow), elbow, strict=False)
    ]
    time, position, velocity, acceleration = parts[0].time, [parts[0].position], [parts[0].velocity], None
    acceleration = [parts[0].acceleration]
    for part in parts[1:]:
        time = np.concatenate([time, time[-1] + part.time[1:]])
        position.append(part.position[1:])
        velocity.append(part.velocity[1:])
        acceleration.append(part.acceleration[1:])
    return JointTrajectory(
        NAMES, time, np.concatenate(position), np.concatenate(velocity), np.concatenate(acceleration)
    )


@pytest.mark.parametrize(
    ("shoulder", "good"),
    [
        ((1.0,), True),  # inwards
        ((2.0004,), True),  # a little inwards
        ((2.0,), True),
        ((2.0008,), False),  # outwards
        ((2.0006, 1.0), False),  # outwards first
        ((1.9, 2.0004), False),  # inside and out again
        ((1.9, 1.8, 1.95), True),  # inside and about there
    ],
)
def test_from_outside_the_limits_only_inwards(shoulder: tuple[float, ...], good: bool) -> None:
    start = np.array([2.0005, -1.0, 0.5])
    trajectory = from_outside(*shoulder)
    assert failed(check(trajectory, start=start)) == {"position limits"}  # not unless it is allowed
    assert failed(check(trajectory, start=start, start_outside=4e-4)) == {"position limits"}
    report = check(trajectory, start=start, start_outside=1e-3)
    assert failed(report) == (set() if good else {"position limits"})
    mirrored = replace(
        trajectory,
        position=trajectory.position * [-1, 1, 1],
        velocity=trajectory.velocity * [-1, 1, 1],
        acceleration=trajectory.acceleration * [-1, 1, 1],
    )
    report = check(mirrored, start=start * [-1, 1, 1], start_outside=1e-3)
    assert failed(report) == (set() if good else {"position limits"})
