"""Timing of a path: as fast as limits of velocity, acceleration and jerk allow, or in a given time.

A dense path (from an optimizer) is followed along the quintic spline through its points; one with corners (from a
sampling planner) along its edges, with the corners rounded. ``path_geometry`` makes the curve, ``path_law`` finds when
to be where on it. What is returned has been checked as the motion that a controller makes of the waypoints, with
rigorous bounds.
"""

import importlib
from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, NotReadyError, SolverUnavailableError
from kinopt_ros.pauses import Pause, go_on
from kinopt_ros.trajectory.inputs import limit_vector, start_velocity_vector, state_vector
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory
from kinopt_ros.trajectory.path_geometry import (
    Curve,
    distance_from_edges,
    distinct_points,
    rounded_corners,
    smooth_curve,
    with_detour,
)
from kinopt_ros.trajectory.path_law import SMOOTH, TimeLaw, first_law, graded, prolonged, refined, slowed
from kinopt_ros.trajectory.timing import MINIMUM_DURATION, SHORTEST_RAMP, TimingError, point_to_point

DEVIATION = 0.01
"""Default distance by which corners may be cut, rad or m."""
SEGMENTS = 100
"""Segments between waypoints. With 60 motions take about 1 % longer, with 200 about 0.7 % less."""

_TOLERANCE = 5e-7
"""Relative excess over a limit that is accepted; verification.trajectory grants 1e-6."""
_GAP = 1e-4
"""Relative amount by which a value over a limit may be overestimated."""
_REPAIRS = 4
"""Most times that a motion over its limits is searched anew before it is made slower."""
_LITTLE = 4e-3
"""Share of the time up to which a motion is stretched rather than found anew."""
_ROOM = 0.995
"""Share of the limits that the fastest motion of a robot in motion uses if it is going to take a given time."""
_AT_CORNER = 12
"""Number of segments that a corner needs: it may be slow there, and has to brake before and accelerate after it."""
_COARSE = 1.05
"""Ratio to a limit, between knots, from which on it is a matter of resolution."""
_FEWEST = 16
_SHORTEST = 1e-3
"""Least time between waypoints of motions that are long enough for it, s."""
_DETOURS = (1.6, 2.5)
"""Lengths of detours, relative to the least braking distance, in the order of trial."""


