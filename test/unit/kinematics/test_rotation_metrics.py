"""Distances between rotations: closed forms, ranges, and accuracy near 0."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kinopt_ros.kinematics import rotation_metrics as metrics
from kinopt_ros.kinematics import se3

vectors = arrays(np.float64, 3, elements=st.floats(-3, 3))


def pair(start, axis, theta):
    """Two rotations theta apart, as quaternions and matrices."""
    axis = axis / np.linalg.norm(axis)
    R_a = se3.so3_exp(start)
    half = np.concatenate([[np.cos(theta / 2)], np.sin(theta / 2) * axis])
    a = se3.matrix_to_quaternion(R_a)
    w, v = a[0], a[1:]
    b = np.concatenate([[w * half[0] - v @ half[1:]], w * half[1:] + half[0] * v + np.cross(v, half[1:])])
    return a, -b, R_a, R_a @ se3.so3_exp(theta * axis)


@given(vectors, vectors.filter(lambda v: np.linalg.norm(v) > 0.1), st.floats(0, np.pi))
def test_closed_forms(start, axis, theta):
    a, b, R_a, R_b = pair(start, axis, theta)
    assert metrics.phi2_quaternion(a, b) == pytest.approx(2 * np.sin(theta / 4), abs=1e-9)
    assert metrics.phi3_angle(a, b) == pytest.approx(theta / 2, abs=1e-9)
    assert metrics.phi4_dot(a, b) == pytest.approx(1 - np.cos(theta / 2), abs=1e-9)
    assert metrics.phi5_matrix(R_a, R_b) == pytest.approx(2 * np.sqrt(2) * np.sin(theta / 2), abs=1e-9)
    assert metrics.phi5_matrix(R_a, R_b) == pytest.approx(np.linalg.norm(np.eye(3) - R_a @ R_b.T), abs=1e-12)


@pytest.mark.parametrize("theta", [0.0, 1e-12, 1e-9, 1e-6])
def test_small_angles_keep_their_digits(theta):
    a, b, _, _ = pair(np.zeros(3), np.array([1.0, 0, 0]), theta)
    assert metrics.phi3_angle(a, b) == pytest.approx(theta / 2, rel=1e-9, abs=1e-300)
    assert metrics.phi4_dot(a, b) == pytest.approx(theta**2 / 8, rel=1e-9, abs=1e-300)


def test_phi1_wraps_every_angle():
    assert metrics.phi1_euler([3.1, 0, 0], [-3.1, 0, 0]) == pytest.approx(2 * np.pi - 6.2)
    assert metrics.phi1_euler([np.pi] * 3, [0, 0, 0]) == pytest.approx(np.pi * np.sqrt(3))
    assert metrics.phi1_euler([0.3, -0.2, 7.0], [0.3, -0.2, 7.0 - 4 * np.pi]) == pytest.approx(0, abs=1e-12)


def test_one_number_per_sample():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5, 3, 4))
    T_a, T_b = (se3.pose(se3.quaternion_to_matrix(q), q[..., :3]) for q in (a, b))
    for values in (
        metrics.phi1_euler(a[..., :3], b[..., :3]),
        metrics.phi2_quaternion(a, b),
        metrics.phi3_angle(a, b),
        metrics.phi4_dot(a, b),
        metrics.phi5_matrix(T_a[..., :3, :3], T_b[..., :3, :3]),
        metrics.translation_distance(T_a, T_b),
        metrics.combined_distance(T_a, T_b, 0.5),
    ):
        assert values.shape == (5, 3)
        assert (values > 0).all()


def test_combined_distance():
    T = se3.se3_exp([0, 0, 0, 0, 0, 0.4])
    T[:3, 3] = (3, 4, 0)
    assert metrics.translation_distance(np.eye(4), T) == pytest.approx(5)
    assert metrics.combined_distance(np.eye(4), T, 0.25) == pytest.approx(5.1)
