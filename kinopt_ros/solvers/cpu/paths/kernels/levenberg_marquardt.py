"""Compiled: Levenberg-Marquardt over all points of a path.

Minimised is ``q(x) + mu C(x)``. q are the costs: length, acceleration and jerk (``quadratic.py``), rest posture,
velocities beyond what is allowed. C are the squared residuals of what has to hold: distances (``nearness.py``) and
tasks (``tasks.py``); mu grows until it holds. A step solves

    (H + mu J^T J + damping) dx = -gradient / 2

with a matrix of few blocks beside the diagonal (``banded.py``). Points that are given, and values at a limit that would
leave it, are taken out of the step; all others are clipped (projected Newton: D. Bertsekas, "Projected Newton methods
for optimization problems with simple constraints", SIAM J. Control 20, 1982).
"""

import numpy as np

from kinopt_ros.collision.kernels.copying import copy_to
from kinopt_ros.compiler_options import FAST_INNER, FAST_OUTER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.paths.kernels.frames import set_frames
from kinopt_ros.solvers.cpu.paths.kernels.lm_step import (
    ACCEPTED,
    ENOUGH,
    REST,
    START,
    VELOCITY,
    WANTED,
    damped_step,
)
from kinopt_ros.solvers.cpu.paths.kernels.nearness import add_at_points, add_between
from kinopt_ros.solvers.cpu.paths.kernels.nearness_cost import depth_cost
from kinopt_ros.solvers.cpu.paths.kernels.spheres import COST, SLACK, place_resting, place_spheres, set_anchor
from kinopt_ros.solvers.cpu.paths.kernels.tasks import FIRST, LAST, ROWS, WEIGHT, task_rows

# Entries of ``state``.
(
    WEIGHT_NOW,
    DAMPING,
    OBJECTIVE,
    COSTS,
    CONSTRAINTS,
    SLACK_NOW,
    EXCESS,
    ITERATIONS,
    SINCE,
    STATUS,
    GOOD,
    PAUSE_AT,
) = range(12)
STATE = 12
# Values of STATUS.
NEW, RUNNING, DONE, STUCK, PAUSED = range(5)
FIRST_DAMPING = 1e-5
"""First damping, relative to the weight of constraints."""
FIRST_WEIGHT, GROWTH, LAST_WEIGHT = 3e4, 10.0, 1e9
LEAST_DAMPING, MOST_DAMPING = 1e-6, 1e3
"""Least and largest damping, relative to the weight of constraints."""
STEP_LIMIT = 0.5
"""Largest change of a value in one step, rad or m."""
HEAVY, HOPELESS = 1e7, -0.03
"""Weight of constraints from which on a path is given up if its slack is below the second number (m)."""
QUITE_HEAVY, FAR_OFF = 1e6, -0.05
"""Smaller weight, at which only paths with still less slack (m) are given up."""
NEARLY = -0.01
"""Slack (m) from which on a path pauses before its constraints become heavier than ``PAUSE_AT`` says."""
CLOSER_EVERY = 3
"""Steps after which distances at more places between points are looked at."""
NOTHING = 1e-6
"""Step length below which nothing is gained, rad or m."""
SETTLED = 0.02
"""Relative decrease below which the weight of constraints that do not hold grows."""
FINISHED = 0.01
"""Relative decrease below which nothing is gained by a path on which not all constraints hold."""
PATIENCE = 8
"""Most steps with one weight of constraints."""
POLISH = 30
"""Most steps while all constraints hold."""


