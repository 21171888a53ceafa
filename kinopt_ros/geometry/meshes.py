"""Mesh files and arrays as shapes. What is not a closed solid is refused; ``convex_hull`` accepts open surfaces.

``mesh_look.py`` looks at files before trimesh reads them, which is imported by the first call. It does not read GLB:
``glb.py`` does.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidShapeError, quoted, shown
from kinopt_ros.files import path_of
from kinopt_ros.geometry.glb import read_glb
from kinopt_ros.geometry.mesh_look import looked_at, mesh_format, read_mesh
from kinopt_ros.geometry.shapes import LARGEST, MAX_POINTS, SMALLEST, Mesh

THINNEST = 1e-9
"""Least ratio of a solid's volume to that of its bounding cube."""

_MOST_WINDING = 20_000_000
"""Most angles of triangles that are summed up to tell cavities from what is inside out; seconds."""

Triangles = tuple[Annotated[Float64, "V 3"], Annotated[Int64, "T 3"]]


def load_mesh(path: str | Path, scale: float | Sequence[float] = 1.0) -> Mesh:
    """Load a closed mesh from a file, in metres.

    ``scale`` is one factor or three for x, y, z; an odd number of negative ones mirrors the solid. A file that states
    its unit (COLLADA does) is converted to metres first. Raises ``InvalidShapeError`` for a file that cannot be read,
    is empty or too large, and for a surface that is not closed, turned inside out, or of no volume.
    """
    return closed_mesh(*read_triangles(path, scale), what=f"mesh {quoted(str(path), 300)}")


def convex_hull(path: str | Path, scale: float | Sequence[float] = 1.0) -> Mesh:
    """Build the convex hull of the triangles of a file, which may be open. It contains all of them, to 1e-12 of its
    size.

    Arguments and errors are those of ``load_mesh``; points that lie in one plane have no hull and are refused.
    """
    return hull_of(read_triangles(path, scale)[0], what=f"mesh {quoted(str(path), 300)}")


def read_triangles(path: str | Path, scale: float | Sequence[float] = 1.0) -> Triangles:
    """Read vertices (those in use, each once) and triangles of a file, in metres, closed or not. See ``load_mesh``."""
    path = path_of(path, "a mesh", InvalidShapeError)
    return triangles_of(read_mesh(path), path, scale)


def triangles_of(content: bytes, path: Path, scale: float | Sequence[float] = 1.0) -> Triangles:
    """Parse vertices and triangles from a file's content, as ``read_triangles`` does."""
    factors = _factors(scale)
    what = f"mesh {quoted(str(path), 300)}"
    vertices, triangles = _parsed(content, mesh_format(path), what)
    vertices = vertices * factors
    if np.prod(np.sign(factors)) < 0.0:
        triangles = triangles[:, ::-1]
    return _welded(vertices, triangles, what)


def closed_mesh(vertices: Float64, triangles: Int64, what: str = "a mesh") -> Mesh:
    """Build a mesh whose triangles enclose a volume, with normals outwards. Anything else raises
    ``InvalidShapeError``."""
    mesh = Mesh(np.array(vertices, dtype=np.float64), np.array(triangles))
    _require_closed(mesh.triangles, what)
    _require_outward(mesh, what)
    return mesh


def solid_or_hull(vertices: Float64, triangles: Int64, what: str = "a mesh") -> tuple[Mesh, str]:
    """Build the solid of a mesh; its convex hull, and what is wrong with it, if its triangles enclose none.

    Many meshes are open or wound inconsistently: the hull holds all of their triangles. Vertices that are repeated for
    each triangle are no flaw. Errors are those of ``Mesh`` and ``convex_hull``.
    """
    given = Mesh(np.array(vertices, dtype=np.float64), np.array(triangles))
    try:
        return closed_mesh(given.vertices, given.triangles, what), ""
    except InvalidShapeError:
        welded = _welded(given.vertices, given.triangles, what)
    try:
        return closed_mesh(*welded, what), ""
    except InvalidShapeError as error:
        return hull_of(welded[0], what), str(error)


