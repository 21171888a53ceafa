"""Poses between two poses."""

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from kinopt_ros.kinematics import se3
from kinopt_ros.kinematics.interpolation import se3_interpolate, so3_interpolate

RNG = np.random.default_rng(0)
T_A, T_B = (se3.se3_exp(RNG.normal(size=(20, 6))) for _ in range(2))
SHARES = (0.0, 0.25, 0.5, 1.0, -0.5, 1.5)


@pytest.mark.parametrize("s", SHARES)
def test_pinocchio_agrees(s):
    poses, rotations = se3_interpolate(T_A, T_B, s), so3_interpolate(T_A[:, :3, :3], T_B[:, :3, :3], s)
    for a, b, T, R in zip(T_A, T_B, poses, rotations, strict=True):
        expected = pin.SE3.Interpolate(pin.SE3(a), pin.SE3(b), s).homogeneous
        np.testing.assert_allclose(T, expected, atol=1e-12)
        np.testing.assert_allclose(R, expected[:3, :3], atol=1e-12)


def test_a_quarter_of_half_a_turn_and_a_straight_line():
    half = se3.so3_exp([0.0, 0.0, np.pi])
    quarter = so3_interpolate(np.eye(3), half, 0.25)
    np.testing.assert_allclose(abs(se3.so3_log(quarter)), [0.0, 0.0, np.pi / 4], atol=1e-12)
    T = se3.pose(np.eye(3), [1.0, 2.0, 3.0])
    np.testing.assert_allclose(se3_interpolate(np.eye(4), T, 0.5)[:3, 3], [0.5, 1.0, 1.5], atol=1e-15)


def test_the_first_end_is_exact_and_equal_ends_stay():
    np.testing.assert_array_equal(se3_interpolate(T_A, T_B, 0.0), T_A)
    np.testing.assert_allclose(se3_interpolate(T_A, T_B, 1.0), T_B, atol=1e-14)
    np.testing.assert_allclose(se3_interpolate(T_A, T_A, 0.7), T_A, atol=1e-14)


def test_another_frame_changes_nothing():
    T_c_a = se3.se3_exp(RNG.normal(size=6))
    np.testing.assert_allclose(
        se3_interpolate(T_c_a @ T_A, T_c_a @ T_B, 0.3), T_c_a @ se3_interpolate(T_A, T_B, 0.3), atol=1e-12
    )


def test_shares_broadcast():
    s = np.linspace(0.0, 1.0, 5)[:, None]
    assert se3_interpolate(T_A, T_B, s).shape == (5, 20, 4, 4)
    assert so3_interpolate(T_A[0, :3, :3], T_B[0, :3, :3], s[:, 0]).shape == (5, 3, 3)
