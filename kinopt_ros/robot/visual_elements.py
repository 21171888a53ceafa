"""Reader of the ``<visual>`` elements of URDF links and their colours; the files of meshes are not opened.

Only what draws a robot asks for them: nothing that is computed depends on them, and a broken one never refuses a robot.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias
from xml.etree import ElementTree

from kinopt_ros.robot.collision_elements import CollisionElement, read_elements
from kinopt_ros.robot.xml_text import children, finite_number, parse_xml

Color: TypeAlias = tuple[float, float, float]
"""Red, green and blue in [0, 1]."""


@dataclass(frozen=True, eq=False)
class VisualElement:
    """One shape of a link, in the link's frame, and its colour."""

    element: CollisionElement
    color: Color | None
    """Colour; None if the description gives none that can be read."""


@dataclass(frozen=True, eq=False)
class Visuals:
    """Visual elements of a robot's description."""

    elements: Mapping[str, tuple[VisualElement, ...]]
    """Usable elements by link; links without any are missing."""
    broken: Mapping[str, tuple[str, ...]]
    """What is wrong with the others, by link."""


def read_visuals(urdf_text: str) -> Visuals:
    """Read the visual elements of a URDF.

    Raises:
        RobotDescriptionError: the text is no XML, or too large.
    """
    root = parse_xml(urdf_text, "URDF")
    shared = {
        material.get("name", ""): color
        for material in children(root, "material")
        if (color := _color(material)) is not None
    }
    elements, broken = {}, {}
    for link in children(root, "link"):
        name = link.get("name", "")
        usable, reasons = read_elements(link, "visual")
        if usable:
            elements[name] = tuple(
                VisualElement(shape, _color_of(visual, shared)) for visual, shape in usable
            )
        if reasons:
            broken[name] = reasons
    return Visuals(elements, broken)


def _color_of(visual: ElementTree.Element, shared: Mapping[str, Color]) -> Color | None:
    for material in children(visual, "material"):
        return _color(material) or shared.get(material.get("name", ""))
    return None


def _color(material: ElementTree.Element) -> Color | None:
    for color in children(material, "color"):
        numbers = [finite_number(word) for word in color.get("rgba", "").split()]
        if len(numbers) == 4 and all(number is not None and 0.0 <= number <= 1.0 for number in numbers):
            red, green, blue = (float(number or 0.0) for number in numbers[:3])
            return red, green, blue
    return None
