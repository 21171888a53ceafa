"""IK-Beam: many starts, few steps; the best of them, more steps; then float64.

Source: C. M. Kim et al., "PyRoki: A Modular Toolkit for Robot Kinematic Optimization", arXiv:2505.03728 (2025), section
on inverse kinematics. Ours differs in the steps (see ``step.py``); the few starts that go on do so in float64, inside
float64 limits, until every target of a call has one that is where it should be.
"""

from typing import Annotated, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from kinopt_ros.array import Float64
from kinopt_ros.solvers.jax_lm.answers import answers
from kinopt_ros.solvers.jax_lm.chain import ChainShape, LaneChain
from kinopt_ros.solvers.jax_lm.forward import Frame
from kinopt_ros.solvers.jax_lm.rows import residual, worst
from kinopt_ros.solvers.jax_lm.shapes import BeamShape, RowShape
from kinopt_ros.solvers.jax_lm.step import Bounds, step, sum_of_squares

Lanes: TypeAlias = tuple[jax.Array, ...]
"""Values of all lanes per variable; lanes are ordered by start, then by target."""
State: TypeAlias = tuple[Lanes, jax.Array]
Refined: TypeAlias = tuple[jax.Array, Lanes, jax.Array, jax.Array, jax.Array]

FLOAT32_DONE = 1e-11
"""Squared error (m) below which differences are rounding."""
FLOAT64_MIN_DAMPING = 1e-12
LARGEST = 3e38
"""Stand-in for costs that are not numbers; less than infinity, which marks lanes that are taken."""
FEW = 8
"""Number of kept lanes up to which they are looked for one by one."""


def beam(
    chain: ChainShape,
    rows: RowShape,
    size: BeamShape,
    constants: jax.Array,
    ranges32: jax.Array,
    requests: jax.Array,
    starts: jax.Array,
) -> jax.Array:
    """Compute one answer or best attempt per target.

    Args:
        chain: shape of the chain.
        rows: shape of the rows.
        size: of the beam.
        constants: see ``constants``, float64.
        ranges32: of the chain, (4, n), float32.
        requests: per target its pose in the base (the upper three rows), the state, and what takes the place of the
            first start, (B, 12 + 2 n), float64.
        starts: (n, num_seeds * B), by start, then by target, float32.

    Returns:
        Per target q, its error as ``worst`` says, and the steps made, (n + 2, B), float64.
    """
    n, B, S = chain.variables, requests.shape[0], size.num_seeds
    m = len(chain.exact)
    numbers, T_base_first = constants[:m], constants[m : m + 12].reshape(3, 4)
    ranges = constants[m + 12 : m + 12 + 4 * n].reshape(4, n)
    accept, aim, slack = constants[m + 12 + 4 * n :].reshape(3, 6)
    state = requests[:, 12 : 12 + n]
    frames = _before_first(requests[:, :12].reshape(B, 3, 4), T_base_first)
    single = jnp.float32
    numbers32, frames32 = numbers.astype(single), frames.astype(single)
    slack32 = slack.astype(single)
    bounds32 = _bounds(ranges32, n)

    # Every loop holds the one copy of its step: what comes twice compiles twice.

    def first(i: jax.Array, state: State) -> State:
        q, _ = state
        at = residual(chain, rows, numbers32, _frame(frames32, S), slack32, q)
        # The last round makes no step, but says where the steps have led.
        moved = lax.cond(i < size.init_steps, lambda: step(at, bounds32, q, active_set=False), lambda: q)
        return moved, sum_of_squares(at.rows)

    own = requests[:, 12 + n :].astype(single)
    is_own = jnp.arange(S * B) < B
    q = tuple(
        jnp.clip(jnp.where(is_own, jnp.tile(own[:, k], S), start), low, high)
        for k, (start, low, high) in enumerate(zip(starts, bounds32.lower, bounds32.upper, strict=True))
    )
    q, cost = lax.fori_loop(0, size.init_steps + 1, first, (q, jnp.zeros(S * B, single)))
    q = _kept(q, cost.reshape(S, B), size.keep)

    limits = _bounds(ranges, n)
    q = tuple(
        jnp.clip(x.astype(jnp.float64), low, high)
        for x, low, high in zip(q, limits.lower, limits.upper, strict=True)
    )

    def inexact(state: Refined) -> jax.Array:
        i, *_, done = state
        return (i <= size.more_steps) & ~done

    def refine(state: Refined) -> Refined:
        i, q, *_ = state
        at = residual(chain, rows, numbers, _frame(frames, size.keep), slack, q)
        # All lanes of a target stop when one of them is near enough, so that its answer does not depend on other
        # targets.
        distance = worst(rows, at, aim)
        near = _nearest(distance, B) <= 1.0
        done = near.all()
        moved = lax.cond(
            (i < size.more_steps) & ~done,
            lambda: _chosen(
                jnp.tile(near, size.keep),
                q,
                step(at, limits, q, active_set=True, min_damping=FLOAT64_MIN_DAMPING),
            ),
            lambda: q,
        )
        return i + 1, moved, distance, worst(rows, at, accept), done

    far = jnp.full(size.keep * B, jnp.inf, jnp.float64)
    more, q, distance, error, _ = lax.while_loop(
        inexact, refine, (jnp.int32(0), q, far, far, jnp.bool_(False))
    )
    found, error = answers(
        q,
        error.reshape(size.keep, B),
        distance.reshape(size.keep, B) <= 1.0,
        state,
        limits.lower,
        limits.upper,
        chain.turns,
    )
    steps = jnp.broadcast_to((size.init_steps + more - 1).astype(jnp.float64), (1, B))
    return jnp.concatenate([found, error[None], steps])


