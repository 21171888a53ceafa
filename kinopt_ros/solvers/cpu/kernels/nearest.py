"""Search of configurations as near as possible to targets, inside the limits, compiled.

A cost like this has several minima. Starts are the seeds that were given, the best of a table of configurations with
known tip poses, and random ones once nothing is left of it. What lies around a start that was taken from the table is
left out, as it leads to the same end. Attempts end early where another one has led to, or where nothing better is to be
expected.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.compiler_options import FAST_INNER, FAST_OUTER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.kernels.nearest_cost import Tree, Wanted
from kinopt_ros.solvers.cpu.kernels.nearest_descent import REACHED, descend, new_room
from kinopt_ros.solvers.cpu.kernels.pose_rows import set_goals
from kinopt_ros.solvers.cpu.kernels.starts import _random_configuration
from kinopt_ros.solvers.kernels.forward import quaternion
from kinopt_ros.solvers.kernels.layout import LOWER, PERIOD, UPPER
from kinopt_ros.solvers.kernels.memory import _copy
from kinopt_ros.solvers.kernels.turns import _choose_turn

STEPS, POLISH_STEPS = 100, 1000
"""Most steps of an attempt, of which nearly all need less than 20, and more for the best one: where some weights are a
hundred times smaller than others, the way to the least cost is a narrow valley."""
BETTER = 1e-9
"""Relative decrease of the cost for which a later attempt is preferred: the state comes first."""


class Model(NamedTuple):
    """Chains and variables of a problem, as ``tree.PackedTree`` has them."""

    tree: Tree
    variables: Annotated[Float64, "6 n"]
    table: Annotated[Float64, "k n"]
    poses: Annotated[Float64, "T 7 k"]
    near: Annotated[Bool, "k k"]
    """Which configurations of the table lie around which (``seeds.neighbours``)."""


class Asked(NamedTuple):
    """Requests."""

    targets: Annotated[Float64, "T B 4 4"]
    squares: Annotated[Float64, "T 6"]
    """Squared weights along and about the axes of the targets, the largest 1."""
    seeds: Annotated[Float64, "B S n"]
    reference: Annotated[Float64, "B n"]
    """What whole turns are chosen by."""


class Effort(NamedTuple):
    """Attempts for each request."""

    starts: int
    """Number of them, besides those from seeds."""
    random_seed: int
    steps: int
    """Steps after which the search pauses."""


class Outcome(NamedTuple):
    """What is found, updated in place."""

    q: Annotated[Float64, "B E n"]
    """Where attempts ended; the best alone if E is 1."""
    cost: Annotated[Float64, "B E"]
    """Half of the sum of the squares; infinite where no attempt ended."""
    steps: Annotated[Int64, "B"]
    tried: Annotated[Int64, "B"]
    """Number of attempts made."""
    done: Annotated[Bool, "B"]


@njit(**FAST_INNER)
def _score(poses, goals, squares, scores):
    """Write about the cost of every table entry: angles are measured by 2 sin(angle / 2)."""
    for i in range(scores.shape[0]):
        scores[i] = 0.0
    for t in range(goals.shape[0]):
        g = goals[t]
        sx, sy, sz, rx, ry, rz = (
            squares[t, 0], squares[t, 1], squares[t, 2], 4.0 * squares[t, 3], 4.0 * squares[t, 4], 4.0 * squares[t, 5],
        )  # fmt: skip
        w, x, y, z = quaternion(g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11])
        twist = (rx == 0.0) + (ry == 0.0) + (rz == 0.0) == 2
        for i in range(scores.shape[0]):
            dx, dy, dz = poses[t, 0, i] - g[0], poses[t, 1, i] - g[1], poses[t, 2, i] - g[2]
            ex, ey, ez = (
                g[3] * dx + g[4] * dy + g[5] * dz,
                g[6] * dx + g[7] * dy + g[8] * dz,
                g[9] * dx + g[10] * dy + g[11] * dz,
            )
            # The rotation in the target's frame: the conjugate of the target's times the tip's.
            a, b, c, d = poses[t, 3, i], poses[t, 4, i], poses[t, 5, i], poses[t, 6, i]
            r = w * a + x * b + y * c + z * d
            ux, uy, uz = (
                w * b - x * a - y * d + z * c,
                w * c + x * d - y * a - z * b,
                w * d - x * c + y * b - z * a,
            )
            turn = rx * ux * ux + ry * uy * uy + rz * uz * uz
            if twist:  # of which only this axis counts: 4 sin(twist / 2)^2
                k = (rx > 0.0) * ux * ux + (ry > 0.0) * uy * uy + (rz > 0.0) * uz * uz
                turn /= r * r + k + 1e-12
            scores[i] += sx * ex * ex + sy * ey * ey + sz * ez * ez + turn


@njit(**FAST_INNER)
def _least(values):
    smallest = 0
    for i in range(values.shape[0]):
        if values[i] < values[smallest]:
            smallest = i
    return smallest


@njit(**FAST_INNER)
def _seed(given, variables, q):
    """Write a seed, inside the limits, without whole turns."""
    for j in range(q.shape[0]):
        value = given[j]
        if variables[PERIOD, j] > 0.0 and abs(value) > np.pi:
            turned = value - 2.0 * np.pi * np.rint(value / (2.0 * np.pi))
            if variables[LOWER, j] <= turned <= variables[UPPER, j]:
                value = turned
        q[j] = min(max(value, variables[LOWER, j]), variables[UPPER, j])


@njit(**FAST_INNER)
def _start(model, asked, effort, b, attempt, scores, q):
    """Write what an attempt of request b starts from, and take it, and what is around it, out of the ``scores``."""
    variables = model.variables
    S = asked.seeds.shape[1]
    if attempt < S:
        _seed(asked.seeds[b, attempt], variables, q)
        return
    best = _least(scores)
    if scores[best] == np.inf:  # nothing is left
        _random_configuration(effort.random_seed, attempt - S, variables, q)
        return
    _copy(model.table[best], q)
    for i in range(scores.shape[0]):
        if model.near[best, i]:
            scores[i] = np.inf


@njit(**FAST_OUTER)
def come_near(model, asked, effort, outcome):
    """Search for every request that is not done; see ``Model``, ``Asked``, ``Effort`` and ``Outcome``.

    Returns:
        Whether the search is through. If not, its steps are spent: call again to go on where it stopped.
    """
    tree, variables = model.tree, model.variables
    n, T = variables.shape[1], tree.base.shape[0]
    room = new_room(T, tree.motions.shape[0], n)
    wanted = Wanted(np.empty((T, 12)), asked.squares)
    scores, now = np.empty(model.table.shape[0]), np.empty(n)
    E = outcome.q.shape[1]
    spent = 0
    for b in range(asked.targets.shape[1]):
        if outcome.done[b]:
            continue
        set_goals(tree.base, asked.targets, b, wanted.goals)
        _score(model.poses, wanted.goals, wanted.squares, scores)
        q, cost = outcome.q[b], outcome.cost[b]
        count = asked.seeds.shape[1] + effort.starts
        for attempt in range(count + 1 if E == 1 else count):
            polish = attempt == count
            if polish:
                _copy(q[0], now)
            else:
                _start(model, asked, effort, b, attempt, scores, now)
            if attempt < outcome.tried[b]:  # before the pause
                continue
            if spent >= effort.steps:
                return False
            most = POLISH_STEPS if polish else STEPS
            best = cost[0] if E == 1 and 0 < attempt < count else -1.0
            end, made = descend(tree, wanted, variables, room, now, most, best, q[0])
            outcome.steps[b] += made
            outcome.tried[b] += 1
            spent += made
            place = min(attempt, E - 1)
            if end < (1.0 - BETTER) * cost[place]:
                _choose_turn(variables, asked.reference[b], now)
                _copy(now, q[place])
                cost[place] = end
            if E == 1 and cost[0] <= REACHED:
                break
        outcome.done[b] = True
    return True
