"""XML from strangers: parsed without DTDs or entities, refused with a sentence that says what to do."""

import math
import re
from xml.etree import ElementTree

from kinopt_ros.errors import RobotDescriptionError

MAX_TEXT_LENGTH = 16 * 1024 * 1024
"""Longest description that is read, in characters."""
_PIECE = 32 * 1024
"""Characters that are parsed at a time."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_XACRO_NAMESPACES = ("ros.org/wiki/xacro", "playerstage.sourceforge.net/gazebo/xmlschema/#xacro")
_RUN_XACRO = "this is a xacro file, not URDF: run xacro first (`xacro robot.urdf.xacro > robot.urdf`)"


class _RefusedDoctypeError(Exception):
    """Raised inside the parser when a document type declaration begins."""


class _PlainTreeBuilder(ElementTree.TreeBuilder):
    """Builds elements; a document type, the only place where entities can be declared, ends the parse."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise _RefusedDoctypeError(name)


def parse_xml(text: str, what: str) -> ElementTree.Element:
    """Root element of an XML text whose root tag is ``robot``.

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
    parser = ElementTree.XMLParser(target=_PlainTreeBuilder())
    try:
        text = text.lstrip("\ufeff \t\r\n")
        for begin in range(0, len(text), _PIECE):  # between two pieces other threads have their turn
            parser.feed(text[begin : begin + _PIECE])
        root = parser.close()
    except _RefusedDoctypeError:
        raise RobotDescriptionError(
            f"the {what} declares a document type (<!DOCTYPE ...>); entities are refused"
        ) from None
    except (ElementTree.ParseError, UnicodeError, ValueError) as error:
        if "<xacro:" in text:
            raise RobotDescriptionError(f"the {what} is not XML ({error}); {_RUN_XACRO}") from None
        raise RobotDescriptionError(f"the {what} is not well-formed XML: {error}") from None
    if local_name(root) != "robot":
        raise RobotDescriptionError(f"the {what}'s root element is <{local_name(root)}>, not <robot>")
    return root


def finite_number(word: str) -> float | None:
    """The number that a word is in C's notation; None for other notations that Python reads (1_0, other scripts'
    digits), for words, and for what is not finite."""
    number = float(word) if _NUMBER.match(word) else math.inf
    return number if math.isfinite(number) else None


def local_name(element: ElementTree.Element) -> str:
    """Tag without its namespace."""
    return str(element.tag).rpartition("}")[2]


def namespace(element: ElementTree.Element) -> str:
    """Namespace of the tag, empty if there is none."""
    return str(element.tag).rpartition("}")[0]


def children(element: ElementTree.Element, tag: str) -> list[ElementTree.Element]:
    """Children with this tag that are in the element's own namespace."""
    own = namespace(element)
    return [child for child in element if local_name(child) == tag and namespace(child) == own]


def refuse_xacro(element: ElementTree.Element) -> None:
    """Raise RobotDescriptionError if the element or one of its children is a xacro instruction."""
    for part in (element, *element):
        if any(mark in namespace(part) for mark in _XACRO_NAMESPACES):
            raise RobotDescriptionError(f"unprocessed <xacro:{local_name(part)}>: {_RUN_XACRO}")


def refuse_substitution(value: str, where: str) -> None:
    """Raise RobotDescriptionError if a value still holds ``${...}`` or ``$(...)``."""
    if "${" in value or "$(" in value:
        raise RobotDescriptionError(f"{where} is the unprocessed expression {value!r}: {_RUN_XACRO}")
