"""Joint constraints of MoveIt's requests: whole turns that move something are none."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("geometry_msgs")

from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.moveit import constraints

SPIN = """<robot name="r"><link name="a"/><link name="b"/><link name="c"/>
<joint name="s" type="continuous"><parent link="a"/><child link="b"/><limit velocity="1" effort="1"/></joint>
<joint name="n" type="prismatic"><parent link="a"/><child link="c"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/>{mimic}</joint></robot>"""


@pytest.mark.parametrize(("mimic", "met"), [("", True), ('<mimic joint="s" multiplier="0.1"/>', False)])
def test_a_turn_counts_where_a_nut_follows(mimic: str, met: bool) -> None:
    robot = robot_from_urdf(SPIN.format(mimic=mimic))
    asked = SimpleNamespace(
        joint_name="s", position=6.3, tolerance_above=0.05, tolerance_below=0.05, weight=1.0
    )
    q = np.zeros(robot.nq)
    q[robot.variable_index["s"]] = 6.3 - 2.0 * np.pi
    assert constraints._joint(robot, asked, q[None])[0].tolist() == [met]
    q[robot.variable_index["s"]] = 6.3
    assert constraints._joint(robot, asked, q[None])[0].all()


def test_the_angle_of_a_base_counts_without_whole_turns() -> None:
    robot = robot_from_urdf(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="base" type="planar"><parent link="a"/>'
        '<child link="b"/><axis xyz="0 0 1"/></joint></robot>'
    )
    for name, met in (("base/theta", True), ("base/x", False)):
        asked = SimpleNamespace(
            joint_name=name, position=6.3, tolerance_above=0.05, tolerance_below=0.05, weight=1.0
        )
        q = np.full(robot.nq, 6.3 - 2.0 * np.pi)
        assert constraints._joint(robot, asked, q[None])[0].tolist() == [met]
