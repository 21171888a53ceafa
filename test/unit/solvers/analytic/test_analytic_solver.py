"""The plugin analytic: all solutions, verified; what has no closed form is refused by name."""

import itertools
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("eaik", reason="EAIK is not installed (pip install eaik)")
from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import seven_revolute, six_revolute, three_parallel, with_mimic
from kinopt_ros.errors import SolverUnavailableError, UnsupportedFeatureError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.planning.solver_pool import SolverPool
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.analytic import plugin
from kinopt_ros.solvers.analytic.plugin import AnalyticSolver
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status

ARMS = {"six_revolute": six_revolute(), "three_parallel": three_parallel()}
SEPARATION = 0.01


@pytest.fixture(params=sorted(ARMS))
def robot(request: pytest.FixtureRequest) -> RobotModel:
    """Both kinds of arm."""
    return ARMS[request.param]


def problem_of(robot: RobotModel, q: Float64, **options: Any) -> IkProblem:
    """Return a problem with the poses that configurations have."""
    tip = robot.link_names[-1]
    return ik_problem(robot, forward_kinematics(robot, q, links=(tip,))[:, 0], tip_link=tip, **options)


def solver_of(robot: RobotModel, **options: Any) -> AnalyticSolver:
    solver = AnalyticSolver()
    solver.configure(robot, options)
    return solver


def missing(q: Float64, among: Float64) -> Float64:
    """Return the rows of q that are not among others, whole turns aside."""
    difference = q[:, None] - among[None]
    difference -= 2.0 * np.pi * np.rint(difference / (2.0 * np.pi))
    return q[~(np.abs(difference) < 2 * SEPARATION).all(axis=2).any(axis=1)]


def test_its_branches_are_those_that_cpu_finds(robot: RobotModel) -> None:
    problem = problem_of(
        robot,
        random_configurations(robot, 60, 3),
        num_solutions=16,
        min_separation=SEPARATION,
        position_tolerance=1e-6,
        orientation_tolerance=1e-6,
    )
    ours, theirs = solver_of(robot).solve_ik(problem), create_solver("cpu", robot).solve_ik(problem)
    assert ours.success.all()
    assert ours.algorithm in ("three axes that meet", "three parallel axes")
    only_cpu = only_analytic = 0
    for b in range(60):
        a, c = ours.q[b, : ours.num_found[b]], theirs.q[b, : theirs.num_found[b]]
        only_cpu += len(missing(c, a))
        only_analytic += len(missing(a, c))
    assert only_cpu == 0
    assert only_analytic <= 0.01 * ours.num_found.sum()  # cpu searches: it may miss one
    assert ours.num_found.sum() > 3 * 60


def test_the_closest_solution_is_never_farther_than_that_of_cpu(robot: RobotModel) -> None:
    state = random_configurations(robot, 100, 8)
    problem = problem_of(robot, random_configurations(robot, 100, 4), prefer="closest", state=state)
    ours, theirs = solver_of(robot).solve_ik(problem), create_solver("cpu", robot).solve_ik(problem)
    assert ours.success.all()
    assert (ours.distance <= theirs.distance + 1e-2).all()  # cpu uses the tolerance to come nearer


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-6, 1e-4])
def test_singular_poses_are_solved_and_the_state_is_kept(robot: RobotModel, size: float) -> None:
    rng = np.random.default_rng(1)
    values = [0.0, 0.5 * np.pi, -0.5 * np.pi, 1.0]
    q = np.array(list(itertools.product(values, repeat=6)))[rng.permutation(4**6)[:300]]
    q += size * rng.normal(size=q.shape)
    solver = solver_of(robot)
    assert solver.solve_ik(problem_of(robot, q)).success.all()
    kept = solver.solve_ik(problem_of(robot, q, state=q))
    assert kept.success.all()
    np.testing.assert_allclose(kept.q[:, 0], q, atol=2e-3)


def test_a_path_through_a_singular_pose_stays_on_its_branch() -> None:
    robot = ARMS["six_revolute"]
    solver = solver_of(robot)
    way = np.linspace(-0.3, 0.3, 61)
    q = np.array([0.2, 0.4, 0.9, 0.3, 0.0, -0.5]) + way[:, None] * np.array([0.2, 0.1, 0, 0, 1.0, 0])
    last, biggest = q[0], 0.0
    for here in q:
        result = solver.solve_ik(problem_of(robot, here[None], prefer="closest", state=last))
        assert result.success[0]
        biggest = max(biggest, float(np.abs(result.q[0, 0] - last).max()))
        last = result.q[0, 0]
    assert biggest < 0.05
    np.testing.assert_allclose(last, q[-1], atol=1e-2)


def test_what_is_out_of_reach_is_no_solution_and_what_the_tolerance_holds_is_one() -> None:
    robot = ARMS["six_revolute"]
    solver = solver_of(robot)
    stretched = np.array(
        [[0.3, 0.6, np.arctan2(0.1, 0.4), 0.2, 0.4, 0.1]]
    )  # about the end of the wrist's reach
    problem = problem_of(robot, stretched)
    T = problem.targets[0].T_base_target[0].copy()
    outwards = T[:3, 3] - np.array([0.0, 0.0, 0.3])
    outwards /= np.linalg.norm(outwards)

    def status(distance: float, tolerance: float) -> int:
        moved = T.copy()
        moved[:3, 3] += distance * outwards
        asked = ik_problem(robot, moved, tip_link="l6", position_tolerance=tolerance)
        return int(solver.solve_ik(asked).status[0])

    assert status(0.3, 1e-4) == Status.NO_IK_SOLUTION
    assert status(0.03, 1e-4) == Status.NO_IK_SOLUTION
    reach = next(d for d in np.arange(0.0, 0.3, 1e-4) if status(d, 1e-5) != Status.SUCCESS)
    assert status(reach + 3e-4, 1e-5) == Status.NO_IK_SOLUTION
    assert status(reach + 3e-4, 2e-3) == Status.SUCCESS


