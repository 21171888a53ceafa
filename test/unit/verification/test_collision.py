"""The collision check against coal, pair by pair, without bounds."""

import sys

import coal
import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.collision.pairs import checked_pairs
from kinopt_ros.errors import InvalidStateError, MissingPackageError
from kinopt_ros.geometry.shapes import Box, Capsule, Cylinder, HeightMap, PlacedShape, Plane, Shape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject
from kinopt_ros.verification.collision import (
    check_collisions,
    clearance_of,
    first_in_collision,
    is_free,
    not_checked,
    touching_bodies,
)

COUNT = 60


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return load_robot("panda")


def thing(name: str, shape: Shape, x: float, y: float, z: float) -> SceneObject:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return SceneObject(name, (PlacedShape(shape, np.eye(4)),), T)


SCENE = Scene(
    objects={
        item.id: item
        for item in (
            thing("box", Box(0.3, 0.2, 0.4), 0.5, 0.3, 0.4),
            thing("ball", Sphere(0.15), -0.4, 0.4, 0.6),
            thing("pipe", Cylinder(0.05, 1.0), 0.3, -0.4, 0.5),
            thing("rod", Capsule(0.04, 0.5), -0.3, -0.4, 0.5),
            thing("floor", Plane(), 0.0, 0.0, -0.01),
        )
    }
)


def solid(shape: Shape) -> object:
    match shape:
        case Box(x, y, z):
            return coal.Box(x, y, z)
        case Sphere(radius):
            return coal.Sphere(radius)
        case Cylinder(radius, length):
            return coal.Cylinder(radius, length)
        case Capsule(radius, length):
            return coal.Capsule(radius, length)
        case Plane():
            return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    raise AssertionError(shape)


def distances(robot: RobotModel, scene: Scene, q: Float64) -> dict[tuple[str, str], float]:
    """Return distances of all pairs of bodies that must not touch, m."""
    poses = dict(zip(robot.link_names, forward_kinematics(robot, q), strict=True))
    bodies = {
        name: [(solid(s.shape), poses[name] @ s.T_frame_shape) for s in placed]
        for name, placed in robot.collision_shapes.items()
    }
    pairs = list(checked_pairs(robot).checked)
    for item in scene.objects.values():
        bodies[item.id] = [(solid(s.shape), item.T_root_object @ s.T_frame_shape) for s in item.shapes]
        pairs += [(name, item.id) for name in robot.collision_shapes]
    found = {}
    for a, b in pairs:
        each = []
        for first, T_a in bodies[a]:
            for second, T_b in bodies[b]:
                placed = [coal.Transform3s(T[:3, :3], T[:3, 3]) for T in (T_a, T_b)]
                result = coal.DistanceResult()
                each.append(
                    coal.distance(first, placed[0], second, placed[1], coal.DistanceRequest(), result)
                )
        found[a, b] = float(min(each))
    return found


def test_free_contacts_and_clearance_are_those_of_all_pairs(panda: RobotModel) -> None:
    q = random_configurations(panda, COUNT, 2)
    report = check_collisions(panda, SCENE, q)
    quick = check_collisions(panda, SCENE, q, contacts=False)
    named = [{(contact.a, contact.b) for contact in found} for found in report.contacts]
    assert touching_bodies(panda, SCENE, q) == named
    assert any(named)
    np.testing.assert_array_equal(report.free, quick.free)
    assert 5 < report.free.sum() < COUNT - 5
    for row in range(COUNT):
        known = distances(panda, SCENE, q[row])
        assert abs(min(known.values())) > 1e-6, "a toss-up: choose other configurations"
        assert report.free[row] == (min(known.values()) > 0.0)
        assert {frozenset((c.a, c.b)) for c in report.contacts[row]} == {
            frozenset(pair) for pair, d in known.items() if d < 0.0
        }
        nearest = clearance_of(panda, SCENE, q[row])
        if report.free[row]:
            assert nearest.distance == pytest.approx(min(known.values()), abs=1e-5)
            assert nearest.point_a is not None
            assert nearest.point_b is not None
            gap = np.linalg.norm(nearest.point_a - nearest.point_b)
            assert gap == pytest.approx(nearest.distance, abs=1e-4)
        else:
            assert nearest.distance < 0.0
        depths = [c.depth for c in report.contacts[row]]
        assert depths == sorted(depths, reverse=True)


def test_a_wanted_clearance_moves_the_border(panda: RobotModel) -> None:
    q = random_configurations(panda, COUNT, 2)
    report = check_collisions(panda, SCENE, q, clearance=0.05)
    for row in range(COUNT):
        known = min(distances(panda, SCENE, q[row]).values())
        if abs(known - 0.05) > 1e-5:
            assert report.free[row] == (known > 0.05)


def test_what_is_in_doubt_is_a_contact_however_it_is_asked() -> None:
    """Two pipes side by side (aslant, so that boxes around them meet) whose gap is less than coal's error."""
    robot = robot_from_urdf(
        """<robot name="two"><link name="a"/><link name="b"><collision><origin xyz="0.3 0 0"/><geometry>
        <capsule radius="0.1" length="0.2"/></geometry></collision></link><joint name="j" type="continuous">
        <parent link="a"/><child link="b"/></joint></robot>"""
    )
    q = np.zeros((1, 1))
    for gap, clearance, free in ((5e-6, 0.0, False), (5e-5, 0.0, True), (0.02 + 3e-6, 0.02, False)):
        aside = (0.2 + gap) / np.sqrt(2.0)
        scene = Scene(objects={"pipe": thing("pipe", Capsule(0.1, 0.3), 0.3 + aside, aside, 0.0)})
        full = check_collisions(robot, scene, q, clearance)
        assert full.free[0] == free
        assert check_collisions(robot, scene, q, clearance, contacts=False).free[0] == free
        assert len(full.contacts[0]) == (0 if free else 1)
        assert all(contact.depth > 0.0 for contact in full.contacts[0])


