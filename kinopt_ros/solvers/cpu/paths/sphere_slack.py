"""How far spheres stick out of the shapes where a path is tight.

The optimizer keeps spheres away from obstacles, and spheres contain more than the shapes. Where a path is nearer to
something than is wanted, the distance of the shapes themselves is computed. The spheres stick out by D - d: D is the
distance of a body and an obstacle, or of two bodies, and d is the least distance of their spheres. That changes little
nearby. So there the distance that is wanted of the spheres is lowered by D - d, and the optimizer goes on with their
gradients.
"""

from dataclasses import dataclass
from typing import Annotated
from weakref import WeakKeyDictionary

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.collision.contacts import group_distances
from kinopt_ros.collision.packed_bodies import PackedBodies, packed_bodies_of
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths.compiling import workspace
from kinopt_ros.solvers.cpu.paths.kernels import nearness_cost
from kinopt_ros.solvers.cpu.paths.model import PathModel

PAIR_RAMP = 0.02
"""Growth, per rad from an anchor, of the distance that a pair needs that is nearer than wanted at the anchor, m per
rad."""


@dataclass(frozen=True, eq=False)
class SphereSlack:
    """Corrections of sphere distances along a path of T points."""

    world: Annotated[Float64, "T S"]
    """How far each sphere sticks out towards the obstacle that is nearest to it, m."""
    pairs: Annotated[Float64, "T P"]
    """How far the spheres of pairs of bodies stick out towards each other, m; NaN where it is not known."""
    pair_gaps: Annotated[Float64, "T P"]
    """Distances that are enough for pairs, as they have no more at an anchor, m; infinite without such an anchor."""
    slack: float
    """Least distance of the shapes at the points, less what is enough, m; may be far too low where they overlap."""

    @property
    def arrays(self) -> tuple[Float64, Float64, Float64]:
        """Arrays in the form that the kernel takes."""
        return self.world, self.pairs, self.pair_gaps


def no_slack(T: int, model: PathModel) -> tuple[Float64, Float64, Float64]:
    """Return arrays for the kernel with no corrections: distances of spheres count as they are."""
    P = len(model.around.pairs)
    return np.zeros((T, len(model.around.radii))), np.full((T, P), np.nan), np.full((T, P), np.inf)


def sphere_slack(
    robot: RobotModel,
    problem: TrajectoryProblem,
    model: PathModel,
    path: Annotated[Float64, "T n"],
    anchors: list[int],
    wanted: float,
    accepted: float,
) -> SphereSlack:
    """Compute how far spheres stick out that are nearer to something than ``wanted`` (m) at points of a path.

    Args:
        robot: the robot.
        problem: what is asked, with a scene.
        model: model of the robot in that scene.
        path: points of the path.
        anchors: indices of points that are given: the distance that shapes have there is enough near them.
        wanted: distance that is aimed at, m.
        accepted: distance that is enough, m.
    """
    around = model.around
    T, n, S, P, M = len(path), path.shape[1], len(around.radii), len(around.pairs), len(model.tree.parent)
    gaps, obstacle, pair_gaps = np.empty((T, S)), np.empty((T, S), dtype=np.int64), np.empty((T, P))
    memory = workspace(1, n, M, S, len(around.body_node))
    nearness_cost.sphere_distances(
        model.tree.arrays, around.arrays, path, wanted, memory, gaps, obstacle, pair_gaps
    )
    assert problem.scene is not None
    packed = packed_bodies_of(robot, problem.scene)
    places = _places(packed, model)
    at, sphere = np.nonzero(obstacle >= 0)
    also, close = np.nonzero(np.isfinite(pair_gaps))
    groups, group = np.unique(
        np.concatenate([places.of_world(sphere, obstacle[at, sphere]), places.first_pair + close]),
        return_inverse=True,
    )
    of_spheres, of_pairs = group[: len(at)], group[len(at) :]
    asked = np.zeros((T, len(groups)), dtype=np.bool_)
    asked[at, of_spheres] = asked[also, of_pairs] = True
    least = np.full(asked.shape, np.inf)
    np.minimum.at(least, (at, of_spheres), gaps[at, sphere])
    least[also, of_pairs] = pair_gaps[also, close]
    distance = np.full(asked.shape, wanted)
    tight = np.flatnonzero(asked.any(axis=1))
    some, number = places.shapes_of(groups)
    distance[tight] = group_distances(packed, problem.whole(path[tight]), some, number, asked[tight], wanted)
    more = _filled(_more(distance, least), least)
    allowed = _near_anchors(path, anchors, np.where(distance < wanted, distance, np.inf))
    world, pairs, pair_allowed = no_slack(T, model)
    known = ~np.isnan(more)
    world[at, sphere] = np.where(known, more, 0.0)[at, of_spheres]
    pairs[also, close] = more[also, of_pairs]
    pair_allowed[also, close] = allowed[also, of_pairs]
    slack = float((distance - np.minimum(allowed, accepted)).min(initial=wanted))
    return SphereSlack(world, pairs, pair_allowed, slack)


