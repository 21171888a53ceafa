"""Float64 check of a joint trajectory: its only inputs are the numbers that go into the message.

What is judged is the whole motion that a joint_trajectory_controller interpolates
(``trajectory.interpolation``), not samples of it. Bounds are rigorous: a trajectory that passes keeps its
limits at every instant, up to the stated tolerances and the rounding of its own float64 numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.trajectory.bounds import upper_bounds
from kinopt_ros.trajectory.interpolation import ControlPoints, control_points, rounding
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory

_STRUCTURE = ("joint names", "array shapes", "finite numbers", "increasing times")
_MOTION = ("start position", "start velocity", "final velocity")
_LIMITS = ("position limits", "velocity limits", "acceleration limits", "jerk limits")


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong. For each check and joint only the worst one is reported."""

    check: str
    message: str
    """The violation in one sentence."""
    joint: str | None = None
    time: float | None = None
    """Time from the start, s."""
    value: float | None = None
    """Value that was found, in the unit of the joint (rad or m; per s, s^2 or s^3)."""
    limit: float | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class TrajectoryReport:
    """Result of ``verify_trajectory``."""

    violations: tuple[Violation, ...]
    checks: tuple[str, ...]
    """Names of the checks that were made."""
    not_checked: tuple[str, ...]
    """Names of checks that were not made, or not for every joint, each with the reason."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong in what was checked."""
        return not self.violations


@dataclass(frozen=True, eq=False)
class TrajectoryLimits:
    """Limits of n joints, rad or m; per s, s^2, s^3. Infinite: there is none."""

    lower: Annotated[Float64, "n"]
    upper: Annotated[Float64, "n"]
    velocity: Annotated[Float64, "n"]
    acceleration: Annotated[Float64, "n"]
    jerk: Annotated[Float64, "n"]


def verify_trajectory(
    trajectory: JointTrajectory,
    limits: TrajectoryLimits,
    start: Annotated[Float64, "n"],
    start_tolerance: float = 1e-6,
    *,
    start_velocity: Annotated[Float64, "n"] | None = None,
    start_velocity_tolerance: float = 1e-6,
    final_velocity_tolerance: float = 1e-7,
    position_tolerance: float = 1e-8,
    relative_tolerance: float = 1e-6,
    start_outside: float = 0.0,
) -> TrajectoryReport:
    """Check a trajectory against limits and the state it has to start from; never raises for a bad one.

    ``start`` (rad or m) is the robot's state, ``start_velocity`` its velocity (rad/s or m/s; None: at rest).
    Infinite limits are reported as not checked. All are in the order of the trajectory's joints.

    Positions may pass their limits by ``position_tolerance``, derivatives theirs by the part ``relative_tolerance``.
    (Between points h seconds apart, positions of float64 precision e define velocity, acceleration and jerk only to
    about e/h, e/h^2, e/h^3; that much is granted as well.) A joint whose ``start`` is outside its position limits, but
    by no more than ``start_outside`` (rad or m), may be there as long as it does not move outwards, and not come back
    once it is inside.

    If arrays do not fit together, hold numbers that are not finite, or times do not increase, there is no
    motion to check: the remaining checks are then named as not made.

    Raises InvalidRequestError if start, limits or tolerances themselves are unusable.
    """
    names = trajectory.joint_names
    wrong = _structure(trajectory)
    if wrong is not None:
        made = _STRUCTURE[: _STRUCTURE.index(wrong.check) + 1]
        rest = (*_STRUCTURE[len(made) :], *_MOTION, *_LIMITS)
        return TrajectoryReport((wrong,), made, tuple(f"{name} (no usable {wrong.check})" for name in rest))

    position_now = _vector(names, start, "start")
    velocity_now = np.zeros(len(names))
    if start_velocity is not None:
        velocity_now = _vector(names, start_velocity, "start_velocity")
    lowest, highest = (
        _vector(names, values, what, -np.inf)
        for values, what in ((limits.lower, "lower"), (limits.upper, "upper"))
    )
    if (lowest > highest).any():
        raise InvalidRequestError(f"a lower position limit is above the upper one: {lowest} > {highest}")
    derivatives = tuple(
        _vector(names, values, what, 0.0)
        for values, what in (
            (limits.velocity, "velocity"),
            (limits.acceleration, "acceleration"),
            (limits.jerk, "jerk"),
        )
    )
    for tolerance in (
        start_tolerance,
        start_velocity_tolerance,
        final_velocity_tolerance,
        position_tolerance,
        relative_tolerance,
        start_outside,
    ):
        if not tolerance >= 0.0:
            raise InvalidRequestError(f"a tolerance is {tolerance}; it must be at least 0")

    first, last = trajectory.time[0], trajectory.time[-1]
    still = np.zeros(len(names))
    violations = [
        *_deviation(names, _MOTION[0], first, trajectory.position[0], position_now, start_tolerance),
        *_deviation(names, _MOTION[1], first, trajectory.velocity[0], velocity_now, start_velocity_tolerance),
        *_deviation(names, _MOTION[2], last, trajectory.velocity[-1], still, final_velocity_tolerance),
    ]
    # Numbers near the largest float64 overflow to infinity or NaN here and are then outside every limit.
    with np.errstate(over="ignore", invalid="ignore"):
        control = control_points(trajectory)
        noises = rounding(trajectory, control.duration)
        granted = noises[0] + position_tolerance
        reach = _inwards(control, position_now, lowest, highest, granted, noises[1], start_outside)
        violations += _outside(trajectory, _LIMITS[0], control.position, *reach, granted)
        curves = (control.velocity, control.acceleration, control.jerk)
        for name, curve, limit, noise in zip(_LIMITS[1:], curves, derivatives, noises[1:], strict=True):
            granted = noise + np.where(np.isinf(limit), 0.0, limit * relative_tolerance)
            violations += _outside(trajectory, name, curve, -limit, limit, granted)

    checks, not_checked = [*_STRUCTURE, *_MOTION], []
    finite = np.isfinite([np.where(np.isfinite(lowest), lowest, highest), *derivatives])
    for name, limited in zip(_LIMITS, finite, strict=True):
        if limited.any():
            checks.append(name)
        if not limited.all():
            free = (joint for joint, has in zip(names, limited, strict=True) if not has)
            not_checked.append(f"{name} (none given for {', '.join(free)})")
    return TrajectoryReport(tuple(violations), tuple(checks), tuple(not_checked))


