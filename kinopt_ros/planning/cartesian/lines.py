"""Poses on straight lines from waypoint to waypoint, and how far others are off them."""

import math
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.se3 import rotation_angle, so3_exp, so3_log
from kinopt_ros.pauses import Pause, go_on
from kinopt_ros.planning.cartesian.steps import ANGLE_TOLERANCE, MOST_POINTS, CartesianSteps

_LEVER = 0.1
"""Length that a radian counts as beside a distance, m."""
_SAME = 1e-9
"""Distance, m, and angle, rad, up to which poses are the same."""


class Lines:
    """Poses on straight lines from corner to corner."""

    def __init__(self, corners: Annotated[Float64, "C 4 4"], steps: CartesianSteps) -> None:
        self._corners = corners
        relative = np.swapaxes(corners[:-1, :3, :3], 1, 2) @ corners[1:, :3, :3]
        self._turns = so3_log(relative)
        ways = np.linalg.norm(np.diff(corners[:, :3, 3], axis=0), axis=1)
        angles = np.linalg.norm(self._turns, axis=1)
        counts = np.ceil(np.maximum(ways / steps.max_step, angles / steps.max_angle) - 1e-9)
        self._moves = (ways > _SAME) | (angles > _SAME)
        counts = np.maximum(counts, self._moves)  # however long a step may be
        if counts.sum() > MOST_POINTS:
            raise InvalidRequestError(
                f"the path has {counts.sum():.0f} steps of {steps.max_step:g} m or {steps.max_angle:g} rad; allowed "
                f"are {MOST_POINTS}"
            )
        self.ends = np.cumsum(counts).astype(np.int64)
        """Number of the last step of each line."""
        self.count = int(self.ends[-1])
        """Number of steps; 0 where there is nowhere to go."""

    def at(self, u: Annotated[Float64, "K"]) -> Annotated[Float64, "K 4 4"]:
        """Return poses after so many steps, which need not be whole numbers."""
        starts = np.concatenate([[0], self.ends[:-1]])
        lengths = np.maximum(self.ends - starts, 1)
        line = np.minimum(np.searchsorted(self.ends, u, side="left"), len(self.ends) - 1)
        share = ((u - starts[line]) / lengths[line])[:, None]
        first, last = self._corners[line], self._corners[line + 1]
        T = first.copy()
        T[:, :3, 3] += share * (last[:, :3, 3] - first[:, :3, 3])
        T[:, :3, :3] = first[:, :3, :3] @ so3_exp(share * self._turns[line])
        exact = u == self.ends[line]
        T[exact] = last[exact]
        return T

    def off(
        self, T: Annotated[Float64, "M 4 4"], last: int, tolerance: float, pause: Pause = go_on
    ) -> tuple[float, float]:
        """Return how far poses are off the lines up to a step, at most: m, rad.

        There may be thousands of lines, most of which are far from most poses.
        """
        lines = self._lines_until(last)
        best = np.full(len(T), np.inf)
        distance, angle = best.copy(), best.copy()
        self._nearest(T, lines, tolerance, (best, distance, angle), pause)
        lost = np.flatnonzero(np.isinf(best))
        if lost.size:  # how far off are they?
            found = best[lost], distance[lost], angle[lost]
            self._nearest(T[lost], lines, math.inf, found, pause)
            distance[lost], angle[lost] = found[1:]
        return float(distance.max()), float(angle.max())

    def _lines_until(self, last: int) -> Annotated[Int64, "L"]:
        """Return the lines up to a step that go anywhere; the first one if none does."""
        until = 1 + int(np.searchsorted(self.ends, last))
        moves = np.flatnonzero(self._moves[:until])
        return moves if len(moves) else np.zeros(1, dtype=np.int64)

    def _nearest(
        self,
        T: Annotated[Float64, "M 4 4"],
        lines: Annotated[Int64, "L"],
        reach: float,
        found: tuple[Float64, Float64, Float64],
        pause: Pause,
    ) -> None:
        """Put how far poses are from the nearest of some lines, both together, m, and rad, into ``found`` (each (M,)).

        Lines that are farther away than ``reach`` (m) are left out.
        """
        best, distance, angle = found
        for line in lines.tolist():
            pause()
            first, turn = self._corners[line], self._turns[line]
            way = self._corners[line + 1, :3, 3] - first[:3, 3]
            middle = first[:3, 3] + 0.5 * way
            away = np.linalg.norm(T[:, :3, 3] - middle, axis=1) - 0.5 * np.linalg.norm(way)
            near = np.flatnonzero(away <= reach)
            if not near.size:
                continue
            to, turned = T[near, :3, 3] - first[:3, 3], so3_log(first[:3, :3].T @ T[near, :3, :3])
            # Where on the line each pose is nearest, an angle counting as the way of a lever.
            square = float(way @ way + _LEVER**2 * turn @ turn)
            share = np.zeros(len(near))
            if square > 0.0:
                share = np.clip((to @ way + _LEVER**2 * (turned @ turn)) / square, 0.0, 1.0)
            d = np.linalg.norm(to - share[:, None] * way, axis=1)
            R = first[:3, :3] @ so3_exp(share[:, None] * turn)
            phi = rotation_angle(np.swapaxes(R, 1, 2) @ T[near, :3, :3])
            nearer = d + _LEVER * phi < best[near]
            which = near[nearer]
            best[which] = (d + _LEVER * phi)[nearer]
            distance[which], angle[which] = d[nearer], phi[nearer]

    def missed(
        self, T: Annotated[Float64, "M 4 4"], last: int, tolerance: float, pause: Pause = go_on
    ) -> str:
        """The first waypoint up to a step that poses do not pass after those before it, a few words; or nothing.

        Being near the lines is not enough: a rounded corner is near both.
        """
        first = 0
        steps = np.linalg.norm(np.diff(T[:, :3, 3], axis=0), axis=1)
        for number in range(int((self.ends <= last).sum())):
            if not self._moves[number]:
                continue  # the waypoint before it is the same
            pause()
            corner = self._corners[number + 1]
            away = np.linalg.norm(T[first:-1, :3, 3] - corner[:3, 3], axis=1) - steps[first:]
            near = np.flatnonzero(away <= tolerance)
            if not near.size:
                k = int(np.argmin(away))
                return f"{max(away[k], 0.0):.3g} m or more off waypoint {number}"
            begin, end = first + int(near[0]), first + int(near[-1]) + 2
            turned = so3_log(corner[:3, :3].T @ T[begin:end, :3, :3])
            x = np.concatenate([T[begin:end, :3, 3] - corner[:3, 3], _LEVER * turned], axis=1)
            # Straight between poses: those of a quick motion are far apart.
            step = np.diff(x, axis=0)
            square = np.maximum((step * step).sum(axis=1), np.finfo(np.float64).tiny)
            share = np.clip(-(x[:-1] * step).sum(axis=1) / square, 0.0, 1.0)
            nearest = x[:-1] + share[:, None] * step
            distance = np.linalg.norm(nearest[:, :3], axis=1)
            angle = np.linalg.norm(nearest[:, 3:], axis=1) / _LEVER
            passed = (distance <= tolerance) & (angle <= ANGLE_TOLERANCE)
            if not passed.any():
                k = int(np.argmin(distance + _LEVER * angle))
                return f"{distance[k]:.3g} m and {angle[k]:.3g} rad off waypoint {number}"
            first = begin + int(np.argmax(passed))
        return ""

    def where(self, step: int) -> str:
        """Say how far a step is along the path, a few words."""
        number = int(np.searchsorted(self.ends, step))
        return f"after {(step - 1) / self.count:.1%}, on the way to waypoint {number}"
