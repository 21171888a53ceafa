"""Transfer of a scene to another robot."""

from collections.abc import Mapping
from dataclasses import replace

from kinopt_ros.errors import quoted, shortened
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.parts import ANY, MAX_ID_LENGTH
from kinopt_ros.scene.scene import AttachedObject, Scene

_SUFFIX = len(" (object 1000)")
"""Room for what is added to an id that is the name of a link."""


def for_robot(scene: Scene, old: RobotModel | None, robot: RobotModel) -> tuple[Scene, tuple[str, ...]]:
    """Return the scene for another robot, and sentences about what could not be kept as it was.

    Objects stay: what was an obstacle still is, at the same pose in the root link's frame. What names a link that is
    gone goes with it: attached objects, allowed pairs, padding, touch links. An object whose id is the name of a link
    of the new robot is called ``<id> (object)`` from now on, or ``<id> (object 2)`` where that is taken. A scene that
    fits as it is keeps its version.

    Args:
        scene: the scene.
        old: the robot that it was made for; None if it was made for none.
        robot: the robot that it shall be for.
    """
    said: list[str] = []
    if old is not None and old.root_link != robot.root_link and scene.objects:
        said.append(
            f"poses of {len(scene.objects)} objects, given in {old.root_link!r}, count in {robot.root_link!r} now"
        )
    new_names = _new_names(scene, robot)
    for id, name in new_names.items():
        said.append(
            f"object {quoted(id)} is called {quoted(name)} now: {robot.name!r} has a link of that name"
        )
    fitting, dropped = _without_lost_links(_renamed(scene, new_names), robot)
    said += dropped
    if not said:
        return scene, ()
    return replace(fitting, version=scene.version + 1), tuple(said)


def _new_names(scene: Scene, robot: RobotModel) -> dict[str, str]:
    """Return free names for objects that are called like a link."""
    taken = {*scene.objects, *scene.attached, *robot.link_index}
    names: dict[str, str] = {}
    for id in (*scene.objects, *scene.attached):
        if id not in robot.link_index:
            continue
        short, number = id[: MAX_ID_LENGTH - _SUFFIX], 1
        name = f"{short} (object)"
        while name in taken:
            number += 1
            name = f"{short} (object {number})"
        names[id] = name
        taken.add(name)
    return names


def _renamed(scene: Scene, new_names: Mapping[str, str]) -> Scene:
    """Return the scene with other ids for some objects."""
    if not new_names:
        return scene

    def of(name: str) -> str:
        return new_names.get(name, name)

    return replace(
        scene,
        objects={of(id): replace(body, id=of(id)) for id, body in scene.objects.items()},
        attached={of(id): replace(body, id=of(id)) for id, body in scene.attached.items()},
        allowed=frozenset(frozenset(map(of, pair)) for pair in scene.allowed),
        padding={of(name): value for name, value in scene.padding.items()},
    )


def _without_lost_links(scene: Scene, robot: RobotModel) -> tuple[Scene, list[str]]:
    """Return the scene without what names links that the robot does not have, and what that was."""
    said: list[str] = []
    attached: dict[str, AttachedObject] = {}
    for id, body in scene.attached.items():
        if body.link not in robot.link_index:
            said.append(f"attached object {quoted(id)} was dropped: {robot.name!r} has no link {body.link!r}")
            continue
        lost = sorted(body.touch_links - robot.link_index.keys())
        if lost:
            said.append(
                f"{quoted(id)} lost the touch links {shortened(lost)}: {robot.name!r} does not have them"
            )
            body = replace(body, touch_links=body.touch_links - set(lost))
        attached[id] = body
    names = {*scene.objects, *attached, *robot.link_names, ANY}
    allowed = frozenset(pair for pair in scene.allowed if pair <= names)
    if allowed != scene.allowed:
        lost = sorted(" and ".join(sorted(pair)) for pair in scene.allowed - allowed)
        said.append(
            f"allowed pairs of links that {robot.name!r} does not have were dropped: {shortened(lost)}"
        )
    padding = {name: value for name, value in scene.padding.items() if name in names}
    if len(padding) < len(scene.padding):
        lost = sorted(scene.padding.keys() - padding.keys())
        said.append(f"padding of links that {robot.name!r} does not have was dropped: {shortened(lost)}")
    return replace(scene, attached=attached, allowed=allowed, padding=padding), said
