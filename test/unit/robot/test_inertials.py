"""Masses of links are read from URDF; broken ones never refuse a robot, and are said."""

import numpy as np
import pytest

from kinopt_ros.kinematics.free_joint import with_free_joint
from kinopt_ros.robot.inertials import LARGEST_INERTIAL
from kinopt_ros.robot.sources import installed_robots
from kinopt_ros.robot.urdf import robot_from_urdf

INERTIA = '<inertia ixx="1" ixy="0.1" ixz="0.2" iyy="2" iyz="0.3" izz="2.5"/>'
MASS = '<mass value="3"/>'


def read(inside, more=""):
    text = f'<robot name="r"><link name="a"><inertial>{inside}</inertial>{more}</link></robot>'
    robot = robot_from_urdf(text)
    return robot.inertials.get("a"), robot.warnings


def test_all_of_it_is_read():
    inertial, warnings = read(f'<origin xyz="1 -2 3" rpy="0 0 1.5707963267948966"/>{MASS}{INERTIA}')
    assert warnings == ()
    assert inertial.mass == 3.0
    np.testing.assert_array_equal(inertial.center_of_mass, [1, -2, 3])
    # A quarter of a turn about z: the link's x is the inertia's -y, its y the inertia's x.
    expected = [[2, -0.1, -0.3], [-0.1, 1, 0.2], [-0.3, 0.2, 2.5]]
    np.testing.assert_allclose(inertial.inertia, expected, atol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        inertial.inertia[0, 0] = 0.0


def test_what_may_be_missing():
    inertial, warnings = read(MASS)
    assert warnings == ()
    assert inertial.inertia is None
    np.testing.assert_array_equal(inertial.center_of_mass, np.zeros(3))
    assert read('<mass value="0"/>')[0].mass == 0.0
    assert not robot_from_urdf('<robot name="r"><link name="a"/></robot>').inertials


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("", "it has no <mass>"),
        ("<mass/>", "its <mass> has no value"),
        ('<mass value="-1"/>', "its mass is -1; allowed is 0 kg and more"),
        ('<mass value="nan"/>', "value='nan'; allowed is one number"),
        ('<mass value="inf"/>', "value='inf'"),
        ('<mass value="1e400"/>', "value='1e400'"),
        ('<mass value="2e12"/>', f"at most {LARGEST_INERTIAL:g}"),
        ('<mass value="1 2"/>', "allowed is one number"),
        ('<mass value="${m}"/>', "value='${m}'"),
        (f'<origin xyz="0 nan 0"/>{MASS}', "its <origin> has xyz='0 nan 0'; allowed is 3 numbers"),
        (f'<origin xyz="0 0"/>{MASS}', "its <origin> has xyz='0 0'"),
    ],
)
def test_without_a_usable_mass_the_link_has_none(inside, words):
    inertial, warnings = read(inside + INERTIA)
    assert inertial is None
    (warning,) = warnings
    assert "link 'a'" in warning
    assert "left out: the mass" in warning
    assert words in warning


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (INERTIA.replace('ixy="0.1" ', ""), "its <inertia> has no ixy"),
        (INERTIA.replace("2.5", "inf"), "izz='inf'"),
        (f'{INERTIA}<origin rpy="0 0"/>', "its <origin> has rpy='0 0'"),
    ],
)
def test_without_a_usable_inertia_the_mass_stays(inside, words):
    inertial, (warning,) = read(inside + MASS)
    assert inertial.mass == 3.0
    assert inertial.inertia is None
    assert words in warning
    assert "left out: the inertia" in warning


def test_of_several_the_first_counts():
    inertial, (warning,) = read(MASS + '<mass value="5"/>', '<inertial><mass value="7"/></inertial>')
    assert inertial.mass == 3.0
    assert "2 <inertial> elements; the first one counts" in warning
    assert "2 <mass> elements" in warning


def test_changed_robots_keep_their_masses():
    text = f'<robot name="r"><link name="a"><inertial>{MASS}</inertial></link></robot>'
    assert with_free_joint(robot_from_urdf(text), "a").inertials["a"].mass == 3.0


@pytest.mark.peers
@pytest.mark.parametrize("name", ["panda", "simple_humanoid", "tiago_dual", "g1_29dof_rev_1_0"])
def test_pinocchio_reads_the_same(name):
    pin = pytest.importorskip("pinocchio")
    path = installed_robots().get(name) or pytest.skip(f"{name} is not installed (example-robot-data)")
    robot = robot_from_urdf(path.read_text())
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    theirs = sum((model.inertias[i] for i in range(1, model.njoints)), pin.Inertia.Zero())
    assert sum(i.mass for i in robot.inertials.values()) == pytest.approx(theirs.mass, rel=1e-12)
