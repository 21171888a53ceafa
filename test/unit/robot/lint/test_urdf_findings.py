"""Each defect of a URDF is found at its line, with a remedy; good robots give no errors."""

from pathlib import Path

import pytest

from kinopt_ros.errors import KinoptError
from kinopt_ros.robot.lint.finding import Finding, Severity
from kinopt_ros.robot.lint.meshes import mesh_file
from kinopt_ros.robot.lint.urdf import lint_urdf
from kinopt_ros.robot.sources import find_robot, robot_names
from kinopt_ros.robot.urdf import robot_from_urdf

GOOD = """<robot name="r">
  <link name="a"/>
  <link name="b"/>
  <link name="c"/>
  <joint name="j1" type="revolute">
    <parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" velocity="2" effort="1"/>
  </joint>
  <joint name="j2" type="prismatic">
    <parent link="b"/><child link="c"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="1" velocity="2" effort="1"/>
  </joint>
</robot>
"""
LIMIT_1 = '<limit lower="-1" upper="1" velocity="2" effort="1"/>'
AXIS_1 = '<parent link="a"/><child link="b"/><axis xyz="0 0 1"/>'
XACRO = '<xacro:c xmlns:xacro="ros.org/wiki/xacro"/><link name="c"/>'
HEAVY_C = '<link name="c"><inertial><mass value="2"/></inertial></link>'
NAN_A = HEAVY_C.replace('"c"', '"a"').replace("2", "nan")
TWO_MASSES = HEAVY_C.replace("<inertial>", '<inertial><mass value="1"/>')
HEAVY_AT = '<link name="c"><inertial><mass value="2"/>\n<origin xyz="{}"/></inertial></link>'
SIX = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="{}"/>'
INERTIA = f'<link name="c"><inertial><mass value="2"/>\n{SIX}</inertial></link>'
LIMIT_2 = '<limit lower="0" upper="1" velocity="2" effort="1"/>'
# A joint that turns the other way than its driver, with limits as if it did not.
REPEATED = '<limit lower="1" upper="2"/><mimic joint="j1" multiplier="-1"/>'
J2 = '<joint name="j2" type="prismatic">'
CHAINED = (
    """<link name="d"/><link name="e"/><joint name="j3" type="revolute">
<parent link="c"/><child link="d"/><limit lower="3" upper="4"/><mimic joint="j4" multiplier="-1" offset="0.5"/></joint>
<joint name="j4" type="prismatic"><parent link="d"/><child link="e"/><mimic joint="j1" multiplier="2"/></joint>
"""
    + J2
)
BC = '<parent link="b"/><child link="c"/>'

# What is replaced by what: line, severity, words of the finding, words of the remedy.
DEFECTS = {
    "not XML": ("</robot>", "</robo>", 13, "error", "well-formed", "mend"),
    "document type": ('<robot name="r">', '<!DOCTYPE x>\n<robot name="r">', 1, "error", "document type", "DOCTYPE"),
    "another root": ("robot", "sdf", 1, "error", "<sdf>", "URDF"),
    "xacro": ('<link name="c"/>', XACRO, 4, "error", "xacro", "run xacro"),
    "no name": ('<link name="c"/>', '<link name="c"/><link/>', 4, "error", "no name", "name="),
    "name twice": ('<link name="c"/>', '<link name="c"/>\n<link name="b"/>', 5, "error", "two links", "rename"),
    "unknown type": ('type="revolute"', 'type="hinge"', 5, "error", "'hinge'", "revolute"),
    "no parent": ('<parent link="a"/>', "", 5, "error", "no parent link", "<parent"),
    "unknown child": ('<child link="b"/>', '<child link="bb"/>', 6, "error", "'bb'", "correct"),
    "axis of zeros": (AXIS_1, AXIS_1.replace("0 0 1", "0 0 0"), 6, "error", "zero axis", "direction"),
    "long axis": (AXIS_1, AXIS_1.replace("0 0 1", "0 0 2"), 6, "note", "length 2", "make it 1"),
    "axis of two": (AXIS_1, AXIS_1.replace("0 0 1", "0 1"), 6, "error", "3 finite numbers", "plain"),
    "no axis": (AXIS_1, AXIS_1.replace('<axis xyz="0 0 1"/>', ""), 5, "note", "no <axis>", "axis"),
    "no limit": (LIMIT_1, "", 5, "error", "no <limit>", "continuous"),
    "limits swapped": ('lower="-1" upper="1"', 'lower="2" upper="1"', 7, "error", "above", "swap"),
    "cannot move": ('lower="-1" upper="1"', 'lower="1" upper="1"', 7, "warning", "cannot move", "fixed"),
    "limits forgotten": ('lower="-1" upper="1" ', "", 7, "warning", "0 where not given", "range"),
    "no velocity": ('lower="-1" upper="1" velocity="2"', 'lower="-1" upper="1"', 7, "warning", "velocity", "rad/s"),
    "negative velocity": (LIMIT_1, LIMIT_1.replace('"2"', '"-2"'), 7, "error", "negative", "positive"),
    "jerk of 0": (LIMIT_1, LIMIT_1.replace("velocity=", 'jerk="0" velocity='), 7, "error", "jerk='0'", "above 0"),
    "NaN limit": ('lower="-1"', 'lower="nan"', 7, "error", "lower='nan'", "plain"),
    "continuous with limits": ('type="revolute"', 'type="continuous"', 7, "warning", "not used", "revolute"),
    "mimic of nobody": (LIMIT_1, LIMIT_1 + '<mimic joint="j9"/>', 7, "error", "'j9'", "name a joint"),
    "mimic of itself": (LIMIT_1, LIMIT_1 + '<mimic joint="j1"/>', 7, "error", "itself", "circle"),
    "mimic limits": (LIMIT_2, REPEATED, 11, "warning", "leave only [-1, -1]", 'lower="-1" upper="1"'),
    "mimic limits by way of others": (J2, CHAINED, 10, "warning", "offset 0.5", 'lower="-1.5" upper="2.5"'),
    "two parents": (BC, '<parent link="c"/><child link="b"/>', 10, "error", "two parents", "tree"),
    "two roots": ('<link name="c"/>', '<link name="c"/>\n<link name="d"/>', 5, "error", "one root", "join"),
    "cycle": ('<parent link="a"/>', '<parent link="c"/>', 5, "error", "cycle", "break"),
    "two limits": (LIMIT_1, LIMIT_1 + "\n" + LIMIT_1, 8, "warning", "2 <limit>", "keep one"),
    "no mass in b": ('<link name="c"/>', HEAVY_C, 3, "note", "'b', which joint 'j1' moves, has no <inertial>", "mass"),
    "no mass in c": ('<link name="c"/>', HEAVY_C.replace("2", "0"), 4, "note", "the mass of link 'c'", "above 0"),
    "mass forgotten": ('<link name="c"/>', HEAVY_C.replace("value", "v"), 4, "warning", "has no value", "0 or more"),
    "mass below 0": ('<link name="c"/>', HEAVY_C.replace("2", "-2"), 4, "warning", "its mass is -2", "0 or more"),
    "mass is NaN": ('<link name="a"/>', NAN_A, 2, "warning", "'nan'", "<mass"),
    "no mass": ('<link name="c"/>', '<link name="c"><inertial/></link>', 4, "warning", "has no <mass>", "<mass"),
    "mass nowhere": ('<link name="c"/>', HEAVY_AT.format("1 inf 0"), 5, "warning", "xyz='1 inf 0'", "three plain"),
    "two masses": ('<link name="c"/>', TWO_MASSES, 4, "warning", "2 <mass>", "one"),
    "inertia is NaN": ('<link name="c"/>', INERTIA.format("nan"), 5, "warning", "left out: the inertia", "six plain"),
    "inertia of no body": ('<link name="c"/>', INERTIA.format("5"), 5, "note", "no body has", "from the shape"),
    "no inertia": ('<link name="c"/>', HEAVY_C, 4, "note", "has no <inertia>", "six plain"),
    "only seen": ('<link name="c"/>', '<link name="c"><visual/></link>', 4, "note", "<collision>", "geometry"),
}  # fmt: skip


