"""URDFs that are refused, each with a sentence that names the offender."""

import pytest

from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.robot.urdf_elements import MAX_LINKS
from kinopt_ros.robot.xml_text import MAX_TEXT_LENGTH

BOMB = """<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;">]><robot name="&c;"><link name="a"/></robot>"""
EXTERNAL = (
    '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/hostname">]><robot name="r"><link name="a"/>&x;</robot>'
)
XACRO = (
    '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="r"><xacro:property name="x" value="1"/></robot>'
)

TEXTS = {
    "empty": ("", "empty"),
    "blank": (" \n ", "empty"),
    "not xml": ("hello", "not well-formed"),
    "cut off": ('<robot name="r"><link name="a"/>', "not well-formed"),
    "null byte": ("<robot name='r'>\0</robot>", "not well-formed"),
    "lone surrogate": ("<robot name='\ud800'/>", "not well-formed"),
    "html": ("<html></html>", "<html>, not <robot>"),
    "sdf": ("<sdf><model/></sdf>", "<sdf>, not <robot>"),
    "entity bomb": (BOMB, "document type"),
    "external entity": (EXTERNAL, "document type"),
    "undeclared entity": ('<robot name="r"><link name="&x;"/></robot>', "not well-formed"),
    "xacro": (XACRO, "run xacro first"),
    "xacro without namespace": ('<robot name="r"><xacro:arm/></robot>', "run xacro first"),
    "no links": ('<robot name="r"/>', "no <link>"),
    "xacro remnant": ('<robot name="r" xmlns:xacro="http://wiki.ros.org/xacro"/>', "run xacro first"),
    "nameless link": ('<robot name="r"><link/></robot>', "<link> has no name"),
    "two links of a name": (
        '<robot name="r"><link name="a"/><link name="a"/></robot>',
        "links are called 'a'",
    ),
    "space around a link": ('<robot name="r"><link name=" a"/></robot>', "' a' of a <link> begins or ends"),
    "space around a joint": (
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j&#9;" type="fixed"><parent link="a"/>'
        '<child link="b"/></joint></robot>',
        "of a <joint> begins or ends with white space",
    ),
    "several roots": ('<robot name="r"><link name="a"/><link name="b"/></robot>', "'a', 'b' have no parent"),
}

