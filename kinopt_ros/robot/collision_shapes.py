"""Collision shapes of a robot's links, from its description. Meshes are read once, when somebody asks for them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kinopt_ros.errors import InvalidShapeError, quoted
from kinopt_ros.geometry import kept
from kinopt_ros.geometry.mesh_files import find_mesh_file
from kinopt_ros.geometry.mesh_look import read_mesh
from kinopt_ros.geometry.shapes import Mesh, PlacedShape
from kinopt_ros.robot.collision_elements import CollisionElement, MeshElement

_SOURCES = (
    __name__,
    "kinopt_ros.geometry.meshes",
    "kinopt_ros.geometry.mesh_look",
    "kinopt_ros.geometry.glb",
)


MOST_REASONS = 8
"""Most reasons that are given for one link."""


@dataclass(frozen=True, eq=False)
class CollisionModel:
    """Collision elements of a robot's description. Nothing here refuses a robot: what cannot be used is listed in
    ``unchecked``."""

    elements: Mapping[str, tuple[CollisionElement, ...]] = field(default_factory=dict)
    """Collision elements by link; links without any are missing."""
    broken: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What is wrong with elements that are not in ``elements``, by link."""
    only_seen: tuple[str, ...] = ()
    """Links with visual but without collision elements: nothing to check, and perhaps forgotten."""
    urdf_file: Path | None = None
    """Where the description is from; None if only its text is known."""
    packages: Mapping[str, Path] = field(default_factory=dict)
    """Folders of packages, before those of the environment."""

    @property
    def shapes(self) -> Mapping[str, tuple[PlacedShape, ...]]:
        """Shapes by link, in the link's frame; links without any are missing."""
        return self._loaded.shapes

    @property
    def unchecked(self) -> Mapping[str, str]:
        """Links whose shapes are not all in ``shapes``, and why."""
        return self._loaded.unchecked

    @property
    def hulls(self) -> Mapping[str, str]:
        """Links with a mesh that is no closed solid, so that its convex hull is in ``shapes``, and what is wrong."""
        return self._loaded.hulls

    @cached_property
    def _loaded(self) -> "_Loaded":
        return _load(self)


@dataclass(frozen=True, eq=False)
class _Loaded:
    shapes: Mapping[str, tuple[PlacedShape, ...]]
    unchecked: Mapping[str, str]
    hulls: Mapping[str, str]


def _load(model: CollisionModel) -> _Loaded:
    shapes: dict[str, tuple[PlacedShape, ...]] = {}
    unchecked = {link: list(reasons) for link, reasons in model.broken.items()}
    hulls: dict[str, list[str]] = {}
    meshes = _meshes(model)
    for link, elements in model.elements.items():
        placed = []
        for element in elements:
            geometry = element.geometry
            if not isinstance(geometry, MeshElement):
                placed.append(PlacedShape(geometry, element.T_link_shape))
                continue
            found = meshes[geometry]
            if isinstance(found, str):
                unchecked.setdefault(link, []).append(found)
                continue
            placed.append(PlacedShape(found.mesh, element.T_link_shape))
            if found.flaw:
                hulls.setdefault(link, []).append(f"{found.flaw}; its convex hull is taken")
        if placed:
            shapes[link] = tuple(placed)
    return _Loaded(shapes, _sentences(unchecked), _sentences(hulls))


@dataclass(frozen=True, eq=False)
class _Solid:
    mesh: Mesh
    flaw: str
    """Why the shape is the convex hull of what is in the file; empty if it is not."""


def _meshes(model: CollisionModel) -> dict[MeshElement, _Solid | str]:
    """Load every mesh once, or say why it cannot be had. Solids are kept on disk, since reading them anew takes
    longer."""
    wanted = [e.geometry for elements in model.elements.values() for e in elements]
    answer: dict[MeshElement, _Solid | str] = {}
    paths: dict[MeshElement, Path] = {}
    digests: list[bytes] = []
    for element in dict.fromkeys(geometry for geometry in wanted if isinstance(geometry, MeshElement)):
        try:
            path = find_mesh_file(element.uri, model.urdf_file, model.packages)
            digests.append(_digest(read_mesh(path)))
            paths[element] = path
        except InvalidShapeError as error:
            answer[element] = str(error)
    if not paths:
        return answer
    known = kept.load(_key(paths, digests))
    if known is not None:
        for i, (element, path) in enumerate(paths.items()):
            flaw = str(known[f"flaw{i}"])
            answer[element] = _Solid(
                Mesh(known[f"vertices{i}"], known[f"triangles{i}"]),
                flaw and f"mesh {quoted(path.name)}: {flaw}",
            )
        return answer
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for i, (element, path) in enumerate(paths.items()):
        try:
            content = read_mesh(path)
            digests[i] = _digest(content)  # the file may have changed since
            mesh, flaw = _solid(content, path, element)
        except InvalidShapeError as error:
            answer[element] = str(error)
            continue
        answer[element] = _Solid(mesh, flaw and f"mesh {quoted(path.name)}: {flaw}")
        arrays |= {f"vertices{i}": mesh.vertices, f"triangles{i}": mesh.triangles, f"flaw{i}": np.array(flaw)}
    if len(arrays) == 3 * len(paths):
        kept.store(_key(paths, digests), arrays)
    return answer


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content).digest()


def _key(paths: Mapping[MeshElement, Path], digests: list[bytes]) -> str:
    """Return the key under which results for mesh files with these contents are kept."""
    suffixes = [path.suffix.lower() for path in paths.values()]
    return kept.digest(_SOURCES, digests, suffixes, [element.scale for element in paths])


def _solid(content: bytes, path: Path, element: MeshElement) -> tuple[Mesh, str]:
    """Make the solid of a mesh file; see ``solid_or_hull``."""
    from kinopt_ros.geometry.meshes import solid_or_hull, triangles_of

    return solid_or_hull(*triangles_of(content, path, element.scale), "the surface")


def _sentences(lists: Mapping[str, list[str]]) -> dict[str, str]:
    return {link: _sentence(list(dict.fromkeys(reasons))) for link, reasons in lists.items()}


def _sentence(reasons: list[str]) -> str:
    more = f"; ... ({len(reasons)} in all)" if len(reasons) > MOST_REASONS else ""
    return "; ".join(reasons[:MOST_REASONS]) + more
