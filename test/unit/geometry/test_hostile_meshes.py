"""Mesh files that announce more than they hold, or would unpack to gigabytes, are refused before a parser sees them."""

import json
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

trimesh = pytest.importorskip("trimesh", reason="trimesh is not installed")

from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.meshes import closed_mesh, load_mesh, read_triangles
from kinopt_ros.geometry.shapes import Box, Octomap, Sphere
from kinopt_ros.robot.urdf import robot_from_urdf

ACCESSORS = [
    {"componentType": 5126, "count": 3, "type": "VEC3", "bufferView": 0},
    {"componentType": 5125, "count": 3, "type": "SCALAR", "bufferView": 1},
]
GLTF: dict[str, Any] = {
    "scenes": [{"nodes": [0]}],
    "nodes": [{"mesh": 0}],
    "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
    "accessors": ACCESSORS,
    "bufferViews": [{"buffer": 0, "byteLength": 36}, {"buffer": 0, "byteOffset": 36, "byteLength": 12}],
    "buffers": [{"byteLength": 48}],
}
DATA = np.eye(3, dtype="<f4").tobytes() + np.arange(3, dtype="<u4").tobytes()


def glb(tree: dict[str, Any], data: bytes = DATA) -> bytes:
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(data), b"BIN\0") + data
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def test_glb_is_read_as_trimesh_reads_it(tmp_path: Path) -> None:
    scene = trimesh.Scene()
    turn = trimesh.transformations.rotation_matrix(0.3, [1, 2, 3], [0.1, 0, 0])
    mirror = np.diag([1.0, 2.0, -0.5, 1.0])
    for index, T in enumerate((np.eye(4), turn, turn @ mirror)):
        scene.add_geometry(trimesh.creation.box([1, 2, 3]), transform=T, node_name=f"n{index}")
    scene.add_geometry(trimesh.creation.icosphere(subdivisions=2), parent_node_name="n1", transform=turn)
    (tmp_path / "a.glb").write_bytes(scene.export(file_type="glb"))
    vertices, triangles = read_triangles(tmp_path / "a.glb")
    expected = trimesh.load(tmp_path / "a.glb").to_mesh()
    corners = np.sort(vertices[triangles].reshape(-1, 3).round(5), axis=0)
    np.testing.assert_allclose(
        corners, np.sort(expected.triangles.reshape(-1, 3).round(5), axis=0), atol=2e-5
    )
    assert closed_mesh(vertices, triangles)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"accessors": [{**ACCESSORS[0], "count": 10**8}, ACCESSORS[1]]}, "100000000 values in one accessor"),
        (
            {"accessors": [{**ACCESSORS[0], "count": 10**6}, ACCESSORS[1]]},
            "1000000 values that it does not hold",
        ),
        (
            {"accessors": [{"componentType": 5126, "count": 9, "type": "VEC3"}, ACCESSORS[1]]},
            "with a bufferView",
        ),
        ({"accessors": [{**ACCESSORS[0], "sparse": {}}, ACCESSORS[1]]}, "with a bufferView"),
        ({"bufferViews": [{"buffer": 0, "byteStride": 10**6}, GLTF["bufferViews"][1]]}, "does not hold"),
        ({"bufferViews": [{"buffer": 0, "byteOffset": -8}, GLTF["bufferViews"][1]]}, "a whole number"),
        ({"buffers": [{"uri": "file:///etc/passwd"}]}, "outside its own buffer"),
        ({"nodes": [{"mesh": 0, "children": [0]}]}, "allowed is a tree"),
        ({"nodes": [{"children": [1, 1]}, {"mesh": 0}]}, "allowed is a tree"),
        ({"nodes": [{"mesh": 0}] * 100_000}, "100000 nodes"),
        ({"extensionsRequired": ["KHR_draco_mesh_compression"]}, "needs extensions"),
        ({"scene": 10**400}, "no usable GLB"),
        ({"extras": [0] * 2_000_000}, "bytes of text; at most"),
        ({"nodes": [{"mesh": 0, "matrix": [1e300] * 16}]}, "not finite or beyond"),
    ],
)
def test_glb_that_announces_more_than_it_holds(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    (tmp_path / "a.glb").write_bytes(glb(GLTF | changes))
    if not why:
        assert len(read_triangles(tmp_path / "a.glb")[1]) == 1
        return
    with pytest.raises(InvalidShapeError, match=why):
        read_triangles(tmp_path / "a.glb")


@pytest.mark.parametrize("mode", [4, 0])
def test_glb_that_names_the_same_points_over_and_over_again(tmp_path: Path, mode: int) -> None:
    """3.6 MB, of which 1,000 primitives would make 10 GB."""
    points = np.ones((300_000, 3), dtype="<f4").tobytes()
    tree: dict[str, Any] = {
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "mode": mode}] * 1_000}],
        "accessors": [{"componentType": 5126, "count": 300_000, "type": "VEC3", "bufferView": 0}],
        "bufferViews": [{"buffer": 0, "byteLength": len(points)}],
        "buffers": [{"byteLength": len(points)}],
    }
    (tmp_path / "a.glb").write_bytes(glb(tree, points))
    tracemalloc.start()
    try:
        with pytest.raises(InvalidShapeError, match="6300000 values in all" if mode == 4 else "no triangles"):
            load_mesh(tmp_path / "a.glb")
        assert tracemalloc.get_traced_memory()[1] < 500e6
    finally:
        tracemalloc.stop()


def dae(body: str, doctype: str = "") -> str:
    return (
        f'{doctype}<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">{body}'
        '<scene><instance_visual_scene url="#vs"/></scene></COLLADA>'
    )