JOINTS = {
    "two joints of a name": (("j fixed a b", "j fixed b c"), "joints are called 'j'"),
    "two parents": (("j fixed a c", "k fixed a c"), "'c' has two parents: joints 'j' and 'k'"),
    "cycle without root": (("j fixed a b", "k fixed b a"), "no root link.*cycle"),
    "cycle beside the root": (("i fixed r s", "j fixed a b", "k fixed b a"), "not reached from the root 'r'"),
    "own parent": (("j fixed a a",), "joint 'j' joins link 'a' to itself"),
    "unknown type": (("j screw a b",), "'j' has the unknown type 'screw'"),
    "type unknown": (("j unknown a b",), "unknown type 'unknown'"),
    "nan origin": (('j fixed a b <origin xyz="0 nan 0"/>',), "<origin> of joint 'j': 'nan'"),
    "infinite origin": (('j fixed a b <origin xyz="0 0 1e999"/>',), "<origin> of joint 'j': '1e999'"),
    "two numbers": (('j fixed a b <origin xyz="0 1"/>',), "has 2 numbers, not 3"),
    "words": (('j fixed a b <origin rpy="0 0 up"/>',), "'up' is no finite number"),
    "python numbers": (('j fixed a b <origin rpy="0 0 1_0"/>',), "'1_0' is no finite number"),
    "expression": (('j fixed a b <origin xyz="0 0 ${h}"/>',), "run xacro first"),
    "other digits": (('j fixed a b <origin rpy="0 0 \u0661"/>',), "is no finite number"),
    "variable of another joint": (
        ("j planar a b", "j/x revolute b c"),
        "'j/x' is called like a variable of the planar joint 'j'",
    ),
    "fixed joint called like a variable": (
        ("j floating a b", "j/rot_w fixed b c"),
        "'j/rot_w' is called like a variable of the floating joint 'j'",
    ),
    "overflowing mimic": (
        (
            "j revolute a b",
            'k revolute b c <mimic joint="j" multiplier="1e200"/>',
            'm revolute c d <mimic joint="k" multiplier="1e200"/>',
        ),
        "'k' mimics 'j' with multiplier 1e\\+200 .* allowed are at most 1e\\+06",
    ),
    "overflowing mimic offset": (
        (
            "j revolute a b",
            'k revolute b c <mimic joint="j" offset="1e200"/>',
            'm revolute c d <mimic joint="k" multiplier="-1e200"/>',
        ),
        "'k' mimics 'j' with multiplier 1 and offset 1e\\+200",
    ),
    "zero axis": (('j continuous a b <axis xyz="0 0 0"/>',), "'j' has a zero axis"),
    "infinite axis": (('j continuous a b <axis xyz="inf 0 0"/>',), "<axis> of joint 'j': 'inf'"),
    "limits crossed": (
        ('j revolute a b <limit lower="1" upper="-1" effort="1" velocity="1"/>',),
        "'j'.*above",
    ),
    "nan limit": (('j revolute a b <limit lower="nan" upper="1"/>',), "<limit> of joint 'j': 'nan'"),
    "negative jerk": (('j revolute a b <limit jerk="-1"/>',), r"jerk='-1' in <limit> of joint 'j'; allowed"),
    "acceleration of 0": (('j revolute a b <limit acceleration="0"/>',), "number above 0, or inf"),
    "negative velocity": (('j revolute a b <limit velocity="-1"/>',), "'j' has the negative velocity limit"),
    "mimic of unknown": (
        ("d revolute a b", 'j revolute b c <mimic joint="x"/>'),
        "'j' mimics 'x', which does",
    ),
    "mimic of nothing": (
        ("d revolute a b", "j revolute b c <mimic/>"),
        "<mimic> of joint 'j' names no joint",
    ),
    "mimic of fixed": (
        ("d fixed a b", 'j revolute b c <mimic joint="d"/>'),
        "'j' mimics 'd', which is fixed",
    ),
    "mimic of planar": (
        ("d planar a b", 'j revolute b c <mimic joint="d"/>'),
        "'j' mimics 'd', which is planar",
    ),
    "floating mimic": (("d revolute a b", 'j floating b c <mimic joint="d"/>'), "'j' is floating and cannot"),
    "mimic of itself": (('j revolute a b <mimic joint="j"/>',), "circle: j -> j"),
    "mimic circle": (
        ('j revolute a b <mimic joint="k"/>', 'k revolute b c <mimic joint="j"/>'),
        "circle: j -> k -> j",
    ),
    "nan multiplier": (
        ("d revolute a b", 'j revolute b c <mimic joint="d" multiplier="nan"/>'),
        "<mimic> of.*'j'",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_is_refused(case):
    text, sentence = TEXTS[case]
    with pytest.raises(RobotDescriptionError, match=sentence):
        robot_from_urdf(text)


@pytest.mark.parametrize("case", JOINTS)
def test_joints_are_refused(urdf, case):
    joints, sentence = JOINTS[case]
    with pytest.raises(RobotDescriptionError, match=sentence):
        robot_from_urdf(urdf(*joints))


@pytest.mark.parametrize(
    ("inside", "sentence"),
    [
        ('<parent link="a"/><child link="x"/>', "'j' has the child link 'x', which does not exist"),
        ('<parent link="x"/><child link="b"/>', "'j' has the parent link 'x', which does not exist"),
        ('<parent link="a"/>', "'j' has no <child>"),
        ('<child link="b"/>', "'j' has no <parent>"),
        ('<parent/><child link="b"/>', "<parent> of joint 'j' names no link"),
        ('<parent link="a"/><child link="b"/>', "'j' is revolute but has no <limit>"),
    ],
)
def test_incomplete_joint_is_refused(inside, sentence):
    joint = f'<joint name="j" type="revolute">{inside}</joint>'
    with pytest.raises(RobotDescriptionError, match=sentence):
        robot_from_urdf(f'<robot name="r"><link name="a"/><link name="b"/>{joint}</robot>')


def test_nameless_joint_is_refused():
    with pytest.raises(RobotDescriptionError, match="<joint> has no name"):
        robot_from_urdf('<robot name="r"><link name="a"/><joint type="fixed"/></robot>')


def test_enormous_text_is_refused():
    with pytest.raises(RobotDescriptionError, match="at most"):
        robot_from_urdf("<robot>" + " " * MAX_TEXT_LENGTH + "</robot>")


def test_too_many_links_are_refused():
    links = "".join(f'<link name="l{i}"/>' for i in range(MAX_LINKS + 1))
    with pytest.raises(RobotDescriptionError, match="links; at most"):
        robot_from_urdf(f'<robot name="r">{links}</robot>')


def test_deep_nesting_is_refused():
    deep = "<x>" * 100_000 + "</x>" * 100_000
    with pytest.raises(RobotDescriptionError, match="more than 200 elements within one another"):
        robot_from_urdf(f'<robot name="r"><link name="a"/>{deep}</robot>')


def test_not_text_is_refused():
    with pytest.raises(RobotDescriptionError, match="must be text, not bytes"):
        robot_from_urdf(b"<robot/>")
