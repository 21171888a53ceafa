"""Contacts and clearance of bodies in a configuration: compiled lower bounds first, then the judge."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision.bodies import WORLD
from kinopt_ros.collision.judge import IN_DOUBT, TOUCHING, Separation, distance, in_collision
from kinopt_ros.collision.kernels.near import group_gaps, near_pairs, relative_poses
from kinopt_ros.collision.kernels.tree import tree_poses
from kinopt_ros.collision.packed_bodies import PackedBodies
from kinopt_ros.pauses import Pause, go_on

_NEAR = 0.1
"""Distance within which the nearest pair is looked for first, m."""


@dataclass(frozen=True)
class Contact:
    """Two bodies (links or objects) that are nearer to each other than they may be."""

    a: str
    b: str
    depth: float
    """How much the bodies are too near, m: penetration, plus padding and wanted clearance."""
    point_a: Annotated[Float64, "3"] = field(default_factory=lambda: np.full(3, np.nan), compare=False)
    """The two ends of the depth, or the nearest points, in the root link's frame."""
    point_b: Annotated[Float64, "3"] = field(default_factory=lambda: np.full(3, np.nan), compare=False)


@dataclass(frozen=True, eq=False)
class Clearance:
    """The two bodies that are nearest to each other, paddings counted in."""

    distance: float
    """Distance of the two bodies, m; negative in collision; infinite if there is nothing to compare."""
    a: str = ""
    b: str = ""
    point_a: Annotated[Float64, "3"] | None = None
    """Nearest points of the two bodies in the root link's frame."""
    point_b: Annotated[Float64, "3"] | None = None


def group_distances(
    packed: PackedBodies,
    q: Annotated[Float64, "N nq"],
    pairs: Annotated[Int64, "n"],
    group: Annotated[Int64, "n"],
    asked: Annotated[Bool, "N G"],
    enough: float,
) -> Annotated[Float64, "N G"]:
    """Lower bounds (m) of the least distances of groups of pairs in some configurations, paddings subtracted; of those
    that are not asked for, and at most, ``enough``. Where shapes overlap they say little.

    Args:
        packed: what is compared.
        q: configurations of the whole robot, finite.
        pairs: of ``packed``.
        group: which of the G groups each of them belongs to.
        asked: which groups are of interest where.
        enough: distance, m.
    """
    gaps = np.full(asked.shape, enough)
    group_gaps(np.array(q, order="C"), packed.arrays, pairs, group, asked, enough, gaps)
    return gaps


