"""Parser for XML from untrusted sources: document types, the only place where entities can be declared, are refused."""

from xml.etree import ElementTree

MOST_TAGS = 500_000
"""Most tags of a text. Each element takes some hundred bytes of memory."""
DEEPEST = 200
"""Deepest nesting of elements. Code that reads or writes a tree calls itself for each level."""
_PIECE = 32 * 1024
"""Characters or bytes that are parsed at a time."""


class RefusedXmlError(Exception):
    """A text is not acceptable XML; the message is the end of a sentence."""


class _PlainTreeBuilder(ElementTree.TreeBuilder):
    """Builds elements; a document type ends the parse."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise RefusedXmlError("declares a document type (<!DOCTYPE ...>); entities are refused")


def parse_plain_xml(text: str | bytes) -> ElementTree.Element:
    """Parse an XML text; return its root element.

    Raises:
        RefusedXmlError: it is not well-formed, declares a document type, has too many tags, or is nested too deeply.
    """
    # Tags of UTF-16 count, too: their first byte is the same.
    tags = text.count(b"<") if isinstance(text, bytes) else text.count("<")
    if tags > MOST_TAGS:
        raise RefusedXmlError(f"has {tags} tags; at most {MOST_TAGS} are read")
    parser = ElementTree.XMLParser(target=_PlainTreeBuilder())
    try:
        for begin in range(0, len(text), _PIECE):  # between two pieces other threads have their turn
            parser.feed(text[begin : begin + _PIECE])
        root: ElementTree.Element = parser.close()
    except (ElementTree.ParseError, UnicodeError, ValueError, LookupError) as error:
        raise RefusedXmlError(f"is not well-formed XML: {error}") from None
    level = [root]
    for _ in range(DEEPEST):
        level = [child for element in level for child in element]
    if level:
        raise RefusedXmlError(f"has more than {DEEPEST} elements within one another")
    return root
