"""The scene: obstacles, objects that the robot carries, what may touch what, and padding. Immutable.

``changes.py`` makes new scenes out of old ones. What can be checked without a robot is checked here, as scenes may be
made by hand; the rest by ``checks.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from kinopt_ros.array import Float64, Immutable, frozen, taken_over
from kinopt_ros.errors import InvalidRequestError, InvalidShapeError, quoted, shown
from kinopt_ros.geometry.shapes import HeightMap, Mesh, Octomap, PlacedShape, PointCloud
from kinopt_ros.scene.parts import (
    ANY,
    check_name,
    check_padding,
    check_shapes,
    check_subframes,
    check_transform,
)


@dataclass(frozen=True, eq=False)
class SceneObject(Immutable):
    """An obstacle, at rest in the frame of the robot's root link."""

    id: str
    shapes: tuple[PlacedShape, ...]
    T_root_object: Annotated[Float64, "4 4"]
    subframes: Mapping[str, Annotated[Float64, "4 4"]] = field(default_factory=dict)
    """Frames on the object by name, as poses in its own frame."""

    def __post_init__(self) -> None:
        _check(self, self.T_root_object)
        taken_over(self, "T_root_object")
        _freeze(self)


@dataclass(frozen=True, eq=False)
class AttachedObject(Immutable):
    """An object that a link carries. It counts as part of the robot."""

    id: str
    shapes: tuple[PlacedShape, ...]
    link: str
    T_link_object: Annotated[Float64, "4 4"]
    touch_links: frozenset[str]
    """Links that it may touch; ``link`` is one of them."""
    subframes: Mapping[str, Annotated[Float64, "4 4"]] = field(default_factory=dict)
    """As those of a SceneObject."""

    def __post_init__(self) -> None:
        _check(self, self.T_link_object)
        if not isinstance(self.touch_links, frozenset):  # of a text, any part would count
            raise InvalidShapeError(
                f"touch_links of object {quoted(self.id)} is {shown(self.touch_links)}; allowed is a frozenset of names"
            )
        taken_over(self, "T_link_object")
        _freeze(self)


@dataclass(frozen=True, eq=False)
class Scene(Immutable):
    """Obstacles, attached objects, allowed pairs and padding. Ids are unique among objects and attached ones, and none
    is the name of a link."""

    version: int = 1
    """Number that grows with every change; 1 is the scene that a node starts with."""
    objects: Mapping[str, SceneObject] = field(default_factory=dict)
    attached: Mapping[str, AttachedObject] = field(default_factory=dict)
    allowed: frozenset[frozenset[str]] = frozenset()
    """Pairs of links or ids that may touch, besides those that SRDF disables; one of a pair may be ``"*"``."""
    padding: Mapping[str, float] = field(default_factory=dict)
    """Length by which a link or an object is enlarged where the robot is checked against the world, m.

    As in MoveIt, the robot's links are not padded against each other."""
    default_padding: float = 0.0
    """Padding of every link that ``padding`` does not name, m."""

    def __post_init__(self) -> None:
        _check_bodies("objects", self.objects, SceneObject)
        _check_bodies("attached", self.attached, AttachedObject)
        for id in self.attached:
            if id in self.objects:
                raise InvalidRequestError(f"object {quoted(id)} is both in the world and attached to a link")
        if not isinstance(self.allowed, frozenset) or not all(
            type(pair) is frozenset for pair in self.allowed
        ):
            raise InvalidRequestError(
                f"allowed is {shown(self.allowed)}; allowed is a frozenset of frozensets of two names"
            )
        if not isinstance(self.padding, Mapping):
            raise InvalidRequestError(f"padding is {shown(self.padding)}; allowed are lengths by name")
        for name, length in self.padding.items():
            check_padding(length, f"the padding of {quoted(name)}")
        check_padding(self.default_padding, "the default padding")

    def padding_of(self, name: str) -> float:
        """Return the padding (m) of a link or an object.

        It is its own one; else the default for links, that of its link for an attached object, 0 for an object of the
        world.
        """
        if name in self.padding:
            return self.padding[name]
        if name in self.attached:
            return self.padding.get(self.attached[name].link, self.default_padding)
        return 0.0 if name in self.objects else self.default_padding

    def may_touch(self, first: str, second: str) -> bool:
        """Check whether two links or objects may touch: by an allowed pair, or as an attached object and its touch
        link."""
        allowed, attached = self.allowed, self.attached  # asked for every pair of bodies, thousands of them
        if allowed and (
            frozenset((first, second)) in allowed
            or frozenset((first, ANY)) in allowed
            or frozenset((second, ANY)) in allowed
        ):
            return True
        return (first in attached and second in attached[first].touch_links) or (
            second in attached and first in attached[second].touch_links
        )


def _check(body: SceneObject | AttachedObject, pose: Annotated[Float64, "4 4"]) -> None:
    """Raise InvalidShapeError unless an object has a name, shapes, and poses that are some."""
    check_name(body.id)
    check_shapes(body.id, body.shapes)
    check_subframes(body.id, body.subframes)
    check_transform(pose, f"the pose of object {quoted(body.id)}")


def _check_bodies(what: str, given: object, kind: type[SceneObject | AttachedObject]) -> None:
    """Raise InvalidRequestError unless these are objects of a kind by their ids."""
    if not isinstance(given, Mapping):
        raise InvalidRequestError(
            f"{what} is {shown(given)}; allowed are objects of type {kind.__name__} by their ids"
        )
    for id, body in given.items():
        if not isinstance(body, kind) or body.id != id:
            raise InvalidRequestError(
                f"{what} has {shown(body)} as {quoted(id)}; allowed are objects of type {kind.__name__} by their ids"
            )


EMPTY_SCENE = Scene()


def _freeze(body: SceneObject | AttachedObject) -> None:
    """Keep subframes as they were checked."""
    own = {name: T if T.base is None else T.copy() for name, T in body.subframes.items()}
    for T in own.values():
        frozen(T)
    object.__setattr__(body, "subframes", own)


def num_points(shapes: tuple[PlacedShape, ...]) -> int:
    """Count vertices, triangles, points, voxels and heights in some shapes."""
    total = 0
    for placed in shapes:
        match placed.shape:
            case Mesh(vertices=vertices, triangles=triangles):
                total += len(vertices) + len(triangles)
            case HeightMap(heights=heights):
                total += heights.size
            case PointCloud(points=points) | Octomap(centers=points):
                total += len(points)
    return total
