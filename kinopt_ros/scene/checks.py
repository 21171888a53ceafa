"""Checks of a scene as a whole, and beside a robot. Every refusal is a sentence that names what was given."""

from kinopt_ros.errors import InvalidShapeError, quoted
from kinopt_ros.geometry.shapes import MAX_POINTS, PlacedShape
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.parts import check_name
from kinopt_ros.scene.scene import AttachedObject, Scene, SceneObject, num_points

MAX_OBJECTS = 1_000
"""Most objects of a scene, attached ones included."""
MAX_SCENE_POINTS = 4 * MAX_POINTS
"""Most vertices, triangles, points, voxels and heights of a scene."""
MAX_ALLOWED = 10_000
"""Most allowed pairs."""


def check_id(given: str, robot: RobotModel) -> None:
    """Raise unless ``given`` may be the id of an object beside a robot."""
    check_name(given)
    if given in robot.link_index:
        raise _is_a_link(given, robot)


def check_fits(scene: Scene, robot: RobotModel) -> None:
    """Raise unless a scene, however it was made, can be that of a robot.

    Raises:
        UnknownLinkError: a link that the robot does not have carries an object.
        InvalidShapeError: an object has the name of a link.
    """
    for carried in scene.attached.values():
        robot.link(carried.link)
    for bodies in (scene.objects, scene.attached):
        if not bodies.keys().isdisjoint(robot.link_index.keys()):
            raise _is_a_link(next(id for id in bodies if id in robot.link_index), robot)


def check_room(scene: Scene, shapes: tuple[PlacedShape, ...]) -> None:
    """Raise if the scene has no room for an object of these shapes."""
    bodies: list[SceneObject | AttachedObject] = [*scene.objects.values(), *scene.attached.values()]
    if len(bodies) >= MAX_OBJECTS:
        raise InvalidShapeError(f"the scene has {MAX_OBJECTS} objects already, and no more are allowed")
    points = sum(num_points(body.shapes) for body in bodies) + num_points(shapes)
    if points > MAX_SCENE_POINTS:
        raise InvalidShapeError(
            f"the scene would have {points} vertices, triangles, points, voxels and heights; allowed are "
            f"{MAX_SCENE_POINTS}"
        )


def _is_a_link(id: str, robot: RobotModel) -> InvalidShapeError:
    return InvalidShapeError(
        f"the id {quoted(id)} is the name of a link of robot {robot.name!r}; allowed is any other"
    )
