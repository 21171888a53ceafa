"""Reader of GLB files (glTF 2.0 in one file): the triangles of their scene.

Read here and not by a library, which would allocate what a file announces, follow strides beyond its end, and unpack
its pictures.
"""

import json
import struct
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidShapeError, shown
from kinopt_ros.geometry.shapes import MAX_POINTS

MOST_NODES = 2_000
"""Most nodes of a file."""
MOST_TEXT = 4 * 2**20
"""Most bytes of the text that says what a file holds: reading it takes up to thirty times as many."""
_TYPES = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC3": 3}
_TRIANGLES, _STRIP, _FAN = 4, 5, 6

Triangles = tuple[Annotated[Float64, "V 3"], Annotated[Int64, "T 3"]]


def read_glb(content: bytes) -> Triangles:
    """Read vertices (m) and triangles of the scene of a file.

    Raises:
        InvalidShapeError: it is none, needs an extension, or holds less or more than it may; the message is the end
            of a sentence.
    """
    try:
        tree, data = _chunks(content)
        return _Reader(tree, data).scene()
    except (
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        ValueError,
        RecursionError,
        OverflowError,
    ) as error:
        raise InvalidShapeError(f"is no usable GLB: {type(error).__name__} {str(error)[:200]}") from None


def _chunks(content: bytes) -> tuple[dict[str, Any], bytes]:
    if len(content) < 20 or content[:4] != b"glTF" or content[16:20] != b"JSON":
        raise InvalidShapeError("has no header of a GLB file")
    version, length, json_length = struct.unpack_from("<III", content, 4)
    if version != 2 or length > len(content) or 20 + json_length > length:
        raise InvalidShapeError("has no header of a GLB file of version 2, or is not whole")
    if json_length > MOST_TEXT:
        raise InvalidShapeError(f"has {json_length} bytes of text; at most {MOST_TEXT} are read")
    tree = json.loads(content[20 : 20 + json_length].decode())
    if tree.get("extensionsRequired"):
        raise InvalidShapeError(
            f"needs extensions, of which none is read: {shown(tree['extensionsRequired'])}"
        )
    return tree, content[28 + json_length : length]


