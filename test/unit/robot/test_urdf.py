"""URDFs that load, and what becomes of them."""

import time
from xml.etree import ElementTree

import numpy as np
import pytest

from kinopt_ros.errors import UnknownGroupError, UnknownJointError, UnknownLinkError
from kinopt_ros.robot import xml_text
from kinopt_ros.robot.limits import DEFAULT_ACCELERATION, DEFAULT_JERK, DEFAULT_VELOCITY
from kinopt_ros.robot.model import JointType
from kinopt_ros.robot.urdf import robot_from_urdf

LIMIT = '<limit lower="{}" upper="{}" effort="1" velocity="{}"/>'


def test_joints_in_any_order_are_sorted_parents_first(urdf):
    robot = robot_from_urdf(
        urdf("c fixed l2 l3", "b continuous l1 l2", "d continuous l1 l4", "a fixed l0 l1")
    )
    assert robot.root_link == "l0"
    assert robot.link_names == ("l0", "l1", "l2", "l3", "l4")
    assert [joint.name for joint in robot.joints] == ["a", "b", "c", "d"]
    assert robot.variable_names == ("b", "d")
    assert robot.active_joints == ("b", "d")


def test_every_joint_type_has_its_variables(urdf):
    robot = robot_from_urdf(
        urdf(
            'w planar l0 l1 <axis xyz="0 0 1"/>',
            "f floating l1 l2",
            "r revolute l2 l3",
            "p prismatic l3 l4",
            "c continuous l4 l5",
            "x fixed l5 l6",
        )
    )
    assert robot.variable_names == (
        *("w/x", "w/y", "w/theta"),
        *("f/trans_x", "f/trans_y", "f/trans_z", "f/rot_w", "f/rot_x", "f/rot_y", "f/rot_z"),
        *("r", "p", "c"),
    )
    assert [joint.type for joint in robot.joints][-1] is JointType.FIXED
    assert list(robot.variables_of("f")) == list(range(3, 10))
    assert np.isinf(robot.limits.lower[[0, 1, 2, 3, 4, 5, 12]]).all()
    np.testing.assert_array_equal(robot.limits.upper[6:12], [1, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(robot.default_q, [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("xyz", "unit"),
    [
        ("0 0 -1", (0, 0, -1)),
        ("0 3 4", (0, 0.6, 0.8)),
        ("1e-200 0 0", (1, 0, 0)),
        ("-1e200 0 0", (-1, 0, 0)),
    ],
)
def test_axes_are_normalized(urdf, xyz, unit):
    robot = robot_from_urdf(urdf(f'j revolute a b <axis xyz="{xyz}"/>'))
    np.testing.assert_allclose(robot.joints[0].axis, unit, atol=1e-15)


def test_axis_defaults_to_x(urdf):
    np.testing.assert_array_equal(robot_from_urdf(urdf("j revolute a b")).joints[0].axis, [1, 0, 0])


def test_missing_limits_get_stated_defaults(urdf):
    robot = robot_from_urdf(urdf("c continuous a b", "r revolute b c " + LIMIT.format(-1, 2, 0)))
    np.testing.assert_array_equal(robot.limits.velocity, DEFAULT_VELOCITY)
    np.testing.assert_array_equal(robot.limits.acceleration, DEFAULT_ACCELERATION)
    np.testing.assert_array_equal(robot.limits.jerk, DEFAULT_JERK)
    np.testing.assert_array_equal(robot.limits.lower, [-np.inf, -1])
    np.testing.assert_array_equal(robot.default_q, [0, 0.5])
    assert sum("no velocity limit" in warning for warning in robot.warnings) == 2


@pytest.mark.parametrize(
    ("attributes", "acceleration", "jerk"),
    [
        ('acceleration="3" deceleration="2.5" jerk="40"', 2.5, 40.0),
        ('acceleration="2" deceleration="inf" jerk="Infinity"', 2.0, DEFAULT_JERK),
        ('deceleration="0.5"', 0.5, DEFAULT_JERK),
        ('acceleration="inf"', DEFAULT_ACCELERATION, DEFAULT_JERK),
    ],
)
def test_limits_of_urdf_1_2(urdf, attributes, acceleration, jerk):
    text = urdf(f'j revolute a b <limit lower="-1" upper="1" velocity="2" effort="1" {attributes}/>')
    limits = robot_from_urdf(text.replace("<robot ", '<robot version="1.2" ', 1)).limits
    assert (limits.velocity[0], limits.acceleration[0], limits.jerk[0]) == (2.0, acceleration, jerk)


def test_mimic_chain_is_resolved_to_its_driver(urdf):
    robot = robot_from_urdf(
        urdf(
            'm2 revolute c d <mimic joint="m1" multiplier="-3" offset="0.5"/>' + LIMIT.format(-9, 9, 1),
            'm1 revolute b c <mimic joint="d1" multiplier="2" offset="0.1"/>' + LIMIT.format(-9, 9, 1),
            "d1 revolute a b",
            'still prismatic d e <mimic joint="m2" multiplier="0" offset="0.3"/>',
        )
    )
    m1, m2, still = robot.joint("m1"), robot.joint("m2"), robot.joint("still")
    assert robot.variable_names == ("d1",)
    assert (m1.mimics, m1.multiplier, m1.offset) == ("d1", 2, 0.1)
    assert (m2.mimics, m2.multiplier, m2.offset) == ("d1", -6, pytest.approx(0.2))
    assert (still.mimics, still.multiplier, still.offset) == ("d1", 0, 0.3)
    assert not m1.is_active
    assert list(robot.variables_of("m1")) == []
    assert robot.limits.velocity[0] == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("multiplier", "offset", "lower", "upper", "narrowed"),
    [
        (1, 0, -0.5, 3, (-0.5, 1)),
        (-1, 0, 0, 2, (-1, 0)),
        (-2, 1, 0, 2, (-0.5, 0.5)),
        (0, 1, 0, 2, (-1, 1)),
        (1, 0, 0.8, 2, (0.8, 1)),
    ],
)
def test_driver_range_is_narrowed_for_its_mimic(urdf, multiplier, offset, lower, upper, narrowed):
    mimic = f'<mimic joint="d" multiplier="{multiplier}" offset="{offset}"/>' + LIMIT.format(lower, upper, 1)
    robot = robot_from_urdf(urdf("d revolute a b", f"m revolute b c {mimic}"))
    assert (robot.limits.lower[0], robot.limits.upper[0]) == pytest.approx(narrowed)
    assert (robot.joint("d").lower, robot.joint("d").upper) == (-1, 1)


def test_forgotten_prefix_of_a_driver_is_found_and_said(urdf):
    robot = robot_from_urdf(urdf("left_f1 revolute a b", 'left_f2 revolute b c <mimic joint="f1"/>'))
    assert robot.joint("left_f2").mimics == "left_f1"
    assert any("'left_f1' is taken instead" in warning for warning in robot.warnings)


def test_irrelevant_elements_never_refuse(urdf):
    text = urdf(
        'j revolute a b <safety_controller k_velocity="x"/><dynamics damping="?"/><calibration rising="?"/>',
        'k fixed b c <limit effort="oops"/>',
        extra="""<transmission><joint/><actuator name=""/></transmission><material name="m"/>
        <gazebo><x:y xmlns:x="u"/></gazebo><sensor name="s"><parent link="nowhere"/></sensor><unknown/>
        <ros2_control><joint name="j"/></ros2_control>""",
    )
    inside = """<link name="c"><visual><geometry/><origin xyz="nan"/></visual><collision/>
        <inertial><mass value="?"/></inertial></link>"""
    robot = robot_from_urdf(text.replace('<link name="c"/>', inside))
    assert robot.link_names == ("a", "b", "c")


def test_default_namespace_and_encoding_declaration():
    text = (
        '<?xml version="1.0" encoding="utf-8"?><robot xmlns="http://x" name="ü"><link name="a"/>'
        '<link name="b"/><joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>'
    )
    assert robot_from_urdf(text).name == "ü"


def test_single_link():
    robot = robot_from_urdf('<robot name="r"><link name="only"/></robot>')
    assert (robot.nq, robot.link_names, dict(robot.groups)) == (0, ("only",), {})


def test_nameless_robot_is_called_robot():
    robot = robot_from_urdf('<robot><link name="only"/></robot>')
    assert robot.name == "robot"
    assert robot.warnings


def test_long_chain_loads_without_recursion(urdf):
    start = time.perf_counter()
    robot = robot_from_urdf(urdf(*(f"j{i} continuous l{i} l{i + 1}" for i in reversed(range(1999)))))
    assert robot.nq == 1999
    assert robot.groups["l1999"].joints[0] == "j0"
    assert time.perf_counter() - start < 20


def test_groups_without_srdf_are_leaf_chains(urdf):
    robot = robot_from_urdf(
        urdf(
            "a continuous base l1",
            "tool fixed l1 tool0",
            "f1 prismatic l1 finger1",
            'f2 prismatic l1 finger2 <mimic joint="f1"/>',
            "cam fixed base camera",
        )
    )
    assert list(robot.groups) == ["tool0", "finger1", "finger2"]
    tool, finger2 = robot.group("tool0"), robot.group("finger2")
    assert (tool.joints, tool.links, tool.base_link, tool.tip_link) == (
        ("a",),
        ("l1", "tool0"),
        "base",
        "tool0",
    )
    assert finger2.joints == ("a", "f1")


def test_unknown_names_are_suggested(urdf):
    robot = robot_from_urdf(urdf("elbow revolute base hand"))
    with pytest.raises(UnknownLinkError, match="did you mean 'hand'"):
        robot.link("hnad")
    with pytest.raises(UnknownJointError, match="elbow"):
        robot.joint("elbo")
    with pytest.raises(UnknownGroupError, match="hand"):
        robot.group("arm")


def test_model_is_frozen(urdf):
    robot = robot_from_urdf(urdf("j revolute a b"))
    for array in (robot.default_q, robot.limits.lower, robot.joints[0].axis, robot.joints[0].T_parent_joint):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_large_text_is_parsed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step of the parser keeps all other threads waiting, among them the one that hears an emergency stop."""
    fed: list[int] = []

    class Watched(ElementTree.XMLParser):
        def feed(self, data: str) -> None:  # type: ignore[override]
            fed.append(len(data))
            super().feed(data)

    monkeypatch.setattr(xml_text.ElementTree, "XMLParser", Watched)
    text = "<robot name='ä'>" + "<!-- ü -->" * 100_000 + "<link name='a'/></robot>"
    root = xml_text.parse_xml(text, "URDF")
    assert [child.get("name") for child in root] == ["a"]
    assert sum(fed) == len(text)
    assert max(fed) <= 65_536