@njit(**FAST_INNER)
def _set_costs(x, cost, gradient, bend):
    """Compute the costs without constraints; half their gradient, and what velocities add to the matrix."""
    numbers, exact, rest, rates, first, most, start_row, start_block = (
        cost[0], cost[1], cost[3], cost[4], cost[5], cost[6], cost[7], cost[8],
    )  # fmt: skip
    T, n = x.shape
    total = 0.0
    for t in range(T):
        for j in range(n):
            gradient[t, j] = 0.0
    # From the start: what is left of large numbers would be noise.
    for t in range(T):
        for k in range(min(exact.shape[1], T - t)):
            f = exact[t, k]
            if f == 0.0:
                continue
            for j in range(n):
                gradient[t, j] += f * (x[t + k, j] - x[0, j])
                if k > 0:
                    gradient[t + k, j] += f * (x[t, j] - x[0, j])
    for t in range(T):
        for j in range(n):
            total += gradient[t, j] * (x[t, j] - x[0, j])
    if numbers[REST] > 0.0:
        f = numbers[REST] / T
        for t in range(T):
            for j in range(n):
                d = x[t, j] - rest[j]
                total += f * d * d
                gradient[t, j] += f * d
    if numbers[START] > 0.0:
        width = start_row.shape[0]
        for i in range(n):
            sideways = 0.0
            for k in range(width):
                for j in range(n):
                    sideways += start_row[k] * start_block[i, j] * (x[k, j] - x[0, j])
            total += numbers[START] * sideways * sideways
            for k in range(width):
                for j in range(n):
                    gradient[k, j] += numbers[START] * sideways * start_row[k] * start_block[i, j]
    if numbers[VELOCITY] > 0.0:
        width = rates.shape[1]
        f = numbers[VELOCITY] / T
        for t in range(T):
            for k in range(width):
                for j in range(n):
                    bend[t, k, j] = 0.0
        for t in range(T):
            a = first[t]
            for j in range(n):
                v = 0.0
                for k in range(width):
                    v += rates[t, k] * (x[a + k, j] - x[0, j])
                over = abs(v) - most[j]
                if over <= 0.0:
                    continue
                total += f * over * over
                over = np.copysign(over, v)
                for k in range(width):
                    gradient[a + k, j] += f * over * rates[t, k]
                    for m in range(k, width):
                        bend[a + k, m - k, j] += f * rates[t, k] * rates[t, m]
    return total


@njit(**FAST_INNER)
def _set_constraints(
    tree,
    around,
    anchors,
    sticking,
    tasks,
    demand,
    x,
    frames,
    positions,
    kept,
    work,
    rows,
    found,
    at_points,
    g,
    D,
    E,
):
    """Compute C(x), half its gradient and its matrix; return C, the least slack of distances, the largest excess of
    tasks."""
    T, n = x.shape
    g_points, D_points, sums = at_points
    g_points[:] = 0.0
    D_points[:] = 0.0
    found[COST], found[SLACK] = 0.0, np.inf
    for t in range(T):
        set_frames(tree, x[t], frames[t])
    if around.node.shape[0] > 0:
        for t in range(T):
            place_spheres(
                around.node, around.centers, frames[t], positions[t], around.resting[0], around.node.shape[0]
            )
        add_at_points(
            tree, around, anchors, sticking, demand, frames, positions, kept, work, found, g_points, D_points
        )
    total, excess = found[COST], 0.0
    numbers, integers = tasks
    jacobian, errors = rows[0], rows[1]
    for k in range(numbers.shape[0]):
        weight = numbers[k, WEIGHT]
        for t in range(integers[k, FIRST], integers[k, LAST] + 1):
            excess = max(excess, task_rows(tree, frames[t], numbers[k], integers[k], rows[1:], jacobian))
            for r in range(ROWS):
                total += weight * errors[r] * errors[r]
                for i in range(n):
                    f = weight * jacobian[r, i]
                    if f == 0.0:
                        continue
                    g_points[t, i] += f * errors[r]
                    for j in range(i, n):
                        D_points[t, i, j] += f * jacobian[r, j]
    sums[0], sums[1], sums[2] = total, found[SLACK], excess
    return _set_between(
        tree, around, anchors, sticking, demand, x, positions, kept, work, found, at_points, g, D, E
    )


@njit(**FAST_INNER)
def _set_between(
    tree, around, anchors, sticking, demand, x, positions, kept, work, found, at_points, g, D, E
):
    """Do as ``_set_constraints`` of the same path just before; only what is between its points is computed anew."""
    g_points, D_points, sums = at_points
    copy_to(g, g_points)
    copy_to(D, D_points)
    E[:] = 0.0
    found[COST], found[SLACK] = sums[0], sums[1]
    if around.node.shape[0] > 0:
        add_between(tree, around, anchors, sticking, x, demand, positions, kept, work, found, g, D, E)
    return found[COST], found[SLACK], sums[2]


