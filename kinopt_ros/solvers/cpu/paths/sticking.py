"""By how much spheres stick out of the shapes where a path is tight.

The optimizer keeps spheres away from things, and they contain more than the shapes. Where a path is nearer to something
than is wanted, the distance of the shapes themselves says how much more: D of a body and an obstacle, or of two bodies,
less d, the least of their spheres. Nearby it is about the same. So the optimizer goes on with what is wanted less by
D - d, there, and with the gradients of the spheres.
"""

from dataclasses import dataclass
from typing import Annotated
from weakref import WeakKeyDictionary

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.collision.contacts import least_gaps
from kinopt_ros.collision.packed_bodies import PackedBodies, packed_bodies_of
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths import kernel
from kinopt_ros.solvers.cpu.paths.model import PathModel
from kinopt_ros.solvers.cpu.paths.ready import workspace

PAIR_RAMP = 0.02
"""m per rad; what is nearer than wanted at an anchor need not be farther away near it."""


@dataclass(frozen=True, eq=False)
class Sticking:
    """Along a path of T points."""

    world: Annotated[Float64, "T S"]
    """Of spheres, against the obstacle that is nearest to each, m."""
    pairs: Annotated[Float64, "T P"]
    """Of the spheres of pairs of bodies, m; NaN where it is not known."""
    pair_gaps: Annotated[Float64, "T P"]
    """Distances of pairs that will do, as they have no more at an anchor, m; infinite where no anchor says so."""
    slack: float
    """Least distance of the shapes at the points, less what will do, m; may be far too low where they overlap."""

    @property
    def arrays(self) -> tuple[Float64, Float64, Float64]:
        """As the kernel takes it."""
        return self.world, self.pairs, self.pair_gaps


def nothing_sticks_out(T: int, model: PathModel) -> tuple[Float64, Float64, Float64]:
    """For the kernel: spheres are taken at their word."""
    P = len(model.around.pairs)
    return np.zeros((T, len(model.around.radii))), np.full((T, P), np.nan), np.full((T, P), np.inf)


def sticking_out(
    robot: RobotModel,
    problem: TrajectoryProblem,
    model: PathModel,
    path: Annotated[Float64, "T n"],
    anchors: list[int],
    wanted: float,
    accepted: float,
) -> Sticking:
    """Of spheres that are nearer to something than ``wanted`` (m) at points of a path.

    Args:
        robot: the robot.
        problem: what is asked, with a scene.
        model: of both.
        path: the points.
        anchors: indices of points that are given: what shapes have there will do near them.
        wanted: distance, m.
        accepted: distance that will do, m.
    """
    around = model.around
    T, n, S, P, M = len(path), path.shape[1], len(around.radii), len(around.pairs), len(model.tree.parent)
    gaps, obstacle, pair_gaps = np.empty((T, S)), np.empty((T, S), dtype=np.int64), np.empty((T, P))
    memory = workspace(1, n, M, S, len(around.body_node))
    kernel.measure(model.tree.arrays, around.arrays, path, wanted, memory, gaps, obstacle, pair_gaps)
    assert problem.scene is not None
    packed = packed_bodies_of(robot, problem.scene)
    places = _places(packed, model)
    at, sphere = np.nonzero(obstacle >= 0)
    cell = places.body[sphere] * places.objects + places.owner[obstacle[at, sphere]]
    asked = np.zeros((T, places.cells), dtype=np.bool_)
    asked[at, cell] = True
    asked[:, places.first_pair : -1] = np.isfinite(pair_gaps)
    distance = np.full((T, places.cells), wanted)
    tight = np.flatnonzero(asked.any(axis=1))
    distance[tight] = least_gaps(packed, problem.whole(path[tight]), places.of_pair, asked[tight], wanted)
    least = np.full((T, places.cells), np.inf)
    np.minimum.at(least, (at, cell), gaps[at, sphere])
    world = np.full((T, S), np.nan)
    world[at, sphere] = _more(distance[at, cell], least[at, cell])
    pairs = np.where(np.isfinite(pair_gaps), _more(distance[:, places.first_pair : -1], pair_gaps), np.nan)
    allowed = _near_anchors(path, anchors, np.where(distance < wanted, distance, np.inf))
    slack = float((distance - np.minimum(allowed, accepted)).min())
    return Sticking(
        _filled(world, gaps, 0.0),
        _filled(pairs, pair_gaps, np.nan),
        np.array(allowed[:, places.first_pair : -1], order="C"),
        slack,
    )


