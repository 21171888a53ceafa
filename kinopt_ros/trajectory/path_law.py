"""When to be where on a curve: s(t) as a cubic B-spline in time, as fast as the limits allow.

With constant jerk of s between knots, velocity, acceleration and jerk of the joints at the knots are polynomials in the
control points c of s(t), each in at most four of them, over powers of the unit of time. Time-optimal control points are
then found by a barrier method (``compiled.speed_up``), whose linear systems are banded. From rest every law is within
limits if it is slow enough, so that there is always one.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.trajectory.path_geometry import Curve

_WEIGHTS = (30.0, 1e5, 5.0)
"""Weight of the logarithm of time against the barrier: first, last, growth. The last leaves about 0.1 % of the time."""
_MOST_STEPS = 150
_SAMPLES = 400
_ROOF = np.linspace(-1.0, 1.0, 17)
_ROOF_WEIGHT = (1.0 - np.abs(_ROOF)) / 8.0
_NARROWER = 0.9995


@dataclass(frozen=True, eq=False)
class TimeGrid:
    """Knots in time, in units to be found, and what B-splines on them are worth."""

    knots: Annotated[Float64, "K+1"]
    """From 0 to K."""
    at_knot: Annotated[Float64, "K+1 3 3"]
    """s, its first and second derivative at knot i by c[i] to c[i + 2]."""
    in_cell: Annotated[Float64, "K 2 4"]
    """Control value of the first derivative, and the constant third derivative, in cell i by c[i] to c[i + 3]."""
    times: Annotated[Float64, "K+3"]
    """Of the control points: c = times gives s(t) = t."""


def time_grid(widths: Annotated[Float64, "K"]) -> TimeGrid:
    """Grid with cells of these widths."""
    cells = len(widths)
    knots = np.concatenate([[0.0], np.cumsum(widths)])
    steps = np.arange(1.0, 4.0)
    k = np.concatenate([-steps[::-1] * widths[0], knots, knots[-1] + steps * widths[-1]])
    i = np.arange(cells + 1)
    # By de Boor's recursion: a derivative's control points are differences over the span that they share.
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
    return TimeGrid(knots, at_knot, in_cell, (k[1:-3] + k[2:-2] + k[3:-1]) / 3.0)


def graded(cells: int, first: float) -> Annotated[Float64, "K"]:
    """Widths that grow from the first to the last cell, so that about eight are in the ``first`` part of the time."""
    if first >= 8.0 / cells:
        return np.ones(cells)
    growth = 1.0
    for _ in range(60):
        # The share of the first eight cells of a geometric series.
        growth += 0.005
        if np.expm1(8.0 * np.log(growth)) <= first * np.expm1(cells * np.log(growth)):
            break
    return np.asarray(growth ** np.arange(cells))


@dataclass(eq=False)
class TimeLaw:
    """s(t) on a grid, at rest at the end. ``improve`` changes it."""

    curve: Curve
    grid: TimeGrid
    limits: Annotated[Float64, "3 n"]
    """Of velocity, acceleration and jerk."""
    start_speed: float
    """ds/dt at the start (1/s)."""
    unit: float
    """Seconds per unit of the grid."""
    control: Annotated[Float64, "K+3"]
    share: Annotated[Float64, "K 3"]
    """Part of the limits that each cell may use, at its beginning (acceleration) or throughout."""

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.unit * float(self.grid.knots[-1])

    def improve(self, fastest: bool = True, first_weight: float = _WEIGHTS[0]) -> bool:
        """Come within the limits and, if ``fastest``, take the least time, else keep it; False if that fails."""
        from kinopt_ros.trajectory.compiled import speed_up

        lam, worst, _ = speed_up(
            self.curve.breaks,
            self.curve.pieces,
            self.limits,
            self.share,
            self.grid.at_knot,
            self.grid.in_cell,
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
        """Another unit of time; from rest the same law, slower or faster."""
        self.unit = unit
        self.control[:3] = self.start_speed * unit * self.grid.times[:3]

    def at_times(self, times: Annotated[Float64, "K+1"]) -> Annotated[Float64, "K+1 3"]:
        """s, ds/dt and its derivative (1, 1/s, 1/s^2) at times (s) next to the knots."""
        from kinopt_ros.trajectory.compiled import law_at_knots

        state = np.empty((len(self.grid.knots), 3))
        law_at_knots(self.control, self.grid.at_knot, state)
        state /= self.unit ** np.arange(3)
        late = times - self.unit * self.grid.knots
        jerk = np.diff(state[:, 2]) / (self.unit * np.diff(self.grid.knots))
        jerk = np.where(late >= 0.0, np.append(jerk, 0.0), np.append(0.0, jerk))
        state[:, 0] += late * (state[:, 1] + late * state[:, 2] / 2.0)
        state[:, 1] += late * (state[:, 2] + late * jerk / 2.0)
        state[:, 2] += late * jerk
        return state

    def restrain(self, ratio: Annotated[Float64, "3 K"]) -> None:
        """Less for cells where the motion was found to have this ratio to its limits."""
        factor = _NARROWER / np.maximum(ratio.T, _NARROWER)
        # What the acceleration is inside of a cell depends on both its ends.
        factor[1:, 1] = np.minimum(factor[1:, 1], factor[:-1, 1])
        self.share *= factor


def first_law(
    curve: Curve,
    limits: Annotated[Float64, "3 n"],
    start_speed: float,
    widths: Annotated[Float64, "K"],
    duration: float | None = None,
) -> TimeLaw:
    """A smooth law to begin with, near to the limits of acceleration; it takes ``duration``, if given."""
    from kinopt_ros.trajectory.compiled import passable_speed

    grid = time_grid(widths)
    end = float(grid.knots[-1])
    inner = np.linspace(0.0, 1.0, max(_SAMPLES // len(curve.pieces), 4) + 1)[:-1]
    s = np.append((curve.breaks[:-1, None] + inner * np.diff(curve.breaks)[:, None]).ravel(), 1.0)
    speed = np.empty_like(s)
    q = curve.at(s)
    ramp = float((limits[1] / limits[2]).max())
    steady = 0.5 * start_speed * ramp
    passable_speed(q, s, limits, start_speed, steady, speed)
    time = np.concatenate([[0.0], np.cumsum(2.0 * np.diff(s) / (speed[1:] + speed[:-1]))])
    # The mean over a while, with weights like a roof, has bounded jerk.
    ramp = max(min(ramp, 0.5 * float(time[-1])), 4.0 * float(time[-1]) / len(widths))
    late = 0.0 if start_speed > 0.0 else 0.5 * ramp
    unit = (float(time[-1]) + 0.5 * ramp + late) / end
    at = unit * grid.times[:, None] - late + 0.5 * ramp * _ROOF
    control = np.interp(at, time, s) + start_speed * np.minimum(at, 0.0)
    law = TimeLaw(curve, grid, limits, start_speed, unit, control @ _ROOF_WEIGHT, np.ones((len(widths), 3)))
    law.take(unit if duration is None else duration / end)
    law.control[-3:] = 1.0
    return law
