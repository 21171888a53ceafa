"""Motions along answers to objectives: what has to hold is judged where the motion passes the points."""

from __future__ import annotations

import numpy as np
import pytest

from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.reference import Reference
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem
from kinopt_ros.objectives.result import ObjectiveCandidates, ObjectiveResult
from kinopt_ros.planning.objective_motion import objective_motion, passed_at
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.objective_gate import verified
from kinopt_ros.status import Status
from kinopt_ros.trajectory.path_timing import time_path

ROBOT = load_robot("panda")
JOINTS = tuple(f"panda_joint{k}" for k in range(1, 8))
READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


def answer(path: np.ndarray, *costs: Cost) -> tuple[ObjectiveProblem, ObjectiveResult]:
    """A problem whose answer is a path, and this answer."""
    q = np.repeat(ROBOT.default_q[None], len(path), axis=0)
    q[:, :7] = path
    problem = objective_problem(
        ROBOT, Objective(costs), joints=JOINTS, state=q[0], num_points=len(path), num_starts=0
    )
    claims = ObjectiveCandidates(
        q[None],
        tuple(np.zeros((1, 1, 1)) for _ in costs),
        np.ones(1, dtype=np.int64),
        np.full((1, 4), np.nan),
        np.zeros(1, dtype=np.bool_),
    )
    return problem, verified(ROBOT, problem, claims, "stub", 0.0)


def along(path: np.ndarray, tolerance: float | None) -> Reference:
    q = np.repeat(ROBOT.default_q[None], len(path), axis=0)
    q[:, :7] = path
    return Reference(q=q, joints=JOINTS, tolerance=tolerance)


def to_the_limit() -> np.ndarray:
    """A path that turns at a position limit, where a curve through its points leaves the limits."""
    path = np.repeat(READY[None], 25, axis=0)
    way = np.concatenate([np.linspace(0.0, 1.0, 12), [1.0, 1.0], np.linspace(1.0, 0.0, 11)])
    path[:, 0] = way * (ROBOT.limits.upper[0] - 1e-4)
    path[:, 1] += 0.5 * np.linspace(0.0, 1.0, 25)
    return path


def test_a_motion_that_rounds_corners_is_judged_where_it_goes() -> None:
    """Costs that held at the points were said to hold of a motion that passed some of them at 5 mrad."""
    path = to_the_limit()
    problem, result = answer(path, along(path, 1e-4))
    assert result.status[0] == Status.SUCCESS
    motion = objective_motion(ROBOT, problem, result)
    assert motion.status is Status.PLANNING_FAILED
    assert motion.trajectory is None
    assert "rounds corners" in motion.message
    assert "'reference'" in motion.message

    problem, result = answer(path, along(path, 0.1))
    motion = objective_motion(ROBOT, problem, result)
    assert motion.status is Status.SUCCESS
    assert motion.trajectory is not None
    [term] = motion.costs
    assert 1e-3 < term.magnitude.max() < 0.1
    off = np.abs(passed_at(motion.trajectory, path) - path).max()
    assert term.magnitude.max() == pytest.approx(off, rel=0.2)


def test_a_curve_passes_its_points() -> None:
    s = np.linspace(0.0, 1.0, 25)[:, None]
    path = READY + 0.4 * np.sin(2.0 * np.pi * s) * np.array([1.0, 0.3, 0.0, 0.2, 0.0, 0.0, -0.5])
    problem, result = answer(path, along(path, 1e-7))
    motion = objective_motion(ROBOT, problem, result)
    assert motion.status is Status.SUCCESS, motion.message
    assert motion.costs[0].magnitude.max() == 0.0


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_motion_may_come_by_a_place_several_times(rounds: int) -> None:
    turn = rounds * 2.0 * np.pi * np.linspace(0.0, 1.0, 40)[:, None]
    first, second = np.eye(7)[0], np.eye(7)[1]
    path = READY + 0.3 * (np.sin(turn) * first + (1.0 - np.cos(turn)) * second)
    limits = ROBOT.limits
    motion = time_path(
        JOINTS, path, limits.velocity[:7], limits.acceleration[:7], limits.jerk[:7], np.zeros(7)
    )
    np.testing.assert_allclose(passed_at(motion, path), path, atol=1e-8)