class _Reader:
    def __init__(self, tree: dict[str, Any], data: bytes) -> None:
        self._tree = tree
        self._data = data
        self._vertices: list[Float64] = []
        self._triangles: list[Int64] = []
        self._num_vertices = self._num_triangles = self._num_read = 0
        self._known: dict[int, list[Triangles]] = {}

    def scene(self) -> Triangles:
        """Collect everything that the scene holds, where it stands."""
        nodes = self._tree.get("nodes", [])
        if len(nodes) > MOST_NODES:
            raise InvalidShapeError(f"has {len(nodes)} nodes; at most {MOST_NODES} are read")
        scene = self._tree["scenes"][_whole(self._tree.get("scene", 0))]
        waiting = [(_whole(index), np.eye(4)) for index in scene.get("nodes", [])]
        seen: set[int] = set()
        while waiting:
            index, T_root_parent = waiting.pop()
            if index in seen:  # else few nodes would put a shape to places without number
                raise InvalidShapeError("has a node below two others; allowed is a tree")
            seen.add(index)
            node = nodes[index]
            T_root_node = T_root_parent @ _transform(node)
            if "mesh" in node:
                self._put(_whole(node["mesh"]), T_root_node)
            waiting += [(_whole(child), T_root_node) for child in node.get("children", [])]
        if not self._triangles:
            return np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)
        return np.concatenate(self._vertices), np.concatenate(self._triangles)

    def _put(self, mesh: int, T_root_node: Float64) -> None:
        if mesh not in self._known:
            self._known[mesh] = [self._primitive(p) for p in self._tree["meshes"][mesh]["primitives"]]
        mirrored = np.linalg.det(T_root_node[:3, :3]) < 0.0
        for vertices, triangles in self._known[mesh]:
            if not len(triangles):
                continue
            self._triangles.append((triangles[:, ::-1] if mirrored else triangles) + self._num_vertices)
            self._vertices.append(vertices @ T_root_node[:3, :3].T + T_root_node[:3, 3])
            self._num_vertices += len(vertices)
            self._num_triangles += len(triangles)
            _require_count(self._num_vertices, "vertices", 3 * MAX_POINTS)
            _require_count(self._num_triangles, "triangles")

    def _primitive(self, given: dict[str, Any]) -> Triangles:
        mode = given.get("mode", _TRIANGLES)
        if mode not in (_TRIANGLES, _STRIP, _FAN):  # points and lines
            return np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)
        vertices = self._values(given["attributes"]["POSITION"], "VEC3").astype(np.float64)
        order = (
            self._values(given["indices"], "SCALAR")[:, 0].astype(np.int64)
            if "indices" in given
            else np.arange(len(vertices))
        )
        if order.size and not 0 <= order.min() <= order.max() < len(vertices):
            raise InvalidShapeError(f"names vertex {order.max()}; it has {len(vertices)}")
        if mode == _TRIANGLES:
            return vertices, order[: len(order) // 3 * 3].reshape(-1, 3)
        following = np.column_stack([order[:-2], order[1:-1], order[2:]])
        if mode == _FAN:
            following[:, 0] = order[0]
        else:
            following[1::2] = following[1::2, ::-1]
        return vertices, following

    def _values(self, index: Any, kind: str) -> np.ndarray[Any, Any]:
        """Return the rows of an accessor."""
        accessor = self._tree["accessors"][_whole(index)]
        if accessor["type"] != kind or "sparse" in accessor or "bufferView" not in accessor:
            raise InvalidShapeError(f"has an accessor {shown(accessor)}; allowed is {kind} with a bufferView")
        count = _whole(accessor["count"])
        _require_count(count, "values in one accessor", 3 * MAX_POINTS)
        self._num_read += count  # the same ones may be named over and over again
        _require_count(self._num_read, "values in all", 6 * MAX_POINTS)
        view = self._tree["bufferViews"][_whole(accessor["bufferView"])]
        buffer = self._tree["buffers"][_whole(view["buffer"])]
        if _whole(view["buffer"]) != 0 or "uri" in buffer:
            raise InvalidShapeError("has numbers outside its own buffer, which are not read")
        dtype = np.dtype(_TYPES[accessor["componentType"]])
        row = dtype.itemsize * _WIDTHS[kind]
        stride = _whole(view.get("byteStride", row))
        start = _whole(view.get("byteOffset", 0)) + _whole(accessor.get("byteOffset", 0))
        end = start + stride * (count - 1) + row
        if count < 1 or stride < row or end > len(self._data):
            raise InvalidShapeError(f"announces {count} values that it does not hold")
        if dtype.kind != "f" and kind == "VEC3":
            raise InvalidShapeError("has positions that are whole numbers, which needs an extension")
        window = np.frombuffer(self._data, np.uint8)[start:end]
        rows = np.lib.stride_tricks.as_strided(window, (count, row), (stride, 1), writeable=False)
        return np.ascontiguousarray(rows).view(dtype)


def _transform(node: dict[str, Any]) -> Annotated[Float64, "4 4"]:
    if "matrix" in node:
        return np.array(node["matrix"], dtype=np.float64).reshape(4, 4).T
    T = np.eye(4)
    x, y, z, w = (float(value) for value in node.get("rotation", (0.0, 0.0, 0.0, 1.0)))
    R = np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )
    T[:3, :3] = R * np.array(node.get("scale", (1.0, 1.0, 1.0)), dtype=np.float64).reshape(3)
    T[:3, 3] = np.array(node.get("translation", (0.0, 0.0, 0.0)), dtype=np.float64).reshape(3)
    return T


def _whole(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise InvalidShapeError(f"has {shown(given)} where a whole number must be")
    return given


def _require_count(given: int, kind: str, most: int = MAX_POINTS) -> None:
    if given > most:
        raise InvalidShapeError(f"has {given} {kind}; allowed are {most}")
