"""Answers meet the conditions of optimality, and are rarely above the best that SLSQP finds from many starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.arm_objectives import JOINTS, PLANE, asked, margin, weighed
from support.cost_cases import DT
from support.optimality import beside_slsqp, lagrangian_gradient

from kinopt_ros.costs.alignment import Alignment
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.smoothness import Smoothness
from kinopt_ros.costs.velocity_limits import VelocityLimits
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.status import Status

if TYPE_CHECKING:
    from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_llvm")]
SharedMaker = Callable[[RobotModel], "JaxLmSolver"]


@pytest.mark.parametrize(
    ("make", "least", "optimal"), [(weighed, 9, 1.0), (margin, 4, 0.5)], ids=["weighed", "margin"]
)
def test_against_slsqp(
    shared: SharedMaker,
    arm: RobotModel,
    make: Callable[[np.random.Generator], Objective],
    least: int,
    optimal: float,
) -> None:
    """Of ten problems (measured: 10 and 6 of ten). What has to hold: ``test_answers.py``, where its programs are."""
    beside_slsqp(shared(arm), make, least, optimal)


def test_active_limits(shared: SharedMaker, arm: RobotModel) -> None:
    """Far behind: joints stop at their limits, and the gradient points outwards there."""
    objective = Objective([Rest(q=np.array([3.5, 0.5, -4.0, 0.2]), weight=(1.0, 2.0, 3.0, 4.0))])
    problem = objective_problem(arm, objective, joints=JOINTS, num_starts=0)  # it has one minimum
    result = shared(arm).solve_objective(problem)
    assert result.status[0] == Status.NEAREST
    np.testing.assert_allclose(result.best[0, 0], [2.5, 0.5, -2.5, 0.2], atol=1e-7)
    gradient, _ = lagrangian_gradient(arm, problem, result)
    assert np.abs(gradient).max() < 1e-5


def test_position_limits_with_a_tolerance_hold(shared: SharedMaker, arm: RobotModel) -> None:
    for seed in range(10):
        problem = asked(arm, margin, seed)
        result = shared(arm).solve_objective(problem)
        assert result.success[0], result.messages
        assert (np.abs(result.q[0, 0]) <= 1.0 + 1e-6).all()
        assert (result.multipliers[1] >= 0.0).all()
        slack = result.term("position_limits").residual < -1e-4
        assert np.abs(result.multipliers[1][0][slack]).max(initial=0.0) < 1e-6


def test_velocity_limits_along_a_trajectory(shared: SharedMaker, arm: RobotModel) -> None:
    """Eight points from one place to another: the same problem, slow and as fast as the limits allow. (The program that
    searches takes as long to compile as all others: the next test has a smaller one.)"""
    start, goal = random_configurations(arm, 2, 3) * 0.4
    ends = [forward_kinematics(arm, q[None], ["hand"])[0, 0] for q in (start, goal)]

    def asked(dt: float) -> ObjectiveProblem:
        costs = [
            LinkPose(link="hand", T_base_target=T, weight=PLANE, tolerance=1e-5, points=(k,))
            for k, T in zip((0, -1), ends, strict=True)
        ]
        objective = Objective([*costs, VelocityLimits(tolerance=1e-3), Smoothness(), Rest(weight=0.05)])
        return objective_problem(
            arm, objective, joints=JOINTS, state=start, num_points=8, dt=dt, num_starts=0
        )

    slow = shared(arm).solve_objective(asked(1.0))
    assert slow.success[0], slow.messages
    assert slow.q.shape == (1, 8, arm.nq)
    assert "between points" in slow.not_checked
    for k, T in zip((0, -1), ends, strict=True):
        found = forward_kinematics(arm, slow.q[0, k][None], ["hand"])[0, 0]
        np.testing.assert_allclose(found[:2, 3], T[:2, 3], atol=1e-5)
    gradient, scale = lagrangian_gradient(arm, asked(1.0), slow)
    assert np.abs(gradient).max() < 1e-4 * scale
    # As fast as this one goes, and a little faster.
    speed = np.abs(np.diff(slow.q[0], axis=0)).max()
    fast = shared(arm).solve_objective(asked(float(speed) / 2.0))
    assert fast.success[0] or "velocity_limits" in fast.messages[0] or "link_pose" in fast.messages[0]
    if fast.success[0]:
        assert fast.term("velocity_limits").magnitude.max() <= 1e-3
    impossible = shared(arm).solve_objective(asked(1e-3))
    assert impossible.status[0] == Status.PLANNING_FAILED
    assert "hold" in impossible.messages[0] or "allowed" in impossible.messages[0]


def test_a_search_along_a_trajectory(
    shared: SharedMaker, arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no start can hold: the middle of three points stops at its limit, and the others follow."""
    beyond = Rest(q=np.array([3.5, 0.0, 0.0, 0.0]), tolerance=1e-3, points=(1,), label="beyond")
    objective = Objective([beyond, Smoothness(weight=0.3)])
    problem = objective_problem(arm, objective, joints=JOINTS, num_points=3)
    from kinopt_ros.solvers.jax_lm.objectives import solver as parts

    solver, run = shared(arm), parts.ObjectiveSearch._run
    searched = []

    def noted(self: parts.ObjectiveSearch, kind: str, *more: Any) -> Any:
        found = run(self, kind, *more)
        if kind == parts.SEARCH:
            searched.append(found)
        return found

    monkeypatch.setattr(parts.ObjectiveSearch, "_run", noted)
    result = solver.solve_objective(problem)
    ((q, merit, _),) = searched
    assert np.isfinite(merit).all()
    np.testing.assert_allclose(np.asarray(q)[:, 1, 0], 2.5, atol=0.05)
    assert result.status[0] == Status.PLANNING_FAILED
    assert "'beyond'" in result.messages[0]
    np.testing.assert_allclose(result.best[0, :, 0], 2.5, atol=1e-4)


def test_a_whole_pose_of_panda(shared: SharedMaker, panda: RobotModel) -> None:
    """Reachable ones, from nearby: most are found, and all that are claimed hold and are optimal."""
    joints = [f"panda_joint{k}" for k in range(1, 8)]
    succeeded, optimal = 0, 0
    for q, other in random_configurations(panda, 16, 5).reshape(8, 2, -1):
        T = forward_kinematics(panda, q[None], ["panda_hand"])[0, 0]
        costs = [
            LinkPose(link="panda_hand", T_base_target=T, tolerance=1e-6),
            Rest(weight=0.1),
            Manipulability(link="panda_hand", weight=1e-3),
            Alignment(link="panda_link4", weight=0.01),
        ]
        near = (q + 0.1 * (other - q))[None, None]
        problem = objective_problem(panda, Objective(costs), joints=joints, dt=DT, seeds=near, num_starts=0)
        result = shared(panda).solve_objective(problem)
        if result.success[0]:
            succeeded += 1
            found = forward_kinematics(panda, result.q[0], ["panda_hand"])[0, 0]
            np.testing.assert_allclose(found, T, atol=2e-6)
            gradient, scale = lagrangian_gradient(panda, problem, result)
            optimal += bool(np.abs(gradient).max() < 1e-4 * scale)
    assert succeeded >= 6
    assert optimal >= succeeded - 1
