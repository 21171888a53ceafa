"""Curve that a timed motion follows: through the points of a path, or along its edges with rounded corners."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64

_SHORT = 1e-3
"""Share of the mean distance below which points count as one: noise would look like curvature."""

_EVEN = 0.5
"""Least step of the parameter between two points of a dense path, as a part of the mean: where the path slows down
to turn round, the distance of its points says nothing about its smoothness."""

_CUT = 0.15625
"""Distance from the corner to the middle of a blend, by the blend's half length and the change of direction: what the
control points of a septic, evenly spaced on both legs, leave of the corner."""

_BEND = 0.2269
"""Distance by which a bent beginning is off its straight line, by its length and the change of direction.

It is a seventh of the most of B_1 + 2 B_2 + 3 B_3."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Piecewise polynomials q(s) for s from 0 to 1, with three continuous derivatives; two where a detour joins it."""

    breaks: Annotated[Float64, "K+1"]
    pieces: Annotated[Float64, "K d n"]
    """Coefficients of powers of s - breaks[k], constants first."""

    def at(self, s: Annotated[Float64, "M"]) -> Annotated[Float64, "M 5 n"]:
        """Compute position and the first four derivatives by s."""
        from kinopt_ros.trajectory.kernels.quintics import path_derivatives

        out = np.empty((s.size, 5, self.pieces.shape[2]))
        path_derivatives(self.breaks, self.pieces, s, out)
        return out


def distinct_points(path: Annotated[Float64, "T n"]) -> Annotated[Float64, "M n"]:
    """Return the path without repeated points; first and last are kept. One point is left if all are the same."""
    if not (path != path[0]).any():
        return path[:1]
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    least = _SHORT * float(steps.mean())
    if float(steps.min()) > least:
        return path
    kept = [0]
    for i in range(1, len(path) - 1):
        if np.linalg.norm(path[i] - path[kept[-1]]) > least:
            kept.append(i)
    while len(kept) > 1 and np.linalg.norm(path[-1] - path[kept[-1]]) <= least:
        kept.pop()
    return path[[*kept, len(path) - 1]]


def smooth_curve(
    points: Annotated[Float64, "M n"], direction: Annotated[Float64, "n"] | None = None
) -> Curve:
    """Fit the quintic spline through points, all distinct; it starts along ``direction``, if given, without
    curvature."""
    if len(points) == 2:  # which leave a curvature open
        points = np.stack([points[0], points.mean(axis=0), points[1]])
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    even = 0.0
    if steps.size > 20 and steps[8:-8].min() < _EVEN * steps.mean():
        # Points of a path at rest at its ends may crowd there, and do so along a line: distance is right for them.
        inside = np.minimum(np.arange(len(steps)), np.arange(len(steps))[::-1]) / 8.0
        even = _EVEN * steps.mean() * np.clip(inside, 0.0, 1.0) ** 2
    breaks = np.concatenate([[0.0], np.cumsum(np.hypot(steps, even))])
    breaks /= breaks[-1]
    ends = np.zeros((2, 2, points.shape[1]))
    if direction is not None:
        ends[0, 0] = direction * (steps[0] / breaks[1] / np.linalg.norm(direction))
    return Curve(breaks, _quintics(breaks, points, ends, (direction is not None, False)))


def _quintics(
    breaks: Annotated[Float64, "K+1"],
    points: Annotated[Float64, "K+1 n"],
    ends: Annotated[Float64, "2 2 n"],
    clamped: tuple[bool, bool],
) -> Annotated[Float64, "K 6 n"]:
    from kinopt_ros.trajectory.kernels.quintics import fit_quintics

    pieces = np.empty((len(points) - 1, 6, points.shape[1]))
    fit_quintics(breaks, np.ascontiguousarray(points), ends, np.array(clamped), pieces)
    return pieces


def distance_from_edges(curve: Curve, points: Annotated[Float64, "M n"]) -> float:
    """Return the largest distance, of any joint, of a curve with one piece per edge from the straight edges
    (sampled)."""
    share = np.linspace(0.0, 1.0, 9)[1:-1]
    breaks = curve.breaks
    s = breaks[:-1, None] + share * np.diff(breaks)[:, None]
    q = curve.at(s.ravel())[:, 0].reshape(*s.shape, -1)
    edge = np.diff(points, axis=0)
    along = ((q - points[:-1, None]) @ edge[:, :, None])[..., 0] / np.einsum("kn,kn->k", edge, edge)[:, None]
    nearest = points[:-1, None] + np.clip(along, 0.0, 1.0)[..., None] * edge[:, None]
    return float(np.abs(q - nearest).max())