def _near_anchors(
    path: Annotated[Float64, "T n"], anchors: list[int], distance: Annotated[Float64, "T K"]
) -> Annotated[Float64, "T K"]:
    """Return distances that are enough along a path: those at the anchors, and more the farther away from them."""
    found = np.full(distance.shape, np.inf)
    for anchor in dict.fromkeys(anchors):
        way = np.linalg.norm(path - path[anchor], axis=1)
        np.minimum(found, distance[anchor] + PAIR_RAMP * way[:, None], out=found)
    return found


def _more(true: Annotated[Float64, "T G"], spheres: Annotated[Float64, "T G"]) -> Annotated[Float64, "T G"]:
    """Return by how much distances of shapes exceed those of spheres.

    NaN where shapes overlap, as it is not known by how much, and where spheres are not near.
    """
    known = (true > 0.0) & np.isfinite(spheres)
    return np.where(known, np.maximum(true - np.where(known, spheres, 0.0), 0.0), np.nan)


def _filled(
    values: Annotated[Float64, "T G"], spheres: Annotated[Float64, "T G"]
) -> Annotated[Float64, "T G"]:
    """Fill values where shapes overlap by those before or after on the path, the less of both.

    They are no more than the spheres overlap.
    """
    unknown = np.isfinite(spheres) & np.isnan(values)
    for k in np.flatnonzero(unknown.any(axis=0)).tolist():
        column = values[:, k]
        known = np.flatnonzero(~np.isnan(column))
        if known.size:
            missing = np.flatnonzero(unknown[:, k])
            after = np.searchsorted(known, missing)
            one, two = known[np.maximum(after - 1, 0)], known[np.minimum(after, len(known) - 1)]
            least = np.minimum(column[one], column[two])
            column[missing] = np.minimum(least, np.maximum(-spheres[missing, k], 0.0))
    return values


@dataclass(frozen=True, eq=False)
class _Places:
    """Groups of pairs of shapes: B O of a body and an object, P of two bodies, and one of all others."""

    body: Annotated[Int64, "S"]
    """Body of every sphere."""
    owner: Annotated[Int64, "N"]
    """Object of every obstacle."""
    objects: int
    """Number O of objects."""
    group: Annotated[Int64, "K"]
    """Group of every pair of shapes."""
    first_pair: int
    """Group of the first pair of bodies."""

    def of_world(
        self, sphere: Annotated[Int64, "m"], obstacle: Annotated[Int64, "m"]
    ) -> Annotated[Int64, "m"]:
        """Return groups of spheres and obstacles."""
        return np.asarray(self.body[sphere] * self.objects + self.owner[obstacle])

    def shapes_of(self, groups: Annotated[Int64, "G"]) -> tuple[Annotated[Int64, "m"], Annotated[Int64, "m"]]:
        """Return pairs of shapes of some groups, in ascending order, and which of these groups each belongs to."""
        place = np.searchsorted(groups, self.group)
        place[place == len(groups)] = 0
        own = np.flatnonzero(groups[place] == self.group) if len(groups) else np.zeros(0, dtype=np.int64)
        return own, place[own]


_known: WeakKeyDictionary[PathModel, _Places] = WeakKeyDictionary()


def _places(packed: PackedBodies, model: PathModel) -> _Places:
    known = _known.get(model)
    if known is None:
        known = _known.setdefault(model, _made(packed, model))
    return known


def _made(packed: PackedBodies, model: PathModel) -> _Places:
    around, bodies = model.around, packed.bodies
    B, P = len(around.names), len(around.pairs)
    objects = {name: k for k, name in enumerate(dict.fromkeys(around.owners))}
    count = len(objects)
    others = B * count + P
    index = {name: k for k, name in enumerate(around.names)}
    # Rows: bodies, then objects, then what is neither.
    row_of = [index.get(name, B + objects.get(name, count)) for name in bodies.names]
    rows = np.array(row_of, dtype=np.int64)[bodies.body[bodies.pairs]]
    low, high = rows.min(axis=1), rows.max(axis=1)
    group = np.full(len(rows), others)
    # No table of objects by objects: there may be thousands.
    world = (low < B) & (high >= B) & (high < B + count)
    world[world] = around.body_mask[low[world]] >= 0
    group[world] = low[world] * count + high[world] - B
    own = np.full((B, B), others)
    one, two = around.pairs.T
    own[one, two] = own[two, one] = B * count + np.arange(P)
    both = high < B
    group[both] = own[low[both], high[both]]
    return _Places(
        body=np.repeat(np.arange(B), np.diff(around.body_first)),
        owner=np.array([objects[name] for name in around.owners], dtype=np.int64),
        objects=count,
        group=group,
        first_pair=B * count,
    )
