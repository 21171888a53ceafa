"""Mesh URIs: where files are looked for, and what is refused."""

import pytest

from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.mesh_files import find_mesh_file


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The folder of package "arm" with meshes/a.stl; it is found only where a test says so."""
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    folder = tmp_path / "install" / "share" / "arm"
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes" / "a.stl").write_text("solid")
    return folder


def test_packages_are_found_in_the_environment_and_above_the_urdf(package, monkeypatch, tmp_path):
    uri, mesh = "package://arm/meshes/a.stl", package / "meshes" / "a.stl"
    with pytest.raises(InvalidShapeError, match=r"the package 'arm' .* only its text"):
        find_mesh_file(uri)
    assert find_mesh_file(uri, packages={"arm": package}) == mesh
    assert find_mesh_file(uri, near=package / "urdf" / "arm.urdf") == mesh
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{package.parent}")
    assert find_mesh_file(uri) == mesh
    monkeypatch.delenv("ROS_PACKAGE_PATH")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path / 'install'}")
    assert find_mesh_file(uri) == mesh


def test_a_folder_of_another_name_is_the_package_that_its_package_xml_names(package):
    clone = package.rename(package.with_name("arm_description"))
    uri, urdf = "package://arm/meshes/a.stl", clone / "urdf" / "arm.urdf"
    with pytest.raises(InvalidShapeError, match="the package 'arm'"):
        find_mesh_file(uri, near=urdf)
    (clone / "package.xml").write_text("<package><name>arm</name></package>")
    assert find_mesh_file(uri, near=urdf) == clone / "meshes" / "a.stl"


def test_a_clone_of_several_packages_is_searched_for_the_package_xml(package, monkeypatch, tmp_path):
    (package / "package.xml").write_text("<package><name>arm</name></package>")
    clone = tmp_path / "src" / "resources" / "arm_description"
    clone.parent.mkdir(parents=True)
    package.rename(clone)
    (tmp_path / "src" / "link").symlink_to(tmp_path / "src")  # no end, if one follows it
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "src"))
    assert find_mesh_file("package://arm/meshes/a.stl") == clone / "meshes" / "a.stl"
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(clone))
    assert find_mesh_file("package://arm/meshes/a.stl") == clone / "meshes" / "a.stl"
    with pytest.raises(InvalidShapeError, match="the package 'leg' of its mesh is not found"):
        find_mesh_file("package://leg/meshes/a.stl")


def test_given_packages_go_before_the_environment(package, monkeypatch, tmp_path):
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "install"))
    with pytest.raises(InvalidShapeError, match="does not exist"):
        find_mesh_file("package://arm/meshes/a.stl", packages={"arm": tmp_path})


def test_files_by_path(package):
    mesh = package / "meshes" / "a.stl"
    assert find_mesh_file(f"file://{mesh}") == mesh
    assert find_mesh_file(f"file://localhost{mesh}") == mesh
    assert find_mesh_file(str(mesh)) == mesh
    (package / "urdf").mkdir()
    assert find_mesh_file("../meshes/a.stl", near=package / "urdf" / "arm.urdf").samefile(mesh)
    spaced = package / "a b.stl"
    spaced.write_text("solid")
    assert find_mesh_file(f"file://{package}/a%20b.stl") == spaced


@pytest.mark.parametrize(
    ("uri", "complaint"),
    [
        ("package://arm/../../../etc/passwd", "leaves its package"),
        ("package://arm/meshes/../../other/a.stl", "leaves its package"),
        ("package://../arm/a.stl", "leaves its package"),
        ("package://arm//etc/passwd", "leaves its package"),
        ("package:///arm/meshes/a.stl", "names no package"),
        ("package://arm/meshes/b.stl", "does not exist"),
        ("package://leg/meshes/a.stl", "the package 'leg'"),
        ("file://meshes/a.stl", "no absolute path"),
        ("file:///nowhere/a.stl", "does not exist"),
        ("https://example.org/a.stl", "is not looked for"),
        ("meshes/a.stl", "only its text is known"),
        ("", "file name ''"),
        ("a\0.stl", "no name of a file"),
    ],
)
def test_refused(package, uri, complaint):
    with pytest.raises(InvalidShapeError, match=complaint):
        find_mesh_file(uri, packages={"arm": package})


def test_a_link_may_lead_to_the_packages_source_but_nowhere_else(package, tmp_path):
    outside = tmp_path / "src" / "arm"
    outside.mkdir(parents=True)
    (outside / "c.stl").write_text("solid")
    (package / "meshes" / "c.stl").symlink_to(outside / "c.stl")
    with pytest.raises(InvalidShapeError, match=r"leaves its package by a link to .*src/arm/c\.stl"):
        find_mesh_file("package://arm/meshes/c.stl", packages={"arm": package})
    (outside / "package.xml").write_text("<package><name>arms</name></package>")
    with pytest.raises(InvalidShapeError, match="leaves its package"):
        find_mesh_file("package://arm/meshes/c.stl", packages={"arm": package})
    (outside / "package.xml").write_text(
        "<package><name>arm</name></package>"
    )  # colcon build --symlink-install
    assert find_mesh_file("package://arm/meshes/c.stl", packages={"arm": package}).is_file()
