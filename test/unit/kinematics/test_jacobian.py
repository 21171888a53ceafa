"""Jacobians against finite differences, for every joint type, passed downwards and upwards."""

import numpy as np
import pytest

from kinopt_ros.errors import InvalidStateError
from kinopt_ros.kinematics import se3
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.jacobian import geometric_jacobian, tangent_columns
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.chain import Motion, build_chain
from kinopt_ros.robot.urdf import robot_from_urdf

ORIGIN = '<origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/>'
STEP = 1e-6


@pytest.fixture
def robot(urdf):
    """Joints of all types, with a mimic joint before and behind its driver."""
    return robot_from_urdf(
        urdf(
            f'm1 prismatic l0 l1 {ORIGIN}<axis xyz="1 2 0"/><mimic joint="d" multiplier="0.5" offset="0.1"/>',
            f"nav floating l1 l2 {ORIGIN}",
            f'd revolute l2 l3 {ORIGIN}<axis xyz="0 0 -1"/>',
            f'slide planar l3 l4 {ORIGIN}<axis xyz="1 -1 2"/>',
            f'p prismatic l4 l5 {ORIGIN}<axis xyz="0 1 0"/>',
            f'm2 revolute l5 l6 {ORIGIN}<axis xyz="3 0 4"/><mimic joint="d" multiplier="-2"/>',
            f"c continuous l1 side {ORIGIN}",
        )
    )


def moved(chain, q, k, step):
    """q after a step along the k-th tangent direction."""
    quaternions = {int(chain.column[i]) for i in np.flatnonzero(chain.motion == Motion.QUATERNION)}
    at = 0
    for column in range(len(q)):
        if any(first < column < first + 4 for first in quaternions):
            continue
        if column not in quaternions:
            if at == k:
                return q + step * np.eye(len(q))[column]
            at += 1
        else:
            if at <= k < at + 3:
                R = se3.quaternion_to_matrix(q[column : column + 4]) @ se3.so3_exp(step * np.eye(3)[k - at])
                q = q.copy()
                q[column : column + 4] = se3.matrix_to_quaternion(R)
                return q
            at += 3
    raise AssertionError(k)


@pytest.mark.parametrize(
    ("base", "tip"), [("l0", "l6"), ("l6", "l0"), ("side", "l6"), ("l4", "side"), ("l3", "l3")]
)
def test_finite_differences(robot, base, tip):
    chain = build_chain(robot, base, tip)
    _, k = tangent_columns(chain)
    for q in random_configurations(robot, 5, 3)[:, chain.variables]:
        J = geometric_jacobian(chain, q)
        assert J.shape == (6, k)
        R = chain_pose(chain, q)[:3, :3]
        for column in range(k):
            ahead, behind = (chain_pose(chain, moved(chain, q, column, s)) for s in (STEP, -STEP))
            linear = (ahead[:3, 3] - behind[:3, 3]) / (2 * STEP)
            angular = R @ se3.so3_log(behind[:3, :3].T @ ahead[:3, :3]) / (2 * STEP)
            np.testing.assert_allclose(J[:, column], np.concatenate([linear, angular]), atol=1e-8)


def test_number_of_columns(robot):
    chain = build_chain(robot, "l0", "l6")
    assert len(chain.variables) == 7 + 1 + 3 + 1
    assert tangent_columns(chain)[1] == 6 + 1 + 3 + 1


def test_batches_equal_single_calls(robot):
    chain = build_chain(robot, "side", "l6")
    q = random_configurations(robot, 6, 0)[:, chain.variables]
    J = geometric_jacobian(chain, q.reshape(2, 3, -1))
    assert J.shape[:2] == (2, 3)
    np.testing.assert_allclose(J[1, 0], geometric_jacobian(chain, q[3]), atol=1e-14)
    assert geometric_jacobian(chain, q[:0]).shape == (0, *J.shape[2:])


def test_nothing_moves_and_wrong_length(robot):
    still = build_chain(robot, "l3", "l3")
    assert geometric_jacobian(still, np.empty((4, 0))).shape == (4, 6, 0)
    with pytest.raises(InvalidStateError, match=r"\(\.\.\., 0\)"):
        geometric_jacobian(still, np.zeros(1))
