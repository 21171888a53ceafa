"""Reading and writing of shapes and poses of a scene file: mappings and lists of numbers, and files beside the scene's.

=============  ==============================================================================
type           further keys
=============  ==============================================================================
box            size: [x, y, z]
sphere         radius
cylinder       radius, length (likewise cone, capsule)
plane
mesh           file: name.stl (or obj, ply, dae, off, glb), scale: [x, y, z]; or vertices, triangles
height_map     heights (rows along x), resolution
point_cloud    points, radius
octomap        centers, sizes
=============  ==============================================================================

Each has a ``pose``: ``{xyz: [...], rpy: [...]}`` as in URDF, with ``xyzw`` instead of
``rpy``, or with ``matrix``, row by row; no pose is the identity.
In the place of a list of vertices, triangles, heights, points, centers or sizes may stand the name of a ``.npy`` file.
"""

import hashlib
import io
import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidShapeError, quoted, shortened, shown
from kinopt_ros.files import is_file, path_of, read_bytes, written
from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightMap,
    Mesh,
    Octomap,
    PlacedShape,
    Plane,
    PointCloud,
    Shape,
    Sphere,
)
from kinopt_ros.kinematics.se3 import matrix_to_quaternion, pose, quaternion_to_matrix, rpy_to_matrix
from kinopt_ros.scene import yaml_text as read

LARGEST_FILE = 2**26
"""Largest ``.npy`` file, bytes: twice what the largest shape needs."""
MOST_INLINE = 300
"""Most numbers of an array in the text; larger arrays are written to files of their own."""
_QUATERNION_TOLERANCE = 0.01
_ROTATIONS = {"rpy": 3, "xyzw": 4, "matrix": 9}
"""Ways to give a rotation, and how many numbers each has."""

_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "box": (("size",),),
    "sphere": (("radius",),),
    "cylinder": (("radius", "length"),),
    "cone": (("radius", "length"),),
    "capsule": (("radius", "length"),),
    "plane": ((),),
    "mesh": (("file",), ("file", "scale"), ("vertices", "triangles")),
    "height_map": (("heights", "resolution"),),
    "point_cloud": (("points", "radius"),),
    "octomap": (("centers", "sizes"),),
}
"""Keys that go together for each type."""
_ROUND: dict[str, type[Cylinder] | type[Cone] | type[Capsule]] = {
    "cylinder": Cylinder,
    "cone": Cone,
    "capsule": Capsule,
}


def pose_of(given: Any, what: str) -> Annotated[Float64, "4 4"]:
    """Read the transform of a pose."""
    given = read.mapping(given, what, ("xyz", *_ROTATIONS))
    p = np.array(read.numbers(given.get("xyz", [0.0, 0.0, 0.0]), f"xyz of {what}", 3))
    kinds = [kind for kind in _ROTATIONS if kind in given]
    if len(kinds) > 1:
        raise InvalidShapeError(f"{what} has {' and '.join(kinds)}; allowed is one of them")
    if not kinds:
        return pose(np.eye(3), p)
    kind = kinds[0]
    values = np.array(read.numbers(given[kind], f"{kind} of {what}", _ROTATIONS[kind]))
    if not np.isfinite(values).all():
        raise InvalidShapeError(f"{kind} of {what} is {values.tolist()}; allowed are finite numbers")
    if kind == "rpy":
        return pose(rpy_to_matrix(values), p)
    if kind == "matrix":
        return pose(values.reshape(3, 3), p)
    length = float(np.linalg.norm(values))
    if not abs(length - 1.0) <= _QUATERNION_TOLERANCE:
        raise InvalidShapeError(f"xyzw of {what} has length {length:.6g}; allowed is 1")
    return pose(quaternion_to_matrix(np.roll(values, 1)), p)


