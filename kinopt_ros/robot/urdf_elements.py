"""Reader of URDF text: checked names, numbers and types, not yet a tree.

Only what kinematics needs is read and handed to urdf_parser_py: transmissions, materials, visuals,
sensors, simulator extensions and unknown elements never refuse a robot, nor do broken collision elements or masses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from urdf_parser_py import urdf as urdf_parser  # type: ignore[import-untyped, unused-ignore]

from kinopt_ros.errors import RobotDescriptionError, quoted, shortened
from kinopt_ros.robot.collision_elements import CollisionElement, read_collisions
from kinopt_ros.robot.inertials import Inertial, read_inertial
from kinopt_ros.robot.model import JointType
from kinopt_ros.robot.rate_limits import RateLimits, read_rate_limits
from kinopt_ros.robot.xml_text import (
    children,
    finite_number,
    parse_xml,
    refuse_long_name,
    refuse_substitution,
    refuse_xacro,
)

MAX_LINKS = 2_000
"""Most links, and most joints, that are read. Real robots have a few hundred; this many take about a second in any
shape, although a robot whose every link carries a leaf has groups of quadratic size."""

_VECTORS = {"origin": ("xyz", "rpy"), "axis": ("xyz",)}
_NUMBERS = {"limit": ("lower", "upper", "velocity"), "mimic": ("multiplier", "offset")}
_NAMES = {"parent": ("link",), "child": ("link",), "mimic": ("joint",)}


@dataclass(frozen=True)
class Limit:
    """``<limit>``: positions in rad or m, velocity in rad/s or m/s; None where not given."""

    lower: float
    upper: float
    velocity: float | None


@dataclass(frozen=True)
class Mimic:
    """``<mimic>``: value = multiplier * value of ``joint`` + offset."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class JointElement:
    """``<joint>`` as the file gives it; numbers are finite, the axis is not zero but has any length."""

    name: str
    type: JointType
    parent_link: str
    child_link: str
    xyz: tuple[float, ...]
    rpy: tuple[float, ...]
    axis: tuple[float, ...]
    limit: Limit | None
    mimic: Mimic | None
    rates: RateLimits


@dataclass(frozen=True)
class UrdfElements:
    """Links and joints in the order of the file."""

    name: str
    links: tuple[str, ...]
    joints: tuple[JointElement, ...]
    collisions: Mapping[str, tuple[CollisionElement, ...]]
    """Collision elements by link; links without any are missing."""
    broken_collisions: Mapping[str, tuple[str, ...]]
    """What is wrong with collision elements that cannot be used, by link; links without any are missing."""
    only_seen: tuple[str, ...]
    """Links with visual but without collision elements."""
    inertials: Mapping[str, Inertial]
    """Masses by link; links without a usable one are missing."""
    warnings: tuple[str, ...]


def read_urdf(text: str) -> UrdfElements:
    """Read links and joints of a URDF, and check each of them for itself.

    Raises:
        RobotDescriptionError: the message names the offending element.
    """
    root = parse_xml(text, "URDF")
    refuse_xacro(root)
    links, joints = children(root, "link"), children(root, "joint")
    for count, what in ((len(links), "links"), (len(joints), "joints")):
        if count > MAX_LINKS:
            raise RobotDescriptionError(f"the URDF has {count} {what}; at most {MAX_LINKS} are read")
    if not links:
        hint = (
            "; it looks like a xacro file whose content is missing: run xacro first"
            if "xacro" in text
            else ""
        )
        raise RobotDescriptionError(f"the URDF has no <link>{hint}")
    warnings: list[str] = []
    _check_names(links, "link")
    _check_names(joints, "joint")
    refuse_long_name(root.get("name") or "", "the name of the URDF's <robot>")
    clean = ElementTree.Element("robot", name=root.get("name") or "robot")
    if not root.get("name"):
        warnings.append("the URDF's <robot> has no name; it is called 'robot'")
    collisions, broken, inertials = {}, {}, {}
    for link in links:
        name = link.attrib["name"]
        ElementTree.SubElement(clean, "link", name=name)
        usable, reasons = read_collisions(link)
        if usable:
            collisions[name] = usable
        if reasons:
            broken[name] = reasons
            warnings.append(
                f"link {name!r} cannot be checked for collisions as a whole: {shortened(reasons, 3)}"
            )
        inertial, defects = read_inertial(link)
        if inertial is not None:
            inertials[name] = inertial
        if defects:
            said = "; ".join(f"{defect.what} (left out: {defect.loses})" for defect in defects)
            warnings.append(f"the <inertial> of link {name!r} is not used as it is: {said}")
    rates = []
    for joint in joints:
        refuse_xacro(joint)
        clean.append(_clean_joint(joint, warnings))
        limit = children(joint, "limit")  # urdf_parser_py does not know the attributes of URDF 1.2
        where = f"<limit> of joint {joint.attrib['name']!r}"
        rates.append(read_rate_limits(limit[0].attrib, where) if limit else RateLimits())
    parsed = urdf_parser.URDF.from_xml_string(ElementTree.tostring(clean))
    return UrdfElements(
        name=parsed.name,
        links=tuple(link.name for link in parsed.links),
        joints=tuple(_joint_element(joint, own) for joint, own in zip(parsed.joints, rates, strict=True)),
        collisions=collisions,
        broken_collisions=broken,
        only_seen=tuple(
            link.attrib["name"]
            for link in links
            if children(link, "visual") and not children(link, "collision")
        ),
        inertials=inertials,
        warnings=tuple(warnings),
    )


