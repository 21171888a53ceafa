"""Changes of a scene. Each returns a new scene of the next version; what is refused raises and leaves the old one.

Names mean what they mean in MoveIt, with three differences that keep mistakes from passing unnoticed: ``add`` refuses
an id that is taken unless told to replace, unknown names are refused everywhere, and removing an object removes what
was said about it, so that a later one of the same id does not inherit its permissions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, TypeVar

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, InvalidShapeError, UnknownObjectError, quoted
from kinopt_ros.geometry.shapes import HeightMap, PlacedShape, Plane
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.scene.checks import (
    MAX_ALLOWED,
    check_id,
    check_room,
)
from kinopt_ros.scene.parts import ANY, check_shapes
from kinopt_ros.scene.scene import AttachedObject, Scene, SceneObject

T = TypeVar("T")


def add(scene: Scene, robot: RobotModel, new: SceneObject, replacing: bool = False) -> Scene:
    """Return the scene with one more object.

    Args:
        scene: the scene.
        robot: the robot, whose links' names are taken.
        new: the object.
        replacing: whether ``new`` may take the place of an object of the same id, whose allowed pairs and padding it
            then keeps.

    Raises:
        InvalidShapeError: the id is taken or not usable, a pose is no rigid transform, or there is no room.
    """
    check_id(new.id, robot)
    others = {id: other for id, other in scene.objects.items() if id != new.id}
    if new.id in scene.attached:
        raise InvalidShapeError(_carried(scene, new.id))
    if new.id in scene.objects and not replacing:
        raise InvalidShapeError(
            f"object {quoted(new.id)} is in the scene already; say that it is to be replaced, or move it"
        )
    check_room(replace(scene, objects=others), new.shapes)
    return _next(scene, objects={**scene.objects, new.id: new})


def extend(
    scene: Scene,
    id: str,
    shapes: tuple[PlacedShape, ...],
    subframes: Mapping[str, Annotated[Float64, "4 4"]],
) -> Scene:
    """Return the scene in which an object, in the world or attached, has further shapes and subframes in its frame.

    Raises:
        UnknownObjectError: no such object.
        InvalidShapeError: a pose is no rigid transform, or there is no room.
    """
    _require(scene, id)
    if id in scene.objects:
        old: SceneObject | AttachedObject = scene.objects[id]
    else:
        old = scene.attached[id]
        _check_carriable(id, shapes)
    new = replace(old, shapes=(*old.shapes, *shapes), subframes={**old.subframes, **subframes})
    without = replace(scene, objects=_without(scene.objects, id), attached=_without(scene.attached, id))
    check_room(without, new.shapes)
    if isinstance(new, SceneObject):
        return _next(scene, objects={**scene.objects, id: new})
    return _next(scene, attached={**scene.attached, id: new})


def move(scene: Scene, id: str, T_root_object: Annotated[Float64, "4 4"]) -> Scene:
    """Return the scene with an object at another pose.

    Raises:
        UnknownObjectError: no such object.
        InvalidShapeError: no rigid transform, or the robot carries the object.
    """
    moved = replace(_object(scene, id), T_root_object=T_root_object)
    return _next(scene, objects={**scene.objects, id: moved})


def remove(scene: Scene, id: str) -> Scene:
    """Return the scene without an object, be it in the world or attached, and without what was said about it.

    Raises:
        UnknownObjectError: no such object.
    """
    _require(scene, id)
    return _next(
        scene,
        objects=_without(scene.objects, id),
        attached=_without(scene.attached, id),
        allowed=frozenset(pair for pair in scene.allowed if id not in pair),
        padding=_without(scene.padding, id),
    )


def clear(scene: Scene) -> Scene:
    """Return an empty scene: no objects, none attached, no allowed pairs, no padding."""
    return Scene(version=scene.version + 1)


def attach(
    scene: Scene,
    robot: RobotModel,
    id: str,
    link: str,
    q: Annotated[Float64, "nq"],
    touch_links: Iterable[str] | None = None,
) -> Scene:
    """Return the scene in which a link carries an object of the world from where it is.

    Args:
        scene: the scene.
        robot: the robot.
        id: the object.
        link: which carries it from now on.
        q: where the robot is.
        touch_links: links that the object may touch besides ``link``; None: those that hang on ``link`` by fixed
            joints.

    Raises:
        UnknownObjectError: no such object.
        UnknownLinkError: a link that the robot does not have.
        InvalidShapeError: a link carries the object already, or q is not finite.
    """
    known = _object(scene, id)
    _check_carriable(id, known.shapes)
    T_link_object = inverse(_T_root_link(robot, link, q)) @ known.T_root_object
    touched = _touch_links(robot, link, touch_links)
    taken = AttachedObject(id, known.shapes, link, T_link_object, touched, known.subframes)
    return _next(scene, objects=_without(scene.objects, id), attached={**scene.attached, id: taken})


def attach_new(
    scene: Scene,
    robot: RobotModel,
    id: str,
    shapes: tuple[PlacedShape, ...],
    link: str,
    T_link_object: Annotated[Float64, "4 4"],
    touch_links: Iterable[str] | None = None,
    subframes: Mapping[str, Annotated[Float64, "4 4"]] | None = None,
    replacing: bool = False,
) -> Scene:
    """Return the scene in which a link carries an object that was not in it.

    Args:
        scene: the scene.
        robot: the robot.
        id: the object.
        shapes: its shapes.
        link: which carries it.
        T_link_object: where in the link.
        touch_links: as those of ``attach``.
        subframes: frames on the object by name, as poses in its own frame; None: none.
        replacing: whether it may take the place of an object of the same id, in the world or attached, whose allowed
            pairs and padding it then keeps.

    Raises:
        UnknownLinkError: a link that the robot does not have.
        InvalidShapeError: the id is taken or not usable, a pose is no rigid transform, or there is no room.
    """
    check_id(id, robot)
    check_shapes(id, shapes)
    _check_carriable(id, shapes)
    if id in scene.attached and not replacing:
        raise InvalidShapeError(_carried(scene, id))
    if id in scene.objects and not replacing:
        raise InvalidShapeError(
            f"object {quoted(id)} is in the scene already; attach it without shapes, or remove it before"
        )
    scene = replace(scene, objects=_without(scene.objects, id), attached=_without(scene.attached, id))
    check_room(scene, shapes)
    touched = _touch_links(robot, link, touch_links)
    new = AttachedObject(id, shapes, link, T_link_object, touched, dict(subframes or {}))
    return _next(scene, attached={**scene.attached, id: new})


def _check_carriable(id: str, shapes: tuple[PlacedShape, ...]) -> None:
    for item in shapes:
        if isinstance(item.shape, Plane | HeightMap):
            kind = "plane" if isinstance(item.shape, Plane) else "height map"
            raise InvalidShapeError(
                f"object {quoted(id)} has a {kind}, which has no end: no link can carry it"
            )


def detach(scene: Scene, robot: RobotModel, id: str, q: Annotated[Float64, "nq"]) -> Scene:
    """Return the scene in which an attached object stays in the world where it is while the robot is at ``q``.

    Raises:
        UnknownObjectError: no such attached object.
        InvalidShapeError: q is not finite.
    """
    if id not in scene.attached:
        raise UnknownObjectError(id, scene.attached)
    carried = scene.attached[id]
    T_root_object = _T_root_link(robot, carried.link, q) @ carried.T_link_object
    left = SceneObject(id, carried.shapes, T_root_object, carried.subframes)
    return _next(scene, objects={**scene.objects, id: left}, attached=_without(scene.attached, id))


def allow(scene: Scene, robot: RobotModel, first: str, second: str = ANY) -> Scene:
    """Return the scene in which two links or objects may touch; ``"*"`` as one of them stands for all.

    Raises:
        UnknownObjectError: a name that is neither an object nor a link.
        InvalidRequestError: twice the same name, or too many pairs.
    """
    return _with_allowed(scene, scene.allowed | {_pair(scene, robot, first, second)})


def disallow(scene: Scene, robot: RobotModel, first: str, second: str = ANY) -> Scene:
    """Return the scene without a pair that ``allow`` made. Pairs that SRDF disables stay so.

    Raises:
        UnknownObjectError: a name that is neither an object nor a link.
        InvalidRequestError: the scene does not list that pair.
    """
    pair = _pair(scene, robot, first, second)
    if pair not in scene.allowed:
        known = sorted(" and ".join(sorted(p)) for p in scene.allowed if p & {first, second} - {ANY})
        raise InvalidRequestError(
            f"the scene does not list {quoted(first)} and {quoted(second)} as a pair that may touch; it lists of them: "
            f"{', '.join(known[:8]) or 'none'}"
        )
    return _next(scene, allowed=scene.allowed - {pair})


def set_allowed(scene: Scene, robot: RobotModel, pairs: Iterable[frozenset[str]]) -> Scene:
    """Return the scene in which just these pairs may touch, besides those that SRDF disables.

    Raises:
        UnknownObjectError: a name that is neither an object nor a link.
        InvalidRequestError: a pair of other than two names, or too many pairs.
    """
    allowed = frozenset(pairs)
    for pair in allowed:
        first, *others = sorted(pair)
        _pair(scene, robot, first, others[0] if others else first)
    return _with_allowed(scene, allowed)


def set_padding(scene: Scene, robot: RobotModel, padding: float, name: str | None = None) -> Scene:
    """Return the scene with another padding (m) of a link or an object, or, without a name, of all links not named.

    Raises:
        UnknownObjectError: a name that is neither an object nor a link.
        InvalidShapeError: negative, not finite, or too large.
    """
    if name is None:
        return _next(scene, default_padding=padding)
    _require_body(scene, robot, name)
    return _next(scene, padding={**scene.padding, name: padding})


@remembered
def links_fixed_below(robot: RobotModel, link: str) -> frozenset[str]:
    """Return a link and all links that hang on it by fixed joints.

    Raises:
        UnknownLinkError: a link that the robot does not have.
    """
    robot.link(link)
    links = {link}
    for joint in robot.joints:  # parents before children
        if joint.type is JointType.FIXED and joint.parent_link in links:
            links.add(joint.child_link)
    return frozenset(links)


def _next(scene: Scene, **changes: object) -> Scene:
    return replace(scene, version=scene.version + 1, **changes)  # type: ignore[arg-type]


def _with_allowed(scene: Scene, allowed: frozenset[frozenset[str]]) -> Scene:
    if len(allowed) > MAX_ALLOWED:
        raise InvalidRequestError(
            f"{len(allowed)} pairs would be allowed to touch; at most {MAX_ALLOWED} may be"
        )
    return _next(scene, allowed=allowed)


def _without(entries: Mapping[str, T], id: str) -> dict[str, T]:
    return {key: value for key, value in entries.items() if key != id}


def _require(scene: Scene, id: str) -> None:
    if id not in scene.objects and id not in scene.attached:
        raise UnknownObjectError(id, (*scene.objects, *scene.attached))


def _object(scene: Scene, id: str) -> SceneObject:
    """Return an object of the world."""
    _require(scene, id)
    if id in scene.attached:
        raise InvalidShapeError(_carried(scene, id))
    return scene.objects[id]


def _carried(scene: Scene, id: str) -> str:
    return f"object {quoted(id)} is attached to link {scene.attached[id].link!r}; detach or remove it before"


def _require_body(scene: Scene, robot: RobotModel, name: str) -> None:
    if name not in scene.objects and name not in scene.attached and name not in robot.link_index:
        raise UnknownObjectError(name, (*scene.objects, *scene.attached, *robot.link_names))


def _pair(scene: Scene, robot: RobotModel, first: str, second: str) -> frozenset[str]:
    for name in (first, second):
        if name != ANY:
            _require_body(scene, robot, name)
    if first == second:
        raise InvalidRequestError(
            f"a pair that may touch is {quoted(first)} and {quoted(second)}; allowed are two different names, or one "
            f"and {ANY!r} for everything"
        )
    return frozenset((first, second))


def _touch_links(robot: RobotModel, link: str, given: Iterable[str] | None) -> frozenset[str]:
    robot.link(link)
    if given is None:
        return links_fixed_below(robot, link)
    touch_links = frozenset(given)
    for name in sorted(touch_links):
        robot.link(name)
    return touch_links | {link}


def _T_root_link(robot: RobotModel, link: str, q: Float64) -> Float64:
    return np.asarray(forward_kinematics(robot, q, links=(link,))[0])
