"""A robot in a scene as arrays, for the compiled loops that find out which pairs of shapes may touch at all."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision.bodies import WORLD, Bodies, bodies_of
from kinopt_ros.collision.hulls import Hulls, hulls_of
from kinopt_ros.collision.kernels.crowd import nearby_pairs
from kinopt_ros.collision.kernels.hull_gap import (
    CENTER,
    CLUSTER,
    COLUMNS,
    FIRST,
    KIND,
    LAST,
    RADIUS,
    REACH,
    SIZE,
)
from kinopt_ros.collision.kernels.near import BALLS, BOXES, GROUND, HULLS
from kinopt_ros.collision.link_poses import Tree, tree_above
from kinopt_ros.collision.nearby import sphere_tree
from kinopt_ros.collision.obstacles import Obstacles, pack
from kinopt_ros.geometry.shapes import PlacedShape, Plane
from kinopt_ros.robot.memo import remembered_with
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene

NO_CHANGE = np.empty(0)
"""Stands for variables that keep their values."""


class Shapes(NamedTuple):
    """S shapes. The arrays are not read-only: numba would compile twice."""

    T_link_box: Annotated[Float64, "S 4 4"]
    """Pose of a box that contains the shape, by the box's centre; pose of the shape itself if that is endless."""
    half: Annotated[Float64, "S 3"]
    """Half edges of the box, infinite for endless shapes."""
    reach: Annotated[Float64, "S"]
    """Radius of the sphere around the box."""
    numbers: Annotated[Int64, "S 6"]
    """Columns: the link that carries the shape (index into the tree's links, or WORLD); its first piece and the one
    after its last; its first ball and the one after its last (both indices are equal where there are none); the piece
    that contains all of it."""
    balls: Annotated[Float64, "M 4"]
    """Centres, in the frame of the shape's box, and radii of balls that contain the shape."""
    pieces: Annotated[Float64, "N COLUMNS"]
    """Convex pieces of all shapes, in the frames of their boxes; columns as in ``hull_gap.py``."""
    points: Annotated[Float64, "K 3"]
    """Points whose convex hulls the pieces are."""
    clusters: Annotated[Float64, "C 4"]
    """Spheres around WIDTH points each, of pieces with more than FEW, in the frames of their boxes."""


class Pairs(NamedTuple):
    """P pairs of shapes."""

    numbers: Annotated[Int64, "P 5"]
    """The two shapes (for GROUND and BALLS the one that does not move comes second); how they are bounded; the
    tree's link at which the ways from both to the root meet, the number of links for the world; for BALLS which of
    the obstacles the second one is."""
    margin: Annotated[Float64, "P"]
    """Padding, m."""


class PackedArrays(NamedTuple):
    """A robot in a scene, as the functions of ``kernels/`` take it."""

    tree: Tree
    shapes: Shapes
    pairs: Pairs
    obstacles: Annotated[Float64, "n NUMBERS"]
    integers: Annotated[Int64, "n INTEGERS"]


@dataclass(frozen=True, eq=False)
class Crowd:
    """Many shapes that stand, N, and m that are compared with some of them."""

    table: Annotated[Int64, "m N+3"]
    """The pair of each two, or -1; then, in each row, the number of the shape that moves; the address of the tree; the
    first of these pairs, before which all others are."""
    tree: Float64
    """Tree of the spheres around those that stand, paddings added."""


