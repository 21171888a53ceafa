"""Parser for robot descriptions in XML: without DTDs or entities, and with errors that say what to do."""

import math
import re
from xml.etree import ElementTree

from kinopt_ros.errors import RobotDescriptionError, quoted
from kinopt_ros.plain_xml import RefusedXmlError, parse_plain_xml

MAX_TEXT_LENGTH = 16 * 1024 * 1024
"""Longest description that is read, in characters."""
MAX_NAME_LENGTH = 200
"""Longest name of a link, joint, group or state, characters."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_XACRO_NAMESPACES = ("ros.org/wiki/xacro", "playerstage.sourceforge.net/gazebo/xmlschema/#xacro")
_RUN_XACRO = "this is a xacro file, not URDF: run xacro first (`xacro robot.urdf.xacro > robot.urdf`)"


def parse_xml(text: str, what: str) -> ElementTree.Element:
    """Parse an XML text whose root tag is ``robot``; return the root element.

    Args:
        text: the document.
        what: what it is called in messages, such as "URDF".

    Raises:
        RobotDescriptionError: empty, too long, not XML, with a document type or entities, or another root.
    """
    if not isinstance(text, str):
        raise RobotDescriptionError(f"the {what} must be text, not {type(text).__name__}")
    if not text.strip():
        raise RobotDescriptionError(f"the {what} is empty")
    if len(text) > MAX_TEXT_LENGTH:
        raise RobotDescriptionError(
            f"the {what} has {len(text)} characters; at most {MAX_TEXT_LENGTH} are read"
        )
    try:
        root = parse_plain_xml(text.lstrip("\ufeff \t\r\n"))
    except RefusedXmlError as error:
        if "<xacro:" in text:
            raise RobotDescriptionError(f"the {what} is not XML ({error}); {_RUN_XACRO}") from None
        raise RobotDescriptionError(f"the {what} {error}") from None
    if local_name(root) != "robot":
        raise RobotDescriptionError(
            f"the {what}'s root element is <{local_name(root)[:MAX_NAME_LENGTH]}>, not <robot>"
        )
    return root


def finite_number(word: str) -> float | None:
    """Return the number that a word is in C's notation, or None.

    None for other notations that Python reads (1_0, other scripts' digits), for words, and for what is not finite.
    """
    number = float(word) if _NUMBER.match(word) else math.inf
    return number if math.isfinite(number) else None


def local_name(element: ElementTree.Element) -> str:
    """Return the tag without its namespace."""
    return str(element.tag).rpartition("}")[2]


def namespace(element: ElementTree.Element) -> str:
    """Return the namespace of the tag, empty if there is none."""
    return str(element.tag).rpartition("}")[0]


def children(element: ElementTree.Element, tag: str) -> list[ElementTree.Element]:
    """Return the children with this tag that are in the element's own namespace."""
    own = namespace(element)
    return [child for child in element if local_name(child) == tag and namespace(child) == own]


def refuse_xacro(element: ElementTree.Element) -> None:
    """Raise RobotDescriptionError if the element or one of its children is a xacro instruction."""
    for part in (element, *element):
        if any(mark in namespace(part) for mark in _XACRO_NAMESPACES):
            raise RobotDescriptionError(
                f"unprocessed <xacro:{local_name(part)[:MAX_NAME_LENGTH]}>: {_RUN_XACRO}"
            )


def refuse_long_name(name: str, what: str) -> None:
    """Raise RobotDescriptionError for a name that messages could not show."""
    if len(name) > MAX_NAME_LENGTH:
        raise RobotDescriptionError(
            f"{what} is {quoted(name, 60)}; allowed are at most {MAX_NAME_LENGTH} characters"
        )


def refuse_substitution(value: str, where: str) -> None:
    """Raise RobotDescriptionError if a value still holds ``${...}`` or ``$(...)``."""
    if "${" in value or "$(" in value:
        raise RobotDescriptionError(f"{where} is the unprocessed expression {quoted(value)}: {_RUN_XACRO}")
