"""Surroundings of a path: a robot's spheres on the nodes of a ``MovingTree``, obstacles, pairs of bodies."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision.bodies import self_pairs
from kinopt_ros.collision.box_cover import covering_spheres
from kinopt_ros.collision.obstacles import Obstacles, pack
from kinopt_ros.collision.pairs import checked_pairs
from kinopt_ros.collision.spheres import robot_spheres
from kinopt_ros.geometry.shapes import PlacedShape
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.cpu.paths.moving_tree import MovingTree

NOWHERE = -1
"""Row of ``skipped`` for spheres that no obstacle counts for."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """S spheres, of which those of a body follow one another; N obstacles; P pairs of bodies.

    Bodies that rest come first; of these only those that are in a pair.
    """

    node: Annotated[Int64, "S"]
    centers: Annotated[Float64, "S 3"]
    """Centres of the spheres in the frame of their node, m."""
    radii: Annotated[Float64, "S"]
    padded: Annotated[Float64, "S"]
    """Radii for distances from obstacles, paddings added."""
    mask: Annotated[Int64, "S"]
    """Row of ``skipped`` for each sphere, or NOWHERE."""
    skipped: Annotated[Bool, "K N"]
    obstacles: Obstacles
    body_node: Annotated[Int64, "B"]
    body_first: Annotated[Int64, "B+1"]
    """First sphere of every body."""
    body_ball: Annotated[Float64, "B 4"]
    """Centre, in the frame of the node, and radius of a ball that contains the body's spheres."""
    body_mask: Annotated[Int64, "B"]
    """Mask of every body, as in ``mask``."""
    body_padded: Annotated[Float64, "B"]
    """Radius of the ball, for distances from obstacles."""
    pairs: Annotated[Int64, "P 2"]
    """Bodies that must not touch, at least one of which moves against the other."""
    names: tuple[str, ...]
    """Names of the bodies."""
    owners: tuple[str, ...]
    """Names of the objects that the obstacles belong to."""
    resting: Annotated[Int64, "2"]
    """Numbers of spheres and of bodies that do not move."""
    source: Annotated[Int64, "S"]
    """Index of each sphere among ``robot_spheres``; -1 if it belongs to an attached object."""

    @property
    def arrays(self) -> "Around":
        """Arrays in the form that the kernels take."""
        return Around(
            self.node,
            self.centers,
            self.radii,
            self.padded,
            self.mask,
            self.skipped,
            self.obstacles.numbers,
            self.obstacles.integers,
            self.body_node,
            self.body_first,
            self.body_ball,
            self.body_mask,
            self.body_padded,
            self.pairs,
            self.resting,
        )


class Around(NamedTuple):
    """The arrays of ``Surroundings``, with those of its obstacles."""

    node: Annotated[Int64, "S"]
    centers: Annotated[Float64, "S 3"]
    radii: Annotated[Float64, "S"]
    padded: Annotated[Float64, "S"]
    mask: Annotated[Int64, "S"]
    skipped: Annotated[Bool, "K N"]
    numbers: Annotated[Float64, "N n"]
    integers: Annotated[Int64, "N i"]
    body_node: Annotated[Int64, "B"]
    body_first: Annotated[Int64, "B+1"]
    body_ball: Annotated[Float64, "B 4"]
    body_mask: Annotated[Int64, "B"]
    body_padded: Annotated[Float64, "B"]
    pairs: Annotated[Int64, "P 2"]
    resting: Annotated[Int64, "2"]


def surroundings(robot: RobotModel, tree: MovingTree, scene: Scene | None) -> Surroundings:
    """Build the surroundings of a robot in a scene; without a scene nothing can be hit, not even the robot itself."""
    bodies = [] if scene is None else _bodies(robot, tree, scene)
    names, nodes = [body.name for body in bodies], [body.node for body in bodies]
    pairs = _pairs(robot, scene, names, nodes)
    # What neither moves nor is in the way of what does is left out.
    kept = np.unique(np.concatenate([pairs.reshape(-1), np.flatnonzero(nodes)]))
    kept = kept[np.argsort(np.array(nodes, dtype=np.int64)[kept] != 0, kind="stable")]
    place = np.zeros(len(bodies), dtype=np.int64)
    place[kept] = np.arange(len(kept))
    bodies = [bodies[k] for k in kept]
    counts = [len(body.radii) for body in bodies]
    node = np.array([body.node for body in bodies], dtype=np.int64)
    ball = np.array([body.ball for body in bodies]).reshape(-1, 4)
    mask, padding, skipped, obstacles, owners = _world(scene, bodies)
    still = int((node == 0).sum())
    return Surroundings(
        node=np.repeat(node, counts),
        centers=np.concatenate([np.empty((0, 3)), *(body.centers for body in bodies)]),
        radii=np.concatenate([np.empty(0), *(body.radii for body in bodies)]),
        padded=np.concatenate(
            [np.empty(0), *(body.radii + p for body, p in zip(bodies, padding, strict=True))]
        ),
        mask=np.repeat(mask, counts),
        skipped=skipped,
        obstacles=obstacles,
        body_node=node,
        body_first=np.cumsum([0, *counts]).astype(np.int64),
        body_ball=ball,
        body_mask=mask,
        body_padded=ball[:, 3] + padding,
        pairs=place[pairs],
        names=tuple(body.name for body in bodies),
        owners=owners,
        resting=np.array([sum(counts[:still]), still], dtype=np.int64),
        source=np.concatenate([np.empty(0, dtype=np.int64), *(body.source for body in bodies)]),
    )


