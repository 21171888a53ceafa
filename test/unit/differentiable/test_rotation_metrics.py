"""Rotation metrics of JAX: the numbers of the float64 ones, finite gradients, and the right ones."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="differentiable kinematics need jax")
import jax.numpy as jnp

from kinopt_ros import differentiable as kd
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics import rotation_metrics as reference
from kinopt_ros.kinematics import se3

OF_QUATERNIONS = ("phi2_quaternion", "phi3_angle", "phi4_dot")
ANGLES = (0.0, 1e-12, 1e-8, 1e-4, 0.3, 1.0, 2.5, 3.1, np.pi - 1e-6, np.pi - 1e-12, np.pi)


def pairs(angles, seed=0):
    """Rotations that differ by these angles, as quaternions of any length and sign, and as matrices."""
    rng = np.random.default_rng(seed)
    R_a = se3.quaternion_to_matrix(rng.normal(size=(len(angles), 4)))
    axis = rng.normal(size=(len(angles), 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    R_b = R_a @ se3.so3_exp(np.array(angles)[:, None] * axis)
    scale = rng.uniform(0.5, 2.0, (2, len(angles), 1)) * rng.choice([-1.0, 1.0], (2, len(angles), 1))
    return scale[0] * se3.matrix_to_quaternion(R_a), scale[1] * se3.matrix_to_quaternion(R_b), R_a, R_b


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", OF_QUATERNIONS)
def test_the_reference_agrees(name):
    a, b, _, _ = pairs(ANGLES * 20)
    np.testing.assert_allclose(getattr(kd, name)(a, b), getattr(reference, name)(a, b), atol=1e-12)


@pytest.mark.usefixtures("double")
def test_the_reference_agrees_on_matrices_and_angles():
    _, _, R_a, R_b = pairs(ANGLES * 20)
    np.testing.assert_allclose(kd.phi5_matrix(R_a, R_b), reference.phi5_matrix(R_a, R_b), atol=1e-12)
    rpy = np.random.default_rng(1).uniform(-10.0, 10.0, (2, 300, 3))
    rpy[1, :4] = rpy[0, :4]
    rpy[0, 4:6], rpy[1, 4:6] = np.pi, 0.0  # half a turn is +pi
    np.testing.assert_allclose(kd.phi1_euler(*rpy), reference.phi1_euler(*rpy), atol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", ["phi1_euler", *OF_QUATERNIONS, "phi5_matrix"])
def test_gradients_are_differences(name):
    """At angles where the metric has a gradient, along rotations."""
    angles = (1e-3, 0.3, 1.0, 2.5, 3.1)
    _, _, R_a, R_b = pairs(angles, 3)
    metric, exact = getattr(kd, name), getattr(reference, name)

    def numbers(R):
        return se3.matrix_to_rpy(R) if name == "phi1_euler" else se3.matrix_to_quaternion(R)

    own = (lambda R: R) if name == "phi5_matrix" else numbers
    directions = np.random.default_rng(4).normal(size=(len(angles), 3))
    for angle, A, B, w in zip(angles, R_a, R_b, directions, strict=True):
        step = min(1e-6, 1e-4 * angle)
        ends = [own(A @ se3.so3_exp(sign * step * w)) for sign in (1.0, -1.0)]
        if name in OF_QUATERNIONS:  # the same half of the sphere
            ends = [end * np.sign(end @ own(A)) for end in ends]
        along = (ends[0] - ends[1]) / (2.0 * step)
        expected = (exact(ends[0], own(B)) - exact(ends[1], own(B))) / (2.0 * step)
        gradient = jax.grad(metric)(jnp.asarray(own(A)), jnp.asarray(own(B)))
        assert (np.asarray(gradient) * along).sum() == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("double_precision", [True, False])
@pytest.mark.parametrize("name", ["phi1_euler", *OF_QUATERNIONS, "phi5_matrix"])
def test_gradients_are_finite_everywhere(name, double_precision):
    with jax.enable_x64(double_precision):
        a, b, R_a, R_b = pairs(ANGLES * 5, 7)
        given = {"phi1_euler": (se3.matrix_to_rpy(R_a), se3.matrix_to_rpy(R_b)), "phi5_matrix": (R_a, R_b)}
        first, second = (jnp.asarray(x) for x in given.get(name, (a, b)))
        gradient = jax.grad(lambda *x: getattr(kd, name)(*x).sum(), argnums=(0, 1))
        for pair in ((first, second), (first, first), (first, -first)):
            for part in gradient(*pair):
                assert jnp.isfinite(part).all()
        if name != "phi1_euler":  # at most as steep as the angle is, for quaternions of some length
            steepest = jnp.abs(jnp.stack(gradient(first, second))).max()
            assert steepest < 10.0


@pytest.mark.usefixtures("double")
def test_gradients_where_there_is_none():
    a = jnp.array([1.0, 0.0, 0.0, 0.0])
    for name in OF_QUATERNIONS:
        for other in (a, -a, 3.0 * a):
            assert (jax.grad(getattr(kd, name))(a, other) == 0.0).all()
    # Half a turn about x: either way round it gets shorter, and the mean of both is no way at all.
    half = jnp.array([0.0, 1.0, 0.0, 0.0])
    assert jax.grad(kd.phi3_angle)(a, half) == pytest.approx(np.zeros(4), abs=1e-12)
    assert (jax.grad(kd.phi1_euler)(jnp.zeros(3), jnp.zeros(3)) == 0.0).all()
    np.testing.assert_allclose(jax.grad(kd.phi1_euler)(jnp.array([jnp.pi, 0, 0]), jnp.zeros(3)), [1, 0, 0])
    assert (jax.grad(kd.phi5_matrix)(jnp.eye(3), jnp.eye(3)) == 0.0).all()


def test_shapes():
    a, b, R_a, R_b = pairs((0.1,) * 6)
    assert kd.phi3_angle(a.reshape(2, 3, 4), b[0]).shape == (2, 3)
    assert kd.phi5_matrix(R_a[:2], R_b[:2]).shape == (2,)
    assert jax.jit(jax.vmap(kd.phi2_quaternion))(a, b).shape == (6,)
    assert kd.phi4_dot([1, 0, 0, 0], [0, 1, 0, 0]) == pytest.approx(1.0)
    with pytest.raises(InvalidRequestError, match=r"b must have shape \(\.\.\., 4\), not \(6, 3\)"):
        kd.phi2_quaternion(a, b[:, :3])
    with pytest.raises(InvalidRequestError, match=r"R_a must have shape \(\.\.\., 3, 3\)"):
        kd.phi5_matrix(a, R_b)
    with pytest.raises(InvalidRequestError, match="rpy_b"):
        kd.phi1_euler(a[:, :3], 1.0)
