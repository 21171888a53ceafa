"""A floating joint in the place of a link's transform."""

import numpy as np
import pytest

from kinopt_ros.errors import InvalidRequestError, UnknownLinkError
from kinopt_ros.kinematics import se3
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.free_joint import with_free_joint
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

ORIGIN = '<origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/>'


@pytest.fixture
def robot(urdf):
    return robot_from_urdf(
        urdf(
            f"a revolute l0 l1 {ORIGIN}",
            f"nav floating l1 l2 {ORIGIN}",
            f'p prismatic l2 l3 {ORIGIN}<mimic joint="a" multiplier="0.5"/>',
            f"f fixed l3 l4 {ORIGIN}",
            f"c continuous l1 side {ORIGIN}",
        )
    )


@pytest.mark.parametrize("link", ["l0", "l1", "l2", "l3", "l4", "side"])
def test_poses_stay_at_the_start_and_follow_the_joint(robot, link):
    free = with_free_joint(robot, link)
    own = free.variables_of(f"{link}_free")
    assert [free.variable_names[i] for i in own][-1] == f"{link}_free/rot_z"
    q = random_configurations(robot, 5, 0)
    wide = np.insert(q, [own[0]] * 7, free.default_q[own], axis=1)
    expected = forward_kinematics(robot, q)
    np.testing.assert_allclose(forward_kinematics(free, wide, robot.link_names), expected, atol=1e-12)
    # Elsewhere, the link is where the description with that transform puts it.
    T = se3.se3_exp(np.array([0.3, -0.1, 0.2, 0.5, 0.4, -0.3]))
    moved = wide.copy()
    moved[:, own] = [*T[:3, 3], *se3.matrix_to_quaternion(T[:3, :3])]
    joint = robot.parent_joint.get(link)
    found = forward_kinematics(free, moved, [link])
    if joint is None:
        np.testing.assert_allclose(found, np.broadcast_to(T, found.shape), atol=1e-12)
    else:
        before, _, behind = (
            forward_kinematics(robot, q, [joint.parent_link]),
            None,
            forward_kinematics(robot, q, [link]),
        )
        motion = se3.inverse(before @ joint.T_parent_joint) @ behind
        np.testing.assert_allclose(found, before @ T @ motion, atol=1e-12)


def test_the_original_and_its_limits_stay():
    robot = load_robot("panda")
    names, default = robot.variable_names, robot.default_q.copy()
    free = with_free_joint(robot, "panda_link3", "zero")
    assert robot.variable_names == names
    np.testing.assert_array_equal(robot.default_q, default)
    kept = [free.variable_index[name] for name in names]
    for which in ("lower", "upper", "velocity", "acceleration", "jerk"):
        np.testing.assert_array_equal(getattr(free.limits, which)[kept], getattr(robot.limits, which))
    np.testing.assert_array_equal(
        free.default_q[free.variables_of("panda_link3_free")], [0, 0, 0, 1, 0, 0, 0]
    )
    assert free.groups == robot.groups
    assert free.link_names.index("panda_link3_origin") == free.link_names.index("panda_link3") - 1


def test_two_links(robot):
    both = with_free_joint(with_free_joint(robot, "l3"), "l0")
    q = np.concatenate([both.default_q])
    np.testing.assert_allclose(
        forward_kinematics(both, q, robot.link_names), forward_kinematics(robot, robot.default_q), atol=1e-12
    )


def test_refused(robot):
    with pytest.raises(UnknownLinkError, match="l1"):
        with_free_joint(robot, "l11")
    with pytest.raises(InvalidRequestError, match="already"):
        with_free_joint(with_free_joint(robot, "l1"), "l1")
    with pytest.raises(InvalidRequestError, match="'description' and 'zero'"):
        with_free_joint(robot, "l1", "urdf")