@dataclass(frozen=True, eq=False)
class PackedBodies:
    """Everything about a robot in a scene that does not depend on joint values."""

    bodies: Bodies
    arrays: PackedArrays
    obstacles: Obstacles
    """Obstacles that ``arrays`` has the numbers of."""
    crowd: Crowd | None
    """None where so few shapes stand that they are looked at one after the other."""
    every_pair: Annotated[Int64, "P"]

    @property
    def tree(self) -> Tree:
        """Links that carry shapes, and all above them."""
        return self.arrays.tree

    @property
    def shapes(self) -> Shapes:
        """All shapes."""
        return self.arrays.shapes

    @property
    def pairs(self) -> Pairs:
        """Pairs of shapes that must not touch."""
        return self.arrays.pairs

    def nearby(
        self, q: Annotated[Float64, "nq"], enough: float, change: Annotated[Float64, "nq"] = NO_CHANGE
    ) -> Annotated[Int64, "n"]:
        """Return the pairs that spheres around their shapes do not tell to be ``enough`` (m) apart, paddings added, and
        some others, in their order; all of them among few shapes.

        Args:
            q: configuration of the whole robot, finite.
            enough: distance, m.
            change: how much the variables may differ from q.
        """
        if self.crowd is None:
            return self.every_pair
        listed = np.empty(len(self.every_pair), dtype=np.int64)
        q = np.array(q)  # to numba an array that is read-only is of another type, compiled for anew
        return listed[: nearby_pairs(q, change, self.arrays, self.crowd.table, enough, listed)]

    def names(self, pair: int) -> tuple[str, str]:
        """Return the names of the two bodies of a pair."""
        a, b = self.bodies.body[self.bodies.pairs[pair]].tolist()
        return self.bodies.names[a], self.bodies.names[b]


@remembered_with
def packed_bodies_of(robot: RobotModel, scene: Scene) -> PackedBodies:
    """Return the packed bodies of a robot in a scene; they are made once for each. Errors as in ``bodies_of``."""
    return _packed(robot, bodies_of(robot, scene))


def _packed(robot: RobotModel, bodies: Bodies) -> PackedBodies:
    tree, wanted = tree_above(robot, bodies.links)
    assert WORLD == -1
    carrier = np.append(wanted, WORLD)[bodies.link]
    hulls = [hulls_of(shape) for shape in bodies.shapes]
    own = [pieces for pieces in hulls if pieces is not None]
    rows = np.array([0 if pieces is None else len(pieces.kind) for pieces in hulls], dtype=np.int64)
    counts = np.array([0 if pieces is None else pieces.count for pieces in hulls], dtype=np.int64)
    first = np.cumsum(rows) - rows
    balls = np.array([0 if pieces is None else len(pieces.balls) for pieces in hulls], dtype=np.int64)
    last_ball = np.cumsum(balls)
    T_link_box, half = bodies.boxes
    half = np.where(bodies.without_end[:, None], np.inf, half)
    # Obstacles stand in the root's frame already.
    standing = [
        k for k, pieces in enumerate(hulls) if pieces is None and carrier[k] == WORLD and not _flat(bodies, k)
    ]
    shapes, how, obstacle = _bounds(
        bodies, np.array([pieces is not None for pieces in hulls], dtype=np.bool_), standing
    )
    obstacles = pack([PlacedShape(bodies.shapes[k], bodies.T_link_shape[k].copy()) for k in standing])
    reach = np.sqrt((half**2).sum(axis=1)) * (1.0 + 1e-12)
    crowd = _crowd(shapes, bodies.margin, T_link_box[:, :3, 3], reach, carrier == WORLD)
    arrays = PackedArrays(
        tree=tree,
        shapes=Shapes(
            T_link_box=np.array(T_link_box, order="C"),
            half=half,
            reach=reach,
            numbers=np.column_stack(
                [carrier, first, first + counts, last_ball - balls, last_ball, first + rows - 1]
            ),
            balls=np.concatenate([np.empty((0, 4)), *(pieces.balls for pieces in own)]),
            pieces=_joined(own),
            points=np.concatenate([np.empty((0, 3)), *(pieces.points for pieces in own)]),
            clusters=np.concatenate([np.empty((0, 4)), *(pieces.clusters for pieces in own)]),
        ),
        pairs=Pairs(
            numbers=np.column_stack([shapes, how, _meeting(tree, carrier, shapes), obstacle]),
            margin=bodies.margin,
        ),
        obstacles=obstacles.numbers,
        integers=obstacles.integers,
    )
    return PackedBodies(bodies, arrays, obstacles, crowd, np.arange(len(shapes)))


