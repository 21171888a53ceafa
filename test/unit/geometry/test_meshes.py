"""Mesh files become solids or are refused by name."""

from pathlib import Path

import numpy as np
import pytest

from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry import mesh_look, meshes
from kinopt_ros.geometry.meshes import closed_mesh, convex_hull, hull_of, load_mesh, read_triangles

trimesh = pytest.importorskip("trimesh")

CUBE = trimesh.creation.box(extents=(2.0, 2.0, 2.0))
OPEN = trimesh.Trimesh(CUBE.vertices, CUBE.faces[1:], process=False)
INSIDE_OUT = trimesh.Trimesh(CUBE.vertices, CUBE.faces[:, ::-1], process=False)


def volume(mesh):
    return trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False).volume


def written(folder: Path, mesh, name: str) -> Path:
    path = folder / name
    mesh.export(path)
    return path


@pytest.mark.parametrize(
    "name", ["cube.stl", "cube.STL", "cube.obj", "cube.ply", "cube.off", "cube.dae", "cube.glb"]
)
def test_every_format_gives_the_same_solid(tmp_path, name):
    mesh = load_mesh(written(tmp_path, CUBE, name))
    assert mesh.vertices.shape == (8, 3)
    assert mesh.triangles.shape == (12, 3)
    assert volume(mesh) == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [(0.5, 1.0), ([1.0, 2.0, 3.0], 48.0), ([1, -1, 1], 8.0), (-1.0, 8.0), ([-1, -1, 1], 8.0)],
)
def test_scale_keeps_normals_outside(tmp_path, scale, expected):
    assert volume(load_mesh(written(tmp_path, CUBE, "cube.stl"), scale)) == pytest.approx(expected)


@pytest.mark.parametrize("scale", [0.0, float("nan"), [1.0, 2.0], [1.0, 0.0, 1.0], float("inf")])
def test_unusable_scale_is_refused(tmp_path, scale):
    with pytest.raises(InvalidShapeError, match="scale of a mesh is"):
        load_mesh(written(tmp_path, CUBE, "cube.stl"), scale)


def test_the_unit_of_a_file_counts(tmp_path):
    path = written(tmp_path, CUBE, "cube.dae")
    text = path.read_text()
    assert "<up_axis>" in text
    path.write_text(text.replace("<up_axis>", '<unit meter="0.001" name="millimeter"/><up_axis>'))
    assert np.ptp(load_mesh(path).vertices) == pytest.approx(0.002)


def test_broken_appearance_of_a_file_does_not_matter(tmp_path):
    path = written(tmp_path, CUBE, "cube.dae")
    text = path.read_text()
    assert "<library_effects" in text
    path.write_text(
        text.replace("<library_effects", "<library_gone").replace("library_effects>", "library_gone>")
    )
    assert volume(load_mesh(path)) == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("content", "name", "why"),
    [
        (b"", "empty.stl", "no triangles"),
        (b"\0" * 84, "zero.stl", "no triangles"),
        (b"solid x\nfacet", "text.stl", "cannot be read as stl|no triangles"),
        (b"<not xml", "bad.dae", "cannot be read as dae"),
        (b"v 0 0 0\n", "points.obj", "cannot be read as obj|no triangles"),
        (b"anything", "solid.step", "no file of a known format; known are dae"),
        (b"anything", "solid", "no file of a known format"),
    ],
)
def test_unreadable_files_are_refused(tmp_path, content, name, why):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidShapeError, match=why) as caught:
        load_mesh(tmp_path / name)
    assert name in str(caught.value)


def test_missing_file_and_folder_are_refused(tmp_path):
    (tmp_path / "folder.stl").mkdir()
    for name in ("missing.stl", "folder.stl"):
        with pytest.raises(InvalidShapeError, match="cannot be read"):
            load_mesh(tmp_path / name)


def test_too_large_is_refused(tmp_path, monkeypatch):
    path = written(tmp_path, CUBE, "cube.stl")
    monkeypatch.setattr(meshes, "MAX_POINTS", 11)
    with pytest.raises(InvalidShapeError, match="12 triangles; allowed are 11"):
        load_mesh(path)
    monkeypatch.setitem(mesh_look.LARGEST_FILE, "stl", 100 / 2**20)
    with pytest.raises(InvalidShapeError, match="684 bytes; at most 100"):
        load_mesh(path)


def test_wrong_scale_is_refused(tmp_path):
    with pytest.raises(InvalidShapeError, match="is the scale right"):
        load_mesh(written(tmp_path, CUBE, "cube.stl"), 1e6)


def test_not_finite_vertices_are_refused(tmp_path):
    path = tmp_path / "nan.obj"
    path.write_text("v 0 0 0\nv 1 0 nan\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(InvalidShapeError, match="not finite"):
        load_mesh(path)


def test_surfaces_that_are_no_solid_are_refused():
    turned = CUBE.faces.copy()
    turned[0] = turned[0][::-1]
    flat = np.array([[0, 1, 2], [0, 2, 1]])
    for triangles, why in (
        (OPEN.faces, "not closed: 3 of its 18 edges"),
        (INSIDE_OUT.faces, "inside out"),
        (turned, "not all turned the same way: those at 3 of its 18 edges"),
        (flat, "no volume"),
        (np.zeros((0, 3), dtype=np.int64), "0 triangles"),
    ):
        with pytest.raises(InvalidShapeError, match=why):
            closed_mesh(np.array(CUBE.vertices), np.array(triangles))


def test_a_cavity_is_allowed_and_a_solid_turned_inside_out_beside_another_is_not():
    inner = INSIDE_OUT.copy().apply_scale(0.5)
    hollow = trimesh.util.concatenate([CUBE, inner])
    assert volume(closed_mesh(np.array(hollow.vertices), np.array(hollow.faces))) == pytest.approx(7.0)
    beside = trimesh.util.concatenate([CUBE, inner.apply_translation([3.0, 0.0, 0.0])])
    with pytest.raises(InvalidShapeError, match="part 2 of the 2 parts of a mesh is inside out"):
        closed_mesh(np.array(beside.vertices), np.array(beside.faces))


def test_hull_of_an_open_surface_contains_it(tmp_path):
    rng = np.random.default_rng(0)
    blob = trimesh.creation.icosphere(subdivisions=3)
    blob.vertices *= rng.uniform(0.5, 1.0, (len(blob.vertices), 1))
    blob.update_faces(np.arange(len(blob.faces)) % 7 > 0)
    path = written(tmp_path, blob, "blob.stl")
    with pytest.raises(InvalidShapeError, match="not closed"):
        load_mesh(path)
    hull = convex_hull(path, [1.0, 2.0, -0.5])
    a, b, c = (hull.vertices[hull.triangles[:, corner]] for corner in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    points = read_triangles(path, [1.0, 2.0, -0.5])[0]
    heights = points @ normals.T - np.einsum("ti,ti->t", normals, a)
    assert heights.max() <= 1e-12
    assert volume(hull) > 0.0


def test_points_without_a_hull_are_refused():
    flat = np.random.default_rng(0).random((9, 3)) * [1, 1, 0]
    for points, why in ((np.eye(3), "has 3 points"), (flat, "one plane")):
        with pytest.raises(InvalidShapeError, match=why):
            hull_of(points)
