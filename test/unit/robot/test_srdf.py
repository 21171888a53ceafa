"""Groups and annotations from SRDF."""

import time

import numpy as np
import pytest

from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.robot import srdf
from kinopt_ros.robot.model import JointType
from kinopt_ros.robot.states import named_configuration
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.robot.urdf_elements import MAX_LINKS


@pytest.fixture
def robot(urdf):
    """Torso with an arm, a gripper with a mimicking finger, and a second arm."""
    text = urdf(
        "torso prismatic base chest",
        "a1 revolute chest arm1",
        "a2 revolute arm1 arm2",
        "flange fixed arm2 tool",
        "f1 prismatic tool finger1",
        'f2 prismatic tool finger2 <mimic joint="f1"/>',
        "b1 revolute chest other1",
        "b2 continuous other1 other2",
        'nav floating base drone <axis xyz="0 0 1"/>',
    )

    def build(srdf, **options):
        return robot_from_urdf(text, f'<robot name="made">{srdf}</robot>', **options)

    return build


def ends(group):
    return group.base_link, group.tip_link


def test_chain_group(robot):
    group = robot('<group name="arm"><chain base_link="chest" tip_link="tool"/></group>').group("arm")
    assert group.joints == ("a1", "a2")
    assert group.links == ("arm1", "arm2", "tool")
    assert ends(group) == ("chest", "tool")


def test_chain_across_branches(robot):
    group = robot('<group name="both"><chain base_link="other2" tip_link="tool"/></group>').group("both")
    assert group.joints == ("a1", "a2", "b1", "b2")
    assert ends(group) == ("other2", "tool")


@pytest.mark.parametrize(
    ("members", "joints", "expected"),
    [
        ('<joint name="a2"/><joint name="a1"/>', ("a1", "a2"), ("chest", "arm2")),
        ('<link name="arm1"/><link name="arm2"/><link name="tool"/>', ("a1", "a2"), ("chest", "tool")),
        ('<joint name="torso"/><joint name="a2"/>', ("torso", "a2"), ("base", "arm2")),
        ('<joint name="a1"/><joint name="b1"/>', ("a1", "b1"), (None, None)),
        ('<link name="finger1"/><link name="finger2"/>', ("f1",), (None, None)),
        ('<link name="base"/>', (), (None, None)),
        ("", (), (None, None)),
    ],
)
def test_ends_are_inferred_from_one_serial_path(robot, members, joints, expected):
    group = robot(f'<group name="g">{members}</group>').group("g")
    assert group.joints == joints
    assert ends(group) == expected


def test_nested_groups_in_any_order(robot):
    made = robot(
        '<group name="all"><group name="upper"/><group name="hand"/></group>'
        '<group name="upper"><joint name="torso"/><group name="arm"/></group>'
        '<group name="arm"><chain base_link="chest" tip_link="tool"/></group>'
        '<group name="hand"><joint name="f1"/><joint name="f2"/></group>'
    )
    assert list(made.groups) == ["all", "upper", "arm", "hand"]
    assert made.group("all").joints == ("torso", "a1", "a2", "f1")
    assert ends(made.group("all")) == (None, None)
    assert ends(made.group("upper")) == ("base", "tool")


@pytest.mark.parametrize(
    ("srdf", "sentence"),
    [
        ('<group name="g"><group name="g"/></group>', "g -> g"),
        ('<group name="g"><group name="h"/></group><group name="h"><group name="g"/></group>', "g -> h -> g"),
        ('<group name="g"/><group name="g"/>', "'g' twice"),
        ("<group/>", "<group> has no name"),
        ('<group name="g"><chain base_link="base"/></group>', "<chain> has no tip_link"),
        ('<group name="g"><joint/></group>', "<joint> has no name"),
        ('<virtual_joint name="v" type="ball" parent_frame="w" child_link="base"/>', "type 'ball'"),
        (
            '<group name="g"/><group_state name="s" group="g"><joint name="a1" value="nan"/></group_state>',
            "'a1' in group_state 's'",
        ),
        (
            '<group name="g"/><group_state name="s" group="g"><joint name="a1" value="1_0"/></group_state>',
            "'1_0', which is not finite numbers",
        ),
        (
            '<group name="g"/><group_state name="s" group="g"><joint name="a1" value="1 2"/></group_state>',
            "2 numbers for joint 'a1', which needs 1",
        ),
        ('<group name="${prefix}g"/>', "run xacro first"),
        ('<x:g xmlns:x="http://www.ros.org/wiki/xacro"/>', "run xacro first"),
        ("<group", "not well-formed"),
    ],
)
def test_contradictions_are_refused(robot, srdf, sentence):
    with pytest.raises(RobotDescriptionError, match=sentence):
        robot(srdf)