def _vector(
    names: tuple[str, ...], values: ArrayLike, what: str, least: float | None = None
) -> Annotated[Float64, "n"]:
    """Return one number per joint: finite, or from ``least`` to infinity if that is given."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (len(names),):
        raise InvalidRequestError(f"{what} has shape {array.shape}; {len(names)} joints need ({len(names)},)")
    usable = np.isfinite(array) if least is None else array >= least
    if not usable.all():
        i = int(np.argmin(usable))
        allowed = "finite" if least is None else f"a number from {least} up"
        raise InvalidRequestError(f"{what} of joint {names[i]!r} is {array[i]}; it must be {allowed}")
    return array


def _structure(trajectory: JointTrajectory) -> Violation | None:
    """Return the first thing that leaves no motion to check."""
    names, time = trajectory.joint_names, trajectory.time
    if not names or not all(names) or len(set(names)) != len(names):
        return Violation(
            _STRUCTURE[0], f"Joint names must be given and differ from one another; given: {list(names)}."
        )
    if time.ndim != 1 or time.size < 2:
        return Violation(_STRUCTURE[1], f"Times have shape {time.shape}; at least two points are needed.")
    expected = (time.size, len(names))
    arrays = {
        "position": trajectory.position,
        "velocity": trajectory.velocity,
        "acceleration": trajectory.acceleration,
    }
    for what, array in arrays.items():
        if array.shape != expected:
            return Violation(
                _STRUCTURE[1], f"The {what} array has shape {array.shape}; times and joints need {expected}."
            )
    for what, array in {"time": time, **arrays}.items():
        finite = np.isfinite(array)
        if not finite.all():
            bad = np.argwhere(~finite)
            row = int(bad[0, 0])
            joint = names[int(bad[0, 1])] if array.ndim == 2 else None
            value = float(array[tuple(bad[0])])
            owner = f" of joint {joint!r}" if joint else ""
            return Violation(
                _STRUCTURE[2], f"The {what}{owner} at point {row} is {value}, not finite.", joint, value=value
            )
    return _times(trajectory)


def _times(trajectory: JointTrajectory) -> Violation | None:
    time = trajectory.time
    # The seconds of a message are an int32.
    outside = np.flatnonzero((time < 0.0) | (time >= 2.0**31))
    if outside.size:
        at = float(time[outside[0]])
        return Violation(
            _STRUCTURE[3],
            f"The time of point {outside[0]} is {at} s; it must be from 0 to below 2^31 s.",
            time=at,
            value=at,
        )
    back = np.flatnonzero(np.diff(trajectory.nanoseconds) <= 0)
    if not back.size:
        return None
    row = int(back[0]) + 1
    return Violation(
        _STRUCTURE[3],
        f"The time of point {row}, {time[row]} s, is in whole nanoseconds not after that of the point "
        f"before, {time[row - 1]} s.",
        time=float(time[row]),
        value=float(time[row]),
        limit=float(time[row - 1]),
    )


def _deviation(
    names: tuple[str, ...], check: str, time: float, given: Float64, wanted: Float64, tolerance: float
) -> Iterator[Violation]:
    """Yield the joints whose value at one point is not the wanted one."""
    for i in np.flatnonzero(~(np.abs(given - wanted) <= tolerance)):
        yield Violation(
            check,
            f"{check.capitalize()} of joint {names[i]!r} is {given[i]:.9g}; it must be {wanted[i]:.9g} "
            f"to within {tolerance:g}.",
            names[i],
            float(time),
            float(given[i]),
            float(wanted[i]),
        )


def _inwards(
    control: ControlPoints,
    start: Annotated[Float64, "n"],
    lower: Annotated[Float64, "n"],
    upper: Annotated[Float64, "n"],
    granted: Annotated[Float64, "K n"],
    velocity_rounding: Annotated[Float64, "K n"],
    start_outside: float,
) -> tuple[Annotated[Float64, "K n"], Annotated[Float64, "K n"]]:
    """Position limits of every segment: as given, but for joints that start outside of them by no more than
    ``start_outside``, the start as far as they come inwards from there, without ever moving outwards."""
    lowest, highest = (np.repeat(limit[None], len(granted), axis=0) for limit in (lower, upper))
    for sign, limit, reach in ((1.0, upper, highest), (-1.0, lower, lowest)):
        excess = sign * (start - limit)
        for i in np.flatnonzero((excess > 0.0) & (excess <= start_outside)):
            beyond = (sign * control.position[:, :, i]).max(axis=0) > sign * limit[i] + granted[:, i]
            if not beyond.any():
                continue
            last = int(np.flatnonzero(beyond)[-1]) + 1
            noise = velocity_rounding[:last, i]
            outwards, _ = upper_bounds(sign * control.velocity[:, :last, i], noise)
            if (outwards <= noise).all():
                reach[:last, i] = start[i]
    return lowest, highest


def _outside(
    trajectory: JointTrajectory,
    check: str,
    curve: Annotated[Float64, "d+1 K n"],
    lower: Annotated[Float64, "... n"],
    upper: Annotated[Float64, "... n"],
    granted: Annotated[Float64, "K n"],
) -> Iterator[Violation]:
    """Yield the worst passing of the limits, of all segments (n,) or of each (K, n), by each joint that passes them."""
    if ((curve.max(axis=0) <= upper + granted) & (-curve.min(axis=0) <= granted - lower)).all():
        return  # control points are bounds already
    count = len(granted)
    # The lower limit is the upper limit of the mirrored curve.
    both = np.concatenate([curve, -curve], axis=1)
    limit = np.concatenate([np.broadcast_to(side, (count, curve.shape[2])) for side in (upper, -lower)])
    floor = limit + np.concatenate([granted, granted])
    highest, where = upper_bounds(both, floor)
    outside = ~(highest <= floor)
    for i in np.flatnonzero(outside.any(axis=0)):
        excess = np.where(outside[:, i], np.nan_to_num(highest[:, i] - limit[:, i], nan=np.inf), -np.inf)
        row = int(np.argmax(excess))
        mirrored, segment = divmod(row, count)
        sign = -1.0 if mirrored else 1.0
        value, bound = sign * float(highest[row, i]), sign * float(limit[row, i])
        ends = trajectory.nanoseconds[segment : segment + 2] / NANOSECONDS_PER_SECOND
        time = float(ends[0] + where[row, i] * (ends[1] - ends[0]))
        quantity = check.removesuffix(" limits")
        yield Violation(
            check,
            f"The {quantity} of joint {trajectory.joint_names[i]!r} reaches {value:.9g} at {time:.6f} s; "
            f"its limit is {bound:.9g}.",
            trajectory.joint_names[i],
            time,
            value,
            bound,
        )