def time_path(
    joint_names: Sequence[str],
    path: Annotated[ArrayLike, "T n"],
    velocity_limit: Annotated[Float64, "n"],
    acceleration_limit: Annotated[Float64, "n"],
    jerk_limit: Annotated[Float64, "n"],
    start_velocity: Annotated[Float64, "n"] | None = None,
    *,
    duration: float | None = None,
    corners: bool | None = None,
    deviation: float = DEVIATION,
    segments: int = SEGMENTS,
    pause: Pause = go_on,
) -> JointTrajectory:
    """Time the fastest motion along a path that ends at rest, or the one that takes ``duration`` (s).

    ``path`` has T >= 2 configurations (rad or m). The motion starts at the first one and ends at the last one exactly.
    Without ``corners`` it passes through the others along a quintic spline: for points of a smooth curve, from an
    optimizer. With ``corners`` it follows the straight edges between them and cuts the corners by up to ``deviation``
    (rad or m, of every joint), because a spline through a few corners would leave the edges, which alone are known to
    be free, by much more; with a deviation of 0 it stops at every corner. None: there are corners if the spline leaves
    the edges by more than ``deviation``.

    A robot that moves starts with ``start_velocity`` exactly, and without acceleration. If the path can be bent to
    begin in that direction, within ``deviation`` and within the limits, it is. If not, the robot brakes straight on,
    leaves the path by as much as that takes, and turns back into it: no motion within the limits could stay on it.

    Velocity limits may be infinite, acceleration and jerk limits may not; jerk stays so low that acceleration takes at
    least ``SHORTEST_RAMP`` (1 ms) to reach its limit. Waypoints lie on the curve, ``segments`` + 1 of them (fewer in
    motions of less than 0.1 s, more with many corners), evenly in time if the robot starts at rest, with velocity and
    acceleration of the motion; where the path turns sharply more, up to twice as many. Between them the quintic that a
    controller interpolates leaves the curve by less than 1e-5 rad on paths of a few rad. Times are whole nanoseconds;
    final velocity and acceleration are exactly zero. Limits are kept at every instant, to 5e-7 of their value. To take
    a given ``duration``, a robot in motion needs about 0.5 % more than the least time. ``pause`` is called between
    pieces of work.

    Raises InvalidRequestError, InvalidStateError (path), StartStateError (start faster than the limit), TimingError (a
    ``duration`` shorter than possible, which names the shortest; no motion found), SolverUnavailableError (no numba).
    """
    names = tuple(joint_names)
    points = _checked_path(names, path)
    limits = np.stack(
        [
            limit_vector(names, velocity_limit, "velocity", may_be_infinite=True),
            limit_vector(names, acceleration_limit, "acceleration"),
            limit_vector(names, jerk_limit, "jerk"),
        ]
    )
    limits[2] = np.minimum(limits[2], limits[1] / SHORTEST_RAMP)
    velocity = start_velocity_vector(names, start_velocity, limits[0])
    if duration is not None and not (np.isfinite(duration) and duration >= MINIMUM_DURATION):
        raise InvalidRequestError(
            f"duration is {duration} s; it must be finite and at least {MINIMUM_DURATION} s"
        )
    if not (np.isfinite(deviation) and deviation >= 0.0):
        raise InvalidRequestError(f"deviation is {deviation}; it must be finite and not negative")
    if not _FEWEST <= segments <= 10_000:
        raise InvalidRequestError(f"segments is {segments}; allowed: {_FEWEST} to 10000")

    _need_numba()
    distinct = distinct_points(points)
    if len(distinct) == 1:
        return _stay(names, distinct[0], velocity, limits, duration)
    curve = smooth_curve(distinct)
    if corners is None:
        corners = len(distinct) > 2 and distance_from_edges(curve, distinct) > deviation
    if corners and len(distinct) > 2:
        if deviation == 0.0:
            return _edge_by_edge(names, distinct, velocity, limits, duration, segments, pause)
        curve = rounded_corners(distinct, deviation)
        segments = max(segments, _AT_CORNER * (len(distinct) - 1))
    ends, least = points[[0, -1]], np.inf
    for candidate, speed in _beginnings(curve, distinct, velocity, limits, deviation):
        # What is then prolonged after the start needs some room at the start.
        part = _ROOM if duration is not None and speed > 0.0 else 1.0
        pause()
        first = _fastest_law(candidate, speed, limits, segments, part)
        fastest = None if first is None else _verified(names, first, velocity, ends, True, segments, pause)
        if fastest is None:
            continue
        law, trajectory = fastest
        wanted = MINIMUM_DURATION if duration is None and speed == 0.0 else duration
        if wanted is None or (duration is None and wanted <= trajectory.duration):
            return trajectory
        least = min(least, trajectory.duration)
        if round(wanted * NANOSECONDS_PER_SECOND) < trajectory.nanoseconds[-1]:
            continue
        later = _slower_law(law, wanted)
        slower = None if later is None else _verified(names, later, velocity, ends, False, segments, pause)
        if slower is not None:
            return slower[1]
    if duration is not None and duration < least < np.inf:
        raise TimingError(
            f"the path cannot be passed in {duration:.9g} s; within the limits it takes {least:.9g} s"
        )
    if velocity.any():
        return _back_first(names, points, velocity, limits, duration, corners, deviation, segments, pause)
    raise TimingError(
        f"no motion found along the path of {len(points)} points from {points[0].tolist()} to {points[-1].tolist()} "
        f"from velocity {velocity.tolist()}"
        + ("" if duration is None else f" in {duration:.9g} s")
        + f" within the limits on velocity {limits[0].tolist()}, acceleration {limits[1].tolist()}, "
        f"jerk {limits[2].tolist()}"
    )


def warm_up() -> None:
    """Compile what ``time_path`` needs, or load it from disk; SolverUnavailableError without numba."""
    global _ready
    if _ready:
        return
    one = np.ones(1)
    time_path(("joint",), [[0.0], [1.0]], one, one, one)
    _ready = True


