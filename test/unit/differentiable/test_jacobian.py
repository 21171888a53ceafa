"""Jacobians against the float64 reference, autodiff and central differences."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="differentiable kinematics need jax")
import jax.numpy as jnp

from kinopt_ros import differentiable as kd
from kinopt_ros.kinematics import se3
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.jacobian import geometric_jacobian, tangent_columns
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.chain import Motion, build_chain
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

PAIRS = [("l0", "l7"), ("l7", "l0"), ("side", "l7"), ("l4", "side"), ("l3", "l3")]
STEP = 1e-6


def reference(robot, base, tip, q):
    """The reference's columns at their places among those of the whole robot."""
    chain = build_chain(robot, base, tip)
    J = geometric_jacobian(chain, q[..., chain.variables])
    nav = robot.joint("nav").first_variable
    whole = np.zeros((*q.shape[:-1], 6, robot.nq - 1))
    first, _ = tangent_columns(chain)
    for i, kind in enumerate(chain.motion):
        variable = int(chain.variables[chain.column[i]])
        place = variable - (variable > nav + 3)
        width = 3 if kind == Motion.QUATERNION else 1
        whole[..., place : place + width] = J[..., first[i] : first[i] + width]
    return whole


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("base", "tip"), PAIRS)
def test_the_reference_agrees(robot, base, tip):
    q = random_configurations(robot, 4, 3)
    J = kd.jacobian(robot, tip, base)(q)
    np.testing.assert_allclose(J, reference(robot, base, tip, q), atol=1e-12)


@pytest.mark.usefixtures("double")
def test_autodiff_agrees(robot):
    base, tip = "side", "l7"
    fk = kd.forward_kinematics(robot, [tip], base)
    nav = robot.joint("nav").first_variable + 3

    def pose(q, tangent):
        """After a change along the columns."""
        w = jnp.concatenate([jnp.ones(1), 0.5 * tangent[nav : nav + 3]])
        a, b, c, d = q[nav : nav + 4]
        left = jnp.array([[a, -b, -c, -d], [b, a, -d, c], [c, d, a, -b], [d, -c, b, a]])
        rest = jnp.concatenate([q[:nav] + tangent[:nav], left @ w, q[nav + 4 :] + tangent[nav + 3 :]])
        return fk(rest)[0]

    states = random_configurations(robot, 4, 1)
    q = states[0]
    dT = jax.jit(jax.jacfwd(pose, argnums=1))(q, jnp.zeros(robot.nq - 1))
    R = np.asarray(fk(q))[0, :3, :3]
    W = np.einsum("ijk,lj->ilk", dT[:3, :3], R)
    expected = np.concatenate([dT[:3, 3], [W[2, 1], W[0, 2], W[1, 0]]])
    np.testing.assert_allclose(kd.jacobian(robot, tip, base)(states)[0], expected, atol=1e-6)


@pytest.mark.usefixtures("double")
def test_rpy_rates_are_derivatives_of_rpy(urdf):
    robot = robot_from_urdf(
        urdf(
            'a revolute l0 l1 <origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="1 2 3"/>',
            'b revolute l1 l2 <origin xyz="1 0 0"/><axis xyz="0 1 0"/>',
            'c prismatic l2 l3 <axis xyz="0 1 1"/>',
        )
    )
    chain = build_chain(robot, "l0", "l3")
    q = random_configurations(robot, 5, 0)
    J, singular = kd.jacobian(robot, "l3").rpy_rates(q)
    assert not singular.any()
    np.testing.assert_array_equal(J[:, :3], kd.jacobian(robot, "l3")(q)[:, :3])
    for k in range(3):
        step = STEP * np.eye(3)[k]
        ahead, behind = (se3.matrix_to_rpy(chain_pose(chain, q + s)[:, :3, :3]) for s in (step, -step))
        np.testing.assert_allclose(J[:, 3:, k], (ahead - behind) / (2 * STEP), atol=1e-8)


def test_rpy_rates_are_flagged_where_they_do_not_exist(urdf):
    robot = robot_from_urdf(
        urdf(
            'a continuous l0 l1 <axis xyz="0 1 0"/>',
            "b continuous l1 l2",
        )
    )
    q = np.array([[np.pi / 2, 0.3], [-np.pi / 2, 0.0], [0.3, 0.2]])
    J, singular = kd.jacobian(robot, "l2").rpy_rates(q)
    assert singular.tolist() == [True, True, False]
    assert np.isnan(J[:2, 3:]).all()
    assert np.isfinite(J[2]).all()
    assert np.isfinite(kd.jacobian(robot, "l2")(q)).all()


def test_joints_off_the_chain_have_zero_columns():
    robot = load_robot("panda")
    q = random_configurations(robot, 3, 0)
    J = np.asarray(kd.jacobian(robot, "panda_link8")(q))
    assert J.dtype == np.float32
    chain = build_chain(robot, "panda_link0", "panda_link8")
    np.testing.assert_allclose(
        J[..., chain.variables], geometric_jacobian(chain, q[:, chain.variables]), atol=1e-5
    )
    fingers = [i for i in range(robot.nq) if i not in chain.variables]
    assert fingers
    assert not J[..., fingers].any()


@pytest.mark.usefixtures("double")
def test_the_jacobian_depends_on_parameters(robot):
    q = random_configurations(robot, 4, 0)
    parameters = kd.KinematicParameters.of(robot)
    J = kd.jacobian(robot, "l7", "side")
    np.testing.assert_allclose(J(q, parameters), J(q), atol=1e-12)
