"""Reader of what a moveit_msgs/CollisionObject says of an object, and checks of its fields."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, InvalidShapeError, KinoptError, quoted
from kinopt_ros.geometry.shapes import PlacedShape
from kinopt_ros.ros.messages.scenes import subframes_from_message, transform_from_pose
from kinopt_ros.ros.messages.sizes import check_lengths
from kinopt_ros.ros.moveit.collision_matrix import Remark
from kinopt_ros.ros.moveit.scene_shapes import MOST_TRIANGLES, check_meshes, read_shapes
from kinopt_ros.scene.checks import MAX_OBJECTS

MOST_OBJECTS = 2 * MAX_OBJECTS
"""Most objects in a message: as many as a scene has may be removed, and as many added. Each is a change of the scene,
of a millisecond in a full one, and other changes wait meanwhile."""


@dataclass(frozen=True, eq=False)
class Body:
    """What a CollisionObject says of an object."""

    id: str
    frame: str
    T_frame_object: Annotated[Float64, "4 4"]
    shapes: tuple[PlacedShape, ...]
    subframes: dict[str, Float64]
    given: bool
    """Whether there are shapes."""


def check_sizes(message: Any) -> None:
    """Raise KinoptError if the lists of a message are longer than is read."""
    check_lengths(message, 1, MOST_TRIANGLES)
    objects = objects_of(message)
    if len(objects) > MOST_OBJECTS:
        raise InvalidRequestError(f"{len(objects)} objects were given; allowed are at most {MOST_OBJECTS}")
    for one in objects:
        check_meshes(one)


def objects_of(message: Any) -> list[Any]:
    """Return the CollisionObjects of a message."""
    if hasattr(message, "world"):
        carried = [one.object for one in message.robot_state.attached_collision_objects]
        return [*message.world.collision_objects, *carried]
    if hasattr(message, "collision_objects"):
        return list(message.collision_objects)
    return [message.object if hasattr(message, "object") else message]


def read_body(message: Any, remark: Remark) -> Body:
    """Read what a CollisionObject says of its object; ``remark`` takes what is not as it says."""
    try:
        shapes = read_shapes(message, remark)
    except KinoptError as error:
        error.args = (f"object {quoted(message.id)}: {error}",)
        raise
    T_frame_object = transform_from_pose(message.pose, f"pose of object {quoted(message.id)}")
    if len(shapes) == 1 and np.array_equal(T_frame_object, np.eye(4)):  # as move_group does
        T_frame_object = shapes[0].T_frame_shape
        shapes = (PlacedShape(shapes[0].shape, np.eye(4)),)
    subframes = subframes_from_message(message)
    return Body(message.id, message.header.frame_id, T_frame_object, shapes, subframes, bool(shapes))


def moved(body: Body, T: Float64) -> tuple[tuple[PlacedShape, ...], dict[str, Float64]]:
    """Return shapes and subframes in a frame in which the object's own one has pose T."""
    return (
        tuple(PlacedShape(one.shape, np.asarray(T @ one.T_frame_shape)) for one in body.shapes),
        {name: np.asarray(T @ frame) for name, frame in body.subframes.items()},
    )


def require_shapes(body: Body) -> None:
    """Raise InvalidShapeError for an object without shapes."""
    if not body.given:
        raise InvalidShapeError(f"object {quoted(body.id)} has no primitives, meshes or planes")


def refuse_parts(message: Any) -> None:
    """Refuse what MOVE does not use here: move_group ignores shapes, but moves them by their poses."""
    fields = ("primitives", "primitive_poses", "meshes", "mesh_poses", "planes", "plane_poses")
    for name in (*fields, "subframe_names", "subframe_poses"):
        if getattr(message, name):
            raise InvalidShapeError(f"object {quoted(message.id)} has {name}, which MOVE does not use here")


def operation_error(message: Any) -> KinoptError:
    """Return the error of an operation that there is not."""
    allowed = ", ".join(
        f"{getattr(message, name)[0]} ({name})" for name in ("ADD", "REMOVE", "APPEND", "MOVE")
    )
    return InvalidRequestError(
        f"operation of object {quoted(message.id)} is {message.operation[0]}; allowed are {allowed}, and not MOVE for "
        "attached ones"
    )
