"""From one start to a point that meets the conditions of optimality, in float64.

It minimizes f(q) = sum |w r|^2 / 2 subject to h(q) = 0 and g(q) <= 0 within position limits. Each step is the solution
of

    (H + rho C^T C + mu D) step = -(grad f + rho C^T (c + y)),

with c and C the constraints that count (all of h; of g those with g + y > 0) and their derivatives, and lambda = rho y
the multipliers: an augmented Lagrangian, or, as y moves with every step that is near, sequential quadratic programming
whose linearized constraints are softened by 1 / rho. Far from the constraints H is that of Gauss and Newton; near to
them H learns the curvature of the Lagrangian by damped BFGS updates (J. Nocedal, S. Wright, "Numerical Optimization",
2006, chapters 17.4 and 18.3). A step along them is led back to where they bend. Directions that stand at a limit and
would go beyond it are held (D. Bertsekas, "Projected Newton methods", 1982). A step counts if it lowers
f + rho |c + y|^2 / 2.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from kinopt_ros.solvers.jax_lm.objectives.bounds import Bounds
from kinopt_ros.solvers.jax_lm.objectives.layout import Layout, unpack
from kinopt_ros.solvers.jax_lm.objectives.rows import RowPlan, Rows, residuals_at, row_plan, rows_at

STEPS = 80
"""Most steps, and length of the history."""
PENALTY = 1e4
"""rho where starts are compared, in units of the objective by those of constraints, squared."""
STIFFNESS = 1e4
"""How much more curved rho |c|^2 is than f at the start. More keeps steps short where constraints bend; less lets them
be left."""
_NEAR = 1e-2
"""Violation below which multipliers move, and curvature is learnt."""
_EXACT = 1e-8
"""Violation that is as good as none."""
_STILL = 1e-6
"""Step, rad or m, that is the last one if constraints are met."""
_FAR = 1e3
"""How much larger rho is before violations have once been below ``_NEAR``."""
_HOPELESS = 1e-5
"""Gain of a step, as a share of the sum, below which constraints that are far will not be met from here."""
_ROUNDING = 1e-11
"""Share of the sum that rounding may hide."""
_LARGEST_DAMPING = 1e8


class Polished(NamedTuple):
    """Where it ended."""

    q: jax.Array
    """(T, nq)"""
    multipliers: tuple[jax.Array, ...]
    """Per cost (P, m)."""
    iterations: jax.Array
    history: jax.Array
    """(STEPS,): sum of weighted squares after each step, NaN beyond."""
    value: jax.Array
    """Sum of weighted squares at the end."""
    violation: jax.Array
    """Largest violation of a constraint."""


class State(NamedTuple):
    """Where it stands between two steps: all that the next one needs, so that the clock can be looked at in between."""

    q: jax.Array
    """(T, nq)"""
    rows: Rows
    y: jax.Array
    """(R,): multipliers by rho; 0 for what need not hold."""
    H: jax.Array
    """(n, n): curvature of the Lagrangian."""
    mu: jax.Array
    rho: jax.Array
    """Weight of constraints near to them, by the curvatures at the start."""
    near: jax.Array
    """Whether curvature is learnt already."""
    iteration: jax.Array
    """Steps so far; -1 before anything is known of q."""
    history: jax.Array
    done: jax.Array


def unknown(layout: Layout, numbers: jax.Array, q: jax.Array) -> State:
    """Return a state of one trajectory (T, nq) before anything is known of it, for a request with its numbers (N,)."""
    costs, dt = unpack(layout.objective, numbers)
    shapes = jax.eval_shape(lambda q: rows_at(layout, costs, dt, q), q)
    rows = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    n = layout.num_points * len(layout.columns)
    zero, no = jnp.zeros((), q.dtype), jnp.asarray(False)
    history = jnp.zeros(STEPS, q.dtype)
    return State(
        q, rows, jnp.zeros_like(rows.r), jnp.zeros((n, n)), zero, zero, no, jnp.int64(-1), history, no
    )


def polish(layout: Layout, numbers: jax.Array, begun: State, until: jax.Array) -> tuple[State, Polished]:
    """Go on from a state until it is done, or has done so many steps in all; return the next state, and where it is.

    Until 0 is for states of which nothing is known yet, and for no others: to find that out is a step that goes
    nowhere. A program of its own for it would take nearly as long to compile as this one.
    """
    costs, dt = unpack(layout.objective, numbers)
    plan = row_plan(layout, costs, dt)
    bounds = Bounds.of(layout)
    weighed = Terms(plan, plan.weights(costs))
    first = until == 0
    begun = begun._replace(q=jnp.where(first, bounds.clipped(begun.q), begun.q))

    def step(state: State) -> State:
        r, J = state.rows
        scaled = weighed._replace(rho=state.rho)
        violation = scaled.violation(r)
        moving = violation < _NEAR
        near = state.near | moving
        # Far from the constraints they come first; near to them steps must not be short where they bend.
        rho = jnp.where(near, 1.0, _FAR) * scaled.rho
        terms = scaled._replace(rho=rho)
        pull = terms.shifted(r, state.y)
        counts = terms.counting(pull)
        gradient = terms.gradient(state.rows) + rho * plan.pulled(J, pull)
        system = _System.of(state, rho * plan.gram(J, counts), moving, bounds.held(state.q, gradient))
        by = system.step(gradient)
        # Near the constraints multipliers move first, as they do when these are linear: with old ones the step would
        # stop short of them, or lead away.
        y = jnp.where(moving, terms.shifted(r + plan.times(J, by), state.y), state.y)
        moved_gradient = terms.gradient(state.rows) + rho * plan.pulled(J, terms.shifted(r, y) * counts)
        by = jnp.where(moving, system.step(moved_gradient), by)
        # Back to the constraints, which bend: else steps along them could only be short.
        linear = r + plan.times(J, by)
        bent = residuals_at(layout, costs, dt, bounds.moved(state.q, by)) - linear
        back = system.step(rho * plan.pulled(J, jnp.where(counts > 0.0, bent, 0.0)))
        by = by + jnp.where(moving, back, 0.0)
        candidate = jnp.where(first, state.q, bounds.moved(state.q, by))
        found = rows_at(layout, costs, dt, candidate)
        before, at_candidate = terms.merit(r, y), terms.merit(found.r, y)
        # Near the end the sum cannot tell steps apart any more, where violations still can.
        level = at_candidate <= before + _ROUNDING * jnp.abs(before)
        nearer = level & (terms.violation(found.r) < 0.5 * violation)
        better = (at_candidate < before) | nearer  # false for what is not finite
        length = jnp.abs(by).max()
        y = jnp.where(better, y, state.y)
        after = jax.tree.map(lambda new, old: jnp.where(first | better, new, old), found, state.rows)
        learnt = _learnt(
            state.H, by, terms.lagrangian_gradient(found, y) - terms.lagrangian_gradient(state.rows, y)
        )
        H = jnp.where(better, jnp.where(near, learnt, terms.gauss_newton(found)), state.H)
        exact = terms.violation(after.r) < _EXACT
        stuck = ~better & ((length < 0.1 * _STILL) | (state.mu >= _LARGEST_DAMPING))
        hopeless = better & ~moving & (before - at_candidate < _HOPELESS * before)
        stepped = State(
            jnp.where(better, candidate, state.q),
            after,
            y,
            H,
            jnp.clip(jnp.where(better, state.mu * 0.2, state.mu * 8.0), 1e-12, _LARGEST_DAMPING),
            state.rho,
            near,
            state.iteration + 1,
            state.history.at[state.iteration].set(2.0 * terms.value(after.r)),
            (better & exact & (length < _STILL)) | stuck | hopeless,
        )
        known = state._replace(iteration=state.iteration + 1)
        chosen: State = jax.tree.map(lambda new, old: jnp.where(first, new, old), known, stepped)
        return chosen._replace(rows=after)

    def measured(state: State) -> State:
        """Return a state at the start with what follows from its rows."""
        start = weighed.scaled(state.rows)
        return state._replace(
            H=start.gauss_newton(state.rows),
            mu=jnp.full_like(state.mu, 1e-3),
            rho=jnp.asarray(start.rho, state.rho.dtype),
            history=jnp.full_like(state.history, jnp.nan),
        )

    end = jax.lax.while_loop(lambda state: ~state.done & (state.iteration < until), step, begun)
    end = jax.lax.cond(first, measured, lambda state: state, end)
    scaled = weighed._replace(rho=end.rho)
    # Of the sum of squares, not of half of it.
    multipliers = 2.0 * scaled.rho * end.y
    return end, Polished(
        end.q,
        plan.by_cost(multipliers, len(costs)),
        end.iteration,
        end.history,
        2.0 * scaled.value(end.rows.r),
        scaled.violation(end.rows.r),
    )


class _System(NamedTuple):
    """The linear system of a step, factorized."""

    factor: jax.Array
    held: jax.Array

    @classmethod
    def of(cls, state: State, constraints: jax.Array, near: jax.Array, held: jax.Array) -> "_System":
        """Factorize H + constraints + mu D: D is the diagonal of all of it far from the constraints, of H near to them,
        so that steps along them are not damped by how stiff they are across."""
        A = state.H + constraints
        own, all_of_it = jnp.diagonal(state.H), jnp.diagonal(A)
        scale = jnp.where(near, own + 1e-3 * own.max(), all_of_it + 1e-6 * all_of_it.max())
        A = jnp.where(held[:, None] | held[None, :], 0.0, A)
        return cls(jnp.linalg.cholesky(A + jnp.diag(jnp.where(held, 1.0, state.mu * scale + 1e-12))), held)

    def step(self, gradient: jax.Array) -> jax.Array:
        """Return the step (n,) against a gradient, without what is held."""
        step = -jax.scipy.linalg.cho_solve((self.factor, True), jnp.where(self.held, 0.0, gradient))
        return jnp.where(jnp.isfinite(step), step, 0.0)


def _learnt(H: jax.Array, step: jax.Array, change: jax.Array) -> jax.Array:
    """Return H after a damped BFGS update: positive definite if it was before (Nocedal and Wright, procedure 18.2)."""
    Hs = H @ step
    sHs, sv = step @ Hs, step @ change
    theta = jnp.where(sv >= 0.2 * sHs, 1.0, 0.8 * sHs / jnp.where(sHs - sv > 0.0, sHs - sv, 1.0))
    v = theta * change + (1.0 - theta) * Hs
    product = step @ v
    usable = (sHs > 1e-300) & (product > 1e-300) & jnp.isfinite(v).all()
    updated = (
        H
        - jnp.outer(Hs, Hs) / jnp.where(usable, sHs, 1.0)
        + jnp.outer(v, v) / jnp.where(usable, product, 1.0)
    )
    return jnp.where(usable, updated, H)


class Terms(NamedTuple):
    """What is minimized, and what has to hold, as functions of all residuals r (R,) and shifts y (R,)."""

    plan: RowPlan
    weights: jax.Array
    """(R,)"""
    rho: jax.Array | float = PENALTY

    def scaled(self, rows: Rows) -> "Terms":
        """Return the terms with rho by the curvatures at a start."""
        f = jnp.diagonal(self.gauss_newton(rows)).mean()
        c = jnp.diagonal(self.plan.gram(rows.J, jnp.where(self._holds(), 1.0, 0.0))).mean()
        return self._replace(rho=jnp.clip(STIFFNESS * f / (c + 1e-9), 1e-9, 1e18))

    def merit(self, r: jax.Array, y: jax.Array) -> jax.Array:
        """Return what a step has to lower: f + rho |c + y|^2 / 2."""
        pull = self.shifted(r, y)
        return self.value(r) + 0.5 * self.rho * pull @ pull

    def value(self, r: jax.Array) -> jax.Array:
        """Return f: half the sum of weighted squares of what need not hold."""
        soft = self._soft(r) * r
        return 0.5 * soft @ soft

    def gradient(self, rows: Rows) -> jax.Array:
        """Return the gradient of f."""
        return self.plan.pulled(rows.J, self._soft(rows.r) ** 2 * rows.r)

    def gauss_newton(self, rows: Rows) -> jax.Array:
        """Return Gauss's and Newton's approximation of the curvature of f, with a little on the diagonal."""
        H = self.plan.gram(rows.J, self._soft(rows.r) ** 2)
        return H + 1e-9 * jnp.eye(len(H), dtype=H.dtype)

    def lagrangian_gradient(self, rows: Rows, y: jax.Array) -> jax.Array:
        """Return the gradient of f + lambda^T c with lambda = rho y."""
        return self.gradient(rows) + self.rho * self.plan.pulled(rows.J, y)

    def counting(self, pull: jax.Array) -> jax.Array:
        """Return 1 for constraints that count where c + y is ``pull``, else 0."""
        counts = jnp.where(self.plan.one_sided, pull > 0.0, True) & self._holds()
        return jnp.where(counts, 1.0, 0.0)

    def shifted(self, r: jax.Array, y: jax.Array) -> jax.Array:
        """Return c + y, or what is above 0 of it where constraints are one-sided; 0 for what need not hold."""
        moved = r + y
        return jnp.where(self._holds(), jnp.where(self.plan.one_sided, jnp.maximum(moved, 0.0), moved), 0.0)

    def violation(self, r: jax.Array) -> jax.Array:
        """Return the largest violation of a constraint."""
        return jnp.abs(self.shifted(r, jnp.zeros_like(r))).max()

    def _holds(self) -> jax.Array:
        return jnp.asarray(self.plan.holds) & (self.weights != 0.0)

    def _soft(self, r: jax.Array) -> jax.Array:
        """Return weights of what is minimized; 0 for what has to hold, and for one-sided costs that are content."""
        content = self.plan.one_sided & (r <= 0.0)
        return jnp.where(self.plan.holds | content, 0.0, self.weights)
