"""Collision elements of a URDF: shapes in the links' frames, and what cannot be checked."""

import dataclasses

import numpy as np
import pytest

from kinopt_ros.geometry import kept
from kinopt_ros.geometry.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from kinopt_ros.robot import collision_shapes
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

TETRAHEDRON = [((0, 0, 0), (0, 1, 0), (1, 0, 0)), ((0, 0, 0), (1, 0, 0), (0, 0, 1))]
TETRAHEDRON += [((0, 0, 0), (0, 0, 1), (0, 1, 0)), ((1, 0, 0), (0, 1, 0), (0, 0, 1))]


def robot_with(*collisions: str, **options):
    """One link with these collision elements."""
    elements = "".join(f"<collision>{inner}</collision>" for inner in collisions)
    return robot_from_urdf(f'<robot name="r"><link name="a">{elements}</link></robot>', **options)


def geometry(inner: str) -> str:
    return f"<geometry>{inner}</geometry>"


def write_stl(path, triangles):
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x} {y} {z}\n" for x, y, z in t)
        + "endloop\nendfacet\n"
        for t in triangles
    )
    path.write_text(f"solid s\n{facets}endsolid s\n")
    return path


def test_primitives_with_origins():
    robot = robot_with(
        geometry('<sphere radius="0.1"/>'),
        '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>' + geometry('<box size="1 2 3"/>'),
        '<origin rpy="0 1.5707963267948966 0"/>' + geometry('<cylinder radius="0.1" length="0.5"/>'),
        geometry('<capsule radius="0.1" length="0.5"/>'),
    )
    placed = robot.collision_shapes["a"]
    assert [item.shape for item in placed] == [
        Sphere(0.1),
        Box(1, 2, 3),
        Cylinder(0.1, 0.5),
        Capsule(0.1, 0.5),
    ]
    np.testing.assert_array_equal(placed[0].T_frame_shape, np.eye(4))
    np.testing.assert_allclose(placed[1].T_frame_shape @ [1, 0, 0, 1], [1, 3, 3, 1], atol=1e-15)
    np.testing.assert_allclose(placed[2].T_frame_shape @ [0, 0, 1, 1], [1, 0, 0, 1], atol=1e-15)
    assert robot.unchecked_links == {}
    assert not [warning for warning in robot.warnings if "collision" in warning]


@pytest.mark.parametrize(
    ("inner", "complaint"),
    [
        ("", "0 shapes"),
        (geometry(""), "0 shapes"),
        (geometry('<sphere radius="0.1"/><sphere radius="0.2"/>'), "2 shapes"),
        (geometry("<sphere/>"), "no radius"),
        (geometry('<sphere radius="0"/>'), "radius of a sphere is 0"),
        (geometry('<sphere radius="nan"/>'), "radius='nan'"),
        (geometry('<sphere radius="inf"/>'), "radius='inf'"),
        (geometry('<sphere radius="${r}"/>'), "radius='${r}'"),
        (geometry('<box size="1 2"/>'), "allowed is 3 finite numbers"),
        (geometry('<box size="1 2 -3"/>'), "z of a box is -3"),
        (geometry('<cylinder radius="1"/>'), "no length"),
        (geometry('<torus radius="1"/>'), "known: box, capsule, cylinder, mesh, sphere"),
        (geometry("<mesh/>"), "no filename"),
        (geometry('<mesh filename="a.stl" scale="1 0 1"/>'), "no factor may be 0"),
        (geometry('<mesh filename="a.stl" scale="nan 1 1"/>'), "scale='nan 1 1'"),
        ('<origin xyz="0 0 nan"/>' + geometry('<sphere radius="0.1"/>'), "xyz='0 0 nan'"),
        ('<origin xyz="0 0 0"/><origin xyz="0 0 1"/>' + geometry('<sphere radius="0.1"/>'), "2 origins"),
    ],
)
def test_a_broken_element_is_told_and_refuses_no_robot(inner, complaint):
    robot = robot_with(geometry('<sphere radius="0.5"/>'), inner)
    assert [item.shape for item in robot.collision_shapes["a"]] == [Sphere(0.5)]
    assert "collision element 2" in robot.unchecked_links["a"]
    assert complaint in robot.unchecked_links["a"]
    assert any("'a' cannot be checked" in warning and complaint in warning for warning in robot.warnings)


