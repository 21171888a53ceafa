"""Eqs. (4), (5)."""

import numpy as np
import pytest

from kinopt_ros.kinematics.se3 import pose, quaternion_to_matrix, so3_exp
from kinopt_ros.solvers.hjcd.reference.residual import METRES_PER_RADIAN, norms, residual, score

from ..arms import arm_named, random_poses, random_q


def test_it_is_the_motion_that_is_missing() -> None:
    """Checked to first order: moving the tip by a part of it leaves the rest."""
    T_target, T = random_poses(20, 0), random_poses(20, 1)
    for target, now in zip(T_target, T, strict=True):
        r = residual(target, now)
        half = pose(so3_exp(0.5 * r[3:]) @ now[:3, :3], now[:3, 3] + 0.5 * r[:3])
        np.testing.assert_allclose(residual(target, half), 0.5 * r, atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, 3.0, np.pi, np.pi + 0.2, 5.0])
def test_the_shortest_way_for_either_sign_of_the_quaternion(angle: float) -> None:
    axis = np.array([1.0, 2.0, -2.0]) / 3.0
    q = np.concatenate([[np.cos(0.5 * angle)], np.sin(0.5 * angle) * axis])
    for sign in (1.0, -1.0):
        r = residual(pose(quaternion_to_matrix(sign * q), np.zeros(3)), np.eye(4))
        length = norms(r)[1]
        assert length == pytest.approx(min(angle, 2.0 * np.pi - angle), abs=1e-12)
        np.testing.assert_allclose(so3_exp(r[3:]), quaternion_to_matrix(q), atol=1e-12)


def test_the_jacobian_is_its_derivative() -> None:
    """d r / d q = -J at the target, by central differences."""
    arm = arm_named("with_mimic")
    q = random_q(arm, 1, 2)[0]
    T = arm.poses(q)
    step = 1e-6
    columns = [
        (residual(T, arm.poses(q - step * e)) - residual(T, arm.poses(q + step * e))) / (2.0 * step)
        for e in np.eye(len(q))
    ]
    np.testing.assert_allclose(np.transpose(columns), arm.jacobian(q), atol=1e-8)


def test_scores_add_metres_and_radians() -> None:
    r = np.array([3.0, 0.0, 4.0, 0.0, 2.0, 0.0])
    assert score(r) == pytest.approx(5.0 + 2.0 * METRES_PER_RADIAN)