def errors(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity is Severity.ERROR]


def test_nothing_is_found_in_a_good_one() -> None:
    assert lint_urdf(GOOD) == []


@pytest.mark.parametrize("defect", sorted(DEFECTS))
def test_a_defect_is_found_at_its_line(defect: str) -> None:
    old, new, line, severity, words, remedy = DEFECTS[defect]
    assert old in GOOD
    count = -1 if defect == "another root" else 1
    text = GOOD.replace(old, new, count)
    found = [finding for finding in lint_urdf(text) if words in finding.what]
    assert found, lint_urdf(text)
    assert found[0].line == line
    assert found[0].severity.value == severity
    assert remedy in found[0].remedy
    if severity == "error":
        with pytest.raises(KinoptError):
            robot_from_urdf(text)
    else:
        robot_from_urdf(text)


@pytest.mark.parametrize("defect", ["not XML", "two roots"])
def test_empty_lines_at_the_beginning_count(defect: str) -> None:
    old, new, line, _, words, _ = DEFECTS[defect]
    found = lint_urdf("\n\r\n  \n" + GOOD.replace(old, new))
    assert [finding.line for finding in found if words in finding.what] == [line + 3]


def test_all_defects_are_listed_not_only_the_first() -> None:
    text = GOOD.replace('type="revolute"', 'type="hinge"').replace('<child link="c"/>', '<child link="cc"/>')
    assert len(errors(lint_urdf(text))) >= 2


@pytest.mark.parametrize("name", robot_names())
def test_errors_are_found_in_exactly_those_robots_that_do_not_load(name: str) -> None:
    text = find_robot(name)[0].read_text(encoding="utf-8-sig")
    found = errors(lint_urdf(text))
    try:
        robot_from_urdf(text)
    except KinoptError:
        assert found
    else:
        assert not found


def test_meshes_are_looked_for(tmp_path: Path) -> None:
    package = tmp_path / "my_robot"
    (package / "meshes").mkdir(parents=True)
    (package / "urdf").mkdir()
    (package / "meshes" / "there.stl").write_text("")
    urdf = package / "urdf" / "robot.urdf"
    text = GOOD.replace(
        '<link name="c"/>',
        '<link name="c"><collision><geometry>\n<mesh filename="FILE"/>\n</geometry></collision></link>',
    )

    def found(file: str) -> list[Finding]:
        return lint_urdf(text.replace("FILE", file), lambda uri: mesh_file(uri, urdf))

    assert found("package://my_robot/meshes/there.stl") == []
    assert found("../meshes/there.stl") == []
    (missing,) = found("package://my_robot/meshes/gone.stl")
    assert missing.line == 5
    assert "does not exist" in missing.what
    (unknown,) = found("package://other_robot/meshes/there.stl")
    assert "cannot be resolved" in unknown.what
    assert "install" in unknown.remedy
    (nameless,) = found("package:///my_robot/meshes/there.stl")
    assert "two slashes" in nameless.remedy
    (remote,) = found("http://my_robot/there.stl")
    assert "package://PACKAGE" in remote.remedy
    (escape,) = found("package://my_robot/../../etc/passwd")
    assert "cannot be resolved" in escape.what
