"""Bodies of a robot in a scene: shapes with bounds, and the pairs of them that must not touch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision.obstacles import bounding_box
from kinopt_ros.collision.pairs import checked_pairs
from kinopt_ros.geometry.shapes import HeightMap, PlacedShape, Plane, Shape
from kinopt_ros.robot.memo import remembered_with
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene

WORLD = -1
"""Stands for the index of a link where a shape does not move."""


@dataclass(frozen=True, eq=False)
class Bodies:
    """S shapes of bodies (links, attached objects, objects of the world), and P pairs of shapes to compare."""

    names: tuple[str, ...]
    """Names of the bodies: links of the robot or ids of the scene."""
    shapes: tuple[Shape, ...]
    body: Annotated[Int64, "S"]
    """Body of every shape, as an index into ``names``."""
    link: Annotated[Int64, "S"]
    """Link that carries the shape, as an index into ``links``, or WORLD."""
    T_link_shape: Annotated[Float64, "S 4 4"]
    """Pose of every shape in the frame of the link that carries it, or in the root's."""
    links: tuple[str, ...]
    """Links whose poses are needed."""
    pairs: Annotated[Int64, "P 2"]
    """Indices of the two shapes of every pair."""
    margin: Annotated[Float64, "P"]
    """Padding of each pair, m."""
    found_free: dict[int, tuple[bytes, float]] = field(default_factory=dict)
    """Last collision-free result by pair: the pose of one shape in the other, and the clearance found there.

    Most pairs that are near to each other always are, in one relative pose (fingers of a hand that does not move)."""

    @cached_property
    def boxes(self) -> tuple[Annotated[Float64, "S 4 4"], Annotated[Float64, "S 3"]]:
        """Boxes that contain the shapes: poses in the carrying link's frame, and half edges (0 for endless shapes)."""
        around = np.array([bounding_box(shape) for shape in self.shapes]).reshape(-1, 2, 3)
        T, (centers, halves) = self.T_link_shape.copy(), around.swapaxes(0, 1)
        T[:, :3, 3] += (T[:, :3, :3] @ centers[..., None])[..., 0]
        return T, np.where(np.isfinite(halves), halves, 0.0)

    @cached_property
    def without_end(self) -> Annotated[Bool, "S"]:
        """Which shapes are endless, so that no box contains them."""
        return np.array([isinstance(shape, Plane | HeightMap) for shape in self.shapes], dtype=np.bool_)


@remembered_with
def bodies_of(robot: RobotModel, scene: Scene) -> Bodies:
    """Return the bodies of a robot in a scene; they are made once for each.

    Raises:
        MissingPackageError: the robot has no SRDF that says which pairs to check, and coal is not installed.
    """
    names: list[str] = []
    shapes: list[Shape] = []
    body: list[int] = []
    link: list[int] = []
    transforms: list[Float64] = []
    links: dict[str, int] = {}

    def add(name: str, carrier: str | None, T: Float64, placed: tuple[PlacedShape, ...]) -> None:
        number = WORLD if carrier is None else links.setdefault(carrier, len(links))
        for item in placed:
            shapes.append(item.shape)
            body.append(len(names))
            link.append(number)
            transforms.append(T @ item.T_frame_shape)
        names.append(name)

    for name in robot.link_names:
        if name in robot.collision_shapes:
            add(name, name, np.eye(4), robot.collision_shapes[name])
    for carried in scene.attached.values():
        add(carried.id, carried.link, carried.T_link_object, carried.shapes)
    for thing in scene.objects.values():
        add(thing.id, None, thing.T_root_object, thing.shapes)
    pairs, margin = _shape_pairs(_body_pairs(robot, scene, names), np.bincount(body, minlength=len(names)))
    return Bodies(
        names=tuple(names),
        shapes=tuple(shapes),
        body=np.array(body, dtype=np.int64),
        link=np.array(link, dtype=np.int64),
        T_link_shape=np.array(transforms).reshape(-1, 4, 4),
        links=tuple(links),
        pairs=pairs,
        margin=margin,
    )


def self_pairs(robot: RobotModel, scene: Scene, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of the robot's own bodies that must not touch: links with each other, and what it carries with both.

    Of ``names`` those of links are compared with what is carried. Two things on one link never move against each other.
    """
    checked = checked_pairs(robot).checked
    if not (scene.allowed or scene.attached):  # nothing more may touch, and nothing is carried
        return list(checked)
    pairs = [pair for pair in checked if not scene.may_touch(*pair)]
    links = [name for name in names if name in robot.link_index]
    attached = list(scene.attached)
    for number, carried in enumerate(attached):
        own = scene.attached[carried].link
        for other in (*links, *attached[:number]):
            on_one_link = other in scene.attached and scene.attached[other].link == own
            if not (on_one_link or scene.may_touch(carried, other)):
                pairs.append((carried, other))
    return pairs


def _body_pairs(robot: RobotModel, scene: Scene, names: list[str]) -> list[tuple[int, int, float]]:
    """Return indices of bodies that must not touch, and their padding, which as in MoveIt is only for pairs with the
    world."""
    index = {name: k for k, name in enumerate(names)}
    found = [(index[a], index[b], 0.0) for a, b in self_pairs(robot, scene, names)]
    own = [(name, index[name], scene.padding_of(name)) for name in names if name not in scene.objects]
    some_may = bool(scene.allowed or scene.attached)
    for thing in scene.objects:
        other, padding = index[thing], scene.padding_of(thing)
        found += [
            (number, other, least + padding)
            for name, number, least in own
            if not (some_may and scene.may_touch(name, thing))
        ]
    return found


def _shape_pairs(
    bodies: list[tuple[int, int, float]], count: Annotated[Int64, "bodies"]
) -> tuple[Annotated[Int64, "P 2"], Annotated[Float64, "P"]]:
    """Pair every shape of one body with every one of the other; return the pairs and their padding.

    Shapes of a body follow one another. There is no loop, as scenes come many times a second, with thousands of pairs.
    """
    a, b = np.array([pair[:2] for pair in bodies], dtype=np.int64).reshape(-1, 2).T
    first = np.cumsum(count) - count
    total = count[a] * count[b]
    own = np.repeat(np.arange(len(bodies)), total)
    number = np.arange(len(own)) - (np.cumsum(total) - total)[own]
    columns = count[b][own]
    pairs = np.column_stack([first[a][own] + number // columns, first[b][own] + number % columns])
    return pairs, np.array([pair[2] for pair in bodies], dtype=np.float64)[own]
