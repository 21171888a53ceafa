"""Starts of searches for objectives, and how near constraints have to come: the same for all solvers."""

import math
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.sampling import range_around
from kinopt_ros.kinematics.tangent import directions
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.robot.model import RobotModel

_HOLDS = 0.1
"""Share of the least tolerance within which a constraint is taken to hold, before the verdict."""


def first_starts(problem: ObjectiveProblem) -> Annotated[Float64, "B T nq"]:
    """Return the first seeds, or the states where there are none."""
    if problem.seeds.shape[1]:
        return np.array(problem.seeds[:, 0])
    if problem.num_points == 1:
        return problem.state[:, None].copy()
    return np.repeat(problem.state[:, None], problem.num_points, axis=1)


def further_starts(
    robot: RobotModel, problem: ObjectiveProblem, requests: Annotated[np.ndarray, "R"]
) -> Annotated[Float64, "R S T nq"]:
    """Return further seeds and random starts of some requests.

    A random start of one configuration is drawn within the limits, around the state where there are none. One of a
    trajectory is the first start, with a bulge to a random configuration in its middle.
    """
    T = problem.num_points
    first = first_starts(problem)
    known = directions(robot)
    free = np.isin(known.scalar_directions, np.flatnonzero(problem.free))
    variables = known.scalar_variables[free]
    random = np.random.default_rng(problem.random_seed)
    # The same for all requests: an answer does not depend on the others of a batch.
    draws = random.random((problem.num_starts, len(variables)))
    turns = random.normal(size=(problem.num_starts, len(known.quaternions), 4))
    found = []
    for b in requests.tolist():
        lower, upper = range_around(robot, problem.state[b][None])
        goal = lower[variables] + draws * (upper - lower)[variables]  # (S, k)
        path = np.repeat(first[b][None], problem.num_starts, axis=0)  # (S, T, nq)
        share = np.sin(np.pi * np.arange(T) / (T - 1)) if T > 1 else np.ones(1)
        here = path[:, :, variables]
        path[:, :, variables] = here + share[:, None] * (goal[:, None] - here)
        if T == 1:
            for k, (i, v) in enumerate(known.quaternions):
                if problem.free[v : v + 3].all():
                    path[:, :, i : i + 4] = (
                        turns[:, k] / np.linalg.norm(turns[:, k], axis=1, keepdims=True)
                    )[:, None]
        found.append(np.concatenate([problem.seeds[b, 1:], path]))
    return np.array(found)


def allowed_violations(
    problem: ObjectiveProblem, requests: Annotated[np.ndarray, "R"] | None = None
) -> Annotated[Float64, "R"]:
    """Return per request the violation up to which constraints are taken to hold."""
    chosen = problem.objectives if requests is None else [problem.objectives[b] for b in requests.tolist()]
    allowed = np.empty(len(chosen))
    for row, objective in enumerate(chosen):
        allowed[row] = max(_HOLDS * _least(objective), 1e-9)
    return allowed


def _least(objective: Objective) -> float:
    """Return the least tolerance of an objective; infinite where nothing has to hold."""
    least = math.inf
    for cost in objective.costs:
        tolerance = cost.tolerance
        if tolerance is not None:
            least = min(least, *tolerance) if isinstance(tolerance, tuple) else min(least, tolerance)
    return least