class Placement:
    """Bodies at the poses of one configuration."""

    def __init__(self, packed: PackedBodies, q: Annotated[Float64, "nq"], pause: Pause = go_on) -> None:
        """
        Args:
            packed: what is compared.
            q: configuration of the whole robot, finite.
            pause: called before each pair of shapes that the judge looks at.
        """
        self._packed, self._pause = packed, pause
        self._bodies = packed.bodies
        self._q = q if q.flags.c_contiguous and q.flags.writeable else q.copy()
        self._poses: Float64 | None = None

    def near(
        self, enough: float, least: float = -np.inf, pairs: Annotated[Int64, "n"] | None = None
    ) -> tuple[Annotated[Int64, "m"], Annotated[Float64, "m"]]:
        """Return the pairs that are not known to be at least ``enough`` (m) apart, and lower bounds of their distances.

        Looks at ``pairs``, by default at all. Paddings are subtracted from the bounds, and the least comes first.
        Bounds below ``least`` may be far too low.
        """
        packed = self._packed
        chosen = packed.nearby(self._q, enough) if pairs is None else pairs
        poses = np.empty((len(packed.tree.parent), 4, 4))
        found, bounds = np.empty(len(chosen), dtype=np.int64), np.empty(len(chosen))
        count = near_pairs(self._q, packed.arrays, chosen, least, enough, poses, found, bounds)
        self._poses = poses
        found, bounds = found[:count], bounds[:count]
        if count > 1:
            order = bounds.argsort(kind="stable")
            found, bounds = found[order], bounds[order]
        return found, bounds

    def pose(self, shape: int) -> Annotated[Float64, "4 4"]:
        """Return the pose of a shape in the root link's frame."""
        if self._poses is None:
            self._poses = np.empty((len(self._packed.tree.parent), 4, 4))
            tree_poses(self._q[None], self._packed.tree, self._poses[None])
        link = int(self._packed.shapes.numbers[shape, 0])
        T: Float64 = self._bodies.T_link_shape[shape]
        return T if link == WORLD else self._poses[link] @ T

    def touches(self, clearance: float) -> bool:
        """Check whether any pair is nearer than ``clearance`` (m) and its padding; ends with the first one."""
        return next(self._touching(clearance), None) is not None

    def _touching(self, clearance: float) -> Iterator[int]:
        """Yield pairs that are nearer than ``clearance`` (m) and their padding, the least bound first."""
        bodies = self._bodies
        # What is farther apart than this does not touch, says coal, too.
        enough = clearance + IN_DOUBT
        rounded = np.empty(12, dtype=np.int64)
        for pair in self.near(enough, enough)[0].tolist():
            a, b = bodies.pairs[pair].tolist()
            T_a, T_b = self.pose(a), self.pose(b)
            relative_poses(T_a, T_b, rounded)
            relative = rounded.tobytes()
            known = bodies.found_free.get(pair)
            if known is not None and known[0] == relative and known[1] >= clearance:
                continue
            self._pause()
            if in_collision(bodies.shapes[a], T_a, bodies.shapes[b], T_b, clearance + bodies.margin[pair]):
                yield pair
            else:
                bodies.found_free[pair] = relative, clearance

    def pair_touches(self, pair: int, clearance: float) -> bool:
        """Check whether the shapes of a pair are nearer than ``clearance`` (m) and their padding."""
        bodies = self._bodies
        a, b = bodies.pairs[pair].tolist()
        wanted = clearance + float(bodies.margin[pair])
        return in_collision(bodies.shapes[a], self.pose(a), bodies.shapes[b], self.pose(b), wanted)

    def touching(self, clearance: float) -> set[tuple[str, str]]:
        """Return the bodies that ``contacts`` names, without how deep they are in each other, which takes as long again
        or, of meshes, a hundred times."""
        return {self.bodies_in(pair) for pair in self._touching(clearance)}

    def contacts(self, clearance: float) -> tuple[Contact, ...]:
        """Return all pairs of bodies that are nearer than ``clearance`` (m) and their padding, the deepest first."""
        deepest: dict[tuple[str, str], Contact] = {}
        for pair in self._touching(clearance):
            found, margin = self._separation(pair), float(self._bodies.margin[pair])
            # What counts as touching may be IN_DOUBT apart.
            depth = max(clearance - (found.distance - margin), TOUCHING)
            key = self.bodies_in(pair)
            if key not in deepest or depth > deepest[key].depth:
                deepest[key] = Contact(*key, depth, found.point_a, found.point_b)
        return tuple(sorted(deepest.values(), key=lambda contact: -contact.depth))

    def clearance(self) -> Clearance:
        """Return the nearest pair."""
        best = Clearance(np.inf)
        for enough in (_NEAR, np.inf):
            for pair, gap in zip(*self.near(enough), strict=True):
                if gap >= max(best.distance, 0.0):  # bounds say little of how deep shapes overlap
                    break
                found = self._separation(pair)
                value = found.distance - float(self._bodies.margin[pair])
                if value < best.distance:
                    best = Clearance(value, *self.bodies_in(pair), found.point_a, found.point_b)
            if best.distance <= enough:
                break
        return best

    def distance_of(self, pair: int) -> float:
        """Compute the exact distance of a pair of shapes, padding subtracted, m; negative in penetration."""
        return self._separation(pair).distance - float(self._bodies.margin[pair])

    def bodies_in(self, pair: int) -> tuple[str, str]:
        """Return the names of the two bodies of a pair."""
        return self._packed.names(pair)

    def _separation(self, pair: int) -> Separation:
        a, b = self._bodies.pairs[pair].tolist()
        return distance(self._bodies.shapes[a], self.pose(a), self._bodies.shapes[b], self.pose(b))
