"""Reader of SRDF text: names and numbers, not yet compared with the robot."""

from dataclasses import dataclass
from xml.etree import ElementTree

from kinopt_ros.errors import RobotDescriptionError, quoted
from kinopt_ros.robot.xml_text import (
    children,
    finite_number,
    parse_xml,
    refuse_long_name,
    refuse_substitution,
    refuse_xacro,
)

MAX_GROUPS = 1_000
"""Most groups of an SRDF."""
MAX_CHAINS = 1_000
"""Most chains of all groups."""
MAX_STATES = 10_000
"""Most named states."""


@dataclass(frozen=True)
class GroupElement:
    """``<group>``."""

    name: str
    joints: tuple[str, ...]
    links: tuple[str, ...]
    chains: tuple[tuple[str, str], ...]
    """(base link, tip link)"""
    groups: tuple[str, ...]


@dataclass(frozen=True)
class StateElement:
    """``<group_state>``: the numbers of every joint, as many as the file gives."""

    name: str
    group: str
    values: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True)
class EndEffectorElement:
    """``<end_effector>``."""

    name: str
    group: str
    parent_link: str
    parent_group: str | None


@dataclass(frozen=True)
class VirtualJointElement:
    """``<virtual_joint>``."""

    name: str
    type: str
    parent_frame: str
    child_link: str


@dataclass(frozen=True)
class SpheresElement:
    """``<link_sphere_approximation>``: the attributes of its spheres as text, since broken ones refuse no robot."""

    link: str
    spheres: tuple[tuple[str, str], ...]
    """(center, radius)"""


@dataclass(frozen=True)
class SrdfElements:
    """Everything of an SRDF that is used, in the order of the file."""

    name: str
    groups: tuple[GroupElement, ...]
    states: tuple[StateElement, ...]
    end_effectors: tuple[EndEffectorElement, ...]
    virtual_joints: tuple[VirtualJointElement, ...]
    passive_joints: tuple[str, ...]
    disabled_links: tuple[str, ...]
    """``<disable_default_collisions>``: links that collide with nothing unless a pair is enabled."""
    enabled_pairs: tuple[tuple[str, str], ...]
    disabled_pairs: tuple[tuple[str, str], ...]
    spheres: tuple[SpheresElement, ...]


def read_srdf(text: str) -> SrdfElements:
    """Read the elements of an SRDF.

    Raises:
        RobotDescriptionError: not XML, not SRDF, a missing attribute, or a number that is none; unknown
            elements are no error.
    """
    root = parse_xml(text, "SRDF")
    refuse_xacro(root)
    for element in root:
        refuse_xacro(element)
    for tag, most in (("group", MAX_GROUPS), ("group_state", MAX_STATES)):
        count = len(children(root, tag))
        if count > most:
            raise RobotDescriptionError(f"the SRDF has {count} <{tag}> elements; at most {most} are read")
    chains = sum(len(children(group, "chain")) for group in children(root, "group"))
    if chains > MAX_CHAINS:
        raise RobotDescriptionError(f"the SRDF has {chains} <chain> elements; at most {MAX_CHAINS} are read")
    return SrdfElements(
        name=_robot_name(root),
        groups=tuple(_group(element) for element in children(root, "group")),
        states=tuple(_state(element) for element in children(root, "group_state")),
        end_effectors=tuple(
            EndEffectorElement(
                _need(element, "name"),
                _need(element, "group"),
                _need(element, "parent_link"),
                _need(element, "parent_group") if element.get("parent_group", "").strip() else None,
            )
            for element in children(root, "end_effector")
        ),
        virtual_joints=tuple(
            VirtualJointElement(
                _need(element, "name"),
                _need(element, "type"),
                _need(element, "parent_frame"),
                _need(element, "child_link"),
            )
            for element in children(root, "virtual_joint")
        ),
        passive_joints=tuple(_need(element, "name") for element in children(root, "passive_joint")),
        disabled_links=tuple(
            _need(element, "link") for element in children(root, "disable_default_collisions")
        ),
        enabled_pairs=_pairs(root, "enable_collisions"),
        disabled_pairs=_pairs(root, "disable_collisions"),
        spheres=tuple(
            SpheresElement(
                _need(element, "link"),
                tuple((s.get("center", ""), s.get("radius", "")) for s in children(element, "sphere")),
            )
            for element in children(root, "link_sphere_approximation")
        ),
    )


def _robot_name(root: ElementTree.Element) -> str:
    name = root.get("name", "")
    refuse_long_name(name, "the name of the SRDF's <robot>")
    return name


def _group(element: ElementTree.Element) -> GroupElement:
    return GroupElement(
        name=_need(element, "name"),
        joints=tuple(_need(child, "name") for child in children(element, "joint")),
        links=tuple(_need(child, "name") for child in children(element, "link")),
        chains=tuple(
            (_need(child, "base_link"), _need(child, "tip_link")) for child in children(element, "chain")
        ),
        groups=tuple(_need(child, "name") for child in children(element, "group")),
    )


def _state(element: ElementTree.Element) -> StateElement:
    name, group = _need(element, "name"), element.get("group", "").strip()
    refuse_long_name(group, f"group of group_state {name!r} in the SRDF")
    values = []
    for joint in children(element, "joint"):
        where = f"value of joint {_need(joint, 'name')!r} in group_state {name!r}"
        values.append((_need(joint, "name"), _numbers(_need(joint, "value"), where)))
    return StateElement(name, group, tuple(values))


def _pairs(root: ElementTree.Element, tag: str) -> tuple[tuple[str, str], ...]:
    return tuple((_need(element, "link1"), _need(element, "link2")) for element in children(root, tag))


def _need(element: ElementTree.Element, attribute: str) -> str:
    value = element.get(attribute, "").strip()
    tag = str(element.tag).rpartition("}")[2]
    if not value:
        name = f" {quoted(element.attrib['name'])}" if element.get("name") else ""
        raise RobotDescriptionError(f"the SRDF's <{tag}>{name} has no {attribute}")
    refuse_substitution(value, f"{attribute} of <{tag}> in the SRDF")
    if attribute != "value":
        refuse_long_name(value, f"{attribute} of <{tag}> in the SRDF")
    return value


def _numbers(text: str, where: str) -> tuple[float, ...]:
    numbers = []
    for word in text.split():
        number = finite_number(word)
        if number is None:
            raise RobotDescriptionError(f"the {where} is {quoted(text)}, which is not finite numbers")
        numbers.append(number)
    return tuple(numbers)