def constants(chain: LaneChain, allowed: Annotated[Float64, "3 6"]) -> Annotated[Float64, "c"]:
    """Return what ``beam`` has to know of a chain, besides its shape.

    These are its numbers, frame before the first motion and ranges; accepted errors, aims at which the polish ends, and
    slack, as in ``rows``.
    """
    parts = (chain.numbers, chain.T_base_first[:3], chain.ranges, allowed)
    return np.concatenate([part.reshape(-1) for part in parts])


def _before_first(T_base_target: jax.Array, T_base_first: jax.Array) -> jax.Array:
    """Return frames before the first motion in each target's frame, (12, B): position, rotation columns."""
    R, p = T_base_target[:, :, :3], T_base_target[:, :, 3]
    R_first, p_first = T_base_first[:3, :3], T_base_first[:3, 3]

    def in_target(v: jax.Array) -> list[jax.Array]:
        return [R[:, 0, i] * v[..., 0] + R[:, 1, i] * v[..., 1] + R[:, 2, i] * v[..., 2] for i in range(3)]

    columns = (R_first[:, k] for k in range(3))
    return jnp.stack([*in_target(p_first - p), *(entry for column in columns for entry in in_target(column))])


def _chosen(condition: jax.Array, yes: Lanes, no: Lanes) -> Lanes:
    return tuple(jnp.where(condition, a, b) for a, b in zip(yes, no, strict=True))


def _nearest(error: jax.Array, targets: int) -> jax.Array:
    """Return the least error of every target's lanes."""
    return error.reshape(-1, targets).min(axis=0)


def _kept(q: Lanes, cost: jax.Array, keep: int) -> Lanes:
    """Return the lanes of the least cost, target by target.

    Of equal ones the first are kept, which begin at the problem's own seeds.
    """
    S, B = cost.shape
    cost = jnp.where(jnp.isfinite(cost), jnp.maximum(cost, FLOAT32_DONE), LARGEST)
    if keep <= FEW:

        def take(left: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            best = jnp.argmin(left, axis=0)
            return jnp.where(jnp.arange(S)[:, None] == best, jnp.inf, left), best

        starts = lax.scan(take, cost, None, length=keep)[1]
    else:
        starts = lax.top_k(-cost.T, keep)[1].T
    lanes = starts * B + jnp.arange(B)
    return tuple(x[lanes].reshape(-1) for x in q)


def _frame(frames: jax.Array, copies: int) -> Frame:
    """Return frames for lanes: every target ``copies`` times, targets last."""
    lanes = [jnp.tile(frames[k], copies) for k in range(12)]
    return Frame(
        (lanes[0], lanes[1], lanes[2]),
        (lanes[3], lanes[4], lanes[5]),
        (lanes[6], lanes[7], lanes[8]),
        (lanes[9], lanes[10], lanes[11]),
    )


def _bounds(bounds: jax.Array, n: int) -> Bounds:
    lower, upper, least, most = (tuple(row[k] for k in range(n)) for row in bounds)
    return Bounds(lower, upper, least, most)
