"""The center of mass and its Jacobian against Pinocchio, and by hand."""

import re

import numpy as np
import pytest
from support.pinocchio_states import pinocchio_configuration

from kinopt_ros.errors import InvalidStateError, RobotDescriptionError
from kinopt_ros.kinematics.center_of_mass import center_of_mass, center_of_mass_jacobian
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import matrix_to_quaternion, quaternion_to_matrix, so3_exp
from kinopt_ros.robot.sources import installed_robots
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.robot.variables import velocity_columns

ORIGIN = '<origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/>'
INSTALLED = ("panda", "tiago_dual", "simple_humanoid", "g1_29dof_with_hand_rev_1_0", "talos_reduced")


def weighed(text):
    """Give every link of a URDF some mass and some place for it."""
    rng = np.random.default_rng(5)

    def inertial(match):
        x, y, z, mass = rng.uniform(0.1, 1.0, 4)
        inertia = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        inside = f'<origin xyz="{x} {y} {z}"/><mass value="{mass}"/>{inertia}'
        return f"{match[1]}><inertial>{inside}</inertial></link>"

    return re.sub(r'(<link name="\w+")/>', inertial, text)


@pytest.fixture
def every_joint_type(urdf):
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    return weighed(
        urdf(
            f'd revolute l0 l1 {ORIGIN}<axis xyz="0 0 -1"/>{limit}',
            f'm prismatic l1 l2 {ORIGIN}<axis xyz="1 2 0"/>{limit}<mimic joint="d" multiplier="0.5" offset="0.1"/>',
            f"nav floating l2 l3 {ORIGIN}{limit}",
            f'slide planar l3 l4 {ORIGIN}<axis xyz="0 0 1"/>{limit}',
            f"f fixed l4 l5 {ORIGIN}",
            f'm2 revolute l5 l6 {ORIGIN}<axis xyz="3 0 4"/>{limit}<mimic joint="d" multiplier="-2"/>',
            f'c continuous l1 side {ORIGIN}<axis xyz="0 1 1"/>{limit}',
            f"nav2 floating side last {ORIGIN}{limit}",
        )
    )


def reference(path):
    """Pinocchio's model with mimic joints set one by one, on a free joint: without it the root link has no mass.

    And its data, which take 60 ms to make for large robots."""
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    return model, model.createData()


def theirs(known, robot, q):
    import pinocchio as pin

    model, data = known
    return pin.centerOfMass(model, data, pinocchio_configuration(model, robot, q)).copy()


def differences(function, robot, q, h=1e-6):
    """Derivatives of a function of the configuration in all velocities, by central differences."""
    columns, nv = velocity_columns(robot)
    found = np.zeros((3, nv))
    starts = {joint.first_variable + 3 for joint in robot.floating_joints}
    inside = {start + k for start in starts for k in range(4)}
    for i in set(range(robot.nq)) - inside:
        step = h * np.eye(robot.nq)[i]
        found[:, columns[i]] = (function(q + step) - function(q - step)) / (2 * h)
    for start in starts:
        for k in range(3):
            ends = []
            for sign in (1, -1):
                turned = q.copy()
                R = quaternion_to_matrix(q[start : start + 4]) @ so3_exp(sign * h * np.eye(3)[k])
                turned[start : start + 4] = matrix_to_quaternion(R)
                ends.append(function(turned))
            found[:, columns[start] + k] = (ends[0] - ends[1]) / (2 * h)
    return found


@pytest.mark.peers
@pytest.mark.parametrize("name", INSTALLED)
def test_installed_robots_agree(name):
    path = installed_robots().get(name) or pytest.skip(f"{name} is not installed (example-robot-data)")
    robot, known = robot_from_urdf(path.read_text()), reference(path)
    states = random_configurations(robot, 20, 0)
    expected = [theirs(known, robot, q) for q in states]
    np.testing.assert_allclose(center_of_mass(robot, states), expected, atol=1e-12)
    J = center_of_mass_jacobian(robot, states[:3])
    for q, own in zip(states, J, strict=False):
        np.testing.assert_allclose(own, differences(lambda q: theirs(known, robot, q), robot, q), atol=1e-8)


@pytest.mark.peers
def test_every_joint_type_agrees(every_joint_type, tmp_path):
    path = tmp_path / "made.urdf"
    path.write_text(every_joint_type)
    robot, known = robot_from_urdf(every_joint_type), reference(path)
    states = random_configurations(robot, 20, 1)
    expected = [theirs(known, robot, q) for q in states]
    np.testing.assert_allclose(center_of_mass(robot, states), expected, atol=1e-12)
    for q in states[:5]:
        np.testing.assert_allclose(
            center_of_mass_jacobian(robot, q),
            differences(lambda q: theirs(known, robot, q), robot, q),
            atol=1e-8,
        )


def test_the_jacobian_is_the_derivative(every_joint_type):
    robot = robot_from_urdf(every_joint_type)
    for q in random_configurations(robot, 5, 2):
        found = differences(lambda q: center_of_mass(robot, q), robot, q)
        np.testing.assert_allclose(center_of_mass_jacobian(robot, q), found, atol=1e-8)


def test_two_masses_by_hand(urdf):
    text = urdf("p prismatic a b", "m prismatic a c").replace('<link name="a"/>', "")
    heavy = '<link name="{}"><inertial><origin xyz="{}"/><mass value="{}"/></inertial></link>'
    text = text.replace('<link name="b"/>', heavy.format("b", "0 0 1", 1))
    text = text.replace('<link name="c"/>', heavy.format("c", "0 2 0", 3) + '<link name="a"/>')
    robot = robot_from_urdf(text)
    np.testing.assert_allclose(center_of_mass(robot, [0.4, 0.0]), [0.1, 1.5, 0.25])
    np.testing.assert_allclose(center_of_mass_jacobian(robot, [0.4, 0.0])[0], [0.25, 0.75])


def test_shapes(every_joint_type):
    robot = robot_from_urdf(every_joint_type)
    states = random_configurations(robot, 6, 0).reshape(2, 3, -1)
    assert center_of_mass(robot, states).shape == (2, 3, 3)
    assert center_of_mass_jacobian(robot, states).shape == (2, 3, 3, robot.nq - 2)
    assert center_of_mass(robot, states[:0]).shape == (0, 3, 3)
    assert center_of_mass_jacobian(robot, states[0, 0]).shape == (3, robot.nq - 2)
    with pytest.raises(InvalidStateError, match="must have shape"):
        center_of_mass(robot, [1.0])


def test_a_robot_without_masses_is_named(urdf):
    robot = robot_from_urdf(urdf("j revolute a b", name="feather"))
    for function in (center_of_mass, center_of_mass_jacobian):
        with pytest.raises(
            RobotDescriptionError, match=r"'feather' has no center of mass: none of its 2 links"
        ):
            function(robot, robot.default_q)
