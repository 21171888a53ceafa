"""Motions of a robot among bodies: the parts of them that lower bounds of distances cannot clear."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.collision.packed_bodies import PackedBodies
from kinopt_ros.collision.sweep_kernel import sweep

RESOLUTION = 1e-4
"""m; parts in which a pair can come nearer by less than this are not divided any more: halving must end."""
_FEW = 32


@dataclass(frozen=True, eq=False)
class Part:
    """Part of a motion in which one pair of shapes may come too near."""

    pair: int
    control: Annotated[Float64, "d+1 n"]
    """Control points of the variables that move."""
    begin: float
    end: float
    nearer: float
    """m; how much nearer the pair can come than it is in the middle, at most."""


@dataclass(frozen=True, eq=False)
class Motions:
    """Of some variables, while all others keep their values."""

    packed: PackedBodies
    state: Annotated[Float64, "nq"]
    """Of all variables; finite."""
    variables: Annotated[Int64, "n"]
    """Those that move, each of a joint with one variable."""

    def in_doubt(
        self,
        control: Annotated[Float64, "d+1 n"],
        begin: float,
        end: float,
        enough: float,
        pairs: Annotated[Int64, "m"] | None = None,
        most: int | None = None,
    ) -> list[Part]:
        """Parts of a motion in which it is not clear that pairs stay ``enough`` (m) apart, paddings added.

        Args:
            control: control points of a Bezier curve.
            begin: its time at the first one, s.
            end: and at the last one.
            enough: distance, m.
            pairs: which pairs; None: all.
            most: the search ends with so many parts; None: all of them.
        """
        packed = self.packed
        room = most or _FEW
        while True:
            found, reaches = np.empty(room, dtype=np.int64), np.empty(room)
            spans, parts = np.empty((room, 2)), np.empty((room, *control.shape))
            count = sweep(
                control,
                begin,
                end,
                self.variables,
                self.state,
                packed.tree,
                packed.shapes,
                packed.pairs,
                packed.obstacles.numbers,
                packed.obstacles.integers,
                packed.every_pair if pairs is None else pairs,
                enough,
                RESOLUTION,
                found,
                spans,
                reaches,
                parts,
            )
            if count < room or most is not None:
                break
            room *= 8
        return [
            Part(int(found[k]), parts[k], float(spans[k, 0]), float(spans[k, 1]), float(reaches[k]))
            for k in range(count)
        ]

    def middle(self, part: Part) -> Annotated[Float64, "nq"]:
        """Configuration in the middle of a part."""
        row = part.control
        while len(row) > 1:
            row = 0.5 * (row[1:] + row[:-1])
        q = self.state.copy()
        q[self.variables] = row[0]
        return q
