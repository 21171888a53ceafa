"""Shapes of moveit_msgs/CollisionObject as shapes of the scene, and back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from shape_msgs.msg import Mesh as MeshMsg
from shape_msgs.msg import MeshTriangle, SolidPrimitive
from shape_msgs.msg import Plane as PlaneMsg

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidShapeError, KinoptError, UnsupportedFeatureError, quoted
from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Mesh,
    PlacedShape,
    Plane,
    Shape,
    Sphere,
)
from kinopt_ros.kinematics.se3 import pose as pose_matrix
from kinopt_ros.ros.messages.conversions import matrices_from_poses, poses_from_matrices
from kinopt_ros.ros.messages.marker_shapes import points_of
from kinopt_ros.ros.moveit.collision_matrix import Remark

MOST_TRIANGLES = 200_000
"""Most triangles, and most vertices, of a mesh; each is a message of its own, of which rclpy reads a million per second
and nothing else meanwhile."""
_SMALLEST_NORMAL = 1e-9
_PRIMITIVES: Mapping[int, tuple[str, str, Callable[..., Shape]]] = {
    SolidPrimitive.BOX: ("box", "x, y, z", Box),
    SolidPrimitive.SPHERE: ("sphere", "radius", Sphere),
    SolidPrimitive.CYLINDER: ("cylinder", "height, radius", lambda height, radius: Cylinder(radius, height)),
    SolidPrimitive.CONE: ("cone", "height, radius", lambda height, radius: Cone(radius, height)),
}


def check_meshes(message: Any) -> None:
    """Raise InvalidShapeError if a mesh of a CollisionObject has too many triangles or vertices."""
    for index, mesh in enumerate(message.meshes):
        for given, what in ((mesh.triangles, "triangles"), (mesh.vertices, "vertices")):
            if len(given) > MOST_TRIANGLES:
                raise InvalidShapeError(
                    f"object {quoted(message.id)}: meshes[{index}] has {len(given)} {what}; allowed are "
                    f"{MOST_TRIANGLES}"
                )


def read_shapes(message: Any, remark: Remark) -> tuple[PlacedShape, ...]:
    """Return the shapes of a moveit_msgs/CollisionObject in the object's frame: primitives, meshes, planes.

    A kind of shapes without any poses is at the object's pose. A plane is solid on the side that its normal leaves. A
    mesh that is no closed solid counts as its convex hull, as those of links do; that is remarked.

    Raises:
        KinoptError: one is not usable; the message says which.
    """
    shapes: list[PlacedShape] = []
    for kind, read in (("primitive", _primitive), ("mesh", _mesh), ("plane", _plane)):
        given = getattr(message, "meshes" if kind == "mesh" else f"{kind}s")
        name = f"{kind}_poses"
        poses = getattr(message, name)
        if poses and len(poses) != len(given):
            raise InvalidShapeError(
                f"{len(poses)} {name} and {len(given)} shapes of that kind are given; allowed are as many, or no poses"
            )
        transforms = matrices_from_poses(poses, name, InvalidShapeError)
        for index, one in enumerate(given):
            try:
                shape, T, flaw = read(one)
            except KinoptError as error:
                error.args = (f"{kind} {index}: {error}",)
                raise
            if flaw:
                remark(f"object {quoted(message.id)}: {kind} {index}: {flaw}; its convex hull is taken")
            shapes.append(PlacedShape(shape, np.array(transforms[index] @ T) if poses else T))
    return tuple(shapes)


def write_shapes(message: Any, shapes: Sequence[PlacedShape]) -> bool:
    """Write the shapes of an object into a moveit_msgs/CollisionObject.

    Returns:
        Whether MoveIt's messages can say them; clouds, octomaps and height maps they cannot, and nothing is written.
        A capsule is written as a cylinder and two balls.
    """
    parts: list[tuple[str, Any, Float64]] = []
    for placed in shapes:
        said = _said(placed.shape)
        if said is None:
            return False
        parts += [(kind, one, placed.T_frame_shape @ T) for kind, one, T in said]
    for (kind, one, _), where in zip(
        parts, poses_from_matrices(np.array([T for *_, T in parts]).reshape(-1, 4, 4)), strict=True
    ):
        getattr(message, "meshes" if kind == "mesh" else f"{kind}s").append(one)
        getattr(message, f"{kind}_poses").append(where)
    return True


def _primitive(message: Any) -> tuple[Shape, Float64, str]:
    if message.type == SolidPrimitive.PRISM:
        raise UnsupportedFeatureError("a prism is not supported here (nor by move_group): send a mesh")
    if message.type not in _PRIMITIVES:
        allowed = ", ".join(f"{number} ({name})" for number, (name, *_) in _PRIMITIVES.items())
        raise InvalidShapeError(f"its type is {message.type}; allowed are {allowed}")
    name, sizes, make = _PRIMITIVES[message.type]
    if len(message.dimensions) != sizes.count(",") + 1:
        raise InvalidShapeError(
            f"a {name} has {len(message.dimensions)} dimensions; allowed are {sizes.count(',') + 1}: {sizes}"
        )
    return make(*(float(size) for size in message.dimensions)), np.eye(4), ""


def _mesh(message: Any) -> tuple[Shape, Float64, str]:
    # Imported late: it needs packages that a node without meshes need not have.
    from kinopt_ros.geometry.meshes import solid_or_hull

    # Number by number: an array of a list is made in one step, in which stops are not heard.
    numbers = (number for p in message.vertices for number in (p.x, p.y, p.z))
    corners = (corner for t in message.triangles for corner in t.vertex_indices.tolist())
    mesh, flaw = solid_or_hull(
        np.fromiter(numbers, np.float64).reshape(-1, 3),
        np.fromiter(corners, np.int64).reshape(-1, 3),
        "the mesh",
    )
    return mesh, np.eye(4), flaw


def _plane(message: Any) -> tuple[Shape, Float64, str]:
    *normal, offset = (float(number) for number in message.coef)
    largest = max(map(abs, normal))
    if not (np.isfinite([*normal, offset]).all() and largest > _SMALLEST_NORMAL):
        raise InvalidShapeError(
            f"coef is {[*normal, offset]}; allowed are finite a, b, c, d of a x + b y + c z + d = 0 with a normal "
            "(a, b, c) other than 0"
        )
    z = np.array(normal) / largest  # whose length is a number, however large these are
    length = float(np.linalg.norm(z))
    return Plane(), pose_matrix(_turned_to(z / length), -offset / largest / length**2 * z), ""


def _turned_to(z: Annotated[Float64, "3"]) -> Annotated[Float64, "3 3"]:
    """Return a rotation whose third column is a unit vector; the identity for the z axis."""
    x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _said(shape: Shape) -> list[tuple[str, Any, Float64]] | None:
    """Return the shapes of MoveIt that a shape is made of: kind, message, and pose in the shape's frame."""
    here = np.eye(4)
    match shape:
        case Box(x=x, y=y, z=z):
            return [("primitive", _solid(SolidPrimitive.BOX, x, y, z), here)]
        case Sphere(radius=radius):
            return [("primitive", _solid(SolidPrimitive.SPHERE, radius), here)]
        case Cylinder(radius=radius, length=length):
            return [("primitive", _solid(SolidPrimitive.CYLINDER, length, radius), here)]
        case Cone(radius=radius, length=length):
            return [("primitive", _solid(SolidPrimitive.CONE, length, radius), here)]
        case Capsule(radius=radius, length=length):
            ends = (pose_matrix(np.eye(3), np.array([0.0, 0.0, side * length])) for side in (-0.5, 0.5))
            return [
                ("primitive", _solid(SolidPrimitive.CYLINDER, length, radius), here),
                *(("primitive", _solid(SolidPrimitive.SPHERE, radius), end) for end in ends),
            ]
        case Plane():
            return [("plane", PlaneMsg(coef=[0.0, 0.0, 1.0, 0.0]), here)]
        case Mesh(vertices=vertices, triangles=triangles) if (
            max(len(vertices), len(triangles)) <= MOST_TRIANGLES
        ):
            corners = [MeshTriangle(vertex_indices=row) for row in triangles.astype(np.uint32)]
            return [("mesh", MeshMsg(vertices=points_of(vertices), triangles=corners), here)]
        case _:
            return None


def _solid(kind: int, *dimensions: float) -> SolidPrimitive:
    return SolidPrimitive(type=kind, dimensions=[float(size) for size in dimensions])