def check_compiled() -> None:
    """Raise ``NotReadyError`` unless what ``time_path`` needs is compiled, or lies on disk."""
    if _ready:
        return
    _need_numba()
    from kinopt_ros.numba_cache import NotCompiledError, without_compiling

    try:
        with without_compiling():
            warm_up()
    except NotCompiledError:
        raise NotReadyError(
            "timing paths has to be compiled once per machine, which no deadline waits for; call warm_up() of solver "
            "cpu, or of kinopt_ros.trajectory.path_timing, before"
        ) from None


_ready = False


def _need_numba() -> None:
    try:
        importlib.import_module("kinopt_ros.trajectory.kernels.speed_up")
    except ImportError as error:
        raise SolverUnavailableError(
            f"timing a path needs the Python package 'numba' (pip install numba): {error}"
        ) from error


def _checked_path(names: tuple[str, ...], path: ArrayLike) -> Annotated[Float64, "T n"]:
    try:
        rows = list(np.asarray(path, dtype=np.float64))
    except (TypeError, ValueError) as cause:
        raise InvalidRequestError(f"path is not an array of numbers: {cause}") from None
    if len(rows) < 2:
        raise InvalidRequestError(f"path has {len(rows)} points; at least 2 are needed")
    points = np.array(rows)
    if (
        points.shape != (len(rows), len(names))
        or not np.isfinite(points).all()
        or len(set(names)) != len(names)
    ):
        # Says what is wrong with the first bad one.
        return np.stack([state_vector(names, row, f"path point {i}") for i, row in enumerate(rows)])
    return points


def _back_first(
    names: tuple[str, ...],
    points: Annotated[Float64, "T n"],
    velocity: Annotated[Float64, "n"],
    limits: Annotated[Float64, "3 n"],
    duration: float | None,
    corners: bool,
    deviation: float,
    segments: int,
    pause: Pause,
) -> JointTrajectory:
    """Brake, return to the first point and set out from there at rest: slow, but it can be done from any velocity."""
    back = _stay(names, points[0], velocity, limits, None)

    def onwards(wanted: float | None) -> JointTrajectory:
        return time_path(
            names,
            points,
            limits[0],
            limits[1],
            limits[2],
            duration=wanted,
            corners=corners,
            deviation=deviation,
            segments=segments,
            pause=pause,
        )

    if duration is None:
        return _joined([back, onwards(None)])
    least = back.duration + onwards(None).duration
    if duration < least:
        raise TimingError(f"no motion found in {duration:.9g} s; within the limits one takes {least:.9g} s")
    return _joined([back, onwards(duration - back.duration)])


def _stay(
    names: tuple[str, ...],
    here: Annotated[Float64, "n"],
    velocity: Annotated[Float64, "n"],
    limits: Annotated[Float64, "3 n"],
    duration: float | None,
) -> JointTrajectory:
    """Return the motion from a configuration to itself."""
    least = MINIMUM_DURATION if duration is None else duration
    motion = point_to_point(
        names, here, here, limits[0], limits[1], limits[2], velocity, straight=False, minimum_duration=least
    )
    if duration is not None and motion.duration > duration * (1.0 + 1e-9):
        raise TimingError(
            f"the robot cannot brake and return in {duration:.9g} s; within the limits it takes "
            f"{motion.duration:.9g} s"
        )
    return motion


def _edge_by_edge(
    names: tuple[str, ...],
    points: Annotated[Float64, "M n"],
    velocity: Annotated[Float64, "n"],
    limits: Annotated[Float64, "3 n"],
    duration: float | None,
    segments: int,
    pause: Pause,
) -> JointTrajectory:
    """Time a motion along straight edges, at rest at every corner."""

    def along(i: int, wanted: float = MINIMUM_DURATION) -> JointTrajectory:
        pause()
        if i == 0 and velocity.any():
            given = None if wanted == MINIMUM_DURATION else wanted
            return time_path(
                names,
                points[:2],
                limits[0],
                limits[1],
                limits[2],
                velocity,
                duration=given,
                segments=segments,
                pause=pause,
            )
        return point_to_point(
            names, points[i], points[i + 1], limits[0], limits[1], limits[2], minimum_duration=wanted
        )

    parts = [along(i) for i in range(len(points) - 1)]
    least = sum(part.duration for part in parts)
    if duration is not None:
        if duration < least:
            raise TimingError(
                f"the path cannot be passed in {duration:.9g} s; with stops at its corners and within the limits it "
                f"takes {least:.9g} s"
            )
        left = duration
        for i in range(len(parts) - 1, -1, -1):
            part = left if i == 0 else parts[i].duration * (duration / least)
            part = round(part * NANOSECONDS_PER_SECOND) / NANOSECONDS_PER_SECOND
            parts[i] = along(i, part)
            left -= parts[i].duration
    return _joined(parts)


