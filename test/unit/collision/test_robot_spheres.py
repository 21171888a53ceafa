"""A robot's spheres: fitted ones contain every link, given ones are taken and judged."""

from pathlib import Path

import numpy as np
import pytest

from kinopt_ros.collision.spheres import read_spheres, robot_spheres
from kinopt_ros.errors import RobotDescriptionError, UnknownLinkError
from kinopt_ros.geometry.spheres import SphereSet
from kinopt_ros.geometry.surfaces import surface_points
from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

BALL = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
BOX = '<collision><origin xyz="0 0 1"/><geometry><box size="0.2 0.2 0.2"/></geometry></collision>'
URDF = f"""<robot name="r">
<link name="base"/><link name="a">{BALL}</link><link name="b">{BOX}</link>
<joint name="i" type="fixed"><parent link="base"/><child link="b"/></joint>
<joint name="j" type="fixed"><parent link="base"/><child link="a"/></joint>
</robot>"""


@pytest.fixture(autouse=True)
def cache(kept_folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept_folder))


def assert_contained(robot, links=None):
    spheres = robot_spheres(robot)
    for name in links or robot.collision_shapes:
        assert (
            spheres.of(robot.link_index[name]).contain(surface_points(robot.collision_shapes[name])).all()
        ), name


def test_the_bundled_robot_has_at_most_60_spheres():
    robot = load_robot("panda")
    spheres = robot_spheres(robot)
    assert len(spheres.radii) <= 60
    assert set(spheres.link) == {robot.link_index[name] for name in robot.collision_shapes}
    assert (np.diff(spheres.link) >= 0).all()
    assert spheres.warnings == ()
    assert_contained(robot)


