"""Masses of links, from the ``<inertial>`` elements of URDF.

A broken element never refuses a robot: kinematics does without it. What of it cannot be used is left out with a reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias
from xml.etree import ElementTree

import numpy as np

from kinopt_ros.array import Float64, Immutable, taken_over
from kinopt_ros.errors import quoted
from kinopt_ros.robot.poses import pose_of_xyz_rpy
from kinopt_ros.robot.xml_text import children, finite_number

LARGEST_INERTIAL = 1e12
"""Largest mass (kg), coordinate (m) and moment of inertia (kg m^2) that is read; larger ones are taken for defects, as
their products overflow."""
OTHERS = "the others"
"""What a defect of repeated elements loses."""
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")

Attributes: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Inertial(Immutable):
    """Mass of one link, in the link's frame."""

    mass: float
    """kg, not negative."""
    center_of_mass: Annotated[Float64, "3"]
    """m, in the link's frame."""
    inertia: Annotated[Float64, "3 3"] | None = None
    """Inertia about the center of mass along the axes of the link's frame, kg m^2, as the description gives it: nothing
    says that a body could have it. None if the description has none that can be used."""

    def __post_init__(self) -> None:
        taken_over(self, "center_of_mass", "inertia")


@dataclass(frozen=True)
class InertialDefect:
    """What is wrong with an ``<inertial>`` element."""

    tag: str
    """Its child that is to blame, or ``inertial`` itself."""
    what: str
    """The end of a sentence about the element."""
    loses: str
    """What is left out because of it."""


class _BrokenError(Exception):
    """What is wrong with a child of the element, as the end of a sentence."""

    def __init__(self, tag: str, what: str) -> None:
        super().__init__(what)
        self.tag = tag


def read_inertial(link: ElementTree.Element) -> tuple[Inertial | None, tuple[InertialDefect, ...]]:
    """Read the ``<inertial>`` element of a link: None if there is none with a usable mass, and what is wrong."""
    found = children(link, "inertial")
    if not found:
        return None, ()
    parts = {tag: children(found[0], tag) for tag in ("mass", "origin", "inertia")}
    return inertial_of(len(found), {tag: [part.attrib for part in of_tag] for tag, of_tag in parts.items()})


def inertial_of(
    count: int, parts: Mapping[str, list[Attributes]]
) -> tuple[Inertial | None, tuple[InertialDefect, ...]]:
    """Make an Inertial of attributes.

    Args:
        count: how many ``<inertial>`` elements the link has; the first counts.
        parts: attributes of the children called ``mass``, ``origin`` and ``inertia`` of the first one; of several with
            one name the first counts.

    Returns:
        The inertial, None without a usable mass and place of it; and what is wrong.
    """
    defects = [
        InertialDefect(tag, f"there are {n} <{tag}> elements; the first one counts", OTHERS)
        for tag, n in (("inertial", count), *((tag, len(found)) for tag, found in parts.items()))
        if n > 1
    ]
    mass, origin, inertia = (next(iter(parts[tag]), None) for tag in ("mass", "origin", "inertia"))
    matrix = None
    try:
        kilograms = _mass(mass)
        xyz = (0.0, 0.0, 0.0) if origin is None or "xyz" not in origin else _numbers(origin, "origin", "xyz")
    except _BrokenError as error:
        return None, (*defects, InertialDefect(error.tag, str(error), "the mass"))
    try:
        matrix = None if inertia is None else _inertia(inertia, origin)
    except _BrokenError as error:
        defects.append(InertialDefect(error.tag, str(error), "the inertia"))
    return Inertial(kilograms, np.array(xyz), matrix), tuple(defects)


def _mass(mass: Attributes | None) -> float:
    if mass is None:
        raise _BrokenError("mass", "it has no <mass>")
    (kilograms,) = _numbers(mass, "mass", "value", 1)
    if kilograms < 0.0:
        raise _BrokenError("mass", f"its mass is {kilograms:g}; allowed is 0 kg and more")
    return kilograms


def _inertia(inertia: Attributes, origin: Attributes | None) -> Annotated[Float64, "3 3"]:
    xx, xy, xz, yy, yz, zz = (_numbers(inertia, "inertia", name, 1)[0] for name in _MOMENTS)
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if origin is None or "rpy" not in origin:
        return matrix
    R = pose_of_xyz_rpy((0.0, 0.0, 0.0), _numbers(origin, "origin", "rpy"))[:3, :3]
    turned = R @ matrix @ R.T
    symmetric: Float64 = 0.5 * (turned + turned.T)
    return symmetric


def _numbers(attributes: Attributes, tag: str, name: str, count: int = 3) -> list[float]:
    text = attributes.get(name)
    if text is None:
        raise _BrokenError(tag, f"its <{tag}> has no {name}")
    numbers = [finite_number(word) for word in text.split()]
    usable = [number for number in numbers if number is not None and abs(number) <= LARGEST_INERTIAL]
    if len(numbers) != count or len(usable) != count:
        wanted = "one number" if count == 1 else f"{count} numbers"
        raise _BrokenError(
            tag, f"its <{tag}> has {name}={quoted(text)}; allowed is {wanted} of at most {LARGEST_INERTIAL:g}"
        )
    return usable
