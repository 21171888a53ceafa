"""Forward kinematics of every joint type against poses written by hand."""

import timeit

import numpy as np
import pytest

from kinopt_ros.errors import InvalidStateError, UnknownLinkError
from kinopt_ros.kinematics import se3
from kinopt_ros.kinematics.forward import chain_pose, forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.urdf import robot_from_urdf

ORIGIN = '<origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/>'
T_ORIGIN = se3.pose(se3.rpy_to_matrix([0.4, -0.5, 0.6]), [0.1, -0.2, 0.3])
SLANTED = np.array([1.0, -2.0, 2.0]) / 3.0


def turn(axis, angle):
    return se3.pose(se3.so3_exp(np.array(axis) * angle), np.zeros(3))


def shift(*p):
    return se3.pose(np.eye(3), np.array(p, dtype=float))


def planar_by_hand(x, y, theta):
    """z turned to the slanted normal by the smallest rotation, plane motion, turned back."""
    axis = np.cross([0, 0, 1], SLANTED)
    tilt = turn(axis / np.linalg.norm(axis), np.arccos(SLANTED[2]))
    return tilt @ shift(x, y, 0) @ turn([0, 0, 1], theta) @ se3.inverse(tilt)


QUATERNION = np.array([0.5, -0.1, 0.7, 0.2])
CASES = {
    "revolute": ("revolute", "2 -4 4", [0.7], turn(SLANTED, 0.7)),
    "negative axis": ("continuous", "0 0 -5", [0.7], turn([0, 0, -1], 0.7)),
    "many turns": ("continuous", "0 0 1", [50 * np.pi + 0.1], turn([0, 0, 1], 0.1)),
    "prismatic": ("prismatic", "2 -4 4", [0.7], shift(*(0.7 * SLANTED))),
    "planar": ("planar", "0 0 1", [0.2, 0.3, 0.4], shift(0.2, 0.3, 0) @ turn([0, 0, 1], 0.4)),
    "planar upside down": ("planar", "0 0 -2", [0.2, 0.3, 0.4], shift(0.2, -0.3, 0) @ turn([0, 0, -1], 0.4)),
    "planar slanted": ("planar", "2 -4 4", [0.2, 0.3, 0.4], planar_by_hand(0.2, 0.3, 0.4)),
    "floating": (
        "floating",
        "1 0 0",
        [0.2, 0.3, 0.4, *QUATERNION],
        se3.pose(se3.quaternion_to_matrix(QUATERNION), [0.2, 0.3, 0.4]),
    ),
    "fixed": ("fixed", "1 0 0", [], np.eye(4)),
}


@pytest.mark.parametrize("case", CASES)
def test_joint_types(urdf, case):
    kind, axis, q, T_expected = CASES[case]
    robot = robot_from_urdf(urdf(f'j {kind} base tip {ORIGIN}<axis xyz="{axis}"/>'))
    expected = T_ORIGIN @ T_expected
    np.testing.assert_allclose(forward_kinematics(robot, q)[1], expected, atol=1e-12)
    down, up = build_chain(robot, "base", "tip"), build_chain(robot, "tip", "base")
    np.testing.assert_allclose(chain_pose(down, q), expected, atol=1e-12)
    np.testing.assert_allclose(chain_pose(up, q), se3.inverse(expected), atol=1e-12)


def test_mimic(urdf):
    robot = robot_from_urdf(
        urdf(
            'd revolute a b <axis xyz="0 0 1"/>',
            'm prismatic b c <axis xyz="0 1 0"/><mimic joint="d" multiplier="-0.5" offset="0.2"/>',
        )
    )
    expected = turn([0, 0, 1], 0.6) @ shift(0, -0.1, 0)
    np.testing.assert_allclose(forward_kinematics(robot, [0.6], ["c"])[0], expected, atol=1e-15)
    np.testing.assert_allclose(chain_pose(build_chain(robot, "a", "c"), [0.6]), expected, atol=1e-15)


@pytest.fixture
def tree(urdf):
    """A floating base, a planar part, two branches and a mimic joint across them."""
    return robot_from_urdf(
        urdf(
            f"nav floating world base {ORIGIN}",
            f'slide planar base torso {ORIGIN}<axis xyz="1 1 1"/>',
            f"l1 revolute torso left1 {ORIGIN}",
            f'l2 prismatic left1 left2 {ORIGIN}<axis xyz="0 1 1"/>',
            f"lt fixed left2 lefttip {ORIGIN}",
            f'r1 continuous torso right1 {ORIGIN}<axis xyz="0 0 -1"/>',
            f'r2 revolute right1 right2 {ORIGIN}<mimic joint="l1" multiplier="-0.5" offset="0.1"/>',
        )
    )