def test_ground_counts(panda: RobotModel) -> None:
    hills = HeightMap(np.full((20, 20), 0.6), 0.1)
    scene = Scene(objects={"hills": thing("hills", hills, -1.0, -1.0, 0.0)})
    report = check_collisions(panda, scene, panda.default_q[None])
    assert not report.free[0]
    assert "hills" in {report.contacts[0][0].a, report.contacts[0][0].b}
    low = Scene(objects={"hills": thing("hills", hills, -1.0, -1.0, -1.0)})
    assert not any(
        "hills" in (c.a, c.b) for c in check_collisions(panda, low, panda.default_q[None]).contacts[0]
    )


def test_what_has_no_usable_shape_is_named_as_not_checked() -> None:
    robot = robot_from_urdf(
        """<robot name="two"><link name="a"><collision><geometry><mesh filename="package://nowhere/a.stl"/></geometry>
        </collision></link><link name="b"><collision><geometry><mesh filename="package://nowhere/b.stl"/></geometry>
        </collision></link><joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""
    )
    (said,) = not_checked(robot)
    assert said.startswith(
        "collisions of a, b are not looked at: the package 'nowhere' of its mesh is not found"
    )
    assert check_collisions(robot, Scene(), np.zeros((1, 1))).free.all()


def test_links_that_are_only_seen_are_named() -> None:
    ball = "<geometry><sphere radius='0.1'/></geometry>"
    robot = robot_from_urdf(
        f"<robot name='two'><link name='a'><visual>{ball}</visual></link><link name='b'><visual>{ball}</visual>"
        f"<collision>{ball}</collision></link><link name='c'/>"
        "<joint name='i' type='fixed'><parent link='a'/><child link='b'/></joint>"
        "<joint name='j' type='fixed'><parent link='b'/><child link='c'/></joint></robot>"
    )
    assert not_checked(robot) == ("collisions of links with visual but without collision shapes: a",)


def test_pairs_that_samples_excluded_are_named() -> None:
    box = "<collision><geometry><box size='0.2 0.2 0.2'/></geometry></collision>"
    joint = "<joint name='j{k}' type='continuous'><parent link='l{k}'/><child link='l{n}'/><axis xyz='1 0 0'/></joint>"
    robot = robot_from_urdf(
        "<robot name='lump'>"
        + "".join(f"<link name='l{k}'>{box}</link>" for k in range(3))
        + "".join(joint.format(k=k, n=k + 1) for k in range(2))
        + "</robot>"
    )
    assert not_checked(robot) == ("self collision of l0 and l2: in collision in nearly every state",)
    assert check_collisions(robot, Scene(), np.zeros((1, 2))).free.all()


@pytest.mark.parametrize("package", ["coal", "numba"])
def test_without_a_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    robot = robot_from_urdf(
        '<robot name="one"><link name="a"><collision><geometry><box size="1 1 1"/></geometry></collision></link>'
        "</robot>"
    )
    scene = Scene(objects={"near": thing("near", Box(0.1, 0.1, 0.1), 0.0, 0.0, 0.0)})
    monkeypatch.setitem(sys.modules, package, None)
    for contacts in (True, False):
        with pytest.raises(MissingPackageError, match=f"need the package {package}"):
            check_collisions(robot, scene, robot.default_q[None], contacts=contacts)
    with pytest.raises(MissingPackageError, match=f"need the package {package}"):
        clearance_of(robot, scene, robot.default_q)


@pytest.mark.parametrize("shape", [(1, 7), (1, 0), (1, 9), (8,), (1, 1, 8)])
def test_configurations_of_another_size_are_refused(panda: RobotModel, shape: tuple[int, ...]) -> None:
    """Compiled code read past their end, and judged what lay there."""
    assert panda.nq == 8
    for check in (check_collisions, first_in_collision):
        with pytest.raises(InvalidStateError, match=r"allowed is \(N, 8\)"):
            check(panda, EMPTY_SCENE, np.zeros(shape))
    for single in (is_free, clearance_of):
        with pytest.raises(InvalidStateError, match=r"allowed is \(N, 8\)"):
            single(panda, EMPTY_SCENE, np.zeros(7))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_no_free_configuration(value: float) -> None:
    """What is infinitely far away was free of everything."""
    slide = robot_from_urdf(
        """<robot name="slide"><link name="rail"><collision>
        <geometry><sphere radius="0.1"/></geometry></collision></link>
        <link name="cart"/><link name="tool"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
        <joint name="x" type="prismatic"><parent link="rail"/><child link="cart"/><axis xyz="1 0 0"/>
        <limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
        <joint name="y" type="prismatic"><parent link="cart"/><child link="tool"/><axis xyz="0 1 0"/>
        <limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>"""
    )
    with pytest.raises(InvalidStateError, match="not finite"):
        check_collisions(slide, EMPTY_SCENE, np.array([[value, 0.0]]))