@dataclass(frozen=True, eq=False)
class _Body:
    """A link or an attached object."""

    name: str
    node: int
    centers: Annotated[Float64, "k 3"]
    """Centres of the spheres in the frame of the node, m."""
    radii: Annotated[Float64, "k"]
    source: Annotated[Int64, "k"]
    ball: Annotated[Float64, "4"]
    """Ball around them."""


@remembered
def _links(robot: RobotModel, tree: MovingTree) -> tuple[_Body, ...]:
    """Return all links that have spheres; they are the same in all scenes."""
    found = []
    spheres = robot_spheres(robot)
    for link in dict.fromkeys(spheres.link.tolist()):
        own = np.flatnonzero(spheres.link == link)
        node, centers = _placed(tree, link, spheres.centers[own])
        radii = spheres.radii[own]
        found.append(_Body(robot.link_names[link], node, centers, radii, own, _ball(centers, radii)))
    return tuple(found)


def _bodies(robot: RobotModel, tree: MovingTree, scene: Scene) -> list[_Body]:
    """Return all bodies that have spheres."""
    found = list(_links(robot, tree))
    for carried in scene.attached.values():
        covers = [
            covering_spheres(PlacedShape(item.shape, carried.T_link_object @ item.T_frame_shape))
            for item in carried.shapes
        ]
        if covers:
            radii = np.concatenate([cover.radii for cover in covers])
            centers = np.concatenate([cover.centers for cover in covers])
            node, centers = _placed(tree, robot.link_index[carried.link], centers)
            ball = _ball(centers, radii)
            found.append(_Body(carried.id, node, centers, radii, np.full(len(radii), -1), ball))
    return found


def _placed(tree: MovingTree, link: int, centers: Float64) -> tuple[int, Float64]:
    T = tree.T_node_link[link]
    return int(tree.node[link]), np.ascontiguousarray(centers @ T[:3, :3].T + T[:3, 3])


def _ball(centers: Float64, radii: Float64) -> Float64:
    middle = (np.min(centers - radii[:, None], axis=0) + np.max(centers + radii[:, None], axis=0)) / 2.0
    reach = float((np.linalg.norm(centers - middle, axis=1) + radii).max())
    return np.array([*middle, reach * (1.0 + 1e-12)])


def _world(
    scene: Scene | None, bodies: list[_Body]
) -> tuple[Int64, Float64, Bool, Obstacles, tuple[str, ...]]:
    """Return rows of ``skipped`` and paddings of all bodies, ``skipped``, the obstacles and their owners."""
    placed, owner = [], []
    for thing in () if scene is None else scene.objects.values():
        placed += [PlacedShape(s.shape, thing.T_root_object @ s.T_frame_shape) for s in thing.shapes]
        owner += [thing.id] * len(thing.shapes)
    rows: dict[bytes, int] = {}
    skips: list[Bool] = []
    mask = np.full(len(bodies), NOWHERE)
    padding = np.zeros(len(bodies))
    if scene is not None:
        # Obstacles have no padding of their own here: all get the largest, which is on the safe side.
        most = max((scene.padding_of(name) for name in scene.objects), default=0.0)
        for k, body in enumerate(bodies):
            if scene.allowed or scene.attached:
                skipped = np.array([scene.may_touch(body.name, other) for other in owner], dtype=np.bool_)
            else:
                skipped = np.zeros(len(owner), dtype=np.bool_)
            padding[k] = scene.padding_of(body.name) + most
            if body.node == 0 or skipped.all():
                continue
            if skipped.tobytes() not in rows:
                rows[skipped.tobytes()] = len(skips)
                skips.append(skipped)
            mask[k] = rows[skipped.tobytes()]
    rows_of = np.array(skips, dtype=np.bool_).reshape(len(skips), len(placed))
    return mask, padding, rows_of, pack(placed), tuple(owner)


def _pairs(robot: RobotModel, scene: Scene | None, names: list[str], nodes: list[int]) -> Int64:
    if scene is None:
        return np.empty((0, 2), dtype=np.int64)
    index = {name: k for k, name in enumerate(names)}
    never = checked_pairs(robot).never
    found = [
        (index[a], index[b])
        for a, b in self_pairs(robot, scene, names)
        if (a, b) not in never and a in index and b in index and nodes[index[a]] != nodes[index[b]]
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 2)
