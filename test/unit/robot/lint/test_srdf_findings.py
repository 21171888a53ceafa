"""Each defect of an SRDF is found at its line, with a remedy."""

import pytest

from kinopt_ros.robot.lint.srdf import lint_srdf
from kinopt_ros.robot.sources import load_robot

ROBOT = load_robot("panda")
GOOD = """<robot name="panda">
  <virtual_joint name="world_joint" type="fixed" parent_frame="world" child_link="panda_link0"/>
  <group name="arm">
    <chain base_link="panda_link0" tip_link="panda_link8"/>
  </group>
  <group name="both">
    <group name="arm"/>
  </group>
  <group_state name="home" group="arm">
    <joint name="panda_joint1" value="0.5"/>
  </group_state>
  <end_effector name="hand" group="arm" parent_link="panda_link8"/>
  <passive_joint name="panda_finger_joint1"/>
  <disable_collisions link1="panda_link0" link2="panda_link1" reason="Adjacent"/>
</robot>
"""
DEFECTS = {
    "not XML": ("</robot>", "", 16, "error", "well-formed"),
    "another robot": ('name="panda"', 'name="ur5"', 1, "warning", "'ur5'"),
    "virtual joint of a strange type": ('type="fixed"', 'type="ball"', 2, "error", "'ball'"),
    "virtual joint of another link": (
        'child_link="panda_link0"',
        'child_link="panda_link1"',
        2,
        "warning",
        "root",
    ),
    "unknown tip": ('tip_link="panda_link8"', 'tip_link="flange"', 4, "warning", "'flange'"),
    "chain that does not move": (
        'tip_link="panda_link8"',
        'tip_link="panda_link0"',
        4,
        "warning",
        "nothing moves",
    ),
    "chain that leads up": (
        'base_link="panda_link0" tip_link="panda_link8"',
        'base_link="panda_link8" tip_link="panda_link0"',
        4,
        "note",
        "up the tree",
    ),
    "unknown subgroup": ('<group name="arm"/>', '<group name="amr"/>', 7, "warning", "'amr'"),
    "empty group": ('    <group name="arm"/>\n', "", 6, "warning", "empty"),
    "group twice": ('<group name="both">', '<group name="arm">', 6, "error", "twice"),
    "state of no group": ('group="arm">\n    <joint', 'group="leg">\n    <joint', 9, "warning", "'leg'"),
    "state of an unknown joint": ('name="panda_joint1"', 'name="elbow"', 10, "warning", "'elbow'"),
    "state out of limits": ('value="0.5"', 'value="5"', 10, "warning", "outside"),
    "state that is no number": ('value="0.5"', 'value="half"', 10, "error", "'half'"),
    "effector of an unknown link": (
        'parent_link="panda_link8"',
        'parent_link="wrist"',
        12,
        "warning",
        "'wrist'",
    ),
    "effector without a group": ('group="arm" parent_link', "parent_link", 12, "error", "no group"),
    "unknown passive joint": ("panda_finger_joint1", "wheel", 13, "warning", "'wheel'"),
    "collision of an unknown link": ('link2="panda_link1"', 'link2="table"', 14, "note", "'table'"),
}


def test_nothing_is_found_in_a_good_one() -> None:
    assert lint_srdf(GOOD, ROBOT) == []


@pytest.mark.parametrize("defect", sorted(DEFECTS))
def test_a_defect_is_found_at_its_line(defect: str) -> None:
    old, new, line, severity, words = DEFECTS[defect]
    assert old in GOOD
    findings = lint_srdf(GOOD.replace(old, new, 1), ROBOT)
    found = [finding for finding in findings if words in finding.what]
    assert found, findings
    assert (found[0].line, found[0].severity.value) == (line, severity)
    assert found[0].remedy
