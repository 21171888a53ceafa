"""Sines of lanes against the C library's."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.usefixtures("compiled_once")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cosine_and_sine(sign: float) -> None:
    from kinopt_ros.differentiable.components import Negative, plain
    from kinopt_ros.solvers.jax_lm.lanes import cosine_and_sine

    rng = np.random.default_rng(1)
    quarters = np.arange(-40.0, 41.0) * 0.5 * np.pi
    angles = np.concatenate([rng.uniform(-30.0, 30.0, 20000), quarters, quarters + 1e-6, [0.0, -0.0]])
    lanes = angles.astype(np.float32)
    found = cosine_and_sine(jax.numpy.asarray(lanes) if sign > 0.0 else Negative(jax.numpy.asarray(lanes)))
    exact = sign * lanes.astype(np.float64)
    np.testing.assert_allclose(plain(found[0]), np.cos(exact), rtol=0.0, atol=2e-7)
    np.testing.assert_allclose(plain(found[1]), np.sin(exact), rtol=0.0, atol=2e-7)


def test_double_precision_is_exact() -> None:
    from kinopt_ros.solvers.jax_lm.lanes import cosine_and_sine

    angles = np.random.default_rng(2).uniform(-30.0, 30.0, 2000)
    with jax.enable_x64(True):
        cosine, sine = cosine_and_sine(jax.numpy.asarray(angles))
        np.testing.assert_allclose(cosine, np.cos(angles), rtol=0.0, atol=1e-15)
        np.testing.assert_allclose(sine, np.sin(angles), rtol=0.0, atol=1e-15)
