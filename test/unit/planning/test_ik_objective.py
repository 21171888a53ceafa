"""Inverse kinematics and trajectories with costs: what is read, and what is refused by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.velocity_limits import VelocityLimits
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.objectives.result import ObjectiveCandidates
from kinopt_ros.planning.ik_objective import ik_objective, with_targets_met
from kinopt_ros.planning.objective_trajectories import plan_with_costs
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.objective_gate import verified
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status

ROBOT = load_robot("panda")
T = np.diag([1.0, -1.0, -1.0, 1.0])
T[:3, 3] = 0.4, 0.1, 0.5


def test_targets_become_link_poses_that_hold() -> None:
    problem = ik_problem(ROBOT, T, free_axes=("rz",), position_tolerance=1e-3)
    asked = ik_objective(ROBOT, problem, [Rest(weight=0.1)])
    pose, rest = asked.objective.costs
    assert pose.holds
    assert not rest.holds
    assert pose.weight == (1.0, 1.0, 1.0, 1.0, 1.0, 0.0)
    assert pose.tolerance == (1e-3, 1e-3)
    assert asked.free.sum() == len(problem.variables)


def test_what_is_only_to_be_near_is_weighed_and_nothing_beside_it_has_to_hold() -> None:
    near = ik_problem(ROBOT, T, nearest=PoseWeights(10.0, 0.1))
    assert not ik_objective(ROBOT, near, [Rest()]).objective.has_to_hold
    with pytest.raises(UnsupportedFeatureError, match="nothing is a success"):
        ik_objective(ROBOT, near, [Rest(tolerance=1.0)])


def test_a_success_meets_targets_as_inverse_kinematics_judges_them() -> None:
    q = ROBOT.default_q
    [there] = forward_kinematics(ROBOT, q, ["panda_link8"])
    off = there.copy()
    off[0, 3] += 0.01
    problem = ik_problem(ROBOT, np.stack([there, off]), base_link="panda_link0", tip_link="panda_link8")
    asked = ik_objective(ROBOT, problem, [Rest(weight=0.1)])
    best = np.repeat(q[None, None], 2, axis=0)
    multipliers = tuple(np.zeros((2, 1, 1)) for _ in asked.objective)
    claims = ObjectiveCandidates(best, multipliers, np.zeros(2, int), np.zeros((2, 0)), np.zeros(2, bool))
    judged = verified(ROBOT, asked, claims, "nobody", 0.0)
    assert judged.success.tolist() == [True, False]
    lying = replace(judged, status=np.full(2, int(Status.SUCCESS)), q=best.copy())
    result = with_targets_met(ROBOT, problem, lying)
    assert result.success.tolist() == [True, False]
    assert np.isnan(result.q[1]).all()
    assert result.messages[1]
    assert with_targets_met(ROBOT, problem, judged) is judged


@pytest.mark.parametrize(
    "options", [{"num_solutions": 3}, {"prefer": "mid_range"}, {"position_tolerance": (1e-3, 1e-3, 1e-2)}]
)
def test_what_costs_cannot_have_is_refused_by_name(options: dict[str, object]) -> None:
    with pytest.raises(UnsupportedFeatureError, match="with costs"):
        ik_objective(ROBOT, ik_problem(ROBOT, T, **options), [Rest()])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ("several goals", {"goals": [T, T]}),
        ("waypoints", {"waypoints": [T]}),
        ("a duration", {"duration": 5.0}),
        ("a number of points", {"num_points": 30}),
    ],
)
def test_motions_with_costs_refuse_what_objectives_cannot(said: str, options: dict[str, object]) -> None:
    solver = create_solver("cpu", ROBOT)
    problem = trajectory_problem(ROBOT, **{"goals": T, **options})  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeatureError, match=said):
        plan_with_costs(solver, problem, [Rest()])


def test_times_of_the_points_are_nothing_to_bound_derivatives_by() -> None:
    """The motion is timed afterwards: a limit that held at the points would say nothing of it."""
    solver = create_solver("cpu", ROBOT)
    with pytest.raises(UnsupportedFeatureError, match="velocities"):
        plan_with_costs(solver, trajectory_problem(ROBOT, T), [VelocityLimits(tolerance=1e-6)])
