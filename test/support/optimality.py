"""Conditions of optimality in float64, by differences of the numpy formulas, and SLSQP as another opinion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support.arm_objectives import asked

from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.tangent import directions, moved
from kinopt_ros.objectives.numpy_point import NumpyPath
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.result import ObjectiveResult
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Solver
from kinopt_ros.status import Status


class Formulas:
    """Value, constraints and their derivatives of one request, as functions of a trajectory (T, nq)."""

    def __init__(self, robot: RobotModel, problem: ObjectiveProblem, request: int = 0) -> None:
        self.robot, self.problem, self.known = robot, problem, directions(robot)
        self.objective = problem.objectives[request]
        self._known: dict[bytes, list[np.ndarray]] = {}
        """What SLSQP asks for again: it looks at value and constraints one by one."""

    def residuals(self, q: np.ndarray) -> list[np.ndarray]:
        """Per cost (P, m)."""
        key = q.tobytes()
        if key not in self._known:
            path = NumpyPath(self.robot, q, self.problem.dt)
            self._known[key] = [
                np.array([cost.residual(path[t]) for t in self.objective.points_of(cost, len(q))])
                for cost in self.objective
            ]
        return self._known[key]

    def value(self, q: np.ndarray) -> float:
        """What is minimized: the weighted squares of what need not hold."""
        total = 0.0
        for cost, r in zip(self.objective, self.residuals(q), strict=True):
            if not cost.holds:
                counted = np.maximum(r, 0.0) if cost.one_sided else r
                total += float(np.sum((np.asarray(cost.weight) * counted) ** 2))
        return total

    def constraints(self, q: np.ndarray, one_sided: bool) -> np.ndarray:
        """Residuals that have to hold and have a weight, as one vector."""
        parts = [np.zeros(0)]
        for cost, r in zip(self.objective, self.residuals(q), strict=True):
            if cost.holds and cost.one_sided == one_sided:
                weight = np.broadcast_to(np.asarray(cost.weight), r.shape)
                parts.append(r[weight != 0.0])
        return np.concatenate(parts)

    def step(self, q: np.ndarray, by: np.ndarray) -> np.ndarray:
        """A trajectory after a step (T d,) along its free directions."""
        full = np.zeros((len(q), self.known.nv))
        full[:, self.problem.free] = by.reshape(len(q), -1)
        return moved(self.known, q, full)

    def derivative(self, of: Any, q: np.ndarray, h: float = 1e-6) -> np.ndarray:
        """Central differences along the free directions; the last axis is (T d)."""
        columns = []
        for unit in np.eye(len(q) * int(self.problem.free.sum())):
            ends = [np.asarray(of(self.step(q, sign * h * unit))) for sign in (1.0, -1.0)]
            columns.append((ends[0] - ends[1]) / (2.0 * h))
        return np.stack(columns, axis=-1)


def lagrangian_gradient(
    robot: RobotModel, problem: ObjectiveProblem, result: ObjectiveResult, request: int = 0
) -> tuple[np.ndarray, float]:
    """Return the gradient of f + lambda^T c at an answer, of directions that could go on: 0 is optimal; and the size
    of the gradient of f, or of the largest multiplier, by which to measure it."""
    formulas, q = Formulas(robot, problem, request), result.best[request]
    gradient = formulas.derivative(formulas.value, q)
    scale = max(1.0, float(np.abs(gradient).max()))
    for number, (cost, multipliers) in enumerate(zip(formulas.objective, result.multipliers, strict=True)):
        if cost.holds:
            J = formulas.derivative(lambda at, number=number: formulas.residuals(at)[number], q)
            gradient = gradient + np.einsum("pm,pmd->d", multipliers[request], J)
            scale = max(scale, float(np.abs(multipliers[request]).max()))
    known, free = formulas.known, problem.free
    column = np.full(known.nv, -1)
    column[known.scalar_directions] = known.scalar_variables
    limits = np.stack([known.lower, known.upper], axis=1)[free]
    values = np.array([[one[c] if c >= 0 else np.nan for c in column[free]] for one in q])
    gradient = gradient.reshape(len(q), -1)
    at_lower, at_upper = values <= limits[:, 0] + 1e-9, values >= limits[:, 1] - 1e-9
    left = np.where(at_lower, np.minimum(gradient, 0.0), gradient)
    return np.where(at_upper, np.maximum(left, 0.0), left), scale


def slsqp(
    robot: RobotModel, problem: ObjectiveProblem, starts: int, seed: int, request: int = 0
) -> tuple[float, np.ndarray | None]:
    """Return the least value, and where, that scipy's SLSQP finds from many starts for one configuration of a robot
    without quaternions; infinite if it meets the constraints from none."""
    from scipy.optimize import minimize

    formulas = Formulas(robot, problem, request)
    known, free = formulas.known, np.flatnonzero(problem.free)
    variables = known.scalar_variables[np.isin(known.scalar_directions, free)]
    state = problem.state[request]

    def whole(x: np.ndarray) -> np.ndarray:
        q = state.copy()
        q[variables] = x
        return q[None]

    bounds = list(zip(known.lower[free], known.upper[free], strict=True))
    rules = [{"type": "eq", "fun": lambda x: formulas.constraints(whole(x), False)}]
    if any(cost.holds and cost.one_sided for cost in formulas.objective):
        rules.append({"type": "ineq", "fun": lambda x: -formulas.constraints(whole(x), True)})
    if not formulas.constraints(state[None], False).size:
        rules = rules[1:]
    best: tuple[float, np.ndarray | None] = np.inf, None
    for start in [state, *random_configurations(robot, starts - 1, seed)]:
        found = minimize(
            lambda x: formulas.value(whole(x)),
            start[variables],
            method="SLSQP",
            bounds=bounds,
            constraints=rules,
            options={"maxiter": 200, "ftol": 1e-12},
        )
        q = whole(np.clip(found.x, known.lower[free], known.upper[free]))
        held = np.abs(formulas.constraints(q, False)).max(initial=0.0)
        held = max(held, formulas.constraints(q, True).max(initial=0.0))
        if held < 1e-7 and formulas.value(q) < best[0]:
            best = formulas.value(q), q
    return best


def beside_slsqp(
    solver: Solver, make: Callable[[np.random.Generator], Objective], least: int, optimal: float
) -> None:
    """Check of ten problems of the arm that ``least`` are not above the best of six starts of SLSQP by more than 1e-6,
    and that the share ``optimal`` of those that hold is stationary to 1e-5."""
    arm = solver.robot
    near, stationary, holding = 0, 0, 0
    for seed in range(10):
        problem = asked(arm, make, seed)
        result = solver.solve_objective(problem)
        theirs, _ = slsqp(arm, problem, 6, seed)
        if result.status[0] not in (Status.SUCCESS, Status.NEAREST):
            continue
        holding += 1
        own = Formulas(arm, problem).value(result.best[0])
        weighed = sum(term.value for term in result.terms[0] if term.tolerance is None)
        np.testing.assert_allclose(own, weighed, rtol=1e-9)
        near += own <= theirs + 1e-6
        gradient, scale = lagrangian_gradient(arm, problem, result)
        stationary += bool(np.abs(gradient).max() < 1e-5 * scale)
    assert holding >= least
    assert near >= least
    assert stationary >= optimal * holding
