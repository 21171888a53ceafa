"""The compiled check of configurations against the reference, and that it is the one in use."""

from dataclasses import replace

import numpy as np
import pytest

from kinopt_ros.conformance.robots import ROBOTS, two_arms
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.verification import configuration
from kinopt_ros.verification.configuration import (
    reference_report,
    verified_at_once,
    verify_configurations,
)

FLYING = """<robot name="flying"><link name="world"/><link name="body"/><link name="arm"/><link name="tip"/>
  <joint name="free" type="floating"><parent link="world"/><child link="body"/></joint>
  <joint name="turn" type="continuous"><parent link="body"/><child link="arm"/><axis xyz="0 0.6 0.8"/>
    <origin xyz="0.1 0.2 0.3" rpy="0.3 0.1 0.2"/></joint>
  <joint name="slide" type="prismatic"><parent link="arm"/><child link="tip"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="turn" multiplier="0.7" offset="0.1"/></joint>
</robot>"""


def cases() -> list[RobotModel]:
    own = [factory() for factory, _ in ROBOTS.values()]
    return [*own, two_arms(), load_robot("panda"), robot_from_urdf(FLYING)]


def problem_of(robot: RobotModel, base: str, tip: str, rng: np.random.Generator) -> IkProblem:
    q = random_configurations(robot, 20, 3)
    chain = chain_between(robot, base, tip)
    T = chain_pose(chain, q[:, chain.variables])
    T[:, :3, 3] += rng.normal(scale=1e-4, size=(20, 3))
    return ik_problem(robot, T, base_link=base, tip_link=tip, state=q)


@pytest.mark.parametrize("robot", cases(), ids=lambda robot: robot.name)
def test_the_report_is_that_of_the_reference(robot: RobotModel) -> None:
    rng = np.random.default_rng(1)
    root = robot.link_names[0]
    for base, tip in ((root, robot.link_names[-1]), (robot.link_names[-1], root)):
        if not len(chain_between(robot, base, tip).variables):
            continue
        problem = problem_of(robot, base, tip, rng)
        chains = (chain_between(robot, base, tip),)
        request = rng.integers(0, 20, 50)
        q = problem.state[request][:, problem.variables]
        q = q + rng.normal(scale=0.5, size=q.shape) * (rng.uniform(size=(50, 1)) < 0.5)
        q[20:30, -1] += 3e-3  # turns or moves the tip a little
        q[7, 0], q[9, -1] = np.nan, np.inf
        tool = np.eye(4)
        tool[:3, 3] = 0.1, -0.2, 0.3
        for target in (
            problem.targets[0],
            replace(problem.targets[0], T_link_tool=tool),
            replace(problem.targets[0], position_tolerance=(np.inf, 1e-3, 1e-3)),
        ):
            asked = replace(problem, targets=(target,))
            found = verify_configurations(robot, asked, chains, q, request)
            expected = reference_report(robot, asked, chains, q, request)
            np.testing.assert_array_equal(found.ok, expected.ok)
            np.testing.assert_array_equal(found.finite, expected.finite)
            for name in ("limit_violation", "position_error", "orientation_error", "T_base_tool"):
                np.testing.assert_allclose(
                    getattr(found, name), getattr(expected, name), rtol=0.0, atol=1e-12, err_msg=name
                )
        assert not found.ok[[7, 9]].any()


