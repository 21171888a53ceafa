"""Every target is solved to a micrometre and a microradian, on arms of 6 to 24 joints."""

import numpy as np
import pytest

from kinopt_ros.bench.extended_panda import extended_panda
from kinopt_ros.bench.hjcd.fetch import fetch
from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import halton_configurations
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

from .conftest import SolverMaker

pytestmark = pytest.mark.slow  # kernels take seconds to compile


def arm(name: str) -> tuple[RobotModel, str, str]:
    """A robot, and base and tip of its arm."""
    if name == "panda":
        return load_robot("panda"), "panda_link0", "panda_link8"
    if name == "ur5":
        try:
            return load_robot("ur5"), "base_link", "tool0"
        except RobotDescriptionError as error:
            pytest.skip(str(error))
    if name == "fetch":
        return fetch(), "torso_lift_link", "wrist_roll_link"
    joints = int(name.removeprefix("panda_"))
    return robot_from_urdf(extended_panda(joints)), "panda_link0", f"panda_link{joints}"


@pytest.mark.parametrize("name", ["panda", "fetch", "ur5", "panda_24"])
def test_a_hundred_halton_targets(solver_for: SolverMaker, name: str) -> None:
    robot, base, tip = arm(name)
    q = halton_configurations(robot, 100, 0)
    links = forward_kinematics(robot, q, links=(base, tip))
    T = np.linalg.inv(links[:, 0]) @ links[:, 1]
    problem = ik_problem(
        robot, T, base_link=base, tip_link=tip, position_tolerance=1e-6, orientation_tolerance=1e-6
    )
    result = solver_for(robot).solve_ik(problem)
    assert result.success.all(), [message for message in result.messages if message][:3]
    full = problem.state.copy()
    full[:, problem.variables] = result.q[:, 0]
    links = forward_kinematics(robot, full, links=(base, tip))
    distance, angle = pose_error(T, np.linalg.inv(links[:, 0]) @ links[:, 1])
    assert distance.max() <= 1e-6
    assert angle.max() <= 1e-6
    assert np.median(distance) <= 1e-8


@pytest.mark.parametrize(("joints", "kind"), [(1, "prismatic"), (1, "revolute"), (32, "revolute")])
def test_one_to_thirty_two_joints_downwards_and_upwards(
    solver_for: SolverMaker, joints: int, kind: str
) -> None:
    axes = ("1 0 0", "0 1 0", "0 0 1")
    text = "".join(
        f'<link name="l{i + 1}"/><joint name="j{i}" type="{kind}"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="0.1 0.05 0.2" rpy="0.1 0.2 0"/><axis xyz="{axes[i % 3]}"/>'
        '<limit lower="-0.8" upper="0.8" velocity="1" effort="1"/></joint>'
        for i in range(joints)
    )
    robot = robot_from_urdf(f'<robot name="row"><link name="l0"/>{text}</robot>')
    q = halton_configurations(robot, 20, 0)
    for base, tip in (("l0", f"l{joints}"), (f"l{joints}", "l0")):
        links = forward_kinematics(robot, q, links=(base, tip))
        problem = ik_problem(
            robot,
            np.linalg.inv(links[:, 0]) @ links[:, 1],
            base_link=base,
            tip_link=tip,
            position_tolerance=1e-6,
            orientation_tolerance=1e-6,
        )
        assert len(problem.variables) == joints
        assert solver_for(robot).solve_ik(problem).success.all()


def test_a_target_beside_a_singularity_takes_patience(
    solver_for: SolverMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five joints, the last axis nearly parallel to the first: damped least squares are slow. Quick rounds give up."""
    screened = pytest.importorskip("kinopt_ros.solvers.hjcd.screened")
    rows = (
        ("0 0 1", "0 0 0.2", 'type="revolute"', 'lower="-2.9" upper="2.9"'),
        ("0 1 0", "0.05 0 0.1", 'type="revolute"', 'lower="-1.9" upper="1.9"'),
        ("0 1 0", "0 0 0.35", 'type="revolute"', 'lower="-2.4" upper="2.4"'),
        ("0 1 0", "0 0 0.3", 'type="revolute"', 'lower="-1.9" upper="1.9"'),
        ("0 0 1", "0 0 0.12", 'type="continuous"', ""),
    )
    text = "".join(
        f'<link name="l{i + 1}"/><joint name="j{i}" {kind}><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="{axis}"/><limit {limits} velocity="1" effort="1"/></joint>'
        for i, (axis, xyz, kind, limits) in enumerate(rows)
    )
    robot = robot_from_urdf(f'<robot name="five"><link name="l0"/>{text}</robot>')
    T = np.array(
        [
            [-9.11795822e-01, 4.10642272e-01, -1.14178349e-03, 2.55196531e-01],
            [-4.10640938e-01, -9.11796299e-01, -1.23655604e-03, 2.76378854e-01],
            [-1.54885614e-03, -6.58623585e-04, 9.99998584e-01, 9.82116851e-01],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )
    problem = ik_problem(robot, T, tip_link="l5", random_seed=1170003171)
    with monkeypatch.context() as hurried:
        hurried.setattr(screened, "QUICK_ROUNDS", 1000)
        assert not solver_for(robot).solve_ik(problem).success.any()
    assert solver_for(robot).solve_ik(problem).success.all()
