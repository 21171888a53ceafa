"""Forward kinematics against the float64 reference, Pinocchio and central differences."""

from dataclasses import replace

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="differentiable kinematics need jax")
import jax.numpy as jnp
from support.cost_cases import every_joint

from kinopt_ros import differentiable as kd
from kinopt_ros.differentiable import products
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, UnknownLinkError
from kinopt_ros.kinematics import se3
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

STEP = 1e-6


@pytest.mark.usefixtures("double")
def test_all_links_equal_the_reference(robot):
    q = random_configurations(robot, 20, 0)
    T = kd.forward_kinematics(robot)(q)
    assert T.dtype == jnp.float64
    np.testing.assert_allclose(T, forward_kinematics(robot, q), atol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("base", "links"), [("l4", ["l7", "side", "l4"]), ("side", ["l2"]), ("l2", ["l0"])])
def test_any_link_is_base(robot, base, links):
    q = random_configurations(robot, 5, 0)
    T_root_base = forward_kinematics(robot, q, [base])
    expected = se3.inverse(T_root_base) @ forward_kinematics(robot, q, links)
    np.testing.assert_allclose(kd.forward_kinematics(robot, links, base)(q), expected, atol=1e-12)


@pytest.mark.usefixtures("double")
def test_written_out_and_looped_agree(monkeypatch):
    robot = load_robot("panda")
    q = random_configurations(robot, 7, 0)
    expected = forward_kinematics(robot, q, ["panda_link8"])
    for most in (1000, 0):
        monkeypatch.setattr(products, "WRITTEN_OUT", most)
        fk = kd.ForwardKinematics(
            kd.forward_kinematics(robot, ["panda_link8"])._plan, ("panda_link8",), "panda_link0"
        )
        np.testing.assert_allclose(fk(q), expected, atol=1e-12)


def test_single_precision_by_default():
    robot = load_robot("panda")
    q = random_configurations(robot, 50, 0)
    T = kd.forward_kinematics(robot, ["panda_link8"])(q)
    assert T.dtype == jnp.float32
    np.testing.assert_allclose(T, forward_kinematics(robot, q, ["panda_link8"]), atol=2e-6)
    assert not jax.config.jax_enable_x64


def test_leading_dimensions_and_transformations():
    robot = load_robot("panda")
    fk = kd.forward_kinematics(robot, ["panda_link8"])
    assert fk is kd.forward_kinematics(robot, ["panda_link8"])  # compiled once
    q = random_configurations(robot, 6, 0)
    all_at_once = fk(q)
    assert fk(q[0]).shape == (1, 4, 4)
    assert fk(q[:0]).shape == (0, 1, 4, 4)
    np.testing.assert_allclose(fk(q.reshape(2, 3, -1)), all_at_once.reshape(2, 3, 1, 4, 4), atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(fk))(jnp.asarray(q)), all_at_once, atol=1e-6)
    whole = fk([0] * robot.nq)
    assert whole.dtype == jnp.float32


def test_a_robot_that_cannot_move(urdf):
    robot = robot_from_urdf(urdf("f fixed a b"))
    np.testing.assert_array_equal(
        kd.forward_kinematics(robot)(np.zeros((2, 0))), np.tile(np.eye(4), (2, 2, 1, 1))
    )


def test_refused(robot):
    fk = kd.forward_kinematics(robot)
    with pytest.raises(InvalidStateError, match=r"\(\.\.\., 13\), not \(4, 12\)"):
        fk(np.zeros((4, 12)))
    with pytest.raises(UnknownLinkError):
        kd.forward_kinematics(robot, ["l77"])
    other = kd.KinematicParameters.of(load_robot("panda"))
    with pytest.raises(InvalidRequestError, match=r"\(8, 3\)"):
        fk(np.zeros(13), other)


@pytest.mark.usefixtures("double")
def test_derivatives_in_every_variable(robot):
    fk = kd.forward_kinematics(robot, ["l7", "side"])
    q = random_configurations(robot, 1, 3)[0]
    forward, reverse = jax.jit(lambda q: (jax.jacfwd(fk)(q), jax.jacrev(fk)(q)))(q)
    for i in range(robot.nq):
        step = STEP * np.eye(robot.nq)[i]
        ahead, behind = (forward_kinematics(robot, q + s, ["l7", "side"]) for s in (step, -step))
        expected = (ahead - behind) / (2 * STEP)
        np.testing.assert_allclose(forward[..., i], expected, atol=1e-8, err_msg=robot.variable_names[i])
        np.testing.assert_allclose(reverse[..., i], expected, atol=1e-8, err_msg=robot.variable_names[i])


