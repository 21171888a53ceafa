"""Advice for arms of few joints: it names an axis, it works, and it costs little."""

import re
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import six_revolute
from kinopt_ros.errors import NotReadyError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import so3_exp
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers import remedies
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.status import Status


def five_revolute() -> RobotModel:
    """A waist, three parallel joints and a roll, as many small arms have."""
    rows = [(0.1, "0 0 1"), (0.1, "0 1 0"), (0.3, "0 1 0"), (0.25, "0 1 0"), (0.1, "0 0 1")]
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/><origin xyz="0 0 {z}"/>'
        f'<axis xyz="{axis}"/><limit lower="-2.8" upper="2.8" velocity="1" effort="1"/></joint>'
        for i, (z, axis) in enumerate(rows)
    )
    links = "".join(f'<link name="l{i}"/>' for i in range(6))
    return robot_from_urdf(f'<robot name="five">{links}{joints}</robot>')


FIVE = five_revolute()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine the search for advice would end before it found any."""
    monkeypatch.setattr(remedies, "_SECONDS", 10.0)


@pytest.fixture(scope="module")
def solver() -> Solver:
    solver = CpuSolver()
    solver.configure(FIVE)
    solver.warm_up()
    return solver


def turned(axis: int, count: int) -> Float64:
    """Poses that the arm reaches, turned about an axis of the tool."""
    T = forward_kinematics(FIVE, random_configurations(FIVE, count, 3), links=("l5",))[:, 0]
    angles = np.random.default_rng(2).uniform(0.3, 0.8, (count, 1))
    T[:, :3, :3] = T[:, :3, :3] @ so3_exp(angles * np.eye(3)[axis])
    return T


def advice(message: str) -> list[str]:
    found = re.search(r"it is reached with free_axes: \[(.*)\]", message)
    return found[1].split(", ") if found else []


@pytest.mark.parametrize("axis", [0, 1])
def test_every_failure_for_want_of_a_joint_names_axes_that_help(solver: Solver, axis: int) -> None:
    failures = 0
    for T in turned(axis, 12):
        result = solver.solve_ik(ik_problem(FIVE, T, tip_link="l5"))
        if result.success[0]:
            continue
        failures += 1
        freed = advice(result.messages[0])
        assert freed, result.messages[0]
        assert solver.solve_ik(ik_problem(FIVE, T, tip_link="l5", free_axes=freed)).success[0]
    assert failures >= 8


def test_a_place_that_only_its_orientation_puts_out_of_reach_gets_advice(solver: Solver) -> None:
    tool, T = np.eye(4), np.eye(4)
    tool[2, 3] = 0.3
    T[:3, :3] = np.diag([1.0, -1.0, -1.0])
    T[2, 3] = 0.7  # a tool that points down has to be held at 1 m; the arm ends at 0.85 m
    problem = ik_problem(FIVE, T, tip_link="l5", T_link_tool=tool)
    result = solver.solve_ik(problem)
    assert "out of reach" in result.messages[0]
    assert "in that orientation" in result.messages[0]
    freed = advice(result.messages[0])
    assert freed
    assert solver.solve_ik(ik_problem(FIVE, T, tip_link="l5", T_link_tool=tool, free_axes=freed)).success[0]


def test_places_out_of_reach_get_no_advice(solver: Solver) -> None:
    T = np.eye(4)
    T[:3, 3] = 2.0, 0.0, 0.0
    result = solver.solve_ik(ik_problem(FIVE, T, tip_link="l5"))
    assert "out of reach" in result.messages[0]
    assert "in that orientation" not in result.messages[0]
    assert not advice(result.messages[0])


def test_a_few_of_many_failures_get_advice(solver: Solver) -> None:
    result = solver.solve_ik(ik_problem(FIVE, turned(0, 30), tip_link="l5"))
    assert 1 <= sum(bool(advice(message)) for message in result.messages) <= 4


def counted(monkeypatch: pytest.MonkeyPatch, solver: Solver) -> list[IkProblem]:
    problems: list[IkProblem] = []
    original = solver._solve_ik

    def solve(problem: IkProblem) -> IkCandidates:
        problems.append(problem)
        return original(problem)

    monkeypatch.setattr(solver, "_solve_ik", solve)
    return problems


def test_arms_of_six_joints_are_not_searched_for_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = six_revolute()
    solver = CpuSolver()
    solver.configure(robot)
    problems = counted(monkeypatch, solver)
    T = np.eye(4)
    T[:3, 3] = 0.0, 0.0, 0.32  # in the shoulder
    assert solver.solve_ik(ik_problem(robot, T, tip_link="l6")).status[0] == Status.NO_IK_SOLUTION
    assert len(problems) == 1


def test_advice_keeps_the_deadline_and_the_tolerances(
    solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = counted(monkeypatch, solver)
    deadline = time.monotonic() + 30.0
    own: dict[str, Any] = {"position_tolerance": 2e-4, "orientation_tolerance": (2e-3, 3e-3, np.inf)}
    solver.solve_ik(ik_problem(FIVE, turned(0, 1), tip_link="l5", deadline=deadline, **own))
    assert len(problems) > 1
    for problem in problems[1:]:
        tolerance = problem.targets[0].orientation_tolerance
        assert isinstance(tolerance, tuple)
        assert problem.targets[0].position_tolerance == 2e-4
        assert all(
            given in (np.inf, expected) for given, expected in zip(tolerance, (2e-3, 3e-3), strict=False)
        )
        assert problem.deadline is not None
        assert problem.deadline <= deadline


def test_what_must_be_compiled_first_gives_no_advice(solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    original = solver._solve_ik

    def cold(problem: IkProblem) -> IkCandidates:
        if problem.targets[0].plain is None:
            raise NotReadyError("cold")
        return original(problem)

    monkeypatch.setattr(solver, "_solve_ik", cold)
    problem = ik_problem(FIVE, turned(0, 1), tip_link="l5")
    result = solver.solve_ik(replace(problem, random_seed=1))
    assert result.status[0] == Status.NO_IK_SOLUTION
    assert not advice(result.messages[0])
