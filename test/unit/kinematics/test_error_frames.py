"""Errors of poses in three frames, and their derivatives."""

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from kinopt_ros.kinematics import se3
from kinopt_ros.kinematics.error_frames import (
    BODY,
    ERROR_FRAMES,
    MIXED,
    SPATIAL,
    UnknownErrorFrameError,
    pose_error_jacobian,
    pose_error_twist,
)
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.lie_jacobians import se3_left_jacobian_inverse, so3_left_jacobian_inverse
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.sources import load_robot

ANGLES = (0.0, 1e-9, 1e-5, 2e-4, 1e-2, 0.3, 0.99, 1.01, 2.0, 3.0, 3.1)
STEP = 1e-6


def poses(seed=0):
    """Actual poses, and targets that are these angles away from them."""
    rng = np.random.default_rng(seed)
    T = se3.se3_exp(rng.normal(size=(len(ANGLES), 6)))
    axis = rng.normal(size=(len(ANGLES), 3))
    axis *= np.array(ANGLES)[:, None] / np.linalg.norm(axis, axis=1, keepdims=True)
    return T, T @ se3.se3_exp(np.concatenate([rng.normal(size=axis.shape), axis], axis=1))


def moved(T, motion):
    """The tip after a small motion: of its origin, and about it, along the base's axes."""
    R = se3.so3_exp(motion[..., 3:]) @ T[..., :3, :3]
    return se3.pose(R, T[..., :3, 3] + motion[..., :3])


def test_pinocchio_agrees():
    for T, G in zip(*poses(), strict=True):
        actual, target = pin.SE3(T), pin.SE3(G)
        body, spatial = pin.log6(actual.actInv(target)).vector, pin.log6(target * actual.inverse()).vector
        np.testing.assert_allclose(pose_error_twist(T, G, BODY), body, atol=1e-10)
        np.testing.assert_allclose(pose_error_twist(T, G, SPATIAL), spatial, atol=1e-10)
        np.testing.assert_allclose(actual.action @ body, spatial, atol=1e-10)
        turn = pin.log3(target.rotation @ actual.rotation.T)
        expected = np.concatenate([target.translation - actual.translation, turn])
        np.testing.assert_allclose(pose_error_twist(T, G, MIXED), expected, atol=1e-10)


def test_what_the_frames_mean():
    T, G = poses(1)
    np.testing.assert_allclose(T @ se3.se3_exp(pose_error_twist(T, G)), G, atol=1e-12)
    np.testing.assert_allclose(se3.se3_exp(pose_error_twist(T, G, SPATIAL)) @ T, G, atol=1e-12)
    np.testing.assert_allclose(moved(T, pose_error_twist(T, G, MIXED)), G, atol=1e-12)
    T_c_base = se3.se3_exp([1.0, 2.0, 3.0, 0.1, -0.2, 0.3])
    np.testing.assert_allclose(
        pose_error_twist(T_c_base @ T, T_c_base @ G), pose_error_twist(T, G), atol=1e-10
    )
    for frame in ERROR_FRAMES:
        np.testing.assert_allclose(pose_error_twist(T, T, frame), 0.0, atol=1e-14)


@pytest.mark.parametrize("frame", ERROR_FRAMES)
def test_derivatives_are_differences(frame):
    T, G = poses(2)
    J = pose_error_jacobian(T, G, frame)
    for k, motion in enumerate(STEP * np.eye(6)):
        ends = [pose_error_twist(moved(T, sign * motion), G, frame) for sign in (1.0, -1.0)]
        np.testing.assert_allclose(J[..., k], (ends[0] - ends[1]) / (2.0 * STEP), atol=1e-8)


@pytest.mark.parametrize("frame", ERROR_FRAMES)
def test_derivatives_in_joint_values(frame):
    robot = load_robot("panda")
    chain = build_chain(robot, "panda_link0", "panda_link8")
    q, goal = random_configurations(robot, 2, 0)[:, chain.variables]
    G = chain_pose(chain, goal)
    J = pose_error_jacobian(chain_pose(chain, q), G, frame) @ geometric_jacobian(chain, q)
    for k, step in enumerate(STEP * np.eye(len(q))):
        ends = [pose_error_twist(chain_pose(chain, q + sign * step), G, frame) for sign in (1.0, -1.0)]
        np.testing.assert_allclose(J[:, k], (ends[0] - ends[1]) / (2.0 * STEP), atol=1e-8)


def test_inverse_jacobians_agree_with_pinocchio():
    rng = np.random.default_rng(3)
    for angle in ANGLES:
        twist = rng.normal(size=6)
        twist[3:] *= angle / np.linalg.norm(twist[3:])
        # Theirs is the right one. Near 0 and near pi they lose digits.
        atol = 1e-9 if angle == 0.0 or 0.1 < angle < 3.05 else 1e-5
        theirs = pin.Jlog6(pin.exp6(twist))
        np.testing.assert_allclose(se3_left_jacobian_inverse(-twist), theirs, atol=atol)
        theirs = pin.Jlog3(pin.exp3(twist[3:]))
        np.testing.assert_allclose(so3_left_jacobian_inverse(-twist[3:]), theirs, atol=atol)


def test_shapes_and_unknown_frames():
    T, G = poses(4)
    for frame in ERROR_FRAMES:
        assert pose_error_twist(T[0], G, frame).shape == (len(G), 6)
        assert pose_error_twist(T, G[0], frame).shape == (len(G), 6)
        assert pose_error_jacobian(T[0], G, frame).shape == (len(G), 6, 6)
        assert pose_error_jacobian(T, G[0], frame).shape == (len(G), 6, 6)
        assert pose_error_jacobian(T[0], G[0], frame).shape == (6, 6)
        assert pose_error_twist(T[:0], G[:0], frame).shape == (0, 6)
    for function in (pose_error_twist, pose_error_jacobian):
        with pytest.raises(UnknownErrorFrameError, match="unknown error frame 'world'"):
            function(T, G, "world")