def hull_of(points: Annotated[Float64, "N 3"], what: str = "a set of points") -> Mesh:
    """Build the convex hull of points; see ``convex_hull``."""
    from scipy.spatial import ConvexHull, QhullError

    if len(points) < 4:
        raise InvalidShapeError(
            f"{what} has {len(points)} points; a convex hull needs 4 that are not in one plane"
        )
    try:
        hull = ConvexHull(points, qhull_options="Qt Pp")
    except QhullError as error:
        raise InvalidShapeError(f"{what} has no convex hull: its points lie in one plane") from error
    triangles = hull.simplices.astype(np.int64)
    a, b, c = (points[triangles[:, corner]] for corner in range(3))
    inward = np.einsum("ti,ti->t", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    triangles[inward] = triangles[inward, ::-1]
    return closed_mesh(*without_unused(points, triangles), what)


def without_unused(vertices: Float64, triangles: Int64) -> Triangles:
    """Return the vertices that triangles use, and the triangles by their new numbers."""
    used, numbers = np.unique(triangles, return_inverse=True)
    return vertices[used], numbers.reshape(triangles.shape).astype(np.int64)


def _factors(scale: float | Sequence[float]) -> Float64:
    try:
        factors = np.asarray(scale, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        factors = np.zeros(3)
    if factors.shape not in ((), (3,)) or not np.isfinite(factors).all() or (factors == 0.0).any():
        raise InvalidShapeError(
            f"scale of a mesh is {shown(scale)}; allowed are one or three numbers that are not 0"
        )
    return np.broadcast_to(factors, 3)


def _parsed(content: bytes, file_type: str, what: str) -> Triangles:
    try:
        if file_type == "glb":
            vertices, triangles = read_glb(content)
        else:
            vertices, triangles = _by_trimesh(looked_at(content, file_type), file_type, what)
    except InvalidShapeError as error:
        raise InvalidShapeError(f"{what} {error}") from error
    if not len(triangles):
        raise InvalidShapeError(f"{what} has no triangles")
    if vertices.ndim != 2 or vertices.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3:
        raise InvalidShapeError(
            f"{what} has vertices {vertices.shape} and triangles {triangles.shape}; allowed are (V, 3) and (T, 3)"
        )
    if triangles.min() < 0 or triangles.max() >= len(vertices):
        raise InvalidShapeError(
            f"{what} names vertices {triangles.min()} to {triangles.max()}; it has {len(vertices)}"
        )
    return vertices, triangles


def _by_trimesh(content: bytes, file_type: str, what: str) -> Triangles:
    try:
        import trimesh
    except ImportError as error:
        raise InvalidShapeError("cannot be read without the package trimesh (pip install trimesh)") from error

    # Without a resolver no other file is read that this one may name, such as textures.
    options: dict[str, Any] = {"process": False}
    try:
        if file_type == "obj":
            options["skip_materials"] = True
        elif file_type == "dae":
            # Solids with a broken appearance would be left out, or without this option anything that is broken.
            options["ignore_broken"] = False
        scene = trimesh.load_scene(io.BytesIO(content), file_type=file_type, resolver=None, **options)
        mesh = scene.to_mesh()
        vertices = np.array(mesh.vertices, dtype=np.float64)
        triangles = np.array(mesh.faces, dtype=np.int64)
        if mesh.units is not None:
            vertices *= trimesh.units.unit_conversion(mesh.units, "meters")
    except Exception as error:  # whatever the parsers of five formats raise
        raise InvalidShapeError(f"cannot be read as {file_type}: {str(error)[:300]}") from error
    return vertices, triangles


def _welded(vertices: Float64, triangles: Int64, what: str) -> Triangles:
    """Merge equal vertices (STL repeats them); drop triangles that thereby lose a corner, and unused vertices."""
    _require_size(len(triangles), "triangles", what)
    if not np.isfinite(vertices).all() or np.abs(vertices).max() > LARGEST:
        raise InvalidShapeError(
            f"{what} has vertices that are not finite or beyond {LARGEST:g} m; is the scale right?"
        )
    if np.ptp(vertices, axis=0).max() < SMALLEST:
        raise InvalidShapeError(f"{what} is smaller than {SMALLEST:g} m; is the scale right?")
    distinct, numbers = np.unique(vertices + 0.0, axis=0, return_inverse=True)
    triangles = numbers.reshape(-1)[triangles]
    a, b, c = triangles.T
    triangles = triangles[(a != b) & (b != c) & (c != a)]
    if not len(triangles):
        raise InvalidShapeError(f"{what} has no triangle with three different corners")
    used, triangles = without_unused(distinct, triangles)
    _require_size(len(used), "vertices", what)
    return used, triangles


def _require_size(given: int, kind: str, what: str) -> None:
    if given > MAX_POINTS:
        raise InvalidShapeError(f"{what} has {given} {kind}; allowed are {MAX_POINTS}")


def _require_closed(triangles: Int64, what: str) -> None:
    """Raise unless every edge is walked as often one way as the other."""
    start, end = triangles.T.reshape(-1), np.roll(triangles, -1, axis=1).T.reshape(-1)
    count = int(triangles.max()) + 1
    edges, numbers, uses = np.unique(
        np.minimum(start, end) * count + np.maximum(start, end), return_inverse=True, return_counts=True
    )
    surplus = np.bincount(numbers.reshape(-1), weights=np.where(start < end, 1.0, -1.0))
    odd = int((uses % 2).sum())
    if odd:
        raise InvalidShapeError(
            f"{what} is not closed: {odd} of its {len(edges)} edges belong to an odd number of triangles"
        )
    turned = int((surplus != 0.0).sum())
    if turned:
        raise InvalidShapeError(
            f"triangles of {what} are not all turned the same way: those at {turned} of its {len(edges)} edges disagree"
        )


def _require_outward(mesh: Mesh, what: str) -> None:
    """Raise unless every connected surface has its solid inside; one turned the other way must be a cavity in another
    one."""
    label = connected_parts(mesh.triangles, len(mesh.vertices))
    corners = mesh.vertices[mesh.triangles]
    centre = mesh.vertices.mean(axis=0)
    a, b, c = (corners[:, corner] - centre for corner in range(3))
    volumes = np.bincount(label, weights=np.einsum("ti,ti->t", a, np.cross(b, c)) / 6.0)
    cube = np.ptp(mesh.vertices, axis=0).max() ** 3
    if np.abs(volumes).sum() <= THINNEST * cube:
        raise InvalidShapeError(f"{what} has no volume")
    inverted = np.flatnonzero(volumes < 0.0)
    if len(inverted) * len(mesh.triangles) > _MOST_WINDING:
        raise InvalidShapeError(
            f"{what} has {len(inverted)} parts with normals inwards; they are too many to look at"
        )
    for number in inverted:
        within = label != number
        inside = within.any() and _winding(corners[within], corners[label == number][0, 0]) > 0.5
        if not inside:
            count = len(volumes)
            part = f"part {number + 1} of the {count} parts of {what}" if count > 1 else what
            raise InvalidShapeError(f"{part} is inside out: the normals of its triangles point inwards")


def connected_parts(triangles: Int64, count: int) -> Int64:
    """Number the connected surfaces of a mesh with ``count`` vertices; return the number of every triangle's."""
    lowest = np.arange(count)
    while True:
        least = lowest[triangles].min(axis=1)
        before = lowest.copy()
        for corner in range(3):
            np.minimum.at(lowest, triangles[:, corner], least)
        lowest = lowest[lowest]
        if (lowest == before).all():
            return np.unique(lowest[triangles[:, 0]], return_inverse=True)[1].astype(np.int64)


def _winding(corners: Annotated[Float64, "T 3 3"], point: Float64) -> float:
    """Compute how often triangles go round a point: 1 inside, 0 outside (A. van Oosterom and J. Strackee, 1983)."""
    a, b, c = (corners[:, corner] - point for corner in range(3))
    la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    volume = np.einsum("ti,ti->t", a, np.cross(b, c))
    dot = (
        np.einsum("ti,ti->t", a, b) * lc + np.einsum("ti,ti->t", b, c) * la + np.einsum("ti,ti->t", c, a) * lb
    )
    return float(np.arctan2(volume, la * lb * lc + dot).sum() / (2.0 * np.pi))