def _near_anchors(
    path: Annotated[Float64, "T n"], anchors: list[int], distance: Annotated[Float64, "T K"]
) -> Annotated[Float64, "T K"]:
    """What will do along a path: what there is at the anchors, and more the farther away from them."""
    found = np.full(distance.shape, np.inf)
    for anchor in dict.fromkeys(anchors):
        way = np.linalg.norm(path - path[anchor], axis=1)
        np.minimum(found, distance[anchor] + PAIR_RAMP * way[:, None], out=found)
    return found


def _more(true: Float64, spheres: Float64) -> Float64:
    """NaN where shapes overlap: by how much is not known."""
    return np.where(true > 0.0, np.maximum(true - spheres, 0.0), np.nan)


def _filled(
    values: Annotated[Float64, "T K"], spheres: Annotated[Float64, "T K"], otherwise: float
) -> Annotated[Float64, "T K"]:
    """Where shapes overlap: what is known before or after on the path, the less of both, but no more than the spheres
    overlap."""
    near = np.isfinite(spheres)
    for k in np.flatnonzero((near & np.isnan(values)).any(axis=0)).tolist():
        column = values[:, k]
        known = np.flatnonzero(~np.isnan(column))
        if known.size:
            missing = np.flatnonzero(near[:, k] & np.isnan(column))
            after = np.searchsorted(known, missing)
            one, two = known[np.maximum(after - 1, 0)], known[np.minimum(after, len(known) - 1)]
            least = np.minimum(column[one], column[two])
            column[missing] = np.minimum(least, np.maximum(-spheres[missing, k], 0.0))
    return np.where(np.isnan(values), otherwise, values)


@dataclass(frozen=True, eq=False)
class _Places:
    """Which of B bodies and O objects, or of P pairs of bodies, pairs of shapes belong to: one of B O + P + 1 cells, the
    last for those that do not count."""

    body: Annotated[Int64, "S"]
    """Of every sphere."""
    owner: Annotated[Int64, "N"]
    """Object of every obstacle."""
    objects: int
    of_pair: Annotated[Int64, "K"]
    """Cell of every pair of shapes."""
    first_pair: int
    """Cell of the first pair of bodies."""
    cells: int


_known: WeakKeyDictionary[PathModel, _Places] = WeakKeyDictionary()


def _places(packed: PackedBodies, model: PathModel) -> _Places:
    known = _known.get(model)
    if known is None:
        known = _known.setdefault(model, _made(packed, model))
    return known


def _made(packed: PackedBodies, model: PathModel) -> _Places:
    around = model.around
    B, P = len(around.names), len(around.pairs)
    objects = {name: k for k, name in enumerate(dict.fromkeys(around.owners))}
    index = {name: k for k, name in enumerate(around.names)}
    pair = {frozenset(row): k for k, row in enumerate(around.pairs.tolist())}
    cells = B * len(objects) + P + 1
    of_bodies = packed.bodies.body[packed.bodies.pairs]
    cell_of: dict[tuple[int, int], int] = {}
    of_pair = np.empty(len(of_bodies), dtype=np.int64)
    for k, (one, two) in enumerate(of_bodies.tolist()):
        if (one, two) not in cell_of:
            names = packed.bodies.names[one], packed.bodies.names[two]
            cell = cells - 1
            own = [index[name] for name in names if name in index]
            world = [objects[name] for name in names if name in objects and name not in index]
            if len(own) == 2:
                cell = B * len(objects) + pair[frozenset(own)] if frozenset(own) in pair else cell
            elif own and world and around.body_mask[own[0]] >= 0:
                cell = own[0] * len(objects) + world[0]
            cell_of[one, two] = cell
        of_pair[k] = cell_of[one, two]
    return _Places(
        body=np.repeat(np.arange(B), np.diff(around.body_first)),
        owner=np.array([objects[name] for name in around.owners], dtype=np.int64),
        objects=len(objects),
        of_pair=of_pair,
        first_pair=B * len(objects),
        cells=cells,
    )
