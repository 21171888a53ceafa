"""Formulas of costs against Pinocchio, against those of whole paths, and by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cost_cases import DT, NUM_POINTS, smooth_path, target

from kinopt_ros.costs.alignment import Alignment
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.look_at import LookAt
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.position_limits import PositionLimits
from kinopt_ros.costs.reference import Reference
from kinopt_ros.costs.relative_pose import RelativePose
from kinopt_ros.costs.rest import Rest, rest_residual
from kinopt_ros.costs.smoothness import (
    LeastAcceleration,
    LeastJerk,
    Smoothness,
    derivative_residual,
    length_residual,
)
from kinopt_ros.costs.velocity import velocity_residual
from kinopt_ros.costs.velocity_limits import VelocityLimits
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.objectives.numpy_point import NumpyPath
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import installed_robots, load_robot
from kinopt_ros.robot.urdf import robot_from_urdf


def at_every_point(robot: RobotModel, cost: Cost, q: np.ndarray, dt: float = DT) -> np.ndarray:
    path = NumpyPath(robot, q, dt)
    return np.array([cost.residual(path[t]) for t in range(len(q) - cost.span + 1)])


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return load_robot("panda")


class Pinocchio:
    """Poses and Jacobians of Panda."""

    def __init__(self, pin: Any) -> None:
        path = next(path for path in installed_robots().values() if "panda" in str(path))
        self.robot = robot_from_urdf(path.read_text())
        self.pin, self.model = pin, pin.buildModelFromUrdf(str(path), mimic=True)
        self.data = self.model.createData()

    def at(self, q: np.ndarray) -> None:
        theirs = self.pin.neutral(self.model)
        for joint in self.robot.joints:
            i = self.model.getJointId(joint.name)
            if joint.is_active and i < self.model.njoints:
                theirs[self.model.joints[i].idx_q] = q[joint.first_variable]
        self.pin.computeJointJacobians(self.model, self.data, theirs)
        self.pin.updateFramePlacements(self.model, self.data)

    def frame(self, link: str) -> int:
        return int(self.model.getFrameId(link, self.pin.FrameType.BODY))

    def pose(self, link: str) -> Any:
        return self.data.oMf[self.frame(link)]

    def jacobian(self, link: str) -> np.ndarray:
        J = self.pin.getFrameJacobian(
            self.model, self.data, self.frame(link), self.pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )
        columns = [
            self.model.joints[self.model.getJointId(joint.name)].idx_v
            for joint in self.robot.joints
            if joint.is_active
        ]
        return np.asarray(J[:, columns])


@pytest.fixture(scope="module")
def peer(pin: Any) -> Pinocchio:
    return Pinocchio(pin)


@pytest.mark.peers
def test_link_poses_and_relative_poses(peer: Pinocchio) -> None:
    pin, wanted = peer.pin, peer.pin.SE3(target())
    for q in random_configurations(peer.robot, 20, 0):
        point = NumpyPath(peer.robot, q[None], DT)[0]
        peer.at(q)
        for base, T in (
            ("", peer.pose("panda_hand")),
            ("panda_link4", peer.pose("panda_link4").actInv(peer.pose("panda_hand"))),
        ):
            error = wanted.actInv(T)
            own = np.concatenate([error.translation, pin.log3(error.rotation)])
            cost = LinkPose(link="panda_hand", T_base_target=target(), base_link=base)
            np.testing.assert_allclose(cost.residual(point), own, atol=1e-9)
            across = np.concatenate(
                [T.translation - wanted.translation, pin.log3(T.rotation @ wanted.rotation.T)]
            )
            np.testing.assert_allclose(cost.replace(frame="base").residual(point), across, atol=1e-9)
            if base:
                relative = RelativePose(link_a=base, link_b="panda_hand", T_a_b=target())
                np.testing.assert_allclose(relative.residual(point), own, atol=1e-9)


@pytest.mark.peers
def test_jacobians_and_manipulability(peer: Pinocchio) -> None:
    for q in random_configurations(peer.robot, 20, 1):
        point = NumpyPath(peer.robot, q[None], DT)[0]
        peer.at(q)
        J = peer.jacobian("panda_hand")
        np.testing.assert_allclose(point.jacobian("panda_hand"), J, atol=1e-9)
        for part, rows in (("translation", J[:3]), ("rotation", J[3:]), ("full", J)):
            index = np.prod(np.linalg.svd(rows, compute_uv=False))
            cost = Manipulability(link="panda_hand", part=part)
            np.testing.assert_allclose(cost.index(point), [index], rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(cost.residual(point), [1.0 / (index + 1e-6)], rtol=1e-6)


def test_a_singular_robot_has_a_finite_cost(panda: RobotModel) -> None:
    point = NumpyPath(panda, np.zeros((1, panda.nq)), DT)[0]
    cost = Manipulability(link="panda_hand", joints=("panda_joint1",))
    np.testing.assert_allclose(cost.residual(point), [1e6])


def test_smoothness_is_that_of_whole_paths(panda: RobotModel) -> None:
    q = smooth_path(panda)
    T = NUM_POINTS
    np.testing.assert_allclose(
        (T - 1) * at_every_point(panda, Smoothness(), q), length_residual(np, q), atol=1e-12
    )
    for cost, order in ((LeastAcceleration(), 2), (LeastJerk(), 3)):
        by_time = derivative_residual(np, q, order) / ((T - 1) * DT) ** order
        np.testing.assert_allclose(at_every_point(panda, cost, q), by_time, rtol=1e-9, atol=1e-9)


def test_velocity_limits_are_those_of_whole_paths(panda: RobotModel) -> None:
    q = smooth_path(panda)
    limit = 0.05 * panda.limits.velocity
    own = np.maximum(at_every_point(panda, VelocityLimits(scale=0.05), q), 0.0)
    assert (own > 0.0).any()
    np.testing.assert_allclose(own, velocity_residual(np, q, (NUM_POINTS - 1) * DT, limit), atol=1e-9)


def test_rest_is_that_of_whole_paths(panda: RobotModel) -> None:
    q, rest = smooth_path(panda), random_configurations(panda, 1, 5)[0]
    np.testing.assert_allclose(at_every_point(panda, Rest(q=rest), q), rest_residual(np, q, rest), atol=1e-12)
    np.testing.assert_allclose(at_every_point(panda, Rest(), q), q - panda.default_q, atol=1e-12)
    np.testing.assert_allclose(at_every_point(panda, Reference(q=q), q), 0.0, atol=1e-15)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_polynomials_by_time(panda: RobotModel, order: int) -> None:
    times = DT * np.arange(NUM_POINTS)
    polynomial = np.polynomial.Polynomial([0.1, -0.3, 0.2, 0.15, -0.05])
    q = np.zeros((NUM_POINTS, panda.nq)) + polynomial(times)[:, None]
    path = NumpyPath(panda, q, DT)
    for t in range(NUM_POINTS):
        np.testing.assert_allclose(path[t].derivative(order), polynomial.deriv(order)(times[t]), atol=1e-8)


def test_alignment_turns_the_axis_into_the_direction(panda: RobotModel) -> None:
    from scipy.spatial.transform import Rotation

    for q in random_configurations(panda, 20, 2):
        point = NumpyPath(panda, q[None], DT)[0]
        axis, direction = np.array([1.0, 2.0, -3.0]), np.array([-0.3, 0.2, 0.4])
        cost = Alignment(link="panda_hand", axis=tuple(axis), direction=tuple(direction))
        turn = Rotation.from_rotvec(cost.residual(point))
        R = point.pose("panda_hand")[:3, :3]
        unit = direction / np.linalg.norm(direction)
        np.testing.assert_allclose(turn.apply(R @ axis) / np.linalg.norm(axis), unit, atol=1e-9)
        angle = np.arccos(np.clip(R @ axis @ unit / np.linalg.norm(axis), -1.0, 1.0))
        assert np.linalg.norm(cost.residual(point)) == pytest.approx(angle, abs=1e-7)
        along = R @ axis
        opposite = Alignment(link="panda_hand", axis=tuple(axis), direction=tuple(-along)).residual(point)
        assert np.linalg.norm(opposite) == pytest.approx(np.pi, abs=1e-6)
        np.testing.assert_allclose(
            Alignment(link="panda_hand", axis=tuple(axis), direction=tuple(2.0 * along)).residual(point),
            0.0,
            atol=1e-7,
        )


def test_look_at_is_the_angle_to_the_place(panda: RobotModel) -> None:
    for q in random_configurations(panda, 20, 3):
        point = NumpyPath(panda, q[None], DT)[0]
        T, T_base = point.pose("panda_hand"), point.pose("panda_link3")
        place = np.array([0.3, -0.8, 0.4])
        line = T_base[:3, :3] @ place + T_base[:3, 3] - T[:3, 3]
        angle = np.arccos(T[:3, 2] @ line / np.linalg.norm(line))
        cost = LookAt(link="panda_hand", place=tuple(place), base_link="panda_link3")
        assert np.linalg.norm(cost.residual(point)) == pytest.approx(angle, abs=1e-7)


def test_position_limits_by_hand(panda: RobotModel) -> None:
    q = panda.default_q.copy()
    upper = panda.limits.upper[1]
    q[1] = upper - 0.05
    cost = PositionLimits(margin=0.2, joints=("panda_joint2",))
    residual = cost.residual(NumpyPath(panda, q[None], DT)[0])
    np.testing.assert_allclose(residual, [panda.limits.lower[1] + 0.2 - q[1], 0.15])


def test_continuous_joints_and_rotations_have_no_position_limits(robots: dict[str, RobotModel]) -> None:
    robot = robots["every_joint"]
    q = robot.default_q.copy()
    q[robot.joint("c").first_variable] = 50.0
    residual = PositionLimits(joints=("c", "fly")).residual(NumpyPath(robot, q[None], DT)[0])
    assert (residual == -1.0).all()