def test_bomb_is_refused(urdf):
    with pytest.raises(RobotDescriptionError, match="SRDF declares a document type"):
        robot_from_urdf(urdf("j fixed a b"), '<!DOCTYPE robot [<!ENTITY a "b">]><robot name="&a;"/>')


@pytest.mark.parametrize(
    ("srdf", "warning"),
    [
        ('<group name="g"><joint name="x"/></group>', "group 'g' is left out: its joint 'x'"),
        ('<group name="g"><link name="x"/></group>', "its link 'x'"),
        ('<group name="g"><chain base_link="base" tip_link="x"/></group>', "its link 'x'"),
        ('<group name="g"><group name="x"/></group>', "its group 'x'"),
        ('<passive_joint name="x"/>', "passive_joint 'x' does not exist"),
        ('<end_effector name="e" parent_link="tool" group="x"/>', "end_effector 'e' has the group 'x'"),
        ('<virtual_joint name="v" type="fixed" parent_frame="w" child_link="x"/>', "child link 'x'"),
        ('<disable_collisions link1="x" link2="base"/>', "1 links that do not exist are left out: x"),
        ('<group_state name="s" group="x"/>', "'s' is of group 'x'"),
        ('<group_state name="s"/>', "'s' is of no group"),
        (
            '<group name="g"/><group_state name="s" group="g"><joint name="x" value="1"/></group_state>',
            "'s' has the joint 'x'",
        ),
    ],
)
def test_leftovers_are_left_out_with_a_warning(robot, srdf, warning):
    made = robot(f'<group name="arm"><joint name="a1"/></group>{srdf}')
    assert any(warning in found for found in made.warnings)
    assert "arm" in made.groups


def test_srdf_without_groups_keeps_leaf_chains(robot):
    made = robot("")
    assert "tool" not in made.groups  # not a leaf
    assert set(made.groups) == {"finger1", "finger2", "other2", "drone"}


def test_annotations(robot):
    made = robot(
        '<virtual_joint name="world" type="planar" parent_frame="odom" child_link="base"/>'
        '<group name="arm"><chain base_link="odom" tip_link="tool"/></group>'
        '<group name="hand"><joint name="world"/><joint name="f1"/></group>'
        '<end_effector name="grip" parent_link="tool" group="hand" parent_group="arm"/>'
        '<passive_joint name="torso"/>'
        '<disable_collisions link1="arm1" link2="arm2" reason="Adjacent"/>'
    )
    assert made.virtual_joint.type is JointType.PLANAR
    assert any("'world' is planar, but nothing here moves it" in warning for warning in made.warnings)
    assert ends(made.group("arm")) == ("base", "tool")
    assert made.group("arm").joints == ("a1", "a2")  # without the passive torso
    assert made.end_effectors[0].parent_group == "arm"
    assert made.passive_joints == {"torso"}
    assert made.disabled_collisions == {frozenset({"arm1", "arm2"})}


def test_collisions_disabled_by_default(robot):
    made = robot(
        '<disable_default_collisions link="tool"/><enable_collisions link1="tool" link2="base"/>'
        '<disable_collisions link1="base" link2="chest"/>'
    )
    assert frozenset({"tool", "base"}) not in made.disabled_collisions
    assert len(made.disabled_collisions) == len(made.link_names) - 2 + 1


