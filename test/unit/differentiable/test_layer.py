"""The layer in plain JAX, equinox and flax."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="differentiable kinematics need jax")
import jax.numpy as jnp

from kinopt_ros import differentiable as kd
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import load_robot

LINKS = ["panda_link8"]


@pytest.fixture
def panda():
    return load_robot("panda")


def test_untrainable_layers_have_no_leaves(panda):
    layer = kd.kinematics_layer(panda, LINKS)
    assert jax.tree.leaves(layer) == []
    q = random_configurations(panda, 3, 0)
    np.testing.assert_allclose(layer(q), forward_kinematics(panda, q, LINKS), atol=2e-6)


def test_a_robot_is_calibrated(panda):
    truth = kd.kinematics_layer(panda, LINKS, trainable=True)
    q = random_configurations(panda, 16, 0)
    measured = truth(q)
    wrong = kd.KinematicsLayer(
        kd.KinematicParameters(
            xyz=truth.parameters.xyz.at[4].add(jnp.array([0.01, -0.02, 0.005])),
            rpy=truth.parameters.rpy,
            axis=truth.parameters.axis,
        ),
        truth.function,
    )

    def loss(layer):
        return jnp.mean((layer(q)[..., :3, 3] - measured[..., :3, 3]) ** 2)

    step = jax.jit(jax.value_and_grad(loss))
    first, _ = step(wrong)
    for _ in range(30):
        last, gradient = step(wrong)
        wrong = jax.tree.map(lambda leaf, slope: leaf - 0.2 * slope, wrong, gradient)
    assert last < 0.05 * first


def test_equinox(panda):
    eqx = pytest.importorskip("equinox", reason="equinox is not installed")

    class Model(eqx.Module):
        dense: eqx.nn.Linear
        layer: kd.KinematicsLayer

        def __call__(self, x):
            return self.layer(self.dense(x))

    model = Model(
        eqx.nn.Linear(4, panda.nq, key=jax.random.key(0)), kd.kinematics_layer(panda, LINKS, trainable=True)
    )
    x = jnp.ones(4)
    gradient = eqx.filter_jit(eqx.filter_grad(lambda model: model(x)[0, 2, 3]))(model)
    assert jnp.abs(gradient.dense.weight).max() > 0
    assert jnp.abs(gradient.layer.parameters.xyz).max() > 0


def test_flax_linen(panda):
    nn = pytest.importorskip("flax.linen", reason="flax is not installed")
    fk = kd.forward_kinematics(panda, LINKS)

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            parameters = self.param("kinematics", lambda key: kd.KinematicParameters.of(panda))
            return fk(nn.Dense(panda.nq)(x), parameters)

    model = Model()
    x = jnp.ones(4)
    weights = model.init(jax.random.key(0), x)
    gradient = jax.jit(jax.grad(lambda w: model.apply(w, x)[0, 2, 3]))(weights)["params"]
    assert jnp.abs(gradient["Dense_0"]["kernel"]).max() > 0
    assert jnp.abs(gradient["kinematics"].xyz).max() > 0


def test_flax_nnx(panda):
    nnx = pytest.importorskip("flax.nnx", reason="flax is not installed")

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.dense = nnx.Linear(4, panda.nq, rngs=rngs)
            self.layer = kd.kinematics_layer(panda, LINKS)

        def __call__(self, x):
            return self.layer(self.dense(x))

    x = jnp.ones(4)
    gradient = nnx.jit(nnx.grad(lambda model: model(x)[0, 2, 3]))(Model(nnx.Rngs(0)))
    assert jnp.abs(gradient["dense"]["kernel"].get_value()).max() > 0
