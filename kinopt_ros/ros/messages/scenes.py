"""Conversion of scene messages to shapes and scenes, and back."""

from array import array
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import Pose

from kinopt_msgs.msg import AttachedObject as AttachedObjectMsg
from kinopt_msgs.msg import CollisionObject, NamePair, Padding
from kinopt_msgs.msg import Scene as SceneMsg
from kinopt_msgs.msg import Shape as ShapeMsg
from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidShapeError, KinoptError, quoted
from kinopt_ros.geometry.mesh_files import find_mesh_file
from kinopt_ros.geometry.shapes import (
    MAX_POINTS,
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightMap,
    Mesh,
    Octomap,
    PlacedShape,
    Plane,
    PointCloud,
    Shape,
    Sphere,
)
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.messages.conversions import flat_array, matrices_from_poses, poses_from_matrices
from kinopt_ros.scene.parts import ANY
from kinopt_ros.scene.scene import AttachedObject, Scene, SceneObject

_FIELDS = {
    ShapeMsg.BOX: ("dimensions",),
    ShapeMsg.SPHERE: ("dimensions",),
    ShapeMsg.CYLINDER: ("dimensions",),
    ShapeMsg.CONE: ("dimensions",),
    ShapeMsg.CAPSULE: ("dimensions",),
    ShapeMsg.PLANE: (),
    ShapeMsg.MESH: ("points", "triangles", "resource"),
    ShapeMsg.HEIGHT_MAP: ("dimensions", "heights", "rows"),
    ShapeMsg.POINT_CLOUD: ("dimensions", "points"),
    ShapeMsg.OCTOMAP: ("dimensions", "points"),
}
"""Fields that each type uses; others must be empty."""
_ROUND: dict[str, Callable[[float, float], Shape]] = {
    ShapeMsg.CYLINDER: Cylinder,
    ShapeMsg.CONE: Cone,
    ShapeMsg.CAPSULE: Capsule,
}


def shapes_from_messages(messages: Sequence[Any]) -> tuple[PlacedShape, ...]:
    """Return the shapes of an object. Reads the files of meshes.

    Raises:
        InvalidShapeError: one is not usable; the message begins with its index.
    """
    transforms = matrices_from_poses([message.pose for message in messages], "shapes.pose", InvalidShapeError)
    shapes = []
    for index, (message, T) in enumerate(zip(messages, transforms, strict=True)):
        try:
            shapes.append(PlacedShape(_shape(message), T.copy()))
        except KinoptError as error:
            raise InvalidShapeError(f"shapes[{index}]: {error}") from error
    return tuple(shapes)


def subframes_from_message(message: Any) -> dict[str, Float64]:
    """Return the subframes of an object: poses in its frame by name.

    Args:
        message: kinopt_msgs/CollisionObject or MoveIt's.

    Raises:
        InvalidShapeError: names and poses do not fit together, or one is not usable.
    """
    names, poses = message.subframe_names, message.subframe_poses
    if len(names) != len(poses) or len(set(names)) != len(names):
        raise InvalidShapeError(
            f"object {quoted(message.id)} has {len(names)} subframe_names and {len(poses)} subframe_poses; they must "
            "be equal, and no name may be there twice"
        )
    transforms = matrices_from_poses(poses, "subframe_poses", InvalidShapeError)
    return {name: T.copy() for name, T in zip(names, transforms, strict=True)}


def is_large(messages: Sequence[Any]) -> bool:
    """Check whether reading these shapes may take more than some milliseconds."""
    return any(m.resource or len(m.points) + len(m.triangles) + len(m.heights) > 3000 for m in messages)


def transform_from_pose(pose: Pose, what: str) -> Annotated[Float64, "4 4"]:
    """Return the transform of one pose. Raises InvalidShapeError, whose message begins with ``what[0]``."""
    return np.array(matrices_from_poses([pose], what, InvalidShapeError)[0])


def scene_message(scene: Scene, robot: RobotModel, without_shapes: bool = False) -> SceneMsg:
    """Return the message of a scene."""

    def body(one: SceneObject | AttachedObject, frame: str, pose: Pose) -> CollisionObject:
        message = CollisionObject(id=one.id, pose=pose)
        message.header.frame_id = frame
        message.shapes = [] if without_shapes else [shape_message(placed) for placed in one.shapes]
        message.subframe_names = [*one.subframes]
        message.subframe_poses = poses_from_matrices(_stacked([*one.subframes.values()]))
        return message

    objects, attached = tuple(scene.objects.values()), tuple(scene.attached.values())
    poses = poses_from_matrices(_stacked([o.T_root_object for o in objects]))
    link_poses = poses_from_matrices(_stacked([a.T_link_object for a in attached]))
    return SceneMsg(
        version=scene.version,
        frame_id=robot.root_link,
        objects=[body(o, robot.root_link, p) for o, p in zip(objects, poses, strict=True)],
        attached=[
            AttachedObjectMsg(link=a.link, object=body(a, a.link, p), touch_links=sorted(a.touch_links))
            for a, p in zip(attached, link_poses, strict=True)
        ],
        allowed=[
            NamePair(first=first, second=second)
            for first, second in sorted(
                sorted(p, key=lambda name: (name == ANY, name)) for p in scene.allowed
            )
        ],
        padding=[Padding(name=name, padding=value) for name, value in scene.padding.items()],
        default_padding=scene.default_padding,
    )


