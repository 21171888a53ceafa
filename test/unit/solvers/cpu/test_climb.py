"""Tests of the cpu plugin's preference for manipulability."""

import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.solvers.cpu.plugin import CpuSolver

TIP = "panda_link8"
COUNT = 8


@pytest.fixture(scope="module")
def panda():
    return load_robot("panda")


@pytest.fixture(scope="module")
def solver(panda):
    solver = CpuSolver()
    solver.configure(panda)
    solver.warm_up()
    return solver


@pytest.fixture(scope="module")
def T(panda):
    return forward_kinematics(panda, random_configurations(panda, COUNT, 5), links=(TIP,))[:, 0]


def index(panda, q):
    """sqrt(det(J Jᵀ)) as it is written."""
    J = geometric_jacobian(build_chain(panda, "panda_link0", TIP), q)
    return np.sqrt(np.linalg.det(J @ np.swapaxes(J, -1, -2)))


@pytest.mark.parametrize("options", [{"prefer": "mid_range"}, {"prefer": "closest"}])
def test_a_greater_weight_never_lowers_the_index(panda, solver, T, options):
    last = None
    for weight in (0.0, 0.1, 10.0, 1e4):
        problem = ik_problem(panda, T[:5], group="panda_arm", manipulability_weight=weight, **options)
        result = solver.solve_ik(problem)
        assert result.success.all()
        assert (result.position_error[:, 0] <= problem.targets[0].position_tolerance).all()
        now = index(panda, result.q[:, 0])
        if last is None:
            first = now
        else:
            assert (now >= last - 1e-12).all(), weight
        last = now
    assert (now > 1.01 * first).sum() >= 2  # the weight matters


def test_no_other_solution_has_a_much_greater_index(panda, solver, T):
    result = solver.solve_ik(ik_problem(panda, T, group="panda_arm", prefer="manipulability"))
    np.testing.assert_allclose(-result.distance[:, 0], index(panda, result.q[:, 0]), rtol=1e-6)
    many = ik_problem(panda, T, group="panda_arm", num_solutions=200, min_separation=1e-3)
    others = index(panda, solver.solve_ik(many).q)
    short = index(panda, result.q[:, 0]) / np.nanmax(others, axis=1)
    assert (short > 0.99).sum() >= COUNT - 1
    assert (short > 0.9).all()


def test_several_solutions_are_sorted_by_the_index(panda, solver, T):
    problem = ik_problem(panda, T[:2], group="panda_arm", prefer="manipulability", num_solutions=5)
    result = solver.solve_ik(problem)
    assert (result.num_found == 5).all()
    values = index(panda, result.q)
    assert (np.diff(values, axis=1) <= 1e-12).all()


def test_an_arm_without_self_motion_takes_its_best_branch(solver):
    ur5 = load_robot("ur5")
    own = CpuSolver()
    own.configure(ur5)
    T = forward_kinematics(ur5, random_configurations(ur5, 3, 6), links=("tool0",))[:, 0]
    result = own.solve_ik(ik_problem(ur5, T, tip_link="tool0", prefer="manipulability"))
    all_branches = own.solve_ik(ik_problem(ur5, T, tip_link="tool0", num_solutions=16))
    own.close()
    chain = build_chain(ur5, ur5.root_link, "tool0")
    for b in range(3):
        found = all_branches.q[b, : all_branches.num_found[b]]
        best = np.abs(np.linalg.det(geometric_jacobian(chain, found))).max()
        np.testing.assert_allclose(-result.distance[b, 0], best, rtol=1e-3)


def test_joints_at_their_limits_stay_inside(panda, solver, T):
    # Limits so tight that the way up ends at one of them.
    start = solver.solve_ik(ik_problem(panda, T, group="panda_arm"))
    problem = ik_problem(panda, T, group="panda_arm", prefer="manipulability", seeds=start.q)
    lower, upper = panda.limits.lower.copy(), panda.limits.upper.copy()
    for b in range(3):
        q = start.q[b, 0]
        lower[problem.variables], upper[problem.variables] = q - 0.2, q + 0.2
        tight = replace(panda, limits=replace(panda.limits, lower=lower.copy(), upper=upper.copy()))
        own = CpuSolver()
        own.configure(tight)
        result = own.solve_ik(ik_problem(tight, T[b], group="panda_arm", prefer="manipulability", seeds=q))
        own.close()
        assert result.success.all()
        assert (np.abs(result.q[0, 0] - q) <= 0.2 + 1e-12).all()
        assert index(tight, result.q[0, 0]) >= index(tight, q) - 1e-9


def test_with_collisions_and_with_a_deadline(panda, solver, T):
    problem = ik_problem(panda, T[:2], group="panda_arm", prefer="manipulability", scene=EMPTY_SCENE)
    assert solver.solve_ik(problem).success.any()
    late = replace(problem, scene=None, deadline=time.monotonic() - 1.0)
    assert solver.solve_ik(late).cut_short.all()