def _joined(parts: list[JointTrajectory]) -> JointTrajectory:
    """Join motions, each from where the one before it came to rest."""
    starts = np.cumsum([0, *(part.nanoseconds[-1] for part in parts)])
    rows = [slice(None), *(slice(1, None) for _ in parts[1:])]
    nanoseconds = [part.nanoseconds[row] + at for part, row, at in zip(parts, rows, starts, strict=False)]
    return JointTrajectory(
        parts[0].joint_names,
        np.concatenate(nanoseconds) / NANOSECONDS_PER_SECOND,
        np.concatenate([part.position[row] for part, row in zip(parts, rows, strict=True)]),
        np.concatenate([part.velocity[row] for part, row in zip(parts, rows, strict=True)]),
        np.concatenate([part.acceleration[row] for part, row in zip(parts, rows, strict=True)]),
    )


def _beginnings(
    curve: Curve,
    points: Annotated[Float64, "M n"],
    velocity: Annotated[Float64, "n"],
    limits: Annotated[Float64, "3 n"],
    deviation: float,
) -> Iterator[tuple[Curve, float]]:
    """Yield curves that start along the velocity, and ds/dt at their start, the nearest to the path first."""
    if not velocity.any():
        yield curve, 0.0
        return
    speed = float(np.linalg.norm(velocity))
    share = np.abs(velocity) / speed
    moving = share > 0.0
    acceleration, jerk = ((limit[moving] / share[moving]).min() for limit in limits[1:])
    if speed > acceleration**2 / jerk:
        braking = 0.5 * speed * (speed / acceleration + acceleration / jerk)
    else:
        braking = speed * np.sqrt(speed / jerk)
    length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    if float(curve.at(np.zeros(1))[0, 1] @ velocity) > 0.0 and braking < length:
        bent = _bent(curve, points, velocity, deviation)
        if bent is not None:
            yield bent, _speed(bent, velocity)
    for factor in _DETOURS:
        detour = with_detour(curve, velocity * (factor * braking / speed))
        yield detour, _speed(detour, velocity)


def _bent(
    curve: Curve, points: Annotated[Float64, "M n"], velocity: Annotated[Float64, "n"], deviation: float
) -> Curve | None:
    """Return the curve with a beginning along the velocity; None if that moves it by more than ``deviation``."""
    if curve.pieces.shape[1] == 8:
        return rounded_corners(points, deviation, velocity)
    bent = smooth_curve(points, velocity)
    s = np.linspace(0.0, 1.0, 4 * len(points))
    return bent if np.abs(bent.at(s)[:, 0] - curve.at(s)[:, 0]).max() <= deviation else None


def _speed(curve: Curve, velocity: Annotated[Float64, "n"]) -> float:
    return float(np.linalg.norm(velocity) / np.linalg.norm(curve.at(np.zeros(1))[0, 1]))


def _fastest_law(
    curve: Curve, speed: float, limits: Annotated[Float64, "3 n"], segments: int, part: float
) -> TimeLaw | None:
    """Find the law of least time; None if the robot moves too fast for the beginning of the curve."""
    law = first_law(curve, limits, speed, np.ones(segments))
    if speed > 0.0:
        law = first_law(
            curve, limits, speed, graded(segments, _braking_time(curve, speed, limits) / law.duration)
        )
    law.share *= part
    if not law.improve():
        return None
    if speed == 0.0 and law.duration < _SHORTEST * segments:
        law = first_law(curve, limits, speed, np.ones(max(int(law.duration / _SHORTEST), _FEWEST)))
        law.improve()
    return law


def _braking_time(curve: Curve, speed: float, limits: Annotated[Float64, "3 n"]) -> float:
    velocity = np.abs(curve.at(np.zeros(1))[0, 1]) * speed
    return float(np.max(velocity / limits[1] + np.sqrt(velocity / limits[2])))