def test_links_come_in_the_robots_order_each_in_its_frame():
    robot = robot_from_urdf(URDF)
    spheres = robot_spheres(robot, most=1)
    assert [robot.link_names[i] for i in spheres.link] == ["b", "a"]
    np.testing.assert_allclose(spheres.centers, [[0, 0, 1], [0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(spheres.radii, [np.sqrt(0.03), 0.1], rtol=1e-5)
    assert spheres.sources == {"a": "fit", "b": "fit"}


def test_results_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = robot_spheres(robot_from_urdf(URDF))
    monkeypatch.setattr("kinopt_ros.collision.spheres.fit_spheres", None)
    second = robot_spheres(robot_from_urdf(URDF))
    np.testing.assert_array_equal(first.centers, second.centers)
    with pytest.raises(TypeError, match="not callable"):
        robot_spheres(robot_from_urdf(URDF.replace("0.1", "0.11")))


def test_a_robot_without_shapes_has_none():
    spheres = robot_spheres(robot_from_urdf('<robot name="r"><link name="a"/></robot>'))
    assert spheres.centers.shape == (0, 3)
    assert spheres.link.shape == spheres.radii.shape == (0,)


def srdf(inner: str) -> str:
    return f'<robot name="r">{inner}</robot>'


def approximation(link: str, *spheres: str) -> str:
    return f'<link_sphere_approximation link="{link}">{"".join(spheres)}</link_sphere_approximation>'


def test_spheres_of_the_srdf_are_taken():
    given = approximation(
        "a", '<sphere center="0.01 0 0" radius="0.2"/>', '<sphere center="0 0 0" radius="0.05"/>'
    )
    robot = robot_from_urdf(URDF, srdf(given))
    spheres = robot_spheres(robot)
    assert spheres.sources == {"a": "srdf", "b": "fit"}
    np.testing.assert_array_equal(spheres.of(robot.link_index["a"]).radii, [0.2, 0.05])
    assert spheres.warnings == ()


def test_spheres_that_leave_something_out_are_said():
    robot = robot_from_urdf(URDF, srdf(approximation("a", '<sphere center="0.1 0 0" radius="0.1"/>')))
    (warning,) = robot_spheres(robot).warnings
    assert "link_sphere_approximation of 'a' leave out 7" in warning  # the ball's part with x below 0.05


def test_a_sphere_without_radius_stands_for_none():
    robot = robot_from_urdf(URDF, srdf(approximation("a", '<sphere center="0 0 0" radius="0"/>')))
    spheres = robot_spheres(robot)
    assert len(spheres.of(robot.link_index["a"]).radii) == 0
    assert "leave out 100 %" in spheres.warnings[0]


@pytest.mark.parametrize(
    ("inner", "complaint"),
    [
        (
            approximation("c", '<sphere center="0 0 0" radius="1"/>'),
            "of 'c' is of a link that does not exist",
        ),
        (approximation("a", '<sphere center="0 0" radius="1"/>'), "not a center of 3 numbers and a radius"),
        (
            approximation("a", '<sphere center="0 0 nan" radius="1"/>'),
            "not a center of 3 numbers and a radius",
        ),
        (approximation("a", '<sphere center="0 0 0"/>'), "not a center of 3 numbers and a radius"),
        (approximation("a", '<sphere center="0 0 0" radius="-1"/>'), "radii from -1"),
    ],
)
def test_broken_spheres_of_the_srdf_are_left_out(inner, complaint):
    robot = robot_from_urdf(URDF, srdf(inner))
    assert any(complaint in warning for warning in robot.warnings)
    assert robot.link_spheres == {}


def test_spheres_from_a_file_go_first(tmp_path: Path):
    file = tmp_path / "spheres.yaml"
    file.write_text("collision_spheres:\n  a:\n  - {center: [0, 0, 0], radius: 0.3}\n  base: []\n")
    robot = robot_from_urdf(URDF, srdf(approximation("a", '<sphere center="0 0 0" radius="0.2"/>')))
    spheres = robot_spheres(robot, read_spheres(file))
    np.testing.assert_array_equal(spheres.of(robot.link_index["a"]).radii, [0.3])
    assert spheres.sources["a"] == "file"
    assert spheres.warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- 1",
        "collision_spheres: 3",
        "collision_spheres: {a: 3}",
        "collision_spheres: {a: [{center: [0, 0, 0]}]}",
        "collision_spheres: {a: [{center: [0, 0], radius: 1}]}",
        "collision_spheres: {a: [{center: [0, 0, x], radius: 1}]}",
        "collision_spheres: {a: [{center: [0, 0, 0], radius: 0}]}",
        "collision_spheres: {a: [{center: [0, 0, 0], radius: .nan}]}",
        "collision_spheres: {a: [",
    ],
)
def test_files_of_another_form_are_refused(tmp_path: Path, text: str):
    file = tmp_path / "spheres.yaml"
    file.write_text(text)
    with pytest.raises(RobotDescriptionError, match=r"spheres\.yaml"):
        read_spheres(file)


def test_a_missing_file_and_an_unknown_link(tmp_path: Path):
    with pytest.raises(RobotDescriptionError, match="No such file"):
        read_spheres(tmp_path / "none.yaml")
    with pytest.raises(UnknownLinkError, match="'c'"):
        robot_spheres(robot_from_urdf(URDF), {"c": SphereSet(np.zeros((1, 3)), np.ones(1))})


@pytest.mark.peers
@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("ur5", ["wrist_1_link", "ee_link"]),
        ("xarm7", ["link1"]),
        ("z1", ["link01", "link06"]),
        ("so100", ["jaw"]),
        ("go2", ["FL_hip"]),
        ("talos_reduced", ["arm_left_5_link", "gripper_left_fingertip_1_link"]),
        ("kinova", ["j2s6s200_link_finger_1"]),
        ("baxter", ["head", "pedestal"]),
        ("icub", ["r_upper_leg"]),
        ("tiago", ["torso_lift_link", "hand_palm_link"]),
    ],
)
def test_meshes_of_many_robots_are_contained(name, links):
    pytest.importorskip("trimesh")
    robot = load_robot(find_robot(name)[0])
    links = [link for link in links if link in robot.collision_shapes] or [next(iter(robot.collision_shapes))]
    for link in links:
        placed = robot.collision_shapes[link]
        from kinopt_ros.geometry.fit import fit_spheres

        assert fit_spheres(placed).contain(surface_points(placed, 3000)).all(), link


@pytest.mark.peers
@pytest.mark.slow
def test_a_whole_robot_is_contained():
    """Points on the surfaces and inside of all links. (Single links of others: above.)"""
    pytest.importorskip("trimesh")
    from kinopt_ros.collision.obstacles import nearest, pack

    robot = load_robot(find_robot("kinova")[0])
    spheres = robot_spheres(robot)
    assert_contained(robot)
    for link, placed in robot.collision_shapes.items():
        surface = surface_points(placed)
        points = np.random.default_rng(0).uniform(surface.min(axis=0), surface.max(axis=0), (2000, 3))
        inside = nearest(pack(placed), np.column_stack([points, np.zeros(len(points))]), 0.0).obstacles >= 0
        assert spheres.of(robot.link_index[link]).contain(points[inside]).all(), link
