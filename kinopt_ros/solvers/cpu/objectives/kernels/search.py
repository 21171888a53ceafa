"""Search from several starts, compiled."""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER, FAST_OUTER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.kernels.memory import borrowed
from kinopt_ros.solvers.cpu.objectives.kernels.descent import (
    Point,
    Room,
    descend,
    new_room,
    stand,
)
from kinopt_ros.solvers.cpu.objectives.kernels.manipulability import IndexRoom
from kinopt_ros.solvers.cpu.objectives.kernels.model import Costs, Model, Moving, Tree
from kinopt_ros.solvers.cpu.objectives.kernels.places import Places
from kinopt_ros.solvers.cpu.objectives.kernels.rows import RowRoom
from kinopt_ros.solvers.cpu.objectives.kernels.terms import value_of, violation_of

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
    """Sum of weighted squares; infinite before the first start."""
    violation: Annotated[Float64, "B"]
    history: Annotated[Float64, "B H"]
    steps: Annotated[Int64, "B"]
    tried: Annotated[Int64, "B"]
    """Starts made."""
    done: Annotated[Bool, "B"]


@njit(**FAST_INLINE)
def _without_counting(model, room):
    """Return the same arrays, without counting references to them: that would take longer than what is computed."""
    tree, moving, costs, rows = model.tree, model.moving, model.costs, room.rows
    places, index, here, there = rows.places, rows.index_room, room.here, room.there
    return Model(
        Tree(
            borrowed(tree.parent), borrowed(tree.kind), borrowed(tree.variable), borrowed(tree.direction),
            borrowed(tree.fixed), borrowed(tree.axis), borrowed(tree.drive), borrowed(tree.column),
            borrowed(tree.frame_motion), borrowed(tree.frame_fixed), borrowed(tree.chain),
            borrowed(tree.chain_start), borrowed(tree.mass),
        ),
        Moving(
            borrowed(moving.scalar), borrowed(moving.variable), borrowed(moving.lower), borrowed(moving.upper),
            borrowed(moving.quaternion),
        ),
        Costs(borrowed(costs.rows), borrowed(costs.lists), borrowed(costs.holds), borrowed(costs.one_sided)),
    ), Room(
        RowRoom(
            Places(
                borrowed(places.motion), borrowed(places.axis), borrowed(places.frame), borrowed(places.velocity),
                borrowed(places.below),
            ),
            IndexRoom(
                borrowed(index.motion), borrowed(index.direction), borrowed(index.group), borrowed(index.J),
                borrowed(index.G), borrowed(index.factor),
            ),
            borrowed(rows.poses), borrowed(rows.numbers), borrowed(rows.turn), borrowed(rows.velocity),
        ),
        Point(borrowed(here.q), borrowed(here.r), borrowed(here.J)),
        Point(borrowed(there.q), borrowed(there.r), borrowed(there.J)),
        borrowed(room.y), borrowed(room.next_y), borrowed(room.force), borrowed(room.scale), borrowed(room.H),
        borrowed(room.factor), borrowed(room.gradient), borrowed(room.step), borrowed(room.other),
        borrowed(room.held), borrowed(room.history),
    )  # fmt: skip


@njit(**FAST_OUTER)
def search(counted, asked, budget, outcome):
    """Search for every request that is not done, from its starts one after the other.

    Returns:
        Whether the search is through. If not, ``budget`` steps are spent: call again to go on.
    """
    d = counted.moving.scalar.shape[0]
    for k in range(counted.moving.quaternion.shape[0]):
        for m in range(1, 4):
            d += counted.moving.quaternion[k, m] >= 0
    # numba frees what a variable holds after the last line that names it, whoever has borrowed from it: the room lives
    # as long as this call only because it is its argument.
    return _search_in(new_room(counted, asked.starts.shape[2], d), counted, asked, budget, outcome)


@njit(**FAST_INNER)
def _search_in(room_counted, counted, asked, budget, outcome):
    """Do what ``search`` does, in memory that the caller keeps alive."""
    model, room = _without_counting(counted, room_counted)
    costs, nq = model.costs, asked.starts.shape[2]
    spent = 0
    for b in range(asked.starts.shape[0]):
        if outcome.done[b]:
            continue
        weights, numbers, allowed = borrowed(asked.weights[b]), borrowed(asked.numbers[b]), asked.allowed[b]
        while outcome.tried[b] < asked.starts.shape[1]:
            if spent >= budget:
                return False
            start = borrowed(asked.starts[b, outcome.tried[b]])
            made, rho, at_start = descend(model, weights, numbers, start, room)
            outcome.tried[b] += 1
            outcome.steps[b] += made
            spent += made
            value = 2.0 * value_of(costs, weights, room.here.r)
            violation = violation_of(costs, weights, room.here.r)
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