def pose_text(T: Annotated[Float64, "4 4"]) -> dict[str, list[float]]:
    """Return what ``pose_of`` reads, to the last bit; empty for the identity."""
    if np.array_equal(T, np.eye(4)):
        return {}
    xyz, R = {"xyz": T[:3, 3].tolist()}, T[:3, :3]
    if np.array_equal(R, np.eye(3)):
        return xyz
    q = matrix_to_quaternion(R)
    exact = np.array_equal(quaternion_to_matrix(q), R)
    return xyz | ({"xyzw": np.roll(q, -1).tolist()} if exact else {"matrix": R.reshape(-1).tolist()})


def shape_of(given: Any, folder: Path) -> PlacedShape:
    """Read a shape; its files are looked for in ``folder``.

    Raises:
        InvalidShapeError: it is none; the message does not say where, the caller knows.
    """
    given = read.mapping(given, "it", required=("type",))
    kind = read.text(given["type"], "type")
    if kind not in _KEYS:
        raise InvalidShapeError(f"type is {quoted(kind)}; allowed are {', '.join(_KEYS)}")
    keys = [key for key in given if key not in ("type", "pose")]
    if not any(sorted(keys) == sorted(together) for together in _KEYS[kind]):
        allowed = " or ".join(", ".join(together) or "none" for together in _KEYS[kind])
        raise InvalidShapeError(f"a {kind} has the keys {shortened(keys) or 'none'}; allowed are {allowed}")
    return PlacedShape(_shape(kind, given, folder), pose_of(given.get("pose"), "the pose"))


def shape_text(placed: PlacedShape, files: "ArrayFiles") -> dict[str, Any]:
    """Return what ``shape_of`` reads."""
    match placed.shape:
        case Box(x=x, y=y, z=z):
            said: dict[str, Any] = {"type": "box", "size": [float(x), float(y), float(z)]}
        case Sphere(radius=radius):
            said = {"type": "sphere", "radius": float(radius)}
        case Cylinder() | Cone() | Capsule() as one:
            kind = type(one).__name__.lower()
            said = {"type": kind, "radius": float(one.radius), "length": float(one.length)}
        case Plane():
            said = {"type": "plane"}
        case Mesh(vertices=vertices, triangles=triangles):
            said = {"type": "mesh", "vertices": files.said(vertices), "triangles": files.said(triangles)}
        case HeightMap(heights=heights, resolution=resolution):
            said = {"type": "height_map", "heights": files.said(heights), "resolution": float(resolution)}
        case PointCloud(points=points, radius=radius):
            said = {"type": "point_cloud", "points": files.said(points), "radius": float(radius)}
        case Octomap(centers=centers, sizes=sizes):
            said = {"type": "octomap", "centers": files.said(centers), "sizes": files.said(sizes)}
    where = pose_text(placed.T_frame_shape)
    return said | ({"pose": where} if where else {})


class ArrayFiles:
    """Arrays of a scene file: small ones in the text, others in files beside it, named by their content."""

    def __init__(self, prefix: str = "") -> None:
        """``prefix`` of the files' names."""
        self._prefix = prefix
        self._arrays: dict[str, Float64 | Int64] = {}

    def said(self, array: Float64 | Int64) -> Any:
        """Return what stands in the text for an array."""
        if array.size <= MOST_INLINE:
            return array.tolist()
        content = f"{array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes()
        name = f"{self._prefix}{hashlib.sha256(content).hexdigest()[:16]}.npy"
        self._arrays[name] = array
        return name

    def write(self, folder: Path) -> None:
        """Write the files that are not there. Raises OSError if that is not possible."""
        for name, array in self._arrays.items():
            if not (folder / name).is_file():
                with written(folder / name) as unfinished, unfinished.open("wb") as file:
                    np.save(file, array, allow_pickle=False)


def file_beside(name: Any, folder: Path) -> Path:
    """Return a file of a folder, by its name in it.

    Raises:
        InvalidShapeError: there is none, or the name, or a link, leads out of the folder.
    """
    name = read.text(name, "the name of a file")
    path_of(name, "the file of a shape", InvalidShapeError)
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise InvalidShapeError(
            f"the file {quoted(name)} is not named relative to the scene's file; allowed are files in its folder, and "
            "no '..'"
        )
    path = folder / Path(name)
    if not is_file(path):
        raise InvalidShapeError(f"there is no file {quoted(name)} beside the scene's file")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidShapeError(
            f"the file {quoted(name)} is a link that leaves the folder of the scene's file"
        )
    return path


