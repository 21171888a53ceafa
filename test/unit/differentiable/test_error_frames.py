"""Errors of poses in three frames with gradients, against the float64 ones."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="differentiable kinematics need jax")
import jax.numpy as jnp

from kinopt_ros import differentiable as kd
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics import error_frames as reference
from kinopt_ros.kinematics import se3
from kinopt_ros.kinematics.error_frames import ERROR_FRAMES, UnknownErrorFrameError
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import load_robot

ANGLES = (0.0, 1e-12, 1e-9, 1e-5, 1e-2, 0.3, 0.99, 1.01, 2.0, 3.0, 3.1)


def poses(angles, seed=0):
    rng = np.random.default_rng(seed)
    T = se3.se3_exp(rng.normal(size=(len(angles), 6)))
    axis = rng.normal(size=(len(angles), 3))
    axis *= np.array(angles)[:, None] / np.linalg.norm(axis, axis=1, keepdims=True)
    return T, T @ se3.se3_exp(np.concatenate([rng.normal(size=axis.shape), axis], axis=1))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("frame", ERROR_FRAMES)
def test_the_reference_agrees(frame):
    T, G = poses(ANGLES)
    np.testing.assert_allclose(
        kd.pose_error_twist(T, G, frame), reference.pose_error_twist(T, G, frame), atol=1e-11
    )
    expected = reference.pose_error_jacobian(T, G, frame)
    np.testing.assert_allclose(kd.pose_error_jacobian(T, G, frame), expected, atol=1e-9)


@pytest.mark.parametrize("double_precision", [True, False])
@pytest.mark.parametrize("frame", ERROR_FRAMES)
def test_gradients_are_finite_everywhere(frame, double_precision):
    with jax.enable_x64(double_precision):
        T, G = (jnp.asarray(x) for x in poses((*ANGLES, np.pi - 1e-9, np.pi), 1))
        gradient = jax.grad(lambda *x: (kd.pose_error_twist(x[0], x[1], frame) ** 2).sum(), argnums=(0, 1))
        for pair in ((T, G), (T, T)):
            for part in gradient(*pair):
                assert jnp.isfinite(part).all()


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("frame", ERROR_FRAMES)
def test_through_forward_kinematics(frame):
    robot = load_robot("panda")
    q, goal = random_configurations(robot, 2, 0)
    fk = kd.forward_kinematics(robot, ["panda_link8"])
    T, G = fk(q)[0], fk(goal)[0]
    whole = jax.jacfwd(lambda q: kd.pose_error_twist(fk(q)[0], G, frame))(jnp.asarray(q))
    product = kd.pose_error_jacobian(T, G, frame) @ kd.jacobian(robot, "panda_link8")(q)
    np.testing.assert_allclose(whole, product, atol=1e-10)


def test_shapes_and_what_is_refused():
    T, G = poses((0.1,) * 6)
    assert kd.pose_error_twist(T.reshape(2, 3, 4, 4), G[0], "mixed").shape == (2, 3, 6)
    assert kd.pose_error_jacobian(T[0], G.reshape(2, 3, 4, 4), "spatial").shape == (2, 3, 6, 6)
    with pytest.raises(UnknownErrorFrameError, match="'tip'"):
        kd.pose_error_twist(T, G, "tip")
    with pytest.raises(UnknownErrorFrameError, match="unknown error frame"):
        kd.pose_error_jacobian(T, G, ["body"])
    with pytest.raises(InvalidRequestError, match="T_base_target must have shape"):
        kd.pose_error_twist(T, G[..., :3])
