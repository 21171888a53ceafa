"""How a robot looks: its visual shapes, or its collision shapes where these cannot be read, as triangles."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.mesh_files import find_mesh_file
from kinopt_ros.geometry.shapes import Mesh
from kinopt_ros.geometry.triangulation import Triangles, triangulated
from kinopt_ros.robot.collision_elements import CollisionElement, MeshElement
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import read_description
from kinopt_ros.robot.visual_elements import Color, Visuals, read_visuals

PLAIN = (0.84, 0.85, 0.88)
"""Colour of what the description gives none."""


@dataclass(frozen=True, eq=False)
class Part:
    """Triangles of one shape, in its link's frame."""

    vertices: Annotated[Float64, "V 3"]
    triangles: Annotated[Int64, "T 3"]
    color: Color
    smooth: bool
    """Whether normals may be averaged at vertices; those of mesh files are shared across edges, too."""


@dataclass(frozen=True, eq=False)
class Looks:
    """What is drawn of a robot."""

    parts: Mapping[str, tuple[Part, ...]]
    """By link; links without anything to draw are missing."""
    missing: tuple[str, ...]
    """What could not be read, and what stands for it, a sentence each."""


def looks_of(robot: RobotModel, urdf_text: str | None = None) -> Looks:
    """Read what a robot looks like. Nothing here refuses a robot: what cannot be drawn is listed in ``missing``.

    Args:
        robot: the robot.
        urdf_text: its description; None: the file that it was read from, and without one its collision shapes alone.
    """
    file = robot.collision.urdf_file
    if urdf_text is None and file is not None:
        urdf_text = read_description(file, "URDF")
    visuals = Visuals({}, {}) if urdf_text is None else read_visuals(urdf_text)
    parts: dict[str, tuple[Part, ...]] = {}
    missing: list[str] = []
    meshes: dict[MeshElement, Triangles | str] = {}
    for link in robot.link_names:
        wrong = list(visuals.broken.get(link, ()))
        found: list[Part] = []
        for visual in visuals.elements.get(link, ()):
            triangles = _triangles(robot, visual.element, meshes)
            if isinstance(triangles, str):
                wrong.append(triangles)
            else:
                smooth = not isinstance(visual.element.geometry, MeshElement)
                found.append(_part(triangles, visual.element.T_link_shape, visual.color or PLAIN, smooth))
        if not found:
            found = _collision_parts(robot, link)
            if wrong:
                stands = "its collision shapes are drawn" if found else "it is not drawn"
                missing.append(f"link {link!r}: {wrong[0]}; {stands}")
        elif wrong:
            missing.append(f"link {link!r} is drawn in part: {wrong[0]}")
        if found:
            parts[link] = tuple(found)
    return Looks(parts, tuple(missing))


def _collision_parts(robot: RobotModel, link: str) -> list[Part]:
    return [
        _part(triangulated(placed.shape), placed.T_frame_shape, PLAIN, not isinstance(placed.shape, Mesh))
        for placed in robot.collision_shapes.get(link, ())
    ]


def _triangles(
    robot: RobotModel, element: CollisionElement, meshes: dict[MeshElement, Triangles | str]
) -> Triangles | str:
    """Return triangles of an element, each mesh file read once, or why there are none."""
    geometry = element.geometry
    if not isinstance(geometry, MeshElement):
        return triangulated(geometry)
    if geometry not in meshes:
        from kinopt_ros.geometry.meshes import read_triangles

        try:
            path = find_mesh_file(geometry.uri, robot.collision.urdf_file, robot.collision.packages)
            meshes[geometry] = read_triangles(path, geometry.scale)
        except InvalidShapeError as error:
            meshes[geometry] = str(error)
    return meshes[geometry]


def _part(triangles: Triangles, T_link_shape: Annotated[Float64, "4 4"], color: Color, smooth: bool) -> Part:
    vertices = triangles[0] @ T_link_shape[:3, :3].T + T_link_shape[:3, 3]
    return Part(np.asarray(vertices), triangles[1], color, smooth)
