"""Mutations of XML: of its elements, and of its text."""

from copy import deepcopy
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from fuzz.source import ODD_TEXTS, Source

_LONG = 2_500


def changed_xml(source: Source, seed: str) -> str:
    """An XML text like a good one."""
    if source.often(0.02):
        return _odd_document(source)
    root = ElementTree.fromstring(seed)
    for _ in range(source.choice((0, 1, 1, 1, 2, 3, 8))):
        _change(source, root)
    text = ElementTree.tostring(root, encoding="unicode")
    if source.often(0.02):
        text = _with_entities(source, text)
    return source.torn(text) if source.often(0.15) else text


def _change(source: Source, root: ElementTree.Element) -> None:
    elements = list(root.iter())
    element = source.choice(elements)
    other = source.choice(elements)
    what = source.randrange(9)
    if what <= 3 and element.attrib:
        key = source.choice(sorted(element.attrib))
        known = [value for e in elements for value in e.attrib.values()]
        element.set(key, source.choice(ODD_TEXTS) if source.often(0.5) else source.name(known))
    elif what == 4 and element.attrib:
        del element.attrib[source.choice(sorted(element.attrib))]
    elif what == 5 and len(element):
        element.remove(source.choice(list(element)))
    elif what == 6 and len(element) and len(elements) < 3000:
        times = source.choice((1, 1, 2, 5)) if source.often(0.97) else _LONG
        child = source.choice(list(element))
        copies = [_renamed(source, child) if source.often(0.5) else child for _ in range(times)]
        element.extend(copies)
    elif what == 7 and other is not element and element not in list(other.iter()):
        element.append(other) if not _contains(other, element) else None
    else:
        element.tag = source.choice(("joint", "link", "group", "a", "xacro:if", "mesh", "mimic", "chain"))


def _renamed(source: Source, element: ElementTree.Element) -> ElementTree.Element:
    copy = deepcopy(element)
    if "name" in copy.attrib:
        copy.set("name", f"{copy.get('name')}_{source.randrange(10**9)}")
    return copy


def _contains(element: ElementTree.Element, wanted: ElementTree.Element) -> bool:
    return any(part is wanted for part in element.iter())


def _with_entities(source: Source, text: str) -> str:
    levels = "".join(
        f"<!ENTITY e{i} {quoteattr(f'&e{i - 1};' * 10 if i else 'x' * 10)}>".replace("&amp;", "&")
        for i in range(8)
    )
    system = source.choice(
        ("", '<!ENTITY f SYSTEM "file:///etc/passwd">', '<!ENTITY % p SYSTEM "http://x/y">%p;')
    )
    return f"<!DOCTYPE robot [{levels}{system}]>" + text.replace(">", ">&e7;", 1)


def _odd_document(source: Source) -> str:
    count = source.choice((10, 1000, 100_000))
    return source.choice(
        (
            "",
            "<robot/>",
            "<robot name='a'>" + "<a>" * count + "</a>" * count + "</robot>",
            "<robot name='a'>" + "<a b='c'/>" * count + "</robot>",
            "<robot name='" + "x" * count + "'/>",
            "<" + "r" * count + "/>",
            "<robot " + " ".join(f"a{i}=''" for i in range(count)) + "/>",
            "<robot name='a'>" + "<!-- -->" * count + "</robot>",
            "<robot name='a'>" + "x" * count + "</robot>",
            "\0" * count,
            "\ufeff<robot",
            "<?xml version='1.0' encoding='utf-16'?><robot/>",
            "<?xml version='1.0' encoding='nonsense'?><robot/>",
            "".join(chr(source.randrange(1, 0xD7FF)) for _ in range(min(count, 1000))),
        )
    )
