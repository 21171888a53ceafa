"""Time law of a motion on a curve: s(t) as a cubic B-spline in time, as fast as the limits allow.

With constant jerk of s between knots, velocity, acceleration and jerk of the joints at the knots are polynomials in the
control points c of s(t), each in at most four of them, over powers of the unit of time. Time-optimal control points are
then found by a barrier method (``kernels/speed_up.py``), whose linear systems are banded. From rest every law is within
limits if it is slow enough, so that there is always one.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.trajectory.path_geometry import Curve

_WEIGHTS = (32.0, 1e5, 5.0)
"""Weights of the logarithm of time against the barrier: first, last, growth. The last leaves about 0.1 % of the
time."""
_MOST_STEPS = 50
_LANES = 4
"""Numbers of float64 in a vector of the processor, of most of them."""
_LATER = 0.4
"""Part of the time of a moving start by which a prolonged motion is as slow as it gets."""
_GROWTH = 1.12
_SAMPLES = 400
_ROOF = np.linspace(-1.0, 1.0, 17)
_ROOF_WEIGHT = (1.0 - np.abs(_ROOF)) / 8.0
_NARROWER = 0.9995
SMOOTH = 5
"""Number of cells to both sides over which a local change of pace is spread."""


@dataclass(frozen=True, eq=False)
class TimeGrid:
    """Knots in time, in units to be found, and the values of B-splines on them."""

    knots: Annotated[Float64, "K+1"]
    """Times of the knots, from 0 to K."""
    at_knot: Annotated[Float64, "K+1 3 3"]
    """Coefficients of c[i] to c[i + 2] in s, s' and s'' at knot i."""
    in_cell: Annotated[Float64, "K 2 4"]
    """Coefficients of c[i] to c[i + 3] in the control value of s' and in the constant s''' of cell i."""
    times: Annotated[Float64, "K+3"]
    """Times of the control points: c = times gives s(t) = t."""
    extended: Annotated[Float64, "K+7"]
    """Knots with three more at both ends."""


def time_grid(widths: Annotated[Float64, "K"]) -> TimeGrid:
    """Build a grid with cells of these widths."""
    cells = len(widths)
    knots = np.concatenate([[0.0], np.cumsum(widths)])
    steps = np.arange(1.0, 4.0)
    k = np.concatenate([-steps[::-1] * widths[0], knots, knots[-1] + steps * widths[-1]])
    i = np.arange(cells + 1)
    # De Boor's recursion: a derivative's control points are differences over the span that they share.
    rate, next_rate = 3.0 / (k[i + 4] - k[i + 1]), 3.0 / (k[i + 5] - k[i + 2])
    bend = 2.0 / (k[i + 4] - k[i + 2])
    part = (k[i + 3] - k[i + 2]) / (k[i + 4] - k[i + 2])
    low, high = (k[i + 3] - k[i + 1]) / (k[i + 4] - k[i + 1]), (k[i + 3] - k[i + 2]) / (k[i + 5] - k[i + 2])
    rows = [
        [(1.0 - part) * (1.0 - low), (1.0 - part) * low + part * (1.0 - high), part * high],
        [-(1.0 - part) * rate, (1.0 - part) * rate - part * next_rate, part * next_rate],
        [bend * rate, -bend * (rate + next_rate), bend * next_rate],
    ]
    at_knot = np.ascontiguousarray(np.moveaxis(np.array(rows), 2, 0))
    in_cell = np.zeros((cells, 2, 4))
    in_cell[:, 0, 1], in_cell[:, 0, 2] = -next_rate[:-1], next_rate[:-1]
    in_cell[:, 1, :3] -= at_knot[:-1, 2] / widths[:, None]
    in_cell[:, 1, 1:] += at_knot[1:, 2] / widths[:, None]
    return TimeGrid(knots, at_knot, in_cell, (k[1:-3] + k[2:-2] + k[3:-1]) / 3.0, k)


def graded(cells: int, first: float) -> Annotated[Float64, "K"]:
    """Return widths of somewhat more cells: twelve in the ``first`` part of the time, growing to even ones from
    there."""
    least = max(cells * first / 12.0, 1e-3)
    ramp = least * _GROWTH ** np.arange(1000)
    ramp = ramp[ramp < 1.0]
    return np.concatenate([ramp, np.ones(max(cells - int(ramp.sum()), 1))])