def shape_message(placed: PlacedShape) -> ShapeMsg:
    """Return the message of a shape."""
    message = ShapeMsg(pose=poses_from_matrices(placed.T_frame_shape[None])[0])
    match placed.shape:
        case Box(x=x, y=y, z=z):
            message.type, message.dimensions = ShapeMsg.BOX, [float(x), float(y), float(z)]
        case Sphere(radius=radius):
            message.type, message.dimensions = ShapeMsg.SPHERE, [float(radius)]
        case Cylinder() | Cone() | Capsule() as one:
            message.type = type(one).__name__.lower()
            message.dimensions = [float(one.length), float(one.radius)]
        case Plane():
            message.type = ShapeMsg.PLANE
        case Mesh(vertices=vertices, triangles=triangles):
            message.type, message.points = ShapeMsg.MESH, flat_array(vertices)
            message.triangles = _indices(triangles)
        case HeightMap(heights=heights, resolution=resolution):
            message.type, message.dimensions = ShapeMsg.HEIGHT_MAP, [float(resolution)]
            message.heights, message.rows = flat_array(heights), len(heights)
        case PointCloud(points=points, radius=radius):
            message.type, message.dimensions = ShapeMsg.POINT_CLOUD, [float(radius)]
            message.points = flat_array(points)
        case Octomap(centers=centers, sizes=sizes):
            message.type, message.dimensions = ShapeMsg.OCTOMAP, flat_array(sizes)
            message.points = flat_array(centers)
    return message


def _shape(message: Any) -> Shape:
    kind = message.type
    if kind not in _FIELDS:
        raise InvalidShapeError(f"type is {quoted(kind)}; allowed are {', '.join(_FIELDS)}")
    used = _FIELDS[kind]
    for field in ("dimensions", "points", "triangles", "heights", "rows", "resource"):
        given = getattr(message, field)
        if field not in used and (given if isinstance(given, int | str) else len(given)):
            raise InvalidShapeError(
                f"a {kind} has {field}, which it does not use; it uses {', '.join(used) or 'none'}"
            )
    scale = message.scale
    if (scale.x, scale.y, scale.z) != (0.0, 0.0, 0.0) and not message.resource:
        raise InvalidShapeError("scale is given; it is used for a mesh from a resource only")
    if kind == ShapeMsg.BOX:
        return Box(*_dimensions(message, "x, y, z"))
    if kind == ShapeMsg.SPHERE:
        return Sphere(*_dimensions(message, "radius"))
    if kind in _ROUND:
        length, radius = _dimensions(message, "length, radius")
        return _ROUND[kind](radius, length)
    if kind == ShapeMsg.PLANE:
        return Plane()
    if kind == ShapeMsg.MESH:
        return _mesh(message)
    if kind == ShapeMsg.HEIGHT_MAP:
        return _height_map(message)
    points = _rows(message.points, np.float64, "points")
    if kind == ShapeMsg.POINT_CLOUD:
        return PointCloud(points, *_dimensions(message, "radius"))
    sizes = np.array(message.dimensions, dtype=np.float64)
    return Octomap(points, np.repeat(sizes, len(points)) if len(sizes) == 1 else sizes)


def _mesh(message: Any) -> Mesh:
    # Imported late: it needs packages that a node without meshes need not have.
    from kinopt_ros.geometry.meshes import closed_mesh, load_mesh

    scale = (message.scale.x, message.scale.y, message.scale.z)
    if message.resource:
        if len(message.points) or len(message.triangles):
            raise InvalidShapeError(
                "a mesh has a resource and points or triangles; allowed is one of the two"
            )
        return load_mesh(find_mesh_file(message.resource), (1.0,) * 3 if scale == (0.0,) * 3 else scale)
    return closed_mesh(
        _rows(message.points, np.float64, "points"),
        _rows(message.triangles, np.int64, "triangles"),
        "the mesh",
    )


def _height_map(message: Any) -> HeightMap:
    heights = np.array(message.heights, dtype=np.float64)
    if message.rows == 0 or heights.size == 0 or heights.size % message.rows:
        raise InvalidShapeError(
            f"a height_map has {heights.size} heights and rows is {message.rows}; allowed is a number of rows that "
            "divides them"
        )
    return HeightMap(heights.reshape(message.rows, -1), *_dimensions(message, "resolution"))


def _dimensions(message: Any, names: str) -> list[float]:
    expected = names.count(",") + 1
    if len(message.dimensions) != expected:
        raise InvalidShapeError(
            f"a {message.type} has {len(message.dimensions)} dimensions; allowed are {expected}: {names}"
        )
    return [float(value) for value in message.dimensions]


def _rows(values: Sequence[float], kind: Any, what: str) -> Any:
    """Return flat numbers, three by three."""
    if len(values) % 3:
        raise InvalidShapeError(f"{what} has {len(values)} numbers; allowed is three of each")
    if len(values) > 3 * MAX_POINTS:
        raise InvalidShapeError(f"{what} has {len(values) // 3} of three numbers; allowed are {MAX_POINTS}")
    return np.array(values, dtype=kind).reshape(-1, 3)


def _stacked(transforms: Sequence[Float64]) -> Annotated[Float64, "N 4 4"]:
    return np.array(transforms, dtype=np.float64).reshape(-1, 4, 4)


def _indices(triangles: Annotated[Int64, "T 3"]) -> "array[int]":
    """Return numbers in the type that message fields of uint32 take without copying one by one."""
    result = array("I")
    result.frombytes(np.ascontiguousarray(triangles, dtype=np.uint32).tobytes())
    return result