def _crowd(
    pairs: Annotated[Int64, "P 2"],
    margin: Annotated[Float64, "P"],
    centres: Annotated[Float64, "S 3"],
    reach: Annotated[Float64, "S"],
    stands: Annotated[Bool, "S"],
) -> Crowd | None:
    """Return the crowd. Of pairs, those with what stands come last, and it second; None if that is not so."""
    stand = np.flatnonzero(stands)
    first = len(pairs) - int(stands[pairs].any(axis=1).sum())
    if stands[pairs[:first]].any() or not (stands[pairs[first:]] == [False, True]).all():
        return None  # an attached shape without end is compared second
    one, other = pairs[first:].T
    padding = np.zeros(len(reach))
    np.maximum.at(padding, other, margin[first:])
    tree = sphere_tree(centres[stand], (reach + padding)[stand]) if len(one) else None
    if tree is None:
        return None
    moving = np.flatnonzero(np.bincount(one, minlength=len(reach)))
    row, column = np.empty(len(reach), dtype=np.int64), np.empty(len(reach), dtype=np.int64)
    row[moving], column[stand] = np.arange(len(moving)), np.arange(len(stand))
    table = np.full((len(moving), len(stand) + 3), -1)
    table[row[one], column[other]] = np.arange(first, len(pairs))
    table[:, -3], table[:, -2], table[:, -1] = moving, tree.ctypes.data, first
    return Crowd(table, tree)


def _bounds(
    bodies: Bodies, has_hulls: Annotated[Bool, "S"], standing: list[int]
) -> tuple[Annotated[Int64, "P 2"], Annotated[Int64, "P"], Annotated[Int64, "P"]]:
    """Return pairs of shapes, how each is bounded, and which of the standing shapes is the obstacle. See ``Pairs``."""
    S = len(bodies.shapes)
    number, flat = np.full(S, -1), np.array([_flat(bodies, k) for k in range(S)], dtype=np.bool_)
    number[standing] = np.arange(len(standing))
    a, b = bodies.pairs.T
    turned = np.where(has_hulls[a][:, None], bodies.pairs, bodies.pairs[:, ::-1])
    one, other = turned.T
    alone = has_hulls[one] & ~has_hulls[other]
    balls = alone & (number[other] >= 0)
    ground = alone & ~balls & flat[other]
    how = np.full(len(a), BOXES, dtype=np.int64)
    how[has_hulls[a] & has_hulls[b]], how[balls], how[ground] = HULLS, BALLS, GROUND
    shapes = np.where((balls | ground)[:, None], turned, bodies.pairs)
    return shapes, how, np.where(balls, number[other], 0)


def _flat(bodies: Bodies, shape: int) -> bool:
    return isinstance(bodies.shapes[shape], Plane)


def _joined(own: list[Hulls]) -> Annotated[Float64, "N COLUMNS"]:
    counts = [len(pieces.kind) for pieces in own]
    rows = np.empty((sum(counts), COLUMNS))
    if not own:
        return rows
    points = np.array([len(pieces.points) for pieces in own])
    before = np.repeat(np.cumsum(points) - points, counts)
    rows[:, KIND] = np.concatenate([pieces.kind for pieces in own])
    rows[:, RADIUS] = np.concatenate([pieces.radius for pieces in own])
    rows[:, REACH] = np.concatenate([pieces.reach for pieces in own])
    rows[:, FIRST] = np.concatenate([pieces.first for pieces in own]) + before
    rows[:, LAST] = np.concatenate([pieces.last for pieces in own]) + before
    clusters = np.array([len(pieces.clusters) for pieces in own])
    before = np.repeat(np.cumsum(clusters) - clusters, counts)
    rows[:, CLUSTER] = np.concatenate([pieces.cluster for pieces in own]) + before
    rows[:, SIZE : SIZE + 3] = np.concatenate([pieces.size for pieces in own])
    rows[:, CENTER : CENTER + 3] = np.concatenate([pieces.center for pieces in own])
    return rows


def _meeting(tree: Tree, carrier: Int64, pairs: Annotated[Int64, "P 2"]) -> Annotated[Int64, "P"]:
    """Return the link at which the ways from the two shapes of each pair to the root meet; there may be 100,000."""
    world = len(tree.parent)
    table = np.full((world + 1, world + 1), world)
    for link, parent in enumerate(tree.parent.tolist()):  # parents come first
        table[link, :link] = table[:link, link] = table[parent, :link]  # -1, as WORLD, is the last row
        table[link, link] = link
    a, b = carrier[pairs].T
    found: Int64 = table[a, b]
    return found