@njit(**FAST_INNER)
def _look_closer(kept, or_less):
    """Set the number of places between points that are checked to what is wished; return whether anything changed.

    The number falls only with ``or_less``.
    """
    looks, wished = kept[2], kept[3]
    changed = False
    for t in range(looks.shape[0] - 1):
        if wished[t] > looks[t] or (or_less and wished[t] < looks[t]):
            looks[t] = wished[t]
            changed = True
    return changed


@njit(**FAST_OUTER)
def anchor_path(tree, around, anchors, points, wanted):
    """Fill ``anchors`` with what the given configurations (A, n) have."""
    gaps, places, floor = anchors
    frames, positions = np.empty((tree[0].shape[0], 12)), np.empty((around.node.shape[0], 3))
    for a in range(points.shape[0]):
        set_anchor(tree, around, points[a], wanted, frames, positions, gaps[a], places[a], floor)


@njit(**FAST_OUTER)
def score_paths(tree, around, anchors, paths, wanted, accepted, work, found, scores):
    """Fill ``scores`` (S,) with ``depth_cost`` of paths (S, T, n); ``work`` and ``found`` of ``nearness.py``."""
    place_resting(around, work[3], work[4])
    S, P = around.node.shape[0], around.pairs.shape[0]
    none = np.zeros((1, S)), np.full((1, P), np.nan), np.empty((1, P))
    for s in range(paths.shape[0]):
        scores[s] = depth_cost(tree, around, anchors, none, paths[s], (wanted, accepted), work, found)


