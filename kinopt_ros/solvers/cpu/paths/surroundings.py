"""What a path is kept away from: a robot's spheres on the nodes of a ``MovingTree``, obstacles, pairs of bodies."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision.bodies import self_pairs
from kinopt_ros.collision.box_cover import covering_spheres
from kinopt_ros.collision.obstacles import Obstacles, pack
from kinopt_ros.collision.pairs import checked_pairs
from kinopt_ros.collision.spheres import robot_spheres
from kinopt_ros.geometry.shapes import PlacedShape
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.cpu.paths.moving_tree import MovingTree

NOWHERE = -1
"""Row of ``skipped`` for spheres that no obstacle counts for."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """S spheres, of which those of a body follow one another; N obstacles; P pairs of bodies."""

    node: Annotated[Int64, "S"]
    centers: Annotated[Float64, "S 3"]
    """In the frame of the node, m."""
    radii: Annotated[Float64, "S"]
    padded: Annotated[Float64, "S"]
    """Radii for distances from obstacles: paddings added."""
    mask: Annotated[Int64, "S"]
    """Row of ``skipped``, or NOWHERE."""
    skipped: Annotated[Bool, "K N"]
    obstacles: Obstacles
    body_node: Annotated[Int64, "B"]
    body_first: Annotated[Int64, "B+1"]
    """First sphere of every body."""
    body_ball: Annotated[Float64, "B 4"]
    """Centre, in the frame of the node, and radius of a ball that contains the body's spheres."""
    pairs: Annotated[Int64, "P 2"]
    """Bodies that must not touch, at least one of which moves against the other."""

    @property
    def arrays(self) -> tuple[Float64 | Int64 | Bool, ...]:
        """As the kernels take them."""
        return (
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
            self.pairs,
        )


def surroundings(robot: RobotModel, tree: MovingTree, scene: Scene | None) -> Surroundings:
    """Of a robot in a scene; without a scene nothing is in the way, not even the robot itself."""
    sets: list[tuple[str, int, Float64, Float64]] = []  # body, node, centres, radii
    if scene is not None:
        spheres = robot_spheres(robot)
        for link in dict.fromkeys(spheres.link.tolist()):
            own = spheres.of(link)
            sets.append((robot.link_names[link], *_placed(tree, link, own.centers), own.radii))
        for carried in scene.attached.values():
            covers = [
                covering_spheres(PlacedShape(item.shape, carried.T_link_object @ item.T_frame_shape))
                for item in carried.shapes
            ]
            if covers:
                centers = np.concatenate([cover.centers for cover in covers])
                link = robot.link_index[carried.link]
                radii = np.concatenate([cover.radii for cover in covers])
                sets.append((carried.id, *_placed(tree, link, centers), radii))
    names = [body[0] for body in sets]
    counts = [len(body[3]) for body in sets]
    mask, padding, skipped, obstacles = _world(scene, tuple((body[0], body[1]) for body in sets))
    return Surroundings(
        node=np.repeat(np.array([body[1] for body in sets], dtype=np.int64), counts),
        centers=np.concatenate([np.empty((0, 3)), *(body[2] for body in sets)]),
        radii=np.concatenate([np.empty(0), *(body[3] for body in sets)]),
        padded=np.concatenate([np.empty(0), *(body[3] + p for body, p in zip(sets, padding, strict=True))]),
        mask=np.repeat(np.array(mask, dtype=np.int64), counts),
        skipped=skipped,
        obstacles=obstacles,
        body_node=np.array([body[1] for body in sets], dtype=np.int64),
        body_first=np.cumsum([0, *counts]).astype(np.int64),
        body_ball=np.array([_ball(body[2], body[3]) for body in sets]).reshape(-1, 4),
        pairs=_pairs(robot, scene, names, [body[1] for body in sets]),
    )


def _placed(tree: MovingTree, link: int, centers: Float64) -> tuple[int, Float64]:
    T = tree.T_node_link[link]
    return int(tree.node[link]), np.ascontiguousarray(centers @ T[:3, :3].T + T[:3, 3])


def _ball(centers: Float64, radii: Float64) -> Float64:
    middle = (np.min(centers - radii[:, None], axis=0) + np.max(centers + radii[:, None], axis=0)) / 2.0
    reach = float((np.linalg.norm(centers - middle, axis=1) + radii).max())
    return np.array([*middle, reach * (1.0 + 1e-12)])


def _world(
    scene: Scene | None, bodies: tuple[tuple[str, int], ...]
) -> tuple[list[int], list[float], Bool, Obstacles]:
    placed, owner = [], []
    for thing in () if scene is None else scene.objects.values():
        placed += [PlacedShape(s.shape, thing.T_root_object @ s.T_frame_shape) for s in thing.shapes]
        owner += [thing.id] * len(thing.shapes)
    rows: dict[bytes, int] = {}
    skips: list[Bool] = []
    mask, padding = [], []
    if scene is not None:
        # Obstacles have no padding of their own here: all get the largest, which is on the safe side.
        most = max((scene.padding_of(name) for name in scene.objects), default=0.0)
        for name, node in bodies:
            skipped = np.array([scene.may_touch(name, other) for other in owner], dtype=np.bool_)
            padding.append(scene.padding_of(name) + most)
            if node == 0 or skipped.all():
                mask.append(NOWHERE)
                continue
            if skipped.tobytes() not in rows:
                rows[skipped.tobytes()] = len(skips)
                skips.append(skipped)
            mask.append(rows[skipped.tobytes()])
    return mask, padding, np.array(skips, dtype=np.bool_).reshape(len(skips), len(placed)), pack(placed)


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
