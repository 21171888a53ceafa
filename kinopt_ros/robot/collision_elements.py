"""Reader of the ``<collision>`` elements of URDF links; the files of meshes are not opened.

A broken element never refuses a robot: kinematics does without it. It becomes a reason why its link cannot be checked
for collisions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias
from xml.etree import ElementTree

from kinopt_ros.array import Float64, Immutable, taken_over
from kinopt_ros.errors import InvalidShapeError, quoted
from kinopt_ros.geometry.shapes import Box, Capsule, Cylinder, Sphere
from kinopt_ros.robot.poses import pose_of_xyz_rpy
from kinopt_ros.robot.xml_text import children, finite_number, local_name


@dataclass(frozen=True)
class MeshElement:
    """``<mesh>``: where it is, and the factors of its coordinates; a negative one mirrors."""

    uri: str
    scale: tuple[float, float, float]


Geometry: TypeAlias = Sphere | Box | Cylinder | Capsule | MeshElement


@dataclass(frozen=True, eq=False)
class CollisionElement(Immutable):
    """One shape of a link, in the link's frame."""

    geometry: Geometry
    T_link_shape: Annotated[Float64, "4 4"]

    def __post_init__(self) -> None:
        taken_over(self, "T_link_shape")


class _BrokenError(Exception):
    """What is wrong with an element, as the end of a sentence."""


def read_collisions(link: ElementTree.Element) -> tuple[tuple[CollisionElement, ...], tuple[str, ...]]:
    """Read the usable collision elements of a link, and what is wrong with the others."""
    usable, broken = read_elements(link, "collision")
    return tuple(shape for _, shape in usable), broken


def read_elements(
    link: ElementTree.Element, tag: str
) -> tuple[list[tuple[ElementTree.Element, CollisionElement]], tuple[str, ...]]:
    """Read the usable ``<collision>`` or ``<visual>`` elements of a link, and what is wrong with the others."""
    usable: list[tuple[ElementTree.Element, CollisionElement]] = []
    broken: list[str] = []
    for number, element in enumerate(children(link, tag), start=1):
        name = f" {quoted(element.attrib['name'])}" if element.get("name") else ""
        try:
            usable.append((element, _shape(element)))
        except (_BrokenError, InvalidShapeError) as error:
            broken.append(f"{tag} element {number}{name}: {error}")
    return usable, tuple(broken)


def _shape(element: ElementTree.Element) -> CollisionElement:
    shapes = [shape for geometry in children(element, "geometry") for shape in geometry]
    if len(shapes) != 1:
        raise _BrokenError(f"it has {len(shapes)} shapes; allowed is one")
    origins = children(element, "origin")
    if len(origins) > 1:
        raise _BrokenError(f"it has {len(origins)} origins; allowed is one")
    shape = shapes[0]
    tag = local_name(shape)
    if tag not in _READERS:
        raise _BrokenError(f"its shape is <{tag[:100]}>; known: {', '.join(_READERS)}")
    pose = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    if origins:
        pose = (_triple(origins[0], "xyz", (0.0, 0.0, 0.0)), _triple(origins[0], "rpy", (0.0, 0.0, 0.0)))
    return CollisionElement(_READERS[tag](shape), pose_of_xyz_rpy(*pose))


def _sphere(element: ElementTree.Element) -> Sphere:
    return Sphere(_number(element, "radius"))


def _box(element: ElementTree.Element) -> Box:
    return Box(*_triple(element, "size", None))


def _cylinder(element: ElementTree.Element) -> Cylinder:
    return Cylinder(_number(element, "radius"), _number(element, "length"))


def _capsule(element: ElementTree.Element) -> Capsule:
    return Capsule(_number(element, "radius"), _number(element, "length"))


def _mesh(element: ElementTree.Element) -> MeshElement:
    uri = element.get("filename", "").strip()
    if not uri:
        raise _BrokenError("its <mesh> has no filename")
    scale = _triple(element, "scale", (1.0, 1.0, 1.0))
    if 0.0 in scale:
        raise _BrokenError(f"its <mesh> has scale={quoted(element.get('scale', ''))}; no factor may be 0")
    return MeshElement(uri, scale)


_READERS: Mapping[str, Callable[[ElementTree.Element], Geometry]] = {
    "box": _box,
    "capsule": _capsule,
    "cylinder": _cylinder,
    "mesh": _mesh,
    "sphere": _sphere,
}


def _number(element: ElementTree.Element, attribute: str) -> float:
    return _numbers(element, attribute, 1)[0]


def _triple(
    element: ElementTree.Element, attribute: str, default: tuple[float, float, float] | None
) -> tuple[float, float, float]:
    if default is not None and attribute not in element.attrib:
        return default
    x, y, z = _numbers(element, attribute, 3)
    return x, y, z


def _numbers(element: ElementTree.Element, attribute: str, count: int) -> list[float]:
    tag, text = local_name(element), element.get(attribute)
    if text is None:
        raise _BrokenError(f"its <{tag}> has no {attribute}")
    numbers = [finite_number(word) for word in text.split()]
    finite = [number for number in numbers if number is not None]
    if len(numbers) != count or len(finite) != count:
        wanted = "one finite number" if count == 1 else f"{count} finite numbers"
        raise _BrokenError(f"its <{tag}> has {attribute}={quoted(text)}; allowed is {wanted}")
    return finite
