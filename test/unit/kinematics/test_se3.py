"""Rotations and rigid motions: properties at all angles, above all near 0 and pi."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kinopt_ros.kinematics import se3

number = st.floats(-10, 10)
vectors = arrays(np.float64, 3, elements=number)
units = vectors.filter(lambda v: np.linalg.norm(v) > 1e-3).map(lambda v: v / np.linalg.norm(v))
angles = st.one_of(
    st.floats(0, np.pi),
    st.sampled_from([0.0, 1e-12, 1e-9, 1e-5, 0.99e-4, 1.01e-4, np.pi - 1e-6, np.pi - 1e-9, np.pi]),
)
rotation_vectors = st.tuples(units, angles).map(lambda both: both[0] * both[1])
twists = st.tuples(vectors, rotation_vectors).map(np.concatenate)


def same_rotation_vector(a, b):
    """Equal, or opposite at an angle of pi."""
    opposite = np.linalg.norm(a) > np.pi - 1e-6 and np.allclose(a, -b, atol=1e-8)
    return opposite or np.allclose(a, b, rtol=0, atol=1e-12) or np.allclose(a, b, rtol=1e-12, atol=2e-9)


@given(rotation_vectors)
def test_so3_exp_is_a_rotation_and_log_inverts_it(w):
    R = se3.so3_exp(w)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(R) == pytest.approx(1)
    assert same_rotation_vector(w, se3.so3_log(R))
    np.testing.assert_allclose(se3.so3_exp(se3.so3_log(R)), R, atol=1e-9)


@given(twists)
def test_se3_exp_and_log_are_inverse(twist):
    T = se3.se3_exp(twist)
    assert se3.is_pose(T)
    np.testing.assert_allclose(se3.se3_exp(se3.se3_log(T)), T, atol=1e-7)


@given(twists.filter(lambda twist: np.linalg.norm(twist[3:]) < np.pi - 1e-3))
def test_se3_log_of_exp(twist):
    np.testing.assert_allclose(se3.se3_log(se3.se3_exp(twist)), twist, atol=1e-9)


@given(twists, st.floats(0, 1))
def test_se3_exp_is_one_parameter_group(twist, s):
    product = se3.se3_exp(s * twist) @ se3.se3_exp((1 - s) * twist)
    np.testing.assert_allclose(product, se3.se3_exp(twist), atol=1e-10)


@given(rotation_vectors)
def test_rotation_angle_is_accurate_everywhere(w):
    assert se3.rotation_angle(se3.so3_exp(w)) == pytest.approx(np.linalg.norm(w), abs=1e-14, rel=1e-9)


@given(rotation_vectors)
def test_quaternion_and_matrix(w):
    R = se3.so3_exp(w)
    quaternion = se3.matrix_to_quaternion(R)
    assert np.linalg.norm(quaternion) == pytest.approx(1)
    assert quaternion[0] >= 0
    np.testing.assert_allclose(se3.quaternion_to_matrix(3 * quaternion), R, atol=1e-14)
    np.testing.assert_allclose(se3.quaternion_to_matrix(-quaternion), R, atol=1e-14)


@given(vectors)
def test_rpy_and_matrix(rpy):
    R = se3.rpy_to_matrix(rpy)
    axes = np.eye(3)
    by_axes = se3.so3_exp(rpy[2] * axes[2]) @ se3.so3_exp(rpy[1] * axes[1]) @ se3.so3_exp(rpy[0] * axes[0])
    np.testing.assert_allclose(R, by_axes, atol=1e-13)
    np.testing.assert_allclose(se3.rpy_to_matrix(se3.matrix_to_rpy(R)), R, atol=1e-8)


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2])
def test_rpy_at_the_singularity(pitch):
    R = se3.rpy_to_matrix([0.3, pitch, -0.8])
    rpy = se3.matrix_to_rpy(R)
    assert rpy[0] == 0
    np.testing.assert_allclose(se3.rpy_to_matrix(rpy), R, atol=1e-12)


@given(twists, twists)
def test_pose_error_and_inverse(a, b):
    T_a, T_b = se3.se3_exp(a), se3.se3_exp(b)
    np.testing.assert_allclose(se3.inverse(T_a) @ T_a, np.eye(4), atol=1e-13)
    distance, angle = se3.pose_error(T_a, T_b)
    assert distance == pytest.approx(np.linalg.norm(T_a[:3, 3] - T_b[:3, 3]))
    assert angle == pytest.approx(np.linalg.norm(se3.so3_log(T_a[:3, :3].T @ T_b[:3, :3])), abs=1e-8)
    assert se3.pose_error(T_b, T_a)[1] == pytest.approx(angle, abs=1e-12)


def test_batches_equal_single_calls():
    twists = np.random.default_rng(0).normal(size=(2, 5, 6))
    T = se3.se3_exp(twists)
    assert T.shape == (2, 5, 4, 4)
    np.testing.assert_array_equal(T[1, 3], se3.se3_exp(twists[1, 3]))
    assert se3.se3_log(T).shape == (2, 5, 6)
    assert se3.matrix_to_quaternion(T[..., :3, :3]).shape == (2, 5, 4)
    assert se3.pose_error(T, T[0, 0])[0].shape == (2, 5)
    assert se3.se3_exp(np.empty((0, 6))).shape == (0, 4, 4)
    assert se3.is_pose(np.empty((0, 4, 4))).shape == (0,)


def test_is_pose():
    good = se3.se3_exp([1, 2, 3, 0.1, 0.2, 0.3])
    scaled, mirrored, row, nan = good.copy(), good.copy(), good.copy(), good.copy()
    scaled[:3, :3] *= 1.001
    mirrored[:3, 0] *= -1
    row[3, 0] = 0.1
    nan[0, 3] = np.nan
    np.testing.assert_array_equal(
        se3.is_pose(np.stack([good, scaled, mirrored, row, nan, np.zeros((4, 4))])), [True, *[False] * 5]
    )


def test_zero_quaternion_is_nan():
    assert np.isnan(se3.normalized([0, 0, 0, 0])).all()


def test_one_matrix_is_judged_as_many_are() -> None:
    generator = np.random.default_rng(5)
    T = se3.pose(se3.so3_exp(generator.normal(size=(17 * 16, 3))), generator.normal(size=(17 * 16, 3)))
    spoilt = T.reshape(17, 16, 16).copy()
    wrong = (2e-7, -2e-5, 1e-3, 0.5, -3.0, 1e200, np.nan, np.inf)
    for entry in range(16):
        for k, change in enumerate(wrong):
            spoilt[k, entry, entry] += change
    spoilt[8, :, [0, 4, 8]] *= -1.0  # mirrored
    stack = spoilt.reshape(-1, 4, 4)
    alone = [bool(se3.is_pose(one)) for one in stack]
    assert alone == se3.is_pose(stack).tolist()
    assert 0 < sum(alone) < len(alone)


@pytest.mark.parametrize("leading", [(), (1,), (1, 1)])
def test_one_pair_of_poses_has_the_errors_that_it_has_among_many(leading: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    a = se3.pose(se3.so3_exp(rng.normal(size=(200, 3))), rng.normal(size=(200, 3)))
    near = se3.pose(se3.so3_exp(rng.normal(scale=1e-7, size=(200, 3))), rng.normal(scale=1e-7, size=(200, 3)))
    for b in (a, a @ near, np.roll(a, 1, axis=0)):
        distance, angle = se3.pose_error(a, b)
        for k in range(200):
            one = se3.pose_error(a[k].reshape(*leading, 4, 4), b[k].reshape(*leading, 4, 4))
            assert one[0].shape == one[1].shape == leading
            np.testing.assert_allclose(one[0].item(), distance[k], rtol=1e-12, atol=1e-16)
            np.testing.assert_allclose(one[1].item(), angle[k], rtol=1e-12, atol=1e-15)


@given(rotation_vectors)
def test_one_rotation_vector_is_that_of_many(w: np.ndarray) -> None:
    R = se3.so3_exp(w)
    one, many = se3.so3_log(R), se3.so3_log(R[None])[0]
    np.testing.assert_allclose(one, many, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda T: T[:3, 3].fill(np.nan), "numbers that are not finite"),
        (lambda T: T[:3, 3].fill(1e200), "its position has 1e+200 m"),
        (lambda T: T[3].fill(1.0), "its last row is 1 1 1 1; allowed is 0 0 0 1"),
        (lambda T: T[:3, :3].round(3, out=T[:3, :3]), "R R^T is "),
        (lambda T: np.multiply(T[:3, :3], 2.0, out=T[:3, :3]), "R R^T is 3.0e+00 off the identity"),
        (lambda T: np.negative(T[:3, 0], out=T[:3, 0]), "its rotation has the determinant -1"),
    ],
)
def test_what_is_wrong_with_a_matrix_is_said(change: Callable[[np.ndarray], object], said: str) -> None:
    T = se3.pose(se3.so3_exp(np.array([0.3, -0.2, 0.1])), np.array([0.1, 0.2, 0.3]))
    change(T)
    assert not se3.is_pose(T)
    assert said in se3.pose_defect(T, 1e-6)