def rounded_corners(
    points: Annotated[Float64, "M n"], deviation: float, direction: Annotated[Float64, "n"] | None = None
) -> Curve:
    """Round straight edges by blends of degree 7 at the corners that cut them by at most ``deviation`` (rad or m).

    That holds for every joint. The parameter is the length on edges; blends join them with three continuous
    derivatives. With ``direction`` the beginning is bent likewise.
    """
    edge = np.diff(points, axis=0)
    length = np.linalg.norm(edge, axis=1)
    unit = edge / length[:, None]
    change = np.abs(np.diff(unit, axis=0)).max(axis=1)
    room = np.minimum(length[:-1], length[1:]) / 2.0
    half = np.minimum(room, deviation / (_CUT * np.maximum(change, 1e-9)))
    steps = np.arange(8)[:, None]

    breaks, pieces, done = [0.0], [], 0.0
    if direction is not None:
        way = direction / np.linalg.norm(direction)
        size = min(length[0] / 2.0, deviation / (_BEND * max(float(np.abs(way - unit[0]).max()), 1e-9)))
        control = points[0] + size / 7.0 * steps * np.where(steps <= 3, way, unit[0])
        breaks.append(size)
        pieces.append(_powers(control, size))
        done = size
    for k in range(len(edge)):
        straight = length[k] - (half[k] if k < len(half) else 0.0) - done
        if straight > 1e-12 * length[k]:
            line = np.zeros((8, points.shape[1]))
            line[0], line[1] = points[k] + done * unit[k], unit[k]
            breaks.append(breaks[-1] + straight)
            pieces.append(line)
        if k < len(half):
            offset = half[k] * (2.0 * steps / 7.0 - 1.0)
            control = points[k + 1] + offset * np.where(steps <= 3, unit[k], unit[k + 1])
            breaks.append(breaks[-1] + 2.0 * half[k])
            pieces.append(_powers(control, 2.0 * half[k]))
            done = half[k]
    return _normalized(np.array(breaks), np.stack(pieces))


def with_detour(curve: Curve, way: Annotated[Float64, "n"]) -> Curve:
    """Return the curve after a beginning that goes out straight by ``way`` (rad or m) and turns back into the curve.

    It starts along ``way`` without curvature.
    """
    tau = np.linspace(0.0, 1.0, 33)
    # Out and back: 1 at its farthest, with three derivatives 0 at the end and the second one 0 at the beginning.
    shape = tau * (1.0 + 4.0 * tau) * (1.0 - tau) ** 4
    top = float(shape.max())
    turn = float(tau[int(np.argmax(shape))])
    # The curve's own parameter rests until the turn, then takes up a steady pace.
    x = np.clip((tau - turn) / (1.0 - turn), 0.0, 1.0)
    first = curve.at(np.zeros(1))[0]
    pace = min(4.0 * float(np.linalg.norm(way)) / float(np.linalg.norm(first[1])), 1.5)
    own = pace * (1.0 - turn) * x**5 * (7.0 - 14.0 * x + 10.0 * x * x - 2.5 * x**3)
    reached = float(own[-1])
    q = curve.at(own)[:, 0] + (shape / top)[:, None] * way
    joint = curve.at(np.array([reached]))[0]
    ends = np.stack(
        [np.stack([way / top, np.zeros_like(way)]), np.stack([joint[1] * pace, joint[2] * pace**2])]
    )
    pieces = _quintics(tau, q, ends, (True, True))

    order = curve.pieces.shape[1]
    k = min(int(np.searchsorted(curve.breaks, reached, side="right")) - 1, len(curve.pieces) - 1)
    rest = curve.pieces[k:].copy()
    rest[0] = _shifted(rest[0], reached - curve.breaks[k])
    rest *= pace ** np.arange(order)[:, None]
    later = 1.0 + (curve.breaks[k + 1 :] - reached) / pace
    padded = np.zeros((len(pieces), max(order, 6), q.shape[1]))
    padded[:, :6] = pieces
    rest = np.concatenate([rest, np.zeros((len(rest), padded.shape[1] - order, q.shape[1]))], axis=1)
    return _normalized(np.concatenate([tau, later]), np.concatenate([padded, rest]))


def _powers(control: Annotated[Float64, "8 n"], width: float) -> Annotated[Float64, "8 n"]:
    """Return coefficients of the septic with Bernstein control points over a width."""
    return _FROM_BERNSTEIN @ control / width ** np.arange(8)[:, None]


def _shifted(piece: Annotated[Float64, "d n"], by: float) -> Annotated[Float64, "d n"]:
    """Return coefficients of p(x + by)."""
    shifted = piece.copy()
    for low in range(len(piece)):
        for d in range(len(piece) - 2, low - 1, -1):
            shifted[d] += by * shifted[d + 1]
    return shifted


def _normalized(breaks: Annotated[Float64, "K+1"], pieces: Annotated[Float64, "K d n"]) -> Curve:
    total = float(breaks[-1])
    scaled = breaks / total
    scaled[-1] = 1.0
    return Curve(scaled, np.ascontiguousarray(pieces * total ** np.arange(pieces.shape[1])[:, None]))


def _from_bernstein(degree: int) -> Annotated[Float64, "d+1 d+1"]:
    matrix = np.zeros((degree + 1, degree + 1))
    for k in range(degree + 1):
        basis = np.poly1d([1.0])
        for _ in range(k):
            basis = basis * np.poly1d([1.0, 0.0])
        for _ in range(degree - k):
            basis = basis * np.poly1d([-1.0, 1.0])
        ways = 1.0
        for factor in range(k):
            ways = ways * (degree - factor) / (factor + 1)
        matrix[: len(basis.c), k] = ways * basis.c[::-1]
    return matrix


_FROM_BERNSTEIN = _from_bernstein(7)
