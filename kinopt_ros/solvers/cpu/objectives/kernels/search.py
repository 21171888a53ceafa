"""Search from several starts, compiled."""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.compiler_options import FAST_INNER, FAST_OUTER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.objectives.kernels.descent import (
    STEPS,
    descend,
    new_room,
    stand,
)
from kinopt_ros.solvers.cpu.objectives.kernels.model import Costs, Model, Moving, Tree
from kinopt_ros.solvers.cpu.objectives.kernels.terms import price, value_of, violation_of

__all__ = ["STEPS", "Asked", "Outcome", "search"]

BETTER = 1e-9
"""Relative decrease of the sum for which a later start is preferred."""


class Asked(NamedTuple):
    """B requests."""

    numbers: Annotated[Float64, "B N"]
    weights: Annotated[Float64, "B R"]
    allowed: Annotated[Float64, "B"]
    """Violation up to which constraints are taken to hold."""
    starts: Annotated[Float64, "B S nq"]


class Outcome(NamedTuple):
    """What is found, updated in place."""

    q: Annotated[Float64, "B nq"]
    multipliers: Annotated[Float64, "B R"]
    value: Annotated[Float64, "B"]
    """Sum of weighted squares, corrected by the multipliers for what is left of violations; infinite before the first
    start."""
    violation: Annotated[Float64, "B"]
    history: Annotated[Float64, "B H"]
    steps: Annotated[Int64, "B"]
    tried: Annotated[Int64, "B"]
    """Starts made."""
    done: Annotated[Bool, "B"]


@njit(**FAST_OUTER)
def search(
    parent, kind, variable, direction, fixed, axis, drive, column, frame_motion, frame_fixed, chain, chain_start, mass,
    scalar, own, lower, upper, quaternion, rows, lists, holds, one_sided, numbers, weights, allowed, starts, budget,
    q, multipliers, value, violation, history, steps, tried, done,
):  # fmt: skip
    """Search for every request that is not done, from its starts one after the other.

    The arguments are the arrays of a ``Model`` (of its ``Tree``, ``Moving`` and ``Costs``), of ``Asked``, the budget,
    and those of an ``Outcome``: one by one, as numba looks at a tuple's several times as long before each call.

    Returns:
        Whether the search is through. If not, ``budget`` steps are spent: call again to go on.
    """
    model = Model(
        Tree(
            parent, kind, variable, direction, fixed, axis, drive, column, frame_motion, frame_fixed, chain,
            chain_start, mass,
        ),
        Moving(scalar, own, lower, upper, quaternion),
        Costs(rows, lists, holds, one_sided),
    )  # fmt: skip
    asked = Asked(numbers, weights, allowed, starts)
    outcome = Outcome(q, multipliers, value, violation, history, steps, tried, done)
    d = model.moving.scalar.shape[0]
    for k in range(model.moving.quaternion.shape[0]):
        for m in range(1, 4):
            d += model.moving.quaternion[k, m] >= 0
    return _search_in(new_room(model, asked.starts.shape[2], d), model, asked, budget, outcome)


@njit(**FAST_INNER)
def _search_in(room, model, asked, budget, outcome):
    """Do what ``search`` does, in memory that the caller keeps alive."""
    costs, nq = model.costs, asked.starts.shape[2]
    spent = 0
    for b in range(asked.starts.shape[0]):
        if outcome.done[b]:
            continue
        weights, numbers, allowed = asked.weights[b], asked.numbers[b], asked.allowed[b]
        while outcome.tried[b] < asked.starts.shape[1]:
            if spent >= budget:
                return False
            start = asked.starts[b, outcome.tried[b]]
            made, rho, at_start = descend(model, weights, numbers, start, room)
            outcome.tried[b] += 1
            outcome.steps[b] += made
            spent += made
            violation = violation_of(costs, weights, room.here.r)
            # What is left of a violation lowers the sum; answers are compared by what it were without.
            value = 2.0 * (
                value_of(costs, weights, room.here.r) + rho * price(costs, weights, room.here.r, room.y)
            )
            if at_start <= allowed and not violation <= allowed:
                # A start at which constraints hold is better than an end at which they do not.
                stand(model, numbers, start, room)
                value, violation = 2.0 * value_of(costs, weights, room.here.r), at_start
            if not (value < np.inf and violation < np.inf):
                continue
            known = outcome.violation[b]
            if violation <= allowed:
                better = known > allowed or value < (1.0 - BETTER) * outcome.value[b]
            else:
                better = violation < known
            if not better:
                continue
            outcome.value[b], outcome.violation[b] = value, violation
            for k in range(nq):
                outcome.q[b, k] = room.here.q[k]
            for i in range(weights.shape[0]):
                outcome.multipliers[b, i] = 2.0 * rho * room.y[i]
            for k in range(room.history.shape[0]):
                outcome.history[b, k] = room.history[k]
        outcome.done[b] = True
    return True