def test_a_link_of_many_broken_elements_is_told_in_a_sentence():
    robot = robot_with(*["<geometry/>"] * 1000, *[geometry('<mesh filename="a.stl"/>')] * 3)
    said = robot.unchecked_links["a"]
    assert "collision element 1:" in said
    assert "(1001 in all)" in said
    assert len(said) < 2000


def test_meshes_are_read_when_asked_for_and_once(tmp_path):
    file = write_stl(tmp_path / "t.stl", TETRAHEDRON)
    mesh = geometry('<mesh filename="t.stl" scale="1 2 -3"/>')
    robot = robot_with(mesh, mesh, urdf_file=tmp_path / "r.urdf")
    first, second = robot.collision_shapes["a"]
    file.unlink()
    assert first.shape is second.shape
    assert dataclasses.replace(robot, warnings=()).collision_shapes is robot.collision_shapes
    assert isinstance(first.shape, Mesh)
    np.testing.assert_array_equal(np.ptp(first.shape.vertices, axis=0), [1, 2, 3])
    assert robot.unchecked_links == {}
    assert robot.collision.hulls == {}


def test_a_file_that_changes_while_it_is_read_is_not_kept_as_what_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "default_folder", lambda: tmp_path / "cache")
    file = write_stl(tmp_path / "t.stl", TETRAHEDRON)
    small = file.read_bytes()
    large = write_stl(tmp_path / "large.stl", (7 * np.array(TETRAHEDRON)).tolist()).read_bytes()
    original = collision_shapes._digest

    def changing(content):
        file.write_bytes(large)
        return original(content)

    def size():
        (placed,) = robot_with(geometry(f'<mesh filename="file://{file}"/>')).collision_shapes["a"]
        return np.ptp(placed.shape.vertices, axis=0).tolist()

    with monkeypatch.context() as patch:
        patch.setattr(collision_shapes, "_digest", changing)
        assert size() == [7, 7, 7]
    assert size() == [7, 7, 7]
    file.write_bytes(small)
    assert size() == [1, 1, 1]


def test_missing_meshes_are_not_checked_and_say_so(tmp_path):
    collisions = geometry('<mesh filename="t.stl"/>'), geometry('<box size="1 1 1"/>')
    robot = robot_with(*collisions, urdf_file=tmp_path / "r.urdf")
    assert [item.shape for item in robot.collision_shapes["a"]] == [Box(1, 1, 1)]
    assert "'t.stl' does not exist" in robot.unchecked_links["a"]
    assert "only its text is known" in robot_with(*collisions).unchecked_links["a"]


@pytest.mark.parametrize(
    ("triangles", "flaw"),
    [
        (TETRAHEDRON[:3], "not closed"),
        ([t[::-1] for t in TETRAHEDRON], "inside out"),
        ([TETRAHEDRON[0][::-1], *TETRAHEDRON[1:]], "not all turned the same way"),
    ],
)
def test_what_is_no_solid_is_taken_as_its_hull_and_said(tmp_path, triangles, flaw):
    file = write_stl(tmp_path / "t.stl", triangles)
    robot = robot_with(geometry(f'<mesh filename="file://{file}"/>'))
    (placed,) = robot.collision_shapes["a"]
    corners = placed.shape.vertices[placed.shape.triangles]
    volume = np.einsum("ti,ti->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6
    assert volume == pytest.approx(1 / 6)
    assert flaw in robot.collision.hulls["a"]
    assert "convex hull is taken" in robot.collision.hulls["a"]
    assert robot.unchecked_links == {}


def test_packages_can_be_given(tmp_path):
    write_stl(tmp_path / "t.stl", TETRAHEDRON)
    mesh = geometry('<mesh filename="package://arm/t.stl"/>')
    assert "a" in robot_with(mesh, packages={"arm": tmp_path}).collision_shapes
    assert "'arm'" in robot_with(mesh).unchecked_links["a"]


def test_bundled_robot_has_shapes_for_all_links_but_the_flange():
    robot = load_robot("panda")
    assert set(robot.link_names) - set(robot.collision_shapes) == {"panda_link8", "panda_hand_tcp"}
    assert robot.unchecked_links == {}
