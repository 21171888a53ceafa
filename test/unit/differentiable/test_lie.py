"""Exponentials, logarithms and interpolation of JAX against the float64 ones, and their gradients."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="differentiable kinematics need jax")
import jax.numpy as jnp

from kinopt_ros import differentiable as kd
from kinopt_ros.differentiable.lie import inverse
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics import interpolation, se3

ANGLES = (0.0, 1e-12, 1e-9, 1e-6, 2e-5, 1e-3, 0.1, 0.5, 0.99, 1.01, 2.0, 3.0, np.pi - 1e-4)
AT_PI = (np.pi - 1e-9, np.pi - 1e-12, np.pi)
STEP = 1e-5


def twists(angles, seed=0):
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=(len(angles), 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    return np.concatenate([rng.normal(size=(len(angles), 3)), np.array(angles)[:, None] * axis], 1)


def differences(function, at):
    """Central differences in the last dimension of the argument; derivatives come last."""
    steps = STEP * np.eye(at.shape[-1])
    return np.stack([(function(at + step) - function(at - step)) / (2.0 * STEP) for step in steps], -1)


@pytest.mark.usefixtures("double")
def test_the_reference_agrees():
    given = twists((ANGLES + AT_PI) * 10)
    w, T = given[:, 3:], se3.se3_exp(given)
    np.testing.assert_allclose(kd.so3_exp(w), T[:, :3, :3], atol=1e-12)
    np.testing.assert_allclose(kd.se3_exp(given), T, atol=1e-12)
    np.testing.assert_allclose(kd.so3_log(T[:, :3, :3]), se3.so3_log(T[:, :3, :3]), atol=1e-12)
    np.testing.assert_allclose(kd.se3_log(T), se3.se3_log(T), atol=1e-11)
    np.testing.assert_allclose(inverse(T), se3.inverse(T), atol=1e-14)
    more = twists((4.0, 6.2, 2 * np.pi, 10.0, 100.0))
    np.testing.assert_allclose(kd.se3_exp(more), se3.se3_exp(more), atol=1e-11)


@pytest.mark.usefixtures("double")
def test_jaxlie_agrees_on_logarithms():
    jaxlie = pytest.importorskip("jaxlie")
    T = se3.se3_exp(twists(ANGLES))
    np.testing.assert_allclose(kd.se3_log(T), jaxlie.SE3.from_matrix(jnp.asarray(T)).log(), atol=1e-9)


@pytest.mark.usefixtures("double")
def test_derivatives_of_exponentials():
    given = twists(ANGLES + AT_PI, 1)
    derivative = jax.jit(jax.vmap(jax.jacrev(kd.se3_exp)))(given)
    expected = np.stack([differences(se3.se3_exp, one) for one in given])
    np.testing.assert_allclose(derivative, expected, atol=1e-8)


@pytest.mark.usefixtures("double")
def test_derivatives_of_logarithms():
    """Along rigid motions: across them there is nothing to compare with."""
    T = se3.se3_exp(twists(ANGLES, 2))
    derivative = jax.jit(jax.vmap(jax.jacrev(kd.se3_log)))(T)
    for one, dlog in zip(T, derivative, strict=True):
        motions = differences(lambda d, one=one: one @ se3.se3_exp(d), np.zeros(6))
        expected = differences(lambda d, one=one: se3.se3_log(one @ se3.se3_exp(d)), np.zeros(6))
        np.testing.assert_allclose(np.einsum("aij,ijk->ak", dlog, motions), expected, atol=1e-8)


@pytest.mark.usefixtures("double")
def test_derivatives_of_the_logarithm_at_half_a_turn():
    """Less angle along the axis of half a turn is less of the logarithm, from this side as from any other angle."""
    axis = np.array([0.6, 0.0, 0.8])
    for angle in (np.pi - 1e-6, *AT_PI):
        derivative = jax.jacrev(kd.so3_log)(jnp.asarray(se3.so3_exp(angle * axis)))
        back = differences(lambda d, angle=angle: se3.so3_exp((angle - 1.0 - d[0]) * axis), np.zeros(1))
        back = se3.so3_exp(axis) @ back[..., 0]  # the derivative at the angle itself
        change = np.einsum("aij,ij->a", derivative, back)
        sign = np.sign(np.asarray(kd.so3_log(se3.so3_exp(angle * axis))) @ axis)
        np.testing.assert_allclose(sign * change, -sign * axis, atol=1e-8)


@pytest.mark.parametrize("double_precision", [True, False])
def test_gradients_are_finite_everywhere(double_precision):
    with jax.enable_x64(double_precision):
        given = jnp.asarray(twists((ANGLES + AT_PI) * 3 + (10.0, 1e3, 1e6), 3))
        start = jnp.asarray(se3.se3_exp(twists((0.7,) * len(given), 4)))
        end = jnp.asarray(np.asarray(start, np.float64) @ se3.se3_exp(np.asarray(given, np.float64)))
        for function, arguments in (
            (kd.se3_exp, (given,)),
            (kd.se3_log, (end,)),
            (kd.so3_log, (end[:, :3, :3],)),
            (kd.se3_interpolate, (start, end, jnp.full(len(given), 0.3))),
            (kd.se3_interpolate, (start, start, jnp.full(len(given), 0.3))),
            (kd.so3_interpolate, (start[:, :3, :3], end[:, :3, :3], jnp.full(len(given), 1.0))),
        ):
            every = tuple(range(len(arguments)))
            gradient = jax.grad(lambda *x, f=function: (f(*x) ** 2).sum(), argnums=every)
            for part in gradient(*arguments):
                assert jnp.isfinite(part).all(), function


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("s", [0.0, 0.3, 1.0, -0.5, 1.5])
def test_interpolation_agrees(s):
    T_a = se3.se3_exp(twists((0.7,) * len(ANGLES + AT_PI), 5))
    T_b = T_a @ se3.se3_exp(twists(ANGLES + AT_PI, 6))
    expected = interpolation.se3_interpolate(T_a, T_b, s)
    np.testing.assert_allclose(kd.se3_interpolate(T_a, T_b, s), expected, atol=1e-11)
    R_a, R_b = T_a[:, :3, :3], T_b[:, :3, :3]
    expected = interpolation.so3_interpolate(R_a, R_b, s)
    np.testing.assert_allclose(kd.so3_interpolate(R_a, R_b, s), expected, atol=1e-11)


@pytest.mark.usefixtures("double")
def test_derivatives_of_interpolation():
    T_a, T_b = se3.se3_exp(twists((0.7, 1.0), 7))
    by_share = jax.jacfwd(kd.se3_interpolate, argnums=2)
    for s in (0.0, 0.4, 1.0):
        at = np.array([s])
        expected = differences(lambda x: interpolation.se3_interpolate(T_a, T_b, x[0]), at)[..., 0]
        np.testing.assert_allclose(by_share(T_a, T_b, s), expected, atol=1e-8)
    by_end = jax.jacrev(lambda d: kd.se3_interpolate(T_a, T_b @ kd.se3_exp(d), 0.4))(jnp.zeros(6))
    expected = differences(
        lambda d: interpolation.se3_interpolate(T_a, T_b @ se3.se3_exp(d), 0.4), np.zeros(6)
    )
    np.testing.assert_allclose(by_end, expected, atol=1e-8)


def test_shapes():
    T = se3.se3_exp(twists((0.1,) * 6)).reshape(2, 3, 4, 4)
    assert kd.se3_log(T).shape == (2, 3, 6)
    assert kd.so3_exp(np.zeros(3)).shape == (3, 3)
    assert kd.se3_interpolate(T, T[0, 0], jnp.linspace(0.0, 1.0, 5)[:, None, None]).shape == (5, 2, 3, 4, 4)
    with pytest.raises(InvalidRequestError, match=r"T must have shape \(\.\.\., 4, 4\), not \(3, 3\)"):
        kd.se3_log(np.eye(3))
    with pytest.raises(InvalidRequestError, match="twist must have shape"):
        kd.se3_exp(np.zeros(5))
