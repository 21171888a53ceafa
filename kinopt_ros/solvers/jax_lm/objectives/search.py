"""Search by jaxls from one start: Levenberg-Marquardt, with constraints by its augmented Lagrangian.

Many of these run beside one another (vmap), and the best goes on to ``polish.py``. Programs are in float64, where jaxls
can use its conjugate gradient method alone; for one configuration its block-Jacobi preconditioner is the whole inverse.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jaxls
import numpy as np
from loguru import logger

from kinopt_ros.costs.base import Cost
from kinopt_ros.solvers.jax_lm.objectives.bounds import Bounds
from kinopt_ros.solvers.jax_lm.objectives.layout import Group, Layout, RawWindow, group_residuals, unpack
from kinopt_ros.solvers.jax_lm.objectives.polish import PENALTY, Terms
from kinopt_ros.solvers.jax_lm.objectives.rows import residuals_at, row_plan

# jaxls writes a line for each group of costs whenever a problem is put together.
logger.disable("jaxls")

_ENOUGH = 1e-3
"""Violation, and gradient, with which a search may end: ``polish.py`` does the rest."""


class Found(NamedTuple):
    """Where a search ended."""

    q: jax.Array
    """(T, nq)"""
    merit: jax.Array
    """What starts are compared by: half the sum of weighted squares, and that of violations times the penalty."""
    iterations: jax.Array


def search(layout: Layout, steps: int, numbers: jax.Array, q: jax.Array) -> Found:
    """Search from one trajectory (T, nq) for one request with its numbers (N,), for at most ``steps`` steps."""
    costs, dt = unpack(layout.objective, numbers)
    bounds = Bounds.of(layout)
    variable = _variable(layout, bounds)
    # What depends on no number is done while tracing, with numpy: it halves the time to compile.
    with jax.ensure_compile_time_eval():
        points = variable(np.arange(layout.num_points))
        terms = _terms(layout, costs, dt, variable)
        problem = jaxls.LeastSquaresProblem(terms, [points]).analyze(use_onp=True)
    held = any(cost.holds for cost in costs)
    values, summary = problem.solve(
        jaxls.VarValues.make([points.with_value(bounds.clipped(q))]),
        linear_solver="conjugate_gradient",
        trust_region=jaxls.TrustRegionConfig(lambda_initial=1e-3),
        termination=jaxls.TerminationConfig(
            max_iterations=steps, cost_tolerance=1e-5, gradient_tolerance=1e-4, parameter_tolerance=1e-6
        ),
        augmented_lagrangian=jaxls.AugmentedLagrangianConfig(
            penalty_initial=0.5 * PENALTY,
            tolerance_absolute=_ENOUGH,
            tolerance_relative=1.0,
            inner_solve_tolerance=1.0,
        )
        if held
        else None,
        verbose=False,
        return_summary=True,
    )
    end = bounds.clipped(values[points])
    plan = row_plan(layout, costs, dt)
    rows = residuals_at(layout, costs, dt, end)
    merit = Terms(plan, plan.weights(costs)).merit(rows, jnp.zeros_like(rows))
    return Found(end, merit, summary.iterations)


def _kind(cost: Cost) -> str:
    if not cost.holds:
        return "l2_squared"
    return "constraint_leq_zero" if cost.one_sided else "constraint_eq_zero"


def _variable(layout: Layout, bounds: Bounds) -> type[jaxls.Var[jax.Array]]:
    """Return the type of a configuration as a variable: steps along the free directions, within the limits."""

    class Configuration(  # type: ignore[call-arg]
        jaxls.Var[jax.Array],  # type: ignore[misc]
        default_factory=lambda: jnp.asarray(layout.robot.default_q),
        retract_fn=lambda q, step: bounds.moved(q[None], step)[0],
        tangent_dim=len(layout.columns),
    ):
        """One configuration of the whole robot."""

    return Configuration


class _Term:
    """Weighted residuals of some costs of a group. A method of an object of its own: jaxls takes functions for the same
    whose code and closures read the same."""

    def __init__(
        self, layout: Layout, group: Group, mine: Sequence[int], costs: Sequence[Cost], dt: jax.Array
    ) -> None:
        self._layout, self._group, self._mine, self._costs, self._dt = layout, group, mine, costs, dt

    def residual(self, values: jaxls.VarValues, *arguments: Any) -> jax.Array:
        """Compute the residuals of one window."""
        *variables, here, index, stencils = arguments
        window = RawWindow(jnp.stack([values[variable] for variable in variables]), here, index, stencils)
        parts = []
        found = group_residuals(self._layout, self._group, self._costs, self._dt, window)
        for number, part in zip(self._group.costs, found, strict=True):
            if number not in self._mine:
                continue
            cost = self._costs[number]
            weight = jnp.asarray(cost.weight)
            if cost.holds:
                weight = jnp.where(weight != 0.0, 1.0, 0.0)
            elif cost.one_sided:
                part = jnp.maximum(part, 0.0)
            parts.append(part * weight)
        return jnp.concatenate(parts)


def _terms(
    layout: Layout, costs: Sequence[Cost], dt: jax.Array, variable: type[jaxls.Var[jax.Array]]
) -> list["jaxls.Cost[Any]"]:
    terms = []
    for group in layout.groups:
        kinds = {number: _kind(costs[number]) for number in group.costs}
        for kind in dict.fromkeys(kinds.values()):
            mine = tuple(number for number in group.costs if kinds[number] == kind)
            terms.append(_term(layout, group, mine, kind, costs, dt, variable))
    return terms


def _term(
    layout: Layout,
    group: Group,
    mine: tuple[int, ...],
    kind: Any,
    costs: Sequence[Cost],
    dt: jax.Array,
    variable: type[jaxls.Var[jax.Array]],
) -> "jaxls.Cost[Any]":
    at = group.first[:, None] + np.arange(group.width)
    variables = tuple(variable(at[:, k]) for k in range(group.width))
    term = _Term(layout, group, mine, costs, dt)
    arguments = (
        *variables,
        group.index - group.first,
        group.index,
        group.stencils,
    )
    return jaxls.Cost(term.residual, arguments, kind=kind, jac_mode="forward")