NESTED = "".join(
    f'<node id="n{i}"><instance_node url="#n{i + 1}"/><instance_node url="#n{i + 1}"/></node>'
    for i in range(30)
)

WITHIN = (
    "".join(f'<node id="n{i}">' for i in range(190))
    + "<extra/>" * 20_000
    + "</node>" * 190
    + "".join(f'<instance_node url="#n{i}"/>' for i in range(190))
)
"""Nodes within nodes, all of which are placed elsewhere, too."""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (dae("&b;", '<!DOCTYPE COLLADA [<!ENTITY a "x"><!ENTITY b "&a;&a;">]>'), "entities are refused"),
        (dae("", '<!DOCTYPE COLLADA SYSTEM "file:///etc/passwd">'), "entities are refused"),
        (
            dae(
                f'<library_nodes>{NESTED}<node id="n30"><instance_geometry url="#g"/></node></library_nodes>'
                '<library_visual_scenes><visual_scene id="vs"><instance_node url="#n0"/></visual_scene>'
                "</library_visual_scenes>"
            ),
            "1073741824 places|2147483648 places",
        ),
        (
            dae(
                '<library_visual_scenes><visual_scene id="vs"><node id="n"><instance_node url="#n"/></node>'
                "</visual_scene></library_visual_scenes>"
            ),
            "contain themselves",
        ),
        (dae("<node>" * 5_000 + "</node>" * 5_000), "more than 200 elements within one another"),
        (dae(f"<library_visual_scenes>{WITHIN}</library_visual_scenes>"), "take too long to follow"),
    ],
    ids=["entities", "outside", "places", "circle", "deep", "within"],
)
def test_collada_that_would_grow(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.dae").write_text(text)
    with pytest.raises(InvalidShapeError, match=why):
        load_mesh(tmp_path / "a.dae")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.stl", b"\0" * 80 + struct.pack("<I", 2**31) + b"\0" * 500, "announces 2147483648"),
        ("a.stl", b"solid " + b"\0" * 10_000, "zero bytes"),
        ("a.off", b"OFF\n99999999 1 0\n0 0 0\n", "announces '99999999' 'vertices'"),
        (
            "a.ply",
            b"ply\nformat ascii 1.0\nelement vertex 99999999\nend_header\n",
            "announces '99999999' 'vertex'",
        ),
        ("a.obj", b"v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n", r"vertices \(3, 2\)"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2\n", "a.obj"),
        ("a.off", b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n2 0 1\n", "a.off"),
    ],
)
def test_other_formats_that_announce_more_or_are_flat(
    tmp_path: Path, name: str, content: bytes, why: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidShapeError, match=why):
        load_mesh(tmp_path / name)


@pytest.mark.parametrize("suffix", ["stl", "dae", "obj", "ply", "glb", "off"])
def test_pipes_and_sparse_files_are_not_read(tmp_path: Path, suffix: str) -> None:
    os.mkfifo(tmp_path / f"pipe.{suffix}")
    with pytest.raises(InvalidShapeError, match="it is a pipe"):
        load_mesh(tmp_path / f"pipe.{suffix}")
    with (tmp_path / f"sparse.{suffix}").open("wb") as file:
        file.truncate(2 * 2**30)
    with pytest.raises(InvalidShapeError, match="2147483648 bytes; at most"):
        load_mesh(tmp_path / f"sparse.{suffix}")


def test_a_link_whose_mesh_cannot_be_used_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.stl")
    (tmp_path / "flat.obj").write_text("v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n")
    with (tmp_path / "sparse.stl").open("wb") as file:
        file.truncate(2 * 2**30)
    for name in (
        "pipe.stl",
        "flat.obj",
        "sparse.stl",
        "a" * 300 + ".stl",
        "/dev/zero.stl",
        "file:///%00.stl",
    ):
        mesh = f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'
        text = f'<robot name="r"><link name="l">{mesh}</link></robot>'
        robot = robot_from_urdf(text, urdf_file=tmp_path / "r.urdf")
        assert list(robot.unchecked_links) == ["l"]
        assert len(robot.unchecked_links["l"]) < 1_000


@pytest.mark.parametrize("length", [5e-324, 1e-300, 9e-10, 10**400, 1e5, float("nan")])
def test_lengths_whose_squares_are_no_numbers(length: float) -> None:
    for make in (lambda: Box(1.0, length, 1.0), lambda: Sphere(length)):
        with pytest.raises(InvalidShapeError, match="allowed is at least 1e-09 m and at most 10000 m"):
            make()


def test_voxels_and_meshes_that_are_too_small(tmp_path: Path) -> None:
    with pytest.raises(InvalidShapeError, match="at least 1e-09 m"):
        Octomap(np.zeros((1, 3)), np.array([5e-324]))
    (tmp_path / "a.stl").write_bytes(trimesh.creation.box([1, 1, 1]).export(file_type="stl"))
    with pytest.raises(InvalidShapeError, match="smaller than 1e-09 m"):
        load_mesh(tmp_path / "a.stl", 1e-200)


def test_solids_full_of_cavities_are_not_looked_at_one_by_one() -> None:
    inner = trimesh.creation.box([0.001, 0.001, 0.001])
    inner.invert()
    at = np.stack(np.meshgrid(*[np.linspace(-0.9, 0.9, 12)] * 3), axis=-1).reshape(-1, 3)
    solid = trimesh.util.concatenate(
        [trimesh.creation.box([2, 2, 2]), *(inner.copy().apply_translation(p) for p in at)]
    )
    with pytest.raises(InvalidShapeError, match="1728 parts with normals inwards"):
        closed_mesh(np.array(solid.vertices), np.array(solid.faces))
