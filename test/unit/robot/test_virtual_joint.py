"""SRDF's virtual joint as a joint of the robot, on request."""

import numpy as np
import pytest

from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import pose, quaternion_to_matrix, so3_exp
from kinopt_ros.problems.chains import default_group
from kinopt_ros.robot.limits import DEFAULT_VELOCITY
from kinopt_ros.robot.model import JointType
from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.robot.states import named_configuration
from kinopt_ros.robot.urdf import robot_from_urdf

URDF = find_robot("panda")[0].read_text()
ARM = '<group name="arm"><chain base_link="panda_link0" tip_link="panda_link8"/></group>'
GROUPS = (
    f'{ARM}<group name="base"><joint name="world_joint"/></group>'
    '<group name="whole"><chain base_link="odom" tip_link="panda_link8"/></group>'
)
PANDA = load_robot("panda")


def made(kind, rest=GROUPS, **options):
    text = f'<virtual_joint name="world_joint" type="{kind}" parent_frame="odom" child_link="panda_link0"/>{rest}'
    return robot_from_urdf(URDF, f'<robot name="panda">{text}</robot>', virtual_joint=True, **options)


@pytest.mark.parametrize("kind", ["planar", "floating"])
def test_the_robot_has_a_base_joint(kind):
    robot = made(kind)
    count = JointType(kind).num_variables
    assert robot.root_link == "odom"
    assert robot.joints[0].name == "world_joint"
    assert robot.joints[0].type is JointType(kind)
    assert robot.variable_names[count:] == PANDA.variable_names
    assert all(name.startswith("world_joint/") for name in robot.variable_names[:count])
    plain = robot_from_urdf(URDF)
    for field in ("lower", "upper", "velocity", "acceleration", "jerk"):
        np.testing.assert_array_equal(getattr(robot.limits, field)[count:], getattr(plain.limits, field))
    assert np.isinf(robot.limits.upper[:2]).all()
    assert (robot.limits.velocity[:count] == DEFAULT_VELOCITY).all()
    assert not any("nothing here moves it" in warning for warning in robot.warnings)
    assert robot.group("base").joints == ("world_joint",)
    assert (robot.group("base").base_link, robot.group("base").tip_link) == ("odom", "panda_link0")
    assert robot.group("whole").joints == ("world_joint", *robot.group("arm").joints)
    assert robot.group("whole").base_link == "odom"
    assert default_group(robot).name == "arm"
    assert robot.collision.elements.keys() == plain.collision.elements.keys()


def test_the_base_moves_everything():
    q_arm = PANDA.default_q
    below = forward_kinematics(PANDA, q_arm)
    at_rest = made("planar").default_q
    np.testing.assert_array_equal(at_rest[:3], 0.0)
    planar = forward_kinematics(made("planar"), np.array([1.0, -2.0, 0.7, *q_arm]))
    T_odom_base = pose(so3_exp(np.array([0.0, 0.0, 0.7])), np.array([1.0, -2.0, 0.0]))
    np.testing.assert_allclose(planar[1:], T_odom_base @ below, atol=1e-12)
    w = np.array([0.5, -0.1, 0.7, 0.5])
    w /= np.linalg.norm(w)
    floating = forward_kinematics(made("floating"), np.array([1.0, -2.0, 0.3, *w, *q_arm]))
    T_odom_base = pose(quaternion_to_matrix(w), np.array([1.0, -2.0, 0.3]))
    np.testing.assert_allclose(floating[1:], T_odom_base @ below, atol=1e-12)
    np.testing.assert_array_equal(made("floating").default_q[3:7], [1.0, 0.0, 0.0, 0.0])


def test_unless_it_is_asked_for_nothing_changes():
    text = f'<virtual_joint name="world_joint" type="planar" parent_frame="odom" child_link="panda_link0"/>{GROUPS}'
    robot = robot_from_urdf(URDF, f'<robot name="panda">{text}</robot>')
    assert robot.root_link == "panda_link0"
    assert robot.variable_names == PANDA.variable_names
    assert any("parameter virtual_joint, makes it a joint" in warning for warning in robot.warnings)


def test_group_states_of_the_base():
    states = '<group_state name="dock" group="base"><joint name="world_joint" value="1 2 0.5"/></group_state>'
    q = named_configuration(made("planar", GROUPS + states), "dock")
    np.testing.assert_array_equal(q[:3], [1.0, 2.0, 0.5])
    states = '<group_state name="dock" group="base"><joint name="world_joint" value="1 2 3 0 0 0.6 0.8"/></group_state>'
    q = named_configuration(made("floating", GROUPS + states), "base/dock")
    np.testing.assert_allclose(q[:7], [1.0, 2.0, 3.0, 0.8, 0.0, 0.0, 0.6])


def test_an_srdf_without_groups_has_chains_from_the_world():
    robot = made("planar", "")
    assert {group.base_link for group in robot.groups.values()} == {"odom"}
    assert all(group.joints[0] == "world_joint" for group in robot.groups.values())


def test_by_file(tmp_path):
    srdf = tmp_path / "panda.srdf"
    srdf.write_text(
        '<robot name="panda"><virtual_joint name="v" type="planar" parent_frame="m" child_link="panda_link0"/></robot>'
    )
    robot = load_robot("panda", srdf=srdf, virtual_joint=True)
    assert robot.variable_names[:3] == ("v/x", "v/y", "v/theta")
    np.testing.assert_array_equal(robot.limits.acceleration[3:10], PANDA.limits.acceleration[:7])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no SRDF"),
        (ARM, "no virtual_joint of the root link"),
        (
            '<virtual_joint name="v" type="fixed" parent_frame="w" child_link="panda_link0"/>',
            "fixed virtual_joint 'v'",
        ),
        (
            '<virtual_joint name="v" type="planar" parent_frame="w" child_link="panda_link1"/>',
            "no virtual_joint",
        ),
        (
            '<virtual_joint name="panda_joint1" type="planar" parent_frame="w" child_link="panda_link0"/>',
            "has panda_joint1 already",
        ),
        (
            '<virtual_joint name="v" type="planar" parent_frame="panda_link3" child_link="panda_link0"/>',
            "has panda_link3 already",
        ),
    ],
)
def test_what_cannot_become_a_joint_is_refused(text, words):
    srdf = None if text is None else f'<robot name="panda">{text}</robot>'
    with pytest.raises(RobotDescriptionError, match=words):
        robot_from_urdf(URDF, srdf, virtual_joint=True)