@njit(**FAST_OUTER)
def improve(
    tree, around, anchors, sticking, tasks, cost, last, given, low, high, x, kept, store, state, steps
):
    """Make up to so many steps; x, kept, store and state are updated, and the next call goes on from there.

    Args:
        tree, around, anchors, sticking: of ``MovingTree``, ``Surroundings`` and ``nearness.py``.
        tasks: numbers and integers of ``tasks.py``.
        cost: numbers (6,), exact and step of ``quadratic.py``, rest (n,), stencils of velocities (T, 5), their first
            points (T,), largest velocities (n,), row (w,) and block (n, n) for the direction at the start.
        last: of ``banded.py``.
        given: (T,), which points stay.
        low, high: (T, n), limits.
        x: the path (T, n).
        kept: of ``nearness.py``.
        store: frames (T, M, 12), positions (T, S, 3), g (2, T, n), D, E (2, T, n, n), gradients of the costs (2, T, n),
            what velocities add (2, T, 5, n), matrix of ``banded.py``, its solution, a new path (T, n), ``work`` of
            ``nearness.py``, jacobian (6, n) and ``work`` of ``tasks.py``, ``found`` of ``nearness.py``;
            gradient (T, n), matrices (T, n, n) and cost, slack and excess (3,) at the points alone.
        state: (12,), see its entries. ``PAUSE_AT`` is a weight of constraints, or 0: a path that holds nearly pauses
            before a heavier one, for somebody to say what spheres stick out by.
        steps: how many steps at most; 0 only evaluates.
    """
    T, n = x.shape
    frames, positions, g, D, E, gradient, bend, A, dx, new, work, rows, found, at_points = store
    demand = (cost[0][WANTED], cost[0][ACCEPTED])
    now = 0
    if state[STATUS] == NEW or steps == 0:
        for t in range(T):
            place_resting(around, positions[t], work[4])
        place_resting(around, work[3], work[4])
        state[COSTS] = _set_costs(x, cost, gradient[now], bend[now])
        state[CONSTRAINTS], state[SLACK_NOW], state[EXCESS] = _set_constraints(
            tree,
            around,
            anchors,
            sticking,
            tasks,
            demand,
            x,
            frames,
            positions,
            kept,
            work,
            rows,
            found,
            at_points,
            g[now],
            D[now],
            E[now],
        )
        if _look_closer(kept, True):
            state[CONSTRAINTS], state[SLACK_NOW], state[EXCESS] = _set_between(
                tree, around, anchors, sticking, demand, x, positions, kept, work, found, at_points,
                g[now], D[now], E[now],
            )  # fmt: skip
        state[STATUS] = RUNNING
    for _ in range(steps):
        if state[STATUS] != RUNNING:
            break
        mu = state[WEIGHT_NOW]
        objective = state[COSTS] + mu * state[CONSTRAINTS]
        state[ITERATIONS] += 1
        state[SINCE] += 1
        largest = expected = np.inf
        better = False
        if damped_step(
            cost, last, given, low, high, x, mu, state[DAMPING], g[now], gradient[now], D[now], E[now], bend[now],
            A, new, dx,
        ):  # fmt: skip
            largest, expected = 0.0, 0.0
            for t in range(T):
                for j in range(n):
                    largest = max(largest, abs(dx[t * n + j]))
                    d = dx[t * n + j]
                    expected += d * (mu * state[DAMPING] * d - gradient[now, t, j] - mu * g[now, t, j])
            f = min(1.0, STEP_LIMIT / max(largest, 1e-300))
            for t in range(T):
                for j in range(n):
                    new[t, j] = (
                        min(max(x[t, j] + f * dx[t * n + j], low[t, j]), high[t, j])
                        if not given[t]
                        else x[t, j]
                    )
            costs = _set_costs(new, cost, gradient[1 - now], bend[1 - now])
            constraints, slack, excess = _set_constraints(
                tree, around, anchors, sticking, tasks, demand, new, frames, positions, kept, work, rows, found,
                at_points, g[1 - now], D[1 - now], E[1 - now],
            )  # fmt: skip
            decrease = objective - (costs + mu * constraints)
            better = decrease > 0.0
        if better:
            copy_to(x, new)
            now = 1 - now
            state[COSTS], state[CONSTRAINTS], state[SLACK_NOW], state[EXCESS] = (
                costs,
                constraints,
                slack,
                excess,
            )
            relative = decrease / max(objective, 1e-300)
            # Now and then, and before a path counts as good.
            seems_good = slack >= 0.0 and excess <= 0.0
            if (seems_good or state[SINCE] % CLOSER_EVERY == 0) and _look_closer(kept, False):
                state[CONSTRAINTS], state[SLACK_NOW], state[EXCESS] = _set_between(
                    tree, around, anchors, sticking, demand, x, positions, kept, work, found, at_points,
                    g[now], D[now], E[now],
                )  # fmt: skip
            if decrease > 0.5 * expected:
                state[DAMPING] = max(state[DAMPING] / 5.0, LEAST_DAMPING)
            elif decrease < 0.1 * expected:
                state[DAMPING] *= 3.0
        else:
            relative = 0.0 if largest < NOTHING else np.inf
            state[DAMPING] *= 8.0
            if state[DAMPING] > MOST_DAMPING:
                relative = 0.0
        holds = state[SLACK_NOW] >= 0.0 and state[EXCESS] <= 0.0
        if holds:
            state[GOOD] += 1
            if relative < cost[0][ENOUGH] or state[GOOD] >= POLISH:
                state[STATUS] = DONE
        elif relative < SETTLED or state[SINCE] >= PATIENCE:
            state[SINCE] = 0
            if state[SLACK_NOW] < (HOPELESS if mu >= HEAVY else FAR_OFF if mu >= QUITE_HEAVY else -np.inf):
                state[STATUS] = STUCK
            elif 0.0 < state[PAUSE_AT] <= mu and state[SLACK_NOW] > NEARLY and state[EXCESS] <= 0.0:
                state[STATUS] = PAUSED
            elif mu < LAST_WEIGHT:
                state[WEIGHT_NOW] = min(mu * GROWTH, LAST_WEIGHT)
                state[DAMPING] = FIRST_DAMPING
                if better and _look_closer(kept, True):
                    state[CONSTRAINTS], state[SLACK_NOW], state[EXCESS] = _set_between(
                        tree, around, anchors, sticking, demand, x, positions, kept, work, found, at_points,
                        g[now], D[now], E[now],
                    )  # fmt: skip
            elif relative < FINISHED:
                state[STATUS] = STUCK
    if now == 1:
        copy_to(g[0], g[1])
        copy_to(D[0], D[1])
        copy_to(E[0], E[1])
        copy_to(gradient[0], gradient[1])
        copy_to(bend[0], bend[1])