def test_chains_between_all_links_agree_with_the_tree(tree):
    q = random_configurations(tree, 4, 1)
    poses = forward_kinematics(tree, q)
    for i, base in enumerate(tree.link_names):
        for j, tip in enumerate(tree.link_names):
            chain = build_chain(tree, base, tip)
            expected = se3.inverse(poses[:, i]) @ poses[:, j]
            np.testing.assert_allclose(chain_pose(chain, q[:, chain.variables]), expected, atol=1e-12)


def test_shapes(tree):
    q = random_configurations(tree, 6, 1)
    chain = build_chain(tree, "left2", "right2")
    whole, part = forward_kinematics(tree, q.reshape(2, 3, -1)), q[:, chain.variables]
    assert whole.shape == (2, 3, len(tree.link_names), 4, 4)
    np.testing.assert_allclose(whole[1, 2], forward_kinematics(tree, q[5]), atol=1e-15)
    picked = forward_kinematics(tree, q, ["right2", "world", "right2"])
    np.testing.assert_allclose(picked[:, 0], whole.reshape(6, -1, 4, 4)[:, 7], atol=1e-15)
    np.testing.assert_array_equal(picked[:, 0], picked[:, 2])
    np.testing.assert_array_equal(picked[:, 1], np.broadcast_to(np.eye(4), (6, 4, 4)))
    np.testing.assert_allclose(chain_pose(chain, part[2]), chain_pose(chain, part)[2], atol=1e-15)
    assert forward_kinematics(tree, q[:0]).shape == (0, len(tree.link_names), 4, 4)
    assert forward_kinematics(tree, q, []).shape == (6, 0, 4, 4)
    assert chain_pose(chain, part[:0]).shape == (0, 4, 4)
    assert chain_pose(chain, np.empty((3, 0, len(chain.variables)))).shape == (3, 0, 4, 4)


def test_nothing_moves(urdf):
    robot = robot_from_urdf(urdf(f"j fixed base tip {ORIGIN}"))
    chain = build_chain(robot, "base", "tip")
    np.testing.assert_allclose(chain_pose(chain, np.empty(0)), T_ORIGIN, atol=1e-15)
    assert chain_pose(chain, np.empty((5, 0))).shape == (5, 4, 4)
    assert forward_kinematics(robot, np.empty((5, 0))).shape == (5, 2, 4, 4)


@pytest.mark.parametrize("q", [np.zeros(3), np.zeros((2, 20)), 1.0, "text", [[1.0], [2.0, 3.0]]])
def test_wrong_shapes_are_refused(tree, q):
    with pytest.raises(InvalidStateError, match=r"shape \(\.\.\., 13\)"):
        forward_kinematics(tree, q)
    chain = build_chain(tree, "torso", "left2")
    with pytest.raises(InvalidStateError, match=r"torso -> left2 .*shape \(\.\.\., 2\)"):
        chain_pose(chain, q)


def test_zero_quaternion_is_refused(tree):
    with pytest.raises(InvalidStateError, match="zero"):
        forward_kinematics(tree, np.zeros(tree.nq))


def test_unknown_link_is_refused(tree):
    with pytest.raises(UnknownLinkError, match="left1"):
        forward_kinematics(tree, tree.default_q, ["left"])


def test_not_finite_stays_visible(urdf):
    robot = robot_from_urdf(urdf("j revolute a b"))
    assert np.isnan(forward_kinematics(robot, [np.nan])).any()


def test_constants_are_released_with_the_robot(urdf):
    from kinopt_ros.kinematics import forward

    robot = robot_from_urdf(urdf("j revolute a b"))
    forward_kinematics(robot, [0.0])
    assert robot in forward._tree_cache
    before = len(forward._tree_cache)
    del robot
    assert len(forward._tree_cache) < before


def test_is_quick(urdf):
    """Generous bounds: five times what an idle machine needs."""
    robot = robot_from_urdf(urdf(*(f"j{i} revolute l{i} l{i + 1} {ORIGIN}" for i in range(7))))
    chain = build_chain(robot, "l0", "l7")
    q = random_configurations(robot, 1000, 0)
    assert min(timeit.repeat(lambda: chain_pose(chain, q[0]), number=200, repeat=5)) / 200 < 200e-6
    assert min(timeit.repeat(lambda: chain_pose(chain, q), number=5, repeat=5)) / 5 < 8e-3
