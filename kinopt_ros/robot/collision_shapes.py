"""Shapes of a robot's links, from its description. Meshes are read when somebody asks for them, and once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.mesh_files import find_mesh_file
from kinopt_ros.geometry.shapes import Mesh, PlacedShape
from kinopt_ros.robot.collision_elements import CollisionElement, MeshElement


@dataclass(frozen=True, eq=False)
class CollisionModel:
    """What a description says about the shapes of its links. Nothing here refuses a robot: what cannot be used is told
    in ``unchecked``."""

    elements: Mapping[str, tuple[CollisionElement, ...]] = field(default_factory=dict)
    """By link, those that have any."""
    broken: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By link: what is wrong with elements that are not in ``elements``."""
    urdf_file: Path | None = None
    """Where the description is from; None if only its text is known."""
    packages: Mapping[str, Path] = field(default_factory=dict)
    """Folders of packages, before those of the environment."""

    @property
    def shapes(self) -> Mapping[str, tuple[PlacedShape, ...]]:
        """By link, those that have any, in the link's frame."""
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
    meshes: dict[MeshElement, Mesh] = {}  # a file is often used by several links
    for link, elements in model.elements.items():
        placed = []
        for element in elements:
            geometry = element.geometry
            if not isinstance(geometry, MeshElement):
                placed.append(PlacedShape(geometry, element.T_link_shape))
                continue
            try:
                if geometry not in meshes:
                    meshes[geometry], flaw = _mesh(model, geometry)
                    if flaw:
                        hulls.setdefault(link, []).append(flaw)
                placed.append(PlacedShape(meshes[geometry], element.T_link_shape))
            except InvalidShapeError as error:
                unchecked.setdefault(link, []).append(str(error))
        if placed:
            shapes[link] = tuple(placed)
    return _Loaded(shapes, _sentences(unchecked), _sentences(hulls))


def _mesh(model: CollisionModel, element: MeshElement) -> tuple[Mesh, str | None]:
    """The solid of a mesh; its convex hull, and what is wrong with it, if its triangles enclose none.

    Many robots' meshes are open or wound inconsistently: the hull holds all of their triangles.
    """
    from kinopt_ros.geometry.meshes import closed_mesh, hull_of, read_triangles

    path = find_mesh_file(element.uri, model.urdf_file, model.packages)
    vertices, triangles = read_triangles(path, element.scale)
    try:
        return closed_mesh(vertices, triangles, f"mesh {path.name!r}"), None
    except InvalidShapeError as error:
        return hull_of(vertices, f"mesh {path.name!r}"), f"{error}; its convex hull is taken"


def _sentences(lists: Mapping[str, list[str]]) -> dict[str, str]:
    return {link: "; ".join(dict.fromkeys(reasons)) for link, reasons in lists.items()}