def test_every_combination_of_whole_turns_is_found_where_asked_for() -> None:
    robot = ARMS["three_parallel"]
    q = np.array([[0.3, -1.1, 1.4, -0.6, 0.9, 0.2]])
    solver = solver_of(robot)
    few = solver.solve_ik(problem_of(robot, q, num_solutions=16))
    many = solver.solve_ik(problem_of(robot, q, num_solutions=1000, turns=True))
    lower, upper = robot.limits.lower, robot.limits.upper
    expected = 0
    for one in few.q[0, : few.num_found[0]]:
        turned = one + 2.0 * np.pi * np.arange(-2, 3)[:, None]
        expected += int(((turned >= lower) & (turned <= upper)).sum(axis=0).prod())
    assert many.num_found[0] == expected > 8 * few.num_found[0] / 2
    assert (np.diff(many.distance[0, :expected]) >= 0.0).all()


def test_columns_follow_the_problem(robot: RobotModel) -> None:
    problem = problem_of(robot, random_configurations(robot, 5, 6), num_solutions=8)
    turned_round = replace(
        problem,
        joints=problem.joints[::-1],
        variables=problem.variables[::-1].copy(),
        seeds=problem.seeds[:, :, ::-1].copy(),
    )
    solver = solver_of(robot)
    np.testing.assert_array_equal(solver.solve_ik(turned_round).q, solver.solve_ik(problem).q[:, :, ::-1])


def test_requests_that_hold_other_values_are_told_apart(robot: RobotModel) -> None:
    q = random_configurations(robot, 6, 9)
    state = np.zeros_like(q)
    state[:, 0] = q[:, 0]
    problem = problem_of(robot, q, state=state, locked_joints=[robot.variable_names[0]])
    result = solver_of(robot, groups="").solve_ik(problem)
    assert result.q.shape == (6, 1, 5)
    assert result.success.all()


def test_a_locked_joint_makes_six_of_seven() -> None:
    robot = seven_revolute()
    q = random_configurations(robot, 20, 2)
    problem = problem_of(robot, q, state=q, locked_joints=[robot.variable_names[4]])
    try:
        result = solver_of(robot, groups="").solve_ik(problem)
    except UnsupportedFeatureError as refusal:
        pytest.fail(str(refusal))
    assert result.success.all()
    np.testing.assert_allclose(result.q[:, 0], q[:, problem.variables], atol=1e-3)


def test_an_arm_without_a_closed_form_is_refused_by_name() -> None:
    robot = seven_revolute()
    with pytest.raises(
        UnsupportedFeatureError, match=r"closed forms move 6 joints at most.*solver cpu.*group 'l7'"
    ):
        create_solver("analytic", robot)
    solver = solver_of(robot, groups="")
    with pytest.raises(UnsupportedFeatureError, match="at most 6 variables, not 7; lock some joints"):
        solver.solve_ik(problem_of(robot, robot.default_q[None]))
    solver = solver_of(with_mimic(), groups="")
    for _ in range(2):  # what was found out is kept
        with pytest.raises(
            UnsupportedFeatureError, match=r"'j3' turns more than one of its axes.*solver cpu"
        ):
            solver.solve_ik(problem_of(with_mimic(), np.zeros((1, 6))))


def test_another_solver_of_the_chain_takes_over() -> None:
    pool = SolverPool(with_mimic(), {"analytic": {"groups": ""}}, ("analytic", "cpu"))
    for name in ("analytic", "cpu"):
        pool.prepare(name)
    pooled = pool.solve_ik(problem_of(with_mimic(), np.full((1, 6), 0.3)), "analytic")
    assert pooled.result.solver == "cpu"
    assert pooled.result.success[0]
    assert "no closed form" in pooled.fallback_reason
    pool.close()
    pool = SolverPool(seven_revolute())
    with pytest.raises(SolverUnavailableError, match="lock 1 of them"):
        pool.prepare("analytic")
    pool.close()


def test_cpu_takes_over_first_where_nobody_says_which() -> None:
    pool = SolverPool(ARMS["six_revolute"])
    for name in ("analytic", "cpu"):
        pool.prepare(name)
    problem = problem_of(ARMS["six_revolute"], np.full((1, 6), 0.3))
    assert pool.solve_ik(problem, "hjcd").result.solver == "cpu"  # which is not prepared
    assert pool.solve_ik(problem, "analytic").result.solver == "analytic"
    pool.close()


def test_a_deadline_ends_it() -> None:
    robot = ARMS["six_revolute"]
    problem = problem_of(robot, random_configurations(robot, 5, 1), deadline=time.monotonic() - 1.0)
    result = solver_of(robot).solve_ik(problem)
    assert result.cut_short.all()
    assert (result.status == Status.TIMED_OUT).all()


def test_without_the_package_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "find_spec", lambda name: None if name == "eaik" else object())
    assert AnalyticSolver.unavailable_reason() == "the package eaik is not installed (pip install eaik)"
    monkeypatch.setattr(plugin, "find_spec", lambda name: object())
    assert AnalyticSolver.unavailable_reason() is None


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    program = (
        "import sys; from kinopt_ros.solvers.registry import solver_class; solver_class('analytic');"
        "print([m for m in ('eaik', 'numba') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
