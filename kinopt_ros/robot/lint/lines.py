"""XML elements that know their line."""

from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from kinopt_ros.plain_xml import MOST_TAGS
from kinopt_ros.robot.lint.finding import Finding, Severity
from kinopt_ros.robot.xml_text import MAX_TEXT_LENGTH


@dataclass
class Node:
    """An element."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list["Node"] = field(default_factory=list)

    def all(self, tag: str) -> list["Node"]:
        """Return the children with a tag."""
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> "Node | None":
        """Return the first child with a tag."""
        return next(iter(self.all(tag)), None)

    def get(self, name: str, default: str = "") -> str:
        """Return an attribute without white space around it."""
        return self.attributes.get(name, default).strip()


def parse_lines(text: str, what: str) -> Node | Finding:
    """Parse a text; return the root element, or why there is none."""
    tags = text.count("<")
    if len(text) > MAX_TEXT_LENGTH or tags > MOST_TAGS:
        size = f"{len(text)} characters and {tags} tags; at most {MAX_TEXT_LENGTH} and {MOST_TAGS} are read"
        return Finding(Severity.ERROR, 0, f"the {what} has {size}", "give a smaller file")
    body = text.lstrip("\ufeff \t\r\n")
    above = text[: len(text) - len(body)].count("\n")  # lines that the parser does not see
    stack: list[Node] = [Node("", {}, 0)]
    parser: Any = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        node = Node(tag, attributes, above + parser.CurrentLineNumber)
        stack[-1].children.append(node)
        stack.append(node)

    def end(tag: str) -> None:
        del tag
        stack.pop()

    doctype: list[int] = []
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = lambda *_: doctype.append(above + parser.CurrentLineNumber)
    try:
        # Entities can only be declared in a document type; none is expanded before it is refused.
        parser.EntityDeclHandler = lambda *_: (_ for _ in ()).throw(expat.ExpatError("entities"))
        parser.Parse(body, True)
    except UnicodeEncodeError:
        return Finding(Severity.ERROR, 0, f"the {what} has half of a surrogate pair", "write it in UTF-8")
    except expat.ExpatError as error:
        if doctype:
            return _doctype(what, doctype[0])
        line = above + error.lineno
        xacro = "run xacro first, if it is a xacro file; else " if "<xacro:" in text else ""
        return Finding(
            Severity.ERROR,
            line,
            f"the {what} is not well-formed XML: {expat.ErrorString(error.code)}, column {error.offset + 1}",
            f"{xacro}mend it at that place",
        )
    if doctype:
        return _doctype(what, doctype[0])
    root = stack[0].children[0]
    if root.tag != "robot":
        return Finding(
            Severity.ERROR,
            root.line,
            f"the {what}'s root element is <{root.tag[:200]}>, not <robot>",
            f"give a {what} file",
        )
    return root


def _doctype(what: str, line: int) -> Finding:
    return Finding(
        Severity.ERROR,
        line,
        f"the {what} declares a document type",
        "remove <!DOCTYPE ...>: entities are refused",
    )
