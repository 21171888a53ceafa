"""Collision checks of motions among bodies: finds the parts that lower bounds of distances cannot clear."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.collision.contacts import Placement
from kinopt_ros.collision.kernels.sweep import (
    SHARE,
    SIZE,
    WANTED,
    Found,
    Motion,
    room_for,
    sweep,
    waiting_for,
)
from kinopt_ros.collision.packed_bodies import PackedBodies
from kinopt_ros.pauses import Pause, go_on

RESOLUTION = 1e-4
"""Change of distance below which parts are not divided further, m: in them a pair cannot come nearer by more."""
_FEW = 128
_GLANCES = 6
_NOTHING = np.empty(0)
_EFFORT = 20_000
"""Comparisons of convex pieces between two pauses: a few milliseconds."""


@dataclass(frozen=True, eq=False)
class Part:
    """Part of a motion in which one pair of shapes may come too near."""

    pair: int
    control: Annotated[Float64, "d+1 n"]
    """Bezier control points of the variables that move."""
    begin: float
    end: float
    nearer: float
    """Most that the pair's distance can differ from its distance in the middle of the part, m."""


@dataclass(frozen=True, eq=False)
class Motions:
    """Checks motions of some variables, while all others keep their values."""

    packed: PackedBodies
    state: Annotated[Float64, "nq"]
    """Values of all variables, finite; those that move do not count."""
    variables: Annotated[Int64, "n"]
    """Indices of the variables that move, each of a joint with one variable."""
    pause: Pause = go_on
    """Called between pieces of work."""

    def in_doubt(
        self,
        control: Annotated[Float64, "K d+1 n"],
        times: Annotated[Float64, "K+1"],
        enough: float,
        pairs: Annotated[Int64, "m"] | None = None,
        most: int | None = None,
        ahead: int = 0,
    ) -> tuple[list[Part], int]:
        """Find parts of a motion in which it is not clear that pairs stay ``enough`` (m) apart, paddings added.

        Looks as far as ``ahead`` curves after the first one that has such parts. Returns the parts, and how many curves
        were looked at.

        Args:
            control: control points of Bezier curves, one after the other.
            times: of their ends, s.
            enough: distance, m.
            pairs: which pairs; None: all.
            most: the search ends with so many parts; None: all of them.
            ahead: curves that are looked at after the first one in doubt, if there are not many parts.
        """
        room = most or _FEW
        motion = Motion(control, times, self.variables, self.state)
        chosen = self._nearby(control, enough) if pairs is None else pairs
        while True:
            found = room_for(room, motion)
            count, done = self._sweep(motion, chosen, enough, RESOLUTION, ahead, _NOTHING, found)
            if count < room or most is not None:
                break
            ahead, room = 0, (room if ahead else 8 * room)
        return [
            Part(
                int(found.pairs[k]),
                found.parts[k],
                float(found.spans[k, 0]),
                float(found.spans[k, 1]),
                float(found.reaches[k]),
            )
            for k in range(count)
        ], done

    def least_distance(
        self,
        control: Annotated[Float64, "K d+1 n"],
        times: Annotated[Float64, "K+1"],
        most: float,
        resolution: float,
    ) -> float:
        """Return a lower bound (m) of the least distance of any pair along a motion, paddings subtracted.

        Returns ``most`` if nothing is nearer. The bound is at most ``resolution``, or the part SHARE, below the least
        of the bounds in single configurations.

        What is not above 0 says only that bounds cannot tell the shapes apart.
        """
        largest, most = most, max(most / (1.0 - SHARE), most + resolution)
        # The nearer something is known to be, the less has to be looked at.
        for row in control[:: max(1, len(control) // _GLANCES), 0]:
            self.pause()
            q = self.state.copy()
            q[self.variables] = row
            gaps = Placement(self.packed, q).near(most)[1]
            most = min(most, float(gaps[0])) if len(gaps) else most
            if most <= resolution:  # nothing above 0 can come of it
                return most - resolution
        measured = np.empty(1)
        motion = Motion(control, times, self.variables, self.state)
        chosen = self._nearby(control, most)
        self._sweep(motion, chosen, most, resolution, 0, measured, room_for(1, motion))
        return min(float(measured[0]), largest)

    def _nearby(self, control: Annotated[Float64, "K d+1 n"], enough: float) -> Annotated[Int64, "m"]:
        """Return the pairs that may come nearer than ``enough`` (m) within a motion."""
        if self.packed.crowd is None:
            return self.packed.every_pair
        K = len(control)
        # Where the sweep begins: what it would pass over there is left out.
        row = control[K // 2, :1] if K > 1 else middle_of(control[0])
        q, change = self.state.copy(), np.zeros(len(self.state))
        q[self.variables] = row[0]
        change[self.variables] = np.abs(control - row[0]).max(axis=(0, 1))
        return self.packed.nearby(q, enough, change)

    def _sweep(
        self,
        motion: Motion,
        chosen: Int64,
        enough: float,
        resolution: float,
        ahead: int,
        measured: Float64,
        found: Found,
    ) -> tuple[int, int]:
        packed = self.packed.arrays
        waiting = waiting_for(motion, chosen, len(packed.pairs.margin), enough)
        while True:
            count, done = sweep(motion, packed, enough, resolution, ahead, measured, found, waiting, _EFFORT)
            if waiting.marks[SIZE] == 0:
                return int(count), int(done)
            if waiting.marks[WANTED] > len(waiting.unsure):
                longer = np.empty(2 * int(waiting.marks[WANTED]), dtype=np.int64)
                longer[: len(waiting.unsure)] = waiting.unsure
                waiting = waiting._replace(unsure=longer)
            self.pause()

    def middle(self, part: Part) -> Annotated[Float64, "nq"]:
        """Return the configuration in the middle of a part."""
        q = self.state.copy()
        q[self.variables] = middle_of(part.control)[0]
        return q


def middle_of(control: Annotated[Float64, "d+1 n"]) -> Annotated[Float64, "1 n"]:
    """Return the point in the middle of a Bezier curve."""
    while len(control) > 1:
        control = 0.5 * (control[1:] + control[:-1])
    return control
