"""Checks of mesh files before a parser reads them: what they announce must be there and be of bounded size.

Parsers believe a file that announces a hundred million points in a few hundred bytes, and put a shape that is named a
thousand times to a thousand places.
"""

import re
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree

from kinopt_ros.errors import InvalidShapeError, quoted
from kinopt_ros.files import read_bytes
from kinopt_ros.geometry.shapes import MAX_POINTS
from kinopt_ros.plain_xml import MOST_TAGS, RefusedXmlError, parse_plain_xml

LARGEST_FILE = {"stl": 64, "glb": 64, "ply": 64, "dae": 32, "obj": 32, "off": 32}
"""Largest file by format, MiB. Parsers need ten to twenty times as much for text; a binary STL of a million triangles
has 48."""
_LARGEST_TEXT = 32 * 2**20
"""Largest PLY file that is text, bytes."""
_MOST_PLACES = 2_000
"""Most places of shapes in one COLLADA file."""
_DEEPEST = 50
APPEARANCE = {
    "bind_material",
    "instance_camera",
    "instance_light",
    "library_cameras",
    "library_effects",
    "library_images",
    "library_lights",
    "library_materials",
}
"""Elements of COLLADA that have nothing to do with shape."""


def mesh_format(path: Path) -> str:
    """Return the format that a file's name tells. Raises ``InvalidShapeError`` if it is none that is read."""
    file_type = path.suffix.lower().removeprefix(".")
    if file_type not in sorted(LARGEST_FILE):
        raise InvalidShapeError(
            f"mesh {quoted(str(path), 300)} is no file of a known format; known are {', '.join(sorted(LARGEST_FILE))}"
        )
    return file_type


def read_mesh(path: Path) -> bytes:
    """Read the content of a file. Raises ``InvalidShapeError`` if its format is unknown, it is too large, or it cannot
    be read."""
    most = round(LARGEST_FILE[mesh_format(path)] * 2**20)
    return read_bytes(path, most, f"mesh {quoted(str(path), 300)}", InvalidShapeError)


def looked_at(content: bytes, file_type: str) -> bytes:
    """Check the content of a file; return what a parser may see, without what does not matter for shape.

    Raises:
        InvalidShapeError: it is not of its format, or announces more than is read; the message is the end of a
            sentence.
    """
    return _LOOKS[file_type](content)


def _stl(content: bytes) -> bytes:
    announced = struct.unpack("<I", content[80:84])[0] if len(content) >= 84 else 0
    end = 84 + 50 * announced
    if announced and len(content) >= end:
        _require_count(announced, "triangles")
        return content[:end]
    if content[:512].lstrip()[:5].lower() != b"solid":
        raise InvalidShapeError(
            f"has no triangles: it is no text, and as a binary file announces {announced} in {len(content)} bytes"
        )
    return _text(content)


def _text(content: bytes) -> bytes:
    """Return the content of a text file, or raise InvalidShapeError if it has zero bytes, as holes in a file do."""
    if b"\0" in content:
        raise InvalidShapeError("is no text: it has zero bytes")
    return content


def _off(content: bytes) -> bytes:
    counts = re.findall(rb"-?[0-9]+", re.sub(rb"#[^\n]*", b"", _text(content)[:10_000]).lstrip()[3:])[:3]
    for count, what in zip(counts, ("vertices", "faces"), strict=False):
        _require_announced(count, what, len(content))
    return content


def _ply(content: bytes) -> bytes:
    header, end, _ = content[:100_000].partition(b"end_header")
    if not content.startswith(b"ply") or not end:
        raise InvalidShapeError("has no header of a PLY file")
    if b"format ascii" in header:
        _text(content)
        if len(content) > _LARGEST_TEXT:
            raise InvalidShapeError(f"has {len(content)} bytes of text; at most {_LARGEST_TEXT} are read")
    for name, count in re.findall(rb"element[ \t]+(\S+)[ \t]+(\S+)", header):
        _require_announced(count, name.decode(errors="replace"), len(content))
    return content


def _dae(content: bytes) -> bytes:
    """Return a COLLADA document without appearance."""
    try:
        root = parse_plain_xml(content)
    except RefusedXmlError as error:
        raise InvalidShapeError(f"cannot be read as dae: it {error}") from None
    for element in root.iter():
        for child in [child for child in element if _tag(child) in APPEARANCE]:
            element.remove(child)
    _require_few_places(root)
    return ElementTree.tostring(root)


def _require_few_places(root: ElementTree.Element) -> None:
    """Count places and corners of shapes without putting them there."""
    named: dict[str, list[ElementTree.Element]] = {}
    for element in root.iter():
        if element.get("id"):
            named.setdefault(element.get("id", ""), []).append(element)
    corners = {id: sum(map(_corners, elements)) for id, elements in named.items() if _has_geometry(elements)}
    most = max(corners.values(), default=0)
    known: dict[str, tuple[int, int]] = {}
    looks = 0

    def places_below(element: ElementTree.Element, path: tuple[str, ...]) -> tuple[int, int]:
        nonlocal looks
        places = total = 0
        for child in element.iter():
            looks += 1
            if looks > 4 * MOST_TAGS:  # nodes within nodes that are all placed elsewhere, too
                raise InvalidShapeError("has nodes that take too long to follow")
            id = child.get("url", "").removeprefix("#")
            if _tag(child) == "instance_geometry":
                places, total = places + 1, total + corners.get(id, 0)
            elif _tag(child) == "instance_controller":
                places, total = places + 1, total + most
            elif _tag(child) in ("instance_node", "instance_visual_scene"):
                if id in path or len(path) > _DEEPEST:
                    raise InvalidShapeError(
                        "has nodes that contain themselves, or that are nested too deeply"
                    )
                if id not in known:
                    below = [places_below(one, (*path, id)) for one in named.get(id, [])]
                    known[id] = sum(p for p, _ in below), sum(t for _, t in below)
                places, total = places + known[id][0], total + known[id][1]
        return places, total

    for scene in (element for element in root if _tag(element) in ("scene", "library_visual_scenes")):
        places, total = places_below(scene, ())
        if places > _MOST_PLACES:
            raise InvalidShapeError(f"puts its shapes to {places} places; at most {_MOST_PLACES} are read")
        _require_count(total, "numbers of corners in all its places", 12 * MAX_POINTS)


def _has_geometry(elements: list[ElementTree.Element]) -> bool:
    return any(_tag(element) == "geometry" for element in elements)


def _corners(geometry: ElementTree.Element) -> int:
    """Count the numbers in the lists of corners, about."""
    texts = [part.text or "" for part in geometry.iter() if _tag(part) in ("p", "h")]
    return sum(1 + sum(text.count(space) for space in " \n\t\r") for text in texts)


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _require_announced(count: bytes, what: str, size: int) -> None:
    """Raise if a file announces more things than it has bytes: each takes at least one."""
    if not re.fullmatch(rb"[0-9]{1,12}", count) or int(count) > size:
        raise InvalidShapeError(
            f"announces {quoted(count.decode(errors='replace'))} {quoted(what)}, which {size} bytes cannot hold"
        )
    if what in ("vertices", "vertex", "faces", "face"):
        _require_count(int(count), what)


def _require_count(given: int, kind: str, most: int = MAX_POINTS) -> None:
    if given > most:
        raise InvalidShapeError(f"has {given} {kind}; allowed are {most}")


_LOOKS: Mapping[str, Callable[[bytes], bytes]] = {
    "stl": _stl,
    "obj": _text,
    "off": _off,
    "ply": _ply,
    "dae": _dae,
}