def with_parameters(robot, xyz, rpy, axis):
    """The robot with other numbers."""
    joints = [
        replace(joint, T_parent_joint=se3.pose(se3.rpy_to_matrix(turn), place), axis=a / np.linalg.norm(a))
        for joint, place, turn, a in zip(robot.joints, xyz, rpy, axis, strict=True)
    ]
    return replace(robot, joints=tuple(joints))


@pytest.mark.usefixtures("double")
def test_derivatives_in_every_parameter(robot):
    fk = kd.forward_kinematics(robot, ["l7", "side"])
    q = random_configurations(robot, 1, 3)[0]
    parameters = kd.KinematicParameters.of(robot)
    np.testing.assert_allclose(fk(q, parameters), forward_kinematics(robot, q, ["l7", "side"]), atol=1e-12)
    found = jax.jit(jax.jacrev(fk, argnums=1))(q, parameters)
    numbers = {name: np.array(getattr(parameters, name)) for name in ("xyz", "rpy", "axis")}
    checked = 0
    for name, array in numbers.items():
        for j, joint in enumerate(robot.joints):
            for k in range(3):
                if name == "axis" and joint.type.value in ("fixed", "floating"):
                    assert not np.asarray(getattr(found, name)[..., j, k]).any()
                    continue
                moved = []
                for sign in (1, -1):
                    changed = array.copy()
                    changed[j, k] += sign * STEP
                    model = with_parameters(robot, **{**numbers, name: changed})
                    moved.append(forward_kinematics(model, q, ["l7", "side"]))
                expected = (moved[0] - moved[1]) / (2 * STEP)
                np.testing.assert_allclose(
                    getattr(found, name)[..., j, k], expected, atol=1e-8, err_msg=f"{name} of {joint.name}"
                )
                checked += np.abs(expected).max() > 1e-3
    assert checked > 50


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("normal", ["0 0 1", "0 0 -1", "1e-9 0 -1", "0 1 0", "0.3 0.1 -0.9"])
def test_planar_axes_of_parameters(urdf, normal):
    robot = robot_from_urdf(urdf(f'j planar a b <axis xyz="{normal}"/>'))
    q = np.array([0.3, -0.4, 0.7])
    T = kd.forward_kinematics(robot, ["b"])(q, kd.KinematicParameters.of(robot))
    np.testing.assert_allclose(T, forward_kinematics(robot, q, ["b"]), atol=1e-12)


def test_zero_quaternions_are_not_a_pose(robot):
    q = random_configurations(robot, 2, 0)
    q[0, [robot.variable_index[f"nav/rot_{c}"] for c in "wxyz"]] = 0.0
    T = np.asarray(kd.forward_kinematics(robot, ["l7"])(q))
    assert not np.isfinite(T[0]).all()
    assert np.isfinite(T[1]).all()


@pytest.mark.peers
@pytest.mark.usefixtures("double")
def test_pinocchio_agrees():
    pin = pytest.importorskip("pinocchio")
    from kinopt_ros.robot.sources import find_robot

    robot = load_robot("panda")
    model = pin.buildModelFromUrdf(str(find_robot("panda")[0]), mimic=True)
    data = model.createData()
    q = random_configurations(robot, 20, 0)
    T = kd.forward_kinematics(robot, ["panda_link8"])(q)
    for state, found in zip(q, T, strict=True):
        pin.framesForwardKinematics(model, data, state)
        theirs = data.oMf[model.getFrameId("panda_link8")].homogeneous
        np.testing.assert_allclose(found[0], theirs, atol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("count", [1, 3])
def test_mapped_over_configurations_it_is_the_same(count):
    """With all optimizations: of one configuration XLA 0.10 made poses that were off by 0.7 m for this robot."""
    robot = every_joint()
    q = random_configurations(robot, count, 0)
    expected = forward_kinematics(robot, q, ["tip", "hand"])
    jax.config.update("jax_disable_most_optimizations", False)
    fk = kd.forward_kinematics(robot, ["tip", "hand"])
    np.testing.assert_allclose(jax.jit(jax.vmap(fk))(q), expected, atol=1e-12)
    J = jax.jit(jax.vmap(kd.jacobian(robot, "tip")))(q)
    alone = np.array([kd.jacobian(robot, "tip")(one) for one in q])
    np.testing.assert_allclose(J, alone, atol=1e-12)