@pytest.mark.parametrize("robot", cases(), ids=lambda robot: robot.name)
def test_a_single_configuration_is_checked_likewise(robot: RobotModel) -> None:
    rng = np.random.default_rng(2)
    problem = problem_of(robot, robot.link_names[0], robot.link_names[-1], rng)
    chains = (chain_between(robot, problem.base_link, robot.link_names[-1]),)
    passed = 0
    for b in range(20):
        one = replace(
            problem,
            targets=(replace(problem.targets[0], T_base_target=problem.targets[0].T_base_target[b : b + 1]),),
            state=problem.state[b : b + 1] + (0.0 if robot.floating_joints else 0.25),
            seeds=problem.seeds[:1],
        )
        q = problem.state[b, problem.variables]
        if b % 5 == 4:
            q[0] = (np.nan, np.inf, 100.0, q[0] + 2e-3)[b // 5]
        found = verified_at_once(robot, one, q[None, None])
        expected = verify_configurations(robot, one, chains, q[None], np.zeros(1, dtype=np.int64))
        if found is None:
            assert robot.floating_joints or not expected.ok[0]
            continue
        passed += 1
        assert expected.ok[0]
        assert found.shape == (4, 1, 1)
        distance = np.linalg.norm(q - one.state[0, one.variables])
        np.testing.assert_array_equal(
            found[:2, 0, 0], [expected.position_error[0], expected.orientation_error[0]]
        )
        np.testing.assert_allclose(found[2:, 0, 0], [0.0, distance], rtol=1e-15)
    assert robot.floating_joints or passed > 3


def test_several_targets_are_all_checked() -> None:
    robot = two_arms()
    q = random_configurations(robot, 6, 5)
    tips = [name for name in robot.link_names if name not in {j.parent_link for j in robot.joints}][:2]
    chains = tuple(chain_between(robot, robot.link_names[0], tip) for tip in tips)
    T = np.stack([chain_pose(chain, q[:, chain.variables]) for chain in chains], axis=1)
    T[1, 1, 0, 3] += 0.01
    problem = ik_problem(robot, T, base_link=robot.link_names[0], tip_link=tips, state=q)
    report = verify_configurations(robot, problem, chains, q[:, problem.variables], np.arange(6))
    np.testing.assert_array_equal(report.ok, [True, False, True, True, True, True])
    assert report.position_error[1] == pytest.approx(0.01)


def test_it_is_the_compiled_one_and_numpy_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configuration.prepared() is not None
    robot = load_robot("panda")
    problem = problem_of(robot, robot.link_names[0], "panda_hand", np.random.default_rng(0))
    chains = (chain_between(robot, problem.base_link, "panda_hand"),)
    q = problem.state[:, problem.variables]
    expected = verify_configurations(robot, problem, chains, q, np.arange(20))
    assert 0 < expected.ok.sum() < 20
    monkeypatch.setattr(configuration, "prepared", lambda: None)
    report = verify_configurations(robot, problem, chains, q, np.arange(20))
    np.testing.assert_array_equal(report.ok, expected.ok)


def test_a_mimic_joint_may_overshoot_by_rounding_only() -> None:
    def overshoot(robot: RobotModel) -> float:
        """Return how far the mimic joint is past its limit where its driver is at the limit derived from it."""
        (mimic,) = robot.mimic_joints
        return mimic.multiplier * robot.limits.upper[mimic.first_variable] + mimic.offset - mimic.upper

    robots = (robot_from_urdf(FLYING.replace("0.7", f"0.{k}")) for k in range(11, 100))
    robot = next(robot for robot in robots if overshoot(robot) > 0.0)
    (mimic,) = robot.mimic_joints
    root, tip = robot.link_names[0], robot.link_names[-1]
    q = np.repeat(robot.default_q[None], 2, axis=0)
    q[:, mimic.first_variable] = robot.limits.upper[mimic.first_variable] + [0.0, 1e-9]
    chains = (chain_between(robot, root, tip),)
    T = chain_pose(chains[0], q[:, chains[0].variables])
    problem = ik_problem(robot, T, base_link=root, tip_link=tip, state=q)
    for check in (verify_configurations, reference_report):
        report = check(robot, problem, chains, q[:, problem.variables], np.arange(2))
        np.testing.assert_array_equal(report.ok, [True, False])


def test_quaternions_of_another_length_are_no_solution() -> None:
    """They were called one: the check gave them length 1 for itself only."""
    robot = robot_from_urdf(FLYING)
    problem = problem_of(robot, "world", "tip", np.random.default_rng(1))
    problem = replace(
        problem, targets=(replace(problem.targets[0], position_tolerance=1.0, orientation_tolerance=3.0),)
    )
    chains, request = (chain_between(robot, "world", "tip"),), np.arange(20)
    q = problem.state[:, problem.variables]
    for judge in (verify_configurations, reference_report):
        assert judge(robot, problem, chains, q, request).ok.all()
        longer = q.copy()
        longer[:10, 3:7] *= 1.0 + 2e-6
        longer[10:, 3:7] *= 1.0 + 5e-7
        report = judge(robot, problem, chains, longer, request)
        assert report.ok.tolist() == [False] * 10 + [True] * 10
        np.testing.assert_allclose(report.limit_violation[:10], 2e-6, rtol=1e-3)
