"""Mesh files of all formats, and names of meshes."""

from functools import cache
from pathlib import Path

import trimesh

from fuzz.source import Source
from kinopt_ros.geometry.meshes import closed_mesh, convex_hull, load_mesh, read_triangles

_BOX = trimesh.creation.box([2.0, 2.0, 2.0])
CUBE = _BOX.export(file_type="stl")
_TEXT = ("obj", "off", "ply_ascii", "stl_ascii", "dae")


@cache
def _good() -> dict[str, bytes]:
    made = {}
    scene = trimesh.Scene([_BOX, _BOX.copy().apply_translation([5.0, 0.0, 0.0])])
    for name in ("stl", "stl_ascii", "obj", "off", "glb", "dae"):
        made[name] = (scene if name == "glb" else _BOX).export(file_type=name)
    for encoding in ("ascii", "binary"):
        made["ply" if encoding == "binary" else "ply_ascii"] = _BOX.export(file_type="ply", encoding=encoding)
    return {name: content.encode() if isinstance(content, str) else content for name, content in made.items()}


def prepare(folder: Path) -> None:
    """See ``kinds``."""
    for name, content in _good().items():
        path = folder / f"good.{name.partition('_')[0]}"
        path.write_bytes(content)
        load_mesh(path)
        convex_hull(path)


def feed(source: Source, folder: Path) -> None:
    """See ``kinds``."""
    name = source.choice(sorted(_good()))
    content = _good()[name]
    if name in _TEXT and source.often(0.5):
        content = source.torn(content.decode()).encode("utf-8", "surrogatepass")
    else:
        content = source.torn_bytes(content)
    if source.often(0.02):
        content = source.randbytes(source.randrange(500))
    suffix = (
        name.partition("_")[0] if source.often(0.97) else source.choice(("stl", "obj", "zip", "glb", "dae"))
    )
    path = folder / f"mesh.{suffix}"
    path.write_bytes(content)
    scale = 1.0 if source.often(0.9) else source.value()
    vertices, triangles = read_triangles(path, scale)
    convex_hull(path, scale) if source.often(0.5) else closed_mesh(vertices, triangles)