def _shape(kind: str, given: dict[str, Any], folder: Path) -> Shape:
    if kind == "box":
        return Box(*read.numbers(given["size"], "size", 3))
    if kind == "sphere":
        return Sphere(read.number(given["radius"], "radius"))
    if kind in _ROUND:
        return _ROUND[kind](read.number(given["radius"], "radius"), read.number(given["length"], "length"))
    if kind == "plane":
        return Plane()
    if kind == "mesh":
        return _mesh(given, folder)
    if kind == "height_map":
        heights = _floats(given["heights"], "heights", 2, folder)
        return HeightMap(heights, read.number(given["resolution"], "resolution"))
    if kind == "point_cloud":
        return PointCloud(
            _floats(given["points"], "points", 2, folder), read.number(given["radius"], "radius")
        )
    centers = _floats(given["centers"], "centers", 2, folder)
    if isinstance(given["sizes"], float | int):
        return Octomap(centers, np.full(len(centers), read.number(given["sizes"], "sizes")))
    return Octomap(centers, _floats(given["sizes"], "sizes", 1, folder))


def _mesh(given: dict[str, Any], folder: Path) -> Mesh:
    from kinopt_ros.geometry.meshes import closed_mesh, load_mesh

    if "file" in given:
        scale = given.get("scale", [1.0, 1.0, 1.0])
        return load_mesh(file_beside(given["file"], folder), read.numbers(scale, "scale", 3))
    triangles = _array(given["triangles"], "triangles", 2, folder)
    if triangles.dtype.kind not in "iu":
        raise InvalidShapeError(f"triangles are {triangles.dtype}; allowed are whole numbers")
    vertices = _floats(given["vertices"], "vertices", 2, folder)
    return closed_mesh(vertices, triangles.astype(np.int64), what="the mesh")


def _floats(given: Any, what: str, dimensions: int, folder: Path) -> Float64:
    array: Float64 = _array(given, what, dimensions, folder).astype(np.float64)
    return array


def _array(given: Any, what: str, dimensions: int, folder: Path) -> Any:
    """Read an array of numbers, from lists or from a file."""
    try:
        if isinstance(given, str):
            path = file_beside(given, folder)
            if path.suffix != ".npy":
                raise InvalidShapeError(f"{what} are in {quoted(given)}; allowed is a .npy file")
            array = _array_of_file(read_bytes(path, LARGEST_FILE, f"file {quoted(given)}", InvalidShapeError))
        else:
            array = np.array(given)
    except (ValueError, OverflowError) as error:
        raise InvalidShapeError(f"{what} cannot be read: {str(error)[:300]}") from None
    if array.dtype.kind not in "fiu" or array.ndim != dimensions:
        shape = "rows of numbers, all of one length" if dimensions == 2 else "a list of numbers"
        raise InvalidShapeError(f"{what} are {array.dtype} {array.shape}; allowed is {shape}")
    return array


def _array_of_file(content: bytes) -> Any:
    """Read the array of a ``.npy`` file. Raises ValueError if it is none, or holds less than its header promises."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)  # type: ignore[no-untyped-call, unused-ignore]
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of its format is not read")
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, by_columns, dtype = reader(file)  # type: ignore[no-untyped-call, unused-ignore]
    except Exception as error:  # a header is Python's text of a dictionary, of which any part may be broken
        raise ValueError(f"its header is not usable: {error}") from None
    count = math.prod(shape)
    if dtype.kind not in "fiu" or any(size < 0 for size in shape) or not dtype.itemsize:
        raise ValueError(f"it holds {shown(str(dtype))} {shown(shape)}; allowed are numbers")
    if count * dtype.itemsize > len(content) - file.tell():
        raise ValueError(f"its header promises {count} numbers, which it does not hold")
    values = np.frombuffer(content, dtype, count, file.tell())
    return values.reshape(shape, order="F" if by_columns else "C").copy()