def test_too_many_pairs_of_default_collisions_are_refused(urdf, monkeypatch):
    text = urdf(*(f"j{i} fixed l0 l{i + 1}" for i in range(9)))
    every = '<robot name="made">' + "".join(f'<disable_default_collisions link="l{i}"/>' for i in range(10))
    monkeypatch.setattr(srdf, "MAX_DEFAULT_PAIRS", 45)
    assert len(robot_from_urdf(text, every + "</robot>").disabled_collisions) == 45
    monkeypatch.setattr(srdf, "MAX_DEFAULT_PAIRS", 44)
    with pytest.raises(RobotDescriptionError, match=r"for 10 of 10 links; .* 44 pairs"):
        robot_from_urdf(text, every + "</robot>")


def test_largest_robots_load_soon(urdf):
    # Every link of a long chain carries a leaf: the shape whose groups are largest.
    half = MAX_LINKS // 2
    spine = [f"j{i} revolute l{i} l{i + 1}" for i in range(half - 1)]
    leaves = [f"k{i} revolute l{i} m{i}" for i in range(half - 1)]
    every = "".join(f'<disable_default_collisions link="l{i}"/>' for i in range(half))
    start = time.process_time()
    assert len(robot_from_urdf(urdf(*spine, *leaves)).groups) == half
    with pytest.raises(RobotDescriptionError, match="disable_default_collisions"):
        robot_from_urdf(urdf(*spine, *leaves), f'<robot name="made">{every}</robot>')
    assert time.process_time() - start < 10.0  # both together some 2 s on a quiet machine


def test_states_of_joints_outside_the_group_are_left_out(robot):
    made = robot(
        '<group name="arm"><chain base_link="chest" tip_link="tool"/></group><passive_joint name="a2"/>'
        '<group_state name="s" group="arm"><joint name="a1" value="0.1"/><joint name="a2" value="0.2"/>'
        '<joint name="b1" value="0.3"/></group_state>'
    )
    assert made.group("arm").states["s"] == {"a1": 0.1, "a2": 0.2}
    assert any("'s' has the joint 'b1', which is not in the group 'arm'" in found for found in made.warnings)


@pytest.mark.parametrize("size", ["1e308", "-1e308", "1e-320"])
def test_quaternions_of_any_length_are_normalised(robot, size):
    state = f'<joint name="nav" value="0 0 0 {size} {size} {size} {size}"/>'
    made = robot(
        f'<group name="air"><joint name="nav"/></group><group_state name="s" group="air">{state}</group_state>',
        default_state="s",
    )
    half = 0.5 if float(size) > 0 else -0.5
    np.testing.assert_allclose(made.default_q[list(made.variables_of("nav"))][3:], half)


def test_group_states(robot):
    made = robot(
        '<group name="arm"><joint name="a1"/></group><group name="air"><joint name="nav"/></group>'
        '<group_state name="home" group="arm"><joint name="a1" value="0.25"/>'
        '<joint name="f2" value="9"/></group_state>'
        '<group_state name="home" group="air"><joint name="nav" value="1 2 3 0 0 2 0"/></group_state>'
        '<group_state name="far" group="arm"><joint name="a1" value="7"/></group_state>',
        default_state="home",
    )
    assert made.group("arm").states["home"] == {"a1": 0.25}
    assert made.default_q[made.variable_index["a1"]] == 0.25
    np.testing.assert_array_equal(made.default_q[list(made.variables_of("nav"))], [1, 2, 3, 0, 0, 0, 1])
    assert any("'far' puts 'a1' outside" in warning for warning in made.warnings)
    with pytest.raises(RobotDescriptionError, match="'far' puts 'a1' at 7"):
        named_configuration(made, "far")
    with pytest.raises(RobotDescriptionError, match="unknown state 'x'; known: air/home, arm/far, arm/home"):
        named_configuration(made, "x")
    np.testing.assert_array_equal(named_configuration(made, "arm/home"), made.default_q)