def _check_names(elements: list[ElementTree.Element], tag: str) -> None:
    seen: set[str] = set()
    for element in elements:
        name = element.get("name", "")
        if not name.strip():
            raise RobotDescriptionError(f"a <{tag}> has no name")
        refuse_substitution(name, f"the name of a <{tag}>")
        refuse_long_name(name, f"the name of a <{tag}>")
        if name != name.strip():  # SRDF's names are trimmed, as MoveIt does, and would never match
            raise RobotDescriptionError(f"the name {name!r} of a <{tag}> begins or ends with white space")
        if name in seen:
            raise RobotDescriptionError(f"two {tag}s are called {name!r}")
        seen.add(name)


def _clean_joint(joint: ElementTree.Element, warnings: list[str]) -> ElementTree.Element:
    """Return a copy with only the elements and attributes that matter, every number checked."""
    name = joint.attrib["name"]
    clean = ElementTree.Element("joint", name=name, type=_joint_type(joint).value)
    for tag in ("origin", "parent", "child", "axis", "limit", "mimic"):
        found = children(joint, tag)
        if len(found) > 1:
            warnings.append(f"joint {name!r} has {len(found)} <{tag}> elements; the first one counts")
        if not found:
            continue
        where = f"<{tag}> of joint {name!r}"
        copy = ElementTree.SubElement(clean, tag)
        for attribute in _VECTORS.get(tag, ()):
            _copy_numbers(found[0], copy, attribute, 3, where)
        for attribute in _NUMBERS.get(tag, ()):
            _copy_numbers(found[0], copy, attribute, 1, where)
        for attribute in _NAMES.get(tag, ()):
            value = found[0].get(attribute, "")
            if not value.strip():
                raise RobotDescriptionError(f"{where} names no {attribute}")
            refuse_substitution(value, f"{attribute} in {where}")
            refuse_long_name(value, f"{attribute} in {where}")
            copy.set(attribute, value)
        if tag == "limit":  # urdf_parser_py requires both; 0 stands for "not given"
            copy.set("effort", "0")
            copy.set("velocity", copy.get("velocity", "0"))
    for tag in ("parent", "child"):
        if clean.find(tag) is None:
            raise RobotDescriptionError(f"joint {name!r} has no <{tag}>")
    axis = clean.find("axis")
    if axis is not None and "xyz" not in axis.attrib:
        clean.remove(axis)
    return clean


def _joint_type(joint: ElementTree.Element) -> JointType:
    given = joint.get("type", "")
    refuse_substitution(given, f"the type of joint {joint.get('name')!r}")
    try:
        return JointType(given)
    except ValueError:
        known = ", ".join(kind.value for kind in JointType)
        raise RobotDescriptionError(
            f"joint {joint.get('name')!r} has the unknown type {quoted(given)}; known: {known}"
        ) from None


def _copy_numbers(
    source: ElementTree.Element, target: ElementTree.Element, attribute: str, count: int, where: str
) -> None:
    """Copy an attribute of so many finite numbers, if it is there."""
    text = source.get(attribute)
    if text is None:
        return
    refuse_substitution(text, f"{attribute} in {where}")
    words = text.split()
    if len(words) != count:
        raise RobotDescriptionError(
            f"{attribute}={quoted(text)} in {where} has {len(words)} numbers, not {count}"
        )
    for word in words:
        if finite_number(word) is None:
            raise RobotDescriptionError(
                f"{attribute}={quoted(text)} in {where}: {quoted(word)} is no finite number"
            )
    target.set(attribute, " ".join(words))


def _joint_element(parsed: urdf_parser.Joint, rates: RateLimits) -> JointElement:
    origin, limit, mimic = parsed.origin, parsed.limit, parsed.mimic
    return JointElement(
        name=parsed.name,
        type=JointType(parsed.type),
        parent_link=parsed.parent,
        child_link=parsed.child,
        xyz=_triple(origin.xyz if origin else None, (0.0, 0.0, 0.0)),
        rpy=_triple(origin.rpy if origin else None, (0.0, 0.0, 0.0)),
        axis=_triple(parsed.axis, (1.0, 0.0, 0.0)),
        limit=None
        if limit is None
        else Limit(limit.lower or 0.0, limit.upper or 0.0, limit.velocity or None),
        mimic=None
        if mimic is None
        else Mimic(
            mimic.joint,
            1.0 if mimic.multiplier is None else mimic.multiplier,
            0.0 if mimic.offset is None else mimic.offset,
        ),
        rates=rates,
    )


def _triple(values: list[float] | None, default: tuple[float, ...]) -> tuple[float, ...]:
    return default if values is None else tuple(float(value) for value in values)
