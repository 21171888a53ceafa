"""Which bodies touch in a configuration: boxes around them first, then the judge."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision.bodies import WORLD, Bodies
from kinopt_ros.collision.box_gaps import box_gaps
from kinopt_ros.collision.judge import TOUCHING, Separation, distance, in_collision
from kinopt_ros.collision.obstacles import nearest, pack
from kinopt_ros.geometry.shapes import PlacedShape

_ROUNDING = 1e-9
"""m; by so much boxes are taken to be larger than they are."""
_SAME_POSE = 1e-9
"""m, and entries of a rotation: what differs by less was computed along another way."""
_TRANSLATION = np.array([0.0, 0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Contact:
    """Two bodies (links or objects) that are nearer to each other than they may be."""

    a: str
    b: str
    depth: float
    """m, by how much they are too near: penetration, plus padding and wanted clearance."""


@dataclass(frozen=True, eq=False)
class Clearance:
    """The two bodies that are nearest to each other, paddings counted in."""

    distance: float
    """m; negative in collision; infinite if there is nothing to compare."""
    a: str = ""
    b: str = ""
    point_a: Annotated[Float64, "3"] | None = None
    """In the root link's frame."""
    point_b: Annotated[Float64, "3"] | None = None


class Placement:
    """Bodies where one configuration puts them."""

    def __init__(self, bodies: Bodies, T_root_link: Annotated[Float64, "L 4 4"]) -> None:
        """
        Args:
            bodies: what is compared.
            T_root_link: poses of ``bodies.links``.
        """
        self._bodies = bodies
        carriers = np.concatenate([T_root_link, np.eye(4)[None]])  # the last one for WORLD, -1
        assert WORLD == -1
        self._carrier = carriers[bodies.link]
        self._boxes: Float64 | None = None
        self._poses = self._carrier @ bodies.T_link_shape

    def gaps(
        self, pairs: Annotated[Int64, "n"] | None = None, most: float = np.inf
    ) -> Annotated[Float64, "n"]:
        """Lower bounds of the distances of pairs (indices; all by default), paddings subtracted, m.

        A bound that reaches ``most`` is not improved any more, which is quicker.
        """
        bodies = self._bodies
        margin = bodies.margin if pairs is None else bodies.margin[pairs]
        shapes = bodies.pairs if pairs is None else bodies.pairs[pairs]
        if self._boxes is None:
            self._boxes = self._carrier @ bodies.boxes[0]
        gaps = np.empty(len(shapes))
        box_gaps(self._boxes, bodies.boxes[1], shapes, most + margin + _ROUNDING, gaps)
        endless = bodies.without_end[shapes]
        if endless.any():
            rows = np.flatnonzero(endless.any(axis=1))
            gaps[rows] = self._from_endless(shapes[rows], endless[rows])
        return np.asarray(gaps - margin - _ROUNDING)

    def _from_endless(self, pairs: Annotated[Int64, "E 2"], endless: Annotated[Bool, "E 2"]) -> Float64:
        """Bounds (E) for pairs with a plane or a height map: from the sphere around the other shape's box."""
        assert self._boxes is not None
        halves = self._bodies.boxes[1]
        gaps = np.full(len(pairs), -np.inf)
        grounds = np.where(endless[:, 0], pairs[:, 0], pairs[:, 1])
        others = np.where(endless[:, 0], pairs[:, 1], pairs[:, 0])
        for ground in np.unique(grounds):
            rows = np.flatnonzero((grounds == ground) & ~endless.all(axis=1))
            other = others[rows]
            balls = np.column_stack([self._boxes[other, :3, 3], np.sqrt((halves[other] ** 2).sum(axis=1))])
            obstacle = pack([PlacedShape(self._bodies.shapes[ground], self.pose(ground).copy())])
            gaps[rows] = nearest(obstacle, balls).distances
        return gaps

    def pose(self, shape: int) -> Annotated[Float64, "4 4"]:
        """Of a shape in the root link's frame."""
        T: Float64 = self._poses[shape]
        return T

    def touches(self, clearance: float) -> bool:
        """Whether any pair is nearer than ``clearance`` (m) and its padding; ends with the first one."""
        return next(self._touching(clearance), None) is not None

    def _touching(self, clearance: float) -> Iterator[int]:
        """Pairs that are nearer than ``clearance`` (m) and their padding, the least bound first."""
        bodies = self._bodies
        gaps = self.gaps(most=clearance)
        near = np.flatnonzero(gaps < clearance)
        near = near[np.argsort(gaps[near])]
        for pair, relative in zip(near.tolist(), self._relative(near), strict=True):
            if self._known_free(pair, relative, clearance):
                continue
            a, b = bodies.pairs[pair].tolist()
            if in_collision(
                bodies.shapes[a],
                self.pose(a),
                bodies.shapes[b],
                self.pose(b),
                clearance + bodies.margin[pair],
            ):
                yield pair
            else:
                bodies.found_free[pair] = relative, clearance

    def _relative(self, pairs: Annotated[Int64, "n"]) -> list[bytes]:
        """The pose of each pair's second shape in the first, equal for poses that differ by rounding only."""
        a, b = self._bodies.pairs[pairs].T
        T_a, T_b = self._poses[a], self._poses[b]
        relative = T_a[:, :3, :3].transpose(0, 2, 1) @ (T_b - T_a * _TRANSLATION)[:, :3]
        return [pose.tobytes() for pose in np.rint(relative / _SAME_POSE).astype(np.int64)]

    def _known_free(self, pair: int, relative: bytes, clearance: float) -> bool:
        known = self._bodies.found_free.get(pair)
        return known is not None and known[0] == relative and known[1] >= clearance

    def contacts(self, clearance: float) -> tuple[Contact, ...]:
        """All pairs of bodies that are nearer than ``clearance`` (m) and their padding, the deepest first."""
        depths: dict[tuple[str, str], float] = {}
        for pair in self._touching(clearance):
            # What counts as touching may be IN_DOUBT apart.
            depth = max(clearance - self.distance_of(pair), TOUCHING)
            key = self.bodies_in(pair)
            depths[key] = max(depth, depths.get(key, 0.0))
        return tuple(
            Contact(a, b, depth) for (a, b), depth in sorted(depths.items(), key=lambda item: -item[1])
        )

    def clearance(self) -> Clearance:
        """The nearest pair."""
        best = Clearance(np.inf)
        gaps = self.gaps()
        for pair in np.argsort(gaps, kind="stable").tolist():
            if gaps[pair] >= best.distance:
                break
            found = self._separation(pair)
            value = found.distance - float(self._bodies.margin[pair])
            if value < best.distance:
                best = Clearance(value, *self.bodies_in(pair), found.point_a, found.point_b)
        return best

    def distance_of(self, pair: int) -> float:
        """Exact distance of a pair of shapes, padding subtracted, m; negative in penetration."""
        return self._separation(pair).distance - float(self._bodies.margin[pair])

    def bodies_in(self, pair: int) -> tuple[str, str]:
        """Names of the two bodies of a pair."""
        a, b = self._bodies.body[self._bodies.pairs[pair]].tolist()
        return self._bodies.names[a], self._bodies.names[b]

    def _separation(self, pair: int) -> Separation:
        a, b = self._bodies.pairs[pair].tolist()
        return distance(self._bodies.shapes[a], self.pose(a), self._bodies.shapes[b], self.pose(b))