@dataclass(eq=False)
class TimeLaw:
    """s(t) on a grid, at rest at the end. ``improve`` changes it."""

    curve: Curve
    grid: TimeGrid
    limits: Annotated[Float64, "3 n"]
    """Limits of velocity, acceleration and jerk."""
    start_speed: float
    """Speed ds/dt at the start, 1/s."""
    unit: float
    """Length of a unit of the grid, s."""
    control: Annotated[Float64, "K+3"]
    share: Annotated[Float64, "K 3"]
    """Share of the limits that each cell may use, at its beginning (acceleration) or throughout."""

    @property
    def duration(self) -> float:
        """Duration of the motion, s."""
        return self.unit * float(self.grid.knots[-1])

    def improve(self, fastest: bool = True, first_weight: float = _WEIGHTS[0]) -> bool:
        """Bring the law within the limits and, if ``fastest``, to the least time, else keep its time; False if that
        fails."""
        from kinopt_ros.trajectory.kernels.speed_up import speed_up

        pieces, limits = _in_lanes(self.curve.pieces, self.limits)
        lam, worst, _ = speed_up(
            self.curve.breaks,
            pieces,
            limits,
            self.share,
            self.grid.at_knot,
            self.grid.in_cell,
            self._base(),
            self.control,
            float(np.log(self.unit)),
            fastest,
            first_weight if fastest else 1.0,
            _WEIGHTS[1] if fastest else 1.0,
            _WEIGHTS[2],
            _MOST_STEPS,
        )
        self.unit = float(np.exp(lam))
        return bool(worst < 1.0)

    def take(self, unit: float) -> None:
        """Set another unit of time; from rest the law is the same, slower or faster."""
        self.control += self._base() * (unit - self.unit)
        self.unit = unit

    def _base(self) -> Annotated[Float64, "K+3"]:
        """Return control points per unit of time of a motion that goes on as it starts for some cells, and then comes
        back."""
        times = self.grid.times
        if self.start_speed == 0.0:
            return np.zeros_like(times)
        turn = times[min(15, len(times) // 2)]
        x = np.clip((times - turn) / (times[-4] - turn), 0.0, 1.0)
        back: Float64 = 1.0 - x**4 * (35.0 - 84.0 * x + 70.0 * x * x - 20.0 * x**3)
        return self.start_speed * times * back

    def at_times(self, times: Annotated[Float64, "K+1"]) -> Annotated[Float64, "K+1 3"]:
        """Compute s, ds/dt and its derivative (1, 1/s, 1/s^2) at times (s) next to the knots."""
        state = np.empty((len(self.grid.knots), 3))
        self._states(state)
        state /= self.unit ** np.arange(3)
        late = times - self.unit * self.grid.knots
        jerk = np.diff(state[:, 2]) / (self.unit * np.diff(self.grid.knots))
        jerk = np.where(late >= 0.0, np.append(jerk, 0.0), np.append(0.0, jerk))
        state[:, 0] += late * (state[:, 1] + late * state[:, 2] / 2.0)
        state[:, 1] += late * (state[:, 2] + late * jerk / 2.0)
        state[:, 2] += late * jerk
        return state

    def _states(self, out: Annotated[Float64, "K+1 3"]) -> None:
        """Compute s and its derivatives by units of the grid."""
        from kinopt_ros.trajectory.kernels.speed_up import law_at_knots

        law_at_knots(self.control, self.grid.at_knot, out)

    def restrain(self, ratio: Annotated[Float64, "3 K"]) -> None:
        """Lower the share of cells where the motion was found to have this ratio to its limits."""
        factor = _NARROWER / np.maximum(ratio.T, _NARROWER)
        # What the acceleration is inside of a cell depends on both its ends.
        factor[1:, 1] = np.minimum(factor[1:, 1], factor[:-1, 1])
        self.share *= factor


def _in_lanes(
    pieces: Annotated[Float64, "k d n"], limits: Annotated[Float64, "3 n"]
) -> tuple[Annotated[Float64, "k d m"], Annotated[Float64, "3 m"]]:
    """Add joints that stand and have no limits, until vectors of the processor are full: they take no part, and loops
    have no rest."""
    more = -len(limits[0]) % _LANES
    if not more:
        return pieces, limits
    standing = np.zeros((len(pieces), pieces.shape[1], more))
    return np.concatenate([pieces, standing], axis=2), np.concatenate(
        [limits, np.full((3, more), np.inf)], axis=1
    )


def slowed(law: TimeLaw, stretch: Annotated[Float64, "K"]) -> TimeLaw:
    """Return the law with cells that take about so much longer; the factors are made smooth, and none at the start."""
    padded = np.pad(np.log(stretch), SMOOTH, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * SMOOTH + 1)
    most = np.pad(windows.max(axis=1), SMOOTH, mode="edge")
    smooth = np.convolve(most, np.full(2 * SMOOTH + 1, 1.0 / (2 * SMOOTH + 1)), mode="valid")
    if law.start_speed > 0.0:
        smooth *= np.clip(np.arange(len(smooth)) / SMOOTH, 0.0, 1.0)
    grid = time_grid(np.diff(law.grid.knots) * np.exp(smooth))
    return TimeLaw(law.curve, grid, law.limits, law.start_speed, law.unit, law.control.copy(), law.share)


def prolonged(law: TimeLaw, duration: float) -> TimeLaw:
    """Return the law of a moving start, increasingly slower after it, so that all takes ``duration``; not much
    longer."""
    widths = np.diff(law.grid.knots)
    x = np.clip(law.grid.knots[:-1] / (_LATER * law.grid.knots[-1]), 0.0, 1.0)
    part = x**3 * (10.0 - 15.0 * x + 6.0 * x * x)
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if float((widths * np.exp(middle * part)).sum()) * law.unit < duration:
            low = middle
        else:
            high = middle
    grid = time_grid(widths * np.exp(low * part))
    unit = duration / float(grid.knots[-1])
    return TimeLaw(law.curve, grid, law.limits, law.start_speed, unit, law.control.copy(), law.share)


def refined(law: TimeLaw, split: Annotated[Bool, "K"]) -> TimeLaw:
    """Return a law on a grid where some cells are halved; it is the same function of time."""
    old = law.grid
    pieces = np.where(split, 2, 1)
    owner = np.repeat(np.arange(len(split)), pieces)
    widths = np.diff(old.knots)
    grid = time_grid((widths / pieces)[owner])
    # A control point is the blossom of a cubic next to its middle knot, at its three inner knots.
    k = grid.extended
    j = np.arange(len(grid.times))
    middle = np.clip(j - 1, 0, len(owner) - 1)
    cell = owner[middle]
    state = np.empty((len(old.knots), 3))
    law._states(state)
    jerk = np.diff(state[:, 2]) / widths
    a, b, c = (k[j + i] - old.knots[cell] for i in (1, 2, 3))
    s, first, second = state[cell].T
    control = (
        s + first * (a + b + c) / 3.0 + second * (a * b + b * c + c * a) / 6.0 + jerk[cell] * a * b * c / 6.0
    )
    control[-3:] = 1.0
    finer = TimeLaw(law.curve, grid, law.limits, law.start_speed, law.unit, control, law.share[owner])
    finer.control[:3] = law.start_speed * law.unit * grid.times[:3]
    return finer


def first_law(
    curve: Curve,
    limits: Annotated[Float64, "3 n"],
    start_speed: float,
    widths: Annotated[Float64, "K"],
    duration: float | None = None,
) -> TimeLaw:
    """Return a smooth law to begin with, near to the limits of acceleration; it takes ``duration``, if given."""
    from kinopt_ros.trajectory.kernels.quintics import passable_speed

    grid = time_grid(widths)
    end = float(grid.knots[-1])
    inner = np.linspace(0.0, 1.0, max(_SAMPLES // len(curve.pieces), 4) + 1)[:-1]
    s = np.append((curve.breaks[:-1, None] + inner * np.diff(curve.breaks)[:, None]).ravel(), 1.0)
    if start_speed > 0.0:  # Braking may take less than a piece.
        s = np.unique(np.concatenate([s, np.geomspace(1e-5, 0.1, 100)]))
    speed = np.empty_like(s)
    q = curve.at(s)
    with np.errstate(divide="ignore"):
        fastest, sharpest = ((limit / np.abs(q[:, 1])).min(axis=1) for limit in limits[1:])
    ramp = float(np.median(fastest / sharpest))
    steady = 0.5 * start_speed * ramp
    passable_speed(q, s, limits, start_speed, steady, speed)
    time = np.concatenate([[0.0], np.cumsum(2.0 * np.diff(s) / (speed[1:] + speed[:-1]))])
    # The mean over a while, with weights like a roof, has bounded jerk.
    ramp = max(min(ramp, 0.5 * float(time[-1])), 4.0 * float(time[-1] * widths[0]) / end)
    late = 0.0 if start_speed > 0.0 else 0.5 * ramp
    unit = (float(time[-1]) + 0.5 * ramp + late) / end
    at = unit * grid.times[:, None] - late + 0.5 * ramp * _ROOF
    control = np.interp(at, time, s) + start_speed * np.minimum(at, 0.0)
    law = TimeLaw(curve, grid, limits, start_speed, unit, control @ _ROOF_WEIGHT, np.ones((len(widths), 3)))
    law.control[:3] = start_speed * unit * grid.times[:3]
    law.control[-3:] = 1.0
    if duration is not None:
        law.take(duration / end)
    return law