def _slower_law(law: TimeLaw, duration: float) -> TimeLaw | None:
    """Return a law that takes ``duration`` (s): the same motion slower, or from a moving start another motion."""
    if law.start_speed == 0.0:
        law.take(duration / float(law.grid.knots[-1]))
        return law
    if duration <= 1.5 * law.duration:
        return prolonged(law, duration)
    braking = _braking_time(law.curve, law.start_speed, law.limits)
    widths = graded(len(law.share), braking / duration)
    law = first_law(law.curve, law.limits, law.start_speed, widths, duration)
    return law if law.improve(fastest=False) else None


def _verified(
    names: tuple[str, ...],
    law: TimeLaw,
    velocity: Annotated[Float64, "n"],
    ends: Annotated[Float64, "2 n"],
    fastest: bool,
    segments: int,
    pause: Pause,
) -> tuple[TimeLaw, JointTrajectory] | None:
    """Return a law and its waypoints, whose interpolation keeps the limits; None if they could not be had.

    The law keeps limits at its knots. Where the motion passes them between knots, the law gets tighter ones there;
    what is little is made good by a little more time.
    """
    at_rest = law.start_speed == 0.0
    for attempt in range(_REPAIRS + 5):
        pause()
        if fastest:
            law.take(float(np.ceil(law.unit * NANOSECONDS_PER_SECOND)) / NANOSECONDS_PER_SECOND)
        trajectory = _waypoints(names, law, velocity, ends)
        ratio = _ratios(trajectory, law.limits)
        if float(ratio.max()) <= 1.0 + _TOLERANCE:
            return law, trajectory
        stretch = np.max([ratio[0], np.sqrt(ratio[1]), np.cbrt(ratio[2]), np.ones(ratio.shape[1])], axis=0)
        most = float(stretch.max())
        if fastest and (most < 1.0 + _LITTLE or attempt >= _REPAIRS):
            if at_rest:
                # The rounding of times changes with it.
                law.take(law.unit * most * (1.0 + 2e-6 * 10.0 ** max(attempt - _REPAIRS, 0)))
                continue
            if stretch[:SMOOTH].max() == 1.0:
                law = slowed(law, np.where(stretch > 1.0, stretch * 1.0005, 1.0))
                continue
        coarse = ratio.max(axis=0) > _COARSE
        if coarse.any() and len(coarse) < 2 * segments:
            coarse[1:] |= coarse[:-1]
            coarse[:-1] |= coarse[1:]
            law = refined(law if at_rest or not fastest else slowed(law, stretch), coarse)
        else:
            law.restrain(ratio)
        if not law.improve(fastest, 4e3):
            return None
    return None


def _waypoints(
    names: tuple[str, ...], law: TimeLaw, velocity: Annotated[Float64, "n"], ends: Annotated[Float64, "2 n"]
) -> JointTrajectory:
    exact = law.unit * law.grid.knots
    nanoseconds = np.rint(exact * NANOSECONDS_PER_SECOND).astype(np.int64)
    time = nanoseconds / NANOSECONDS_PER_SECOND
    state = law.at_times(time)
    q = law.curve.at(np.clip(state[:, 0], 0.0, 1.0))
    rate, change = state[:, 1:2], state[:, 2:3]
    position = q[:, 0].copy()
    position[0], position[-1] = ends
    speed = q[:, 1] * rate
    acceleration = q[:, 1] * change + q[:, 2] * rate**2
    speed[0], speed[-1] = velocity, 0.0
    acceleration[0], acceleration[-1] = 0.0, 0.0
    return JointTrajectory(names, time, position, speed, acceleration)


def _ratios(trajectory: JointTrajectory, limits: Annotated[Float64, "3 n"]) -> Annotated[Float64, "3 K"]:
    """Compute upper bounds of velocity, acceleration and jerk in every segment, over the limits; loose below the
    limits."""
    from kinopt_ros.trajectory.kernels.limit_ratios import limit_ratios

    ratios = np.empty((3, len(trajectory.time) - 1))
    limit_ratios(
        trajectory.nanoseconds,
        trajectory.position,
        trajectory.velocity,
        trajectory.acceleration,
        limits,
        1.0 + _TOLERANCE,
        _GAP,
        ratios,
    )
    return ratios
