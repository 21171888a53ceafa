"""Chains: structure, held variables, bounds."""

import numpy as np
import pytest

from kinopt_ros.errors import InvalidRequestError, InvalidStateError, UnknownLinkError
from kinopt_ros.kinematics.forward import chain_pose, forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.chain import Motion, build_chain, in_plane_axes
from kinopt_ros.robot.urdf import robot_from_urdf

ORIGIN = '<origin xyz="0 0 0.5" rpy="0.4 -0.5 0.6"/>'


@pytest.fixture
def robot(urdf):
    """A mobile base, an arm with fixed parts between, and a mimic joint."""
    return robot_from_urdf(
        urdf(
            f"nav floating world base {ORIGIN}",
            f"f0 fixed base mount {ORIGIN}",
            f"a revolute mount l1 {ORIGIN}",
            f"f1 fixed l1 l2 {ORIGIN}",
            f"p prismatic l2 l3 {ORIGIN}",
            f'm revolute l3 l4 {ORIGIN}<mimic joint="a" multiplier="0.5"/>',
            f"f2 fixed l4 tip {ORIGIN}",
            f'slide planar world cart {ORIGIN}<axis xyz="0 0 1"/>',
        )
    )


def test_fixed_joints_disappear_and_mimics_share_a_column(robot):
    chain = build_chain(robot, "base", "tip")
    assert chain.T_fixed.shape == (4, 4, 4)
    assert chain.motion.tolist() == [Motion.ROTATION, Motion.TRANSLATION, Motion.ROTATION]
    assert chain.column.tolist() == [0, 1, 0]
    assert chain.multiplier.tolist() == [1, 1, 0.5]
    assert [robot.variable_names[i] for i in chain.variables] == ["a", "p"]


def test_upwards_axes_turn_round(robot):
    down, up = build_chain(robot, "base", "tip"), build_chain(robot, "tip", "base")
    np.testing.assert_array_equal(up.axis, -down.axis[::-1])
    np.testing.assert_array_equal(up.multiplier, down.multiplier[::-1])
    assert build_chain(robot, "base", "world").multiplier[0] == -1


def test_no_motion(robot):
    for base, tip in (("tip", "tip"), ("mount", "base"), ("l4", "tip")):
        chain = build_chain(robot, base, tip)
        assert len(chain.motion) == len(chain.variables) == 0
        assert chain.T_fixed.shape == (1, 4, 4)


@pytest.mark.parametrize(("base", "tip"), [("world", "tip"), ("tip", "cart"), ("cart", "l3")])
@pytest.mark.parametrize("names", [["a"], ["p"], ["a", "p"], "nav", "slide", ["slide/x", "slide/theta"]])
def test_held_variables_are_folded(robot, base, tip, names):
    for q in random_configurations(robot, 3, 0):
        indices = (
            robot.variables_of(names) if isinstance(names, str) else [robot.variable_index[n] for n in names]
        )
        chain = build_chain(robot, base, tip, {i: 1.5 * q[i] for i in indices})
        state = q.copy()
        state[list(indices)] *= 1.5
        T_base, T_tip = forward_kinematics(robot, state, [base, tip])
        assert not set(chain.variables) & set(indices)
        np.testing.assert_allclose(
            chain_pose(chain, q[chain.variables]), np.linalg.inv(T_base) @ T_tip, atol=1e-12
        )


@pytest.mark.parametrize(
    ("held", "error", "sentence"),
    [
        ({99: 0.0}, InvalidRequestError, "held variable 99"),
        ({-1: 0.0}, InvalidRequestError, "held variable -1"),
        ({7: float("nan")}, InvalidStateError, "'a' is not finite"),
        ({3: 1.0}, InvalidRequestError, "quaternion of joint 'nav'"),
        (dict.fromkeys(range(3, 7), 0.0), InvalidStateError, "quaternion of joint 'nav' is zero"),
    ],
)
def test_illegal_held_values(robot, held, error, sentence):
    with pytest.raises(error, match=sentence):
        build_chain(robot, "world", "tip", held)


def test_unknown_links(robot):
    with pytest.raises(UnknownLinkError, match="unknown link 'top'; did you mean 'tip'"):
        build_chain(robot, "base", "top")
    with pytest.raises(UnknownLinkError):
        build_chain(robot, "", "tip")


def test_long_chain(urdf):
    robot = robot_from_urdf(urdf(*(f"j{i} continuous l{i} l{i + 1} {ORIGIN}" for i in range(1999))))
    chain = build_chain(robot, "l1999", "l0")
    assert len(chain.motion) == 1999
    assert chain_pose(chain, np.zeros(1999)).shape == (4, 4)


NORMALS = [
    "0 0 1",
    "0 0 -1",
    "1e-6 0 -1",
    "-5.4e-7 3e-7 -1",
    "1e-9 -1e-12 -1",
    "1e-300 0 -1",
    "3 4 -5",
    "1 -2 0",
]


@pytest.mark.parametrize("normal", NORMALS)
def test_planar_joints_stay_in_their_plane(urdf, normal):
    robot = robot_from_urdf(urdf(f'j planar a b <axis xyz="{normal}"/>'))
    n = robot.joints[0].axis
    x, y, theta = 300.0, -200.0, 0.7
    T = chain_pose(build_chain(robot, "a", "b"), np.array([x, y, theta]))
    assert abs(T[:3, 3] @ n) < 1e-12
    e1, e2 = (chain_pose(build_chain(robot, "a", "b"), q)[:3, 3] for q in np.eye(3)[:2])
    np.testing.assert_allclose([e1 @ e1, e2 @ e2, e1 @ e2], [1, 1, 0], atol=1e-15)
    np.testing.assert_allclose(np.cross(e1, e2), n, atol=1e-15)
    np.testing.assert_allclose(T[:3, 3], x * e1 + y * e2, atol=1e-12)
    np.testing.assert_allclose(T[:3, :3] @ n, n, atol=1e-15)
    np.testing.assert_allclose(T[:3, :3] @ e1, np.cos(theta) * e1 + np.sin(theta) * e2, atol=1e-15)


def test_planar_axes_are_those_of_the_smallest_rotation():
    assert in_plane_axes([0.0, 0.0, 1.0]) == ((1, 0, 0), (0, 1, 0))
    assert in_plane_axes([0.0, 0.0, -1.0]) == ((1, 0, 0), (0, -1, 0))
    for normal in np.random.default_rng(0).normal(size=(50, 3)):
        n = normal / np.linalg.norm(normal)
        x, y = in_plane_axes(n)
        R = np.array([x, y, n]).T
        assert np.trace(R) == pytest.approx(1 + 2 * n[2])  # it turns by the angle between z and the normal
        np.testing.assert_allclose(R @ np.cross([0, 0, 1], n), np.cross([0, 0, 1], n), atol=1e-14)
