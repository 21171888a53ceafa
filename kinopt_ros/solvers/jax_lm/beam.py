"""IK-Beam: many starts, few steps; the best of them, more steps; then float64.

Source: C. M. Kim et al., "PyRoki: A Modular Toolkit for Robot Kinematic Optimization", arXiv:2505.03728 (2025), section
on inverse kinematics. Ours differs in the steps (see ``step.py``), ends early when every target of a call is solved,
and polishes what is left in float64 inside float64 limits.
"""

from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from kinopt_ros.solvers.jax_lm.chain import ChainShape
from kinopt_ros.solvers.jax_lm.forward import Frame
from kinopt_ros.solvers.jax_lm.rows import residual, worst
from kinopt_ros.solvers.jax_lm.shapes import BeamShape, RowShape
from kinopt_ros.solvers.jax_lm.step import Bounds, step, sum_of_squares

Lanes: TypeAlias = tuple[jax.Array, ...]
"""Per variable the values of all lanes; lanes are ordered by start, then by target."""
State: TypeAlias = tuple[Lanes, jax.Array]
Counted: TypeAlias = tuple[jax.Array, Lanes, jax.Array]
Polished: TypeAlias = tuple[jax.Array, Lanes, jax.Array, jax.Array]

ROUNDING = 2e-7
"""Relative; float32 limits are so much narrower than float64 ones."""
FLOAT32_DONE = 1e-12
"""Squared error (m) below which float32 has nothing to improve."""
POLISH_MIN_DAMPING = 1e-12


def beam(
    chain: ChainShape,
    rows: RowShape,
    size: BeamShape,
    numbers: jax.Array,
    bounds: jax.Array,
    starts: jax.Array,
    seeds: jax.Array,
    allowed: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Configurations and errors of the lanes that were kept.

    Args:
        chain: shape of the chain.
        rows: shape of the rows.
        size: of the beam.
        numbers: of the chain, float64.
        bounds: lower and upper limits and largest steps, (3, n), float64.
        starts: frame before the first motion in each target's frame, (12, B), float64: position, rotation columns.
        seeds: start values, (n, num_seeds, B), float32.
        allowed: accepted errors, aims at which the polish ends, and slack, (3, 6), float64; see ``rows``.

    Returns:
        q (n, keep, B), error (keep, B) as ``worst`` says in float64, steps made per target ().
    """
    n, S, B = seeds.shape
    accept, aim, slack = allowed
    single = jnp.float32
    numbers32, starts32 = numbers.astype(single), starts.astype(single)
    slack32 = slack.astype(single)
    bounds32 = _bounds(_narrowed(bounds).astype(single), n)

    # Every loop holds the one copy of its step: what comes twice compiles twice.
    def first(i: jax.Array, state: State) -> State:
        q, _ = state
        at = residual(chain, rows, numbers32, start, slack32, q)
        moved = step(at, bounds32, q, active_set=False)
        last = i == size.init_steps
        return _chosen(last, q, moved), sum_of_squares(at.rows)

    start = _frame(starts32, S)
    q = tuple(seeds[k].reshape(-1) for k in range(n))
    q, cost = lax.fori_loop(0, size.init_steps + 1, first, (q, jnp.zeros(S * B, single)))
    q = _kept(q, cost.reshape(S, B), size.keep)

    start = _frame(starts32, size.keep)

    def unfinished(state: Counted) -> jax.Array:
        i, _, cost = state
        return (i < size.total_steps - size.init_steps) & _any_above(cost, B, FLOAT32_DONE)

    def second(state: Counted) -> Counted:
        i, q, _ = state
        at = residual(chain, rows, numbers32, start, slack32, q)
        return i + 1, step(at, bounds32, q, active_set=True), sum_of_squares(at.rows)

    made, q, _ = lax.while_loop(
        unfinished, second, (jnp.int32(0), q, jnp.full(size.keep * B, jnp.inf, single))
    )

    limits = _bounds(bounds, n)
    q = tuple(
        jnp.clip(x.astype(jnp.float64), low, high)
        for x, low, high in zip(q, limits.lower, limits.upper, strict=True)
    )
    start = _frame(starts, size.keep)

    def inexact(state: Polished) -> jax.Array:
        i, _, distance, _ = state
        return (i <= size.polish_steps) & _any_above(distance, B, 1.0)

    def polish(state: Polished) -> Polished:
        i, q, _, _ = state
        at = residual(chain, rows, numbers, start, slack, q)
        moved = step(at, limits, q, active_set=True, min_damping=POLISH_MIN_DAMPING)
        # Who is near enough stays, and the last round makes no step. Of lanes that moved the error is not known.
        distance = worst(rows, at, aim)
        stays = (distance <= 1.0) | (i == size.polish_steps)
        return i + 1, _chosen(stays, q, moved), distance, jnp.where(stays, worst(rows, at, accept), jnp.inf)

    far = jnp.full(size.keep * B, jnp.inf, jnp.float64)
    polished, q, _, error = lax.while_loop(inexact, polish, (jnp.int32(0), q, far, far))
    return (
        jnp.stack(q).reshape(n, size.keep, B),
        error.reshape(size.keep, B),
        size.init_steps + made + polished - 1,
    )


def _chosen(condition: jax.Array, yes: Lanes, no: Lanes) -> Lanes:
    return tuple(jnp.where(condition, a, b) for a, b in zip(yes, no, strict=True))


def _any_above(error: jax.Array, targets: int, limit: jax.Array | float) -> jax.Array:
    """Whether some target has no lane whose error is as small as the limit."""
    return jnp.any(error.reshape(-1, targets).min(axis=0) > limit)


def _kept(q: Lanes, cost: jax.Array, keep: int) -> Lanes:
    """Lanes of the least cost, target by target."""
    B = cost.shape[1]
    finite = jnp.where(jnp.isfinite(cost), cost, jnp.inf)
    _, best = lax.top_k(-finite.T, keep)
    lanes = best.T * B + jnp.arange(B)
    return tuple(x[lanes].reshape(-1) for x in q)


def _frame(starts: jax.Array, copies: int) -> Frame:
    """Frames for lanes: every target ``copies`` times, targets last."""
    lanes = [jnp.tile(starts[k], copies) for k in range(12)]
    return Frame(
        (lanes[0], lanes[1], lanes[2]),
        (lanes[3], lanes[4], lanes[5]),
        (lanes[6], lanes[7], lanes[8]),
        (lanes[9], lanes[10], lanes[11]),
    )


def _narrowed(bounds: jax.Array) -> jax.Array:
    lower, upper, most = bounds
    margin = ROUNDING * jnp.maximum(1.0, jnp.maximum(jnp.abs(lower), jnp.abs(upper)))
    margin = jnp.where(jnp.isfinite(margin), margin, 0.0)
    narrow = upper - lower < 2.0 * margin
    middle = 0.5 * (lower + upper)
    return jnp.stack(
        [jnp.where(narrow, middle, lower + margin), jnp.where(narrow, middle, upper - margin), most]
    )


def _bounds(bounds: jax.Array, n: int) -> Bounds:
    lower, upper, most = (tuple(row[k] for k in range(n)) for row in bounds)
    return Bounds(lower, upper, most)
