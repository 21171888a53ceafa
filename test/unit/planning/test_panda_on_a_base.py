"""Motions of a Panda on a base that drives or flies, as SRDF's virtual joint says; poses judged by Pinocchio."""

import numpy as np
import pytest

pytest.importorskip("numba")
pin = pytest.importorskip("pinocchio")
pytest.importorskip("coal")
from support.moving_base import box_scene

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.planning.turning import configurations_along
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import find_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.verification.collision import check_collisions

URDF = find_robot("panda")[0].read_text()
ARM = [f"panda_joint{k}" for k in range(1, 8)]
BOXES = (
    ((0.3, 0.3, 0.3), (1.2, 0.4, 0.5)),
    ((0.3, 0.3, 0.3), (-1.1, -0.3, 0.2)),
    ((0.2, 0.2, 2.0), (0.3, 1.2, 0.0)),
)


def made(kind: str) -> RobotModel:
    """Pairs that touch by design are those that the Panda's own SRDF disables."""
    srdf = find_robot("panda")[1]
    assert srdf is not None
    lines = [line for line in srdf.read_text().splitlines() if "<virtual_joint" not in line]
    joint = f'<virtual_joint name="base" type="{kind}" parent_frame="odom" child_link="panda_link0"/></robot>'
    return robot_from_urdf(URDF, "\n".join(lines).replace("</robot>", joint), virtual_joint=True)


class PinocchioPanda:
    """Poses of the hand."""

    def __init__(self, kind: str) -> None:
        root = pin.JointModelPlanar() if kind == "planar" else pin.JointModelFreeFlyer()
        self._model = pin.buildModelFromXML(URDF, root)
        self._data = self._model.createData()

    def hand(self, q: Float64) -> Float64:
        if len(q) == 11:
            base, arm = [*q[:2], np.cos(q[2]), np.sin(q[2])], q[3:10]
        else:
            base, arm = [*q[:3], *q[4:7], q[3]], q[7:14]
        full = pin.neutral(self._model)
        full[: len(base)] = base
        for name, value in zip(ARM, arm, strict=True):
            full[self._model.joints[self._model.getJointId(name)].idx_q] = value
        pin.framesForwardKinematics(self._model, self._data, full)
        return np.array(self._data.oMf[self._model.getFrameId("panda_link8")].homogeneous)


@pytest.mark.parametrize("kind", ["planar", "floating"])
def test_it_gets_where_it_shall_among_boxes(kind: str) -> None:
    robot, judge, scene = made(kind), PinocchioPanda(kind), box_scene(*BOXES)
    solver = CpuSolver()
    solver.configure(robot)
    prepare_collisions(robot)
    states = random_configurations(robot, 200, 21)
    states[:, :2] *= 2.0
    free = states[check_collisions(robot, scene, states, contacts=False).free][:12]
    for start, end in free.reshape(6, 2, -1):
        T = forward_kinematics(robot, end, links=("panda_link8",))[0]
        np.testing.assert_allclose(judge.hand(end), T, atol=1e-9)
        for goal in (end[:-1], T):
            problem = trajectory_problem(
                robot,
                goal,
                joints=["base", *ARM],
                base_link="odom",
                tip_link="panda_link8",
                start=start,
                scene=scene,
                velocity_scaling=0.5,
            )
            result = plan_trajectory(solver, problem)
            assert result.success, result.message
            assert result.trajectory is not None
            q = configurations_along(
                robot, problem, result, np.linspace(0.0, result.trajectory.duration, 400)
            )
            np.testing.assert_allclose(q[0], start, atol=1e-9)
            reached = judge.hand(q[-1])
            assert np.linalg.norm(reached[:3, 3] - T[:3, 3]) <= 1e-4 + 1e-9
            assert np.linalg.norm(pin.log3(reached[:3, :3].T @ T[:3, :3])) <= 1e-3 + 1e-6
            assert check_collisions(robot, scene, q, contacts=False).free.all()
