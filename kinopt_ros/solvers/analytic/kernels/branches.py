"""From what a closed form claims to solutions: turned into the limits, polished, distinct, the preferred first.

``LANES`` claims are looked at in step with each other (``solvers.kernels``). A claim that is exact costs one forward
kinematics; what rounding, a singular pose, or axes that only nearly meet have left of the error goes in damped steps.
"""

import numpy as np

from kinopt_ros.compiler_options import FAST_INNER, FAST_OUTER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.kernels.descent import rotation_error, step
from kinopt_ros.solvers.kernels.forward import tip_pose_lanes
from kinopt_ros.solvers.kernels.goal import set_goal
from kinopt_ros.solvers.kernels.lanes import LANES, choose, lanes_at, lanes_below, put_lanes
from kinopt_ros.solvers.kernels.layout import (
    ACCEPT_ORIENTATION,
    ACCEPT_POSITION,
    AIM_ORIENTATION,
    AIM_POSITION,
    BASE_SIZE,
    COLUMN,
    KIND_SIZE,
    LOWER,
    MOTION_SIZE,
    NUM_VARIABLE_ROWS,
    PERIOD,
    TIP_SIZE,
    UPPER,
)
from kinopt_ros.solvers.kernels.memory import after, get, new_memory, pointer_to, put
from kinopt_ros.solvers.kernels.tuning import ORIENTATION_WEIGHT, STALL_RATIO
from kinopt_ros.solvers.kernels.turns import nearest_turn

_MOST_STEPS = 12
"""Most steps of a claim: from where it is accepted to be polished, convergence is quadratic, beside a singular pose
linear."""
_MOST_STALLS = 3.0
"""So many steps that leave most of the error end a claim."""
_BESIDE_LIMITS = 0.02
"""Claims so far beyond a limit, rad, may be solutions that rounding, or a tolerance, holds inside."""
_NEAR_POSITION, _NEAR_ORIENTATION = 0.05, 0.1
"""Claims that are farther off (m, rad) are no solutions that something has moved a little."""


@njit(**FAST_INNER)
def _fill(group, starts, claims, scales, shifts, kinds, variables, reference, q, beyond):
    """Put claims of a group into the lanes, at the turns nearest to the reference and inside the limits.

    ``beyond`` receives how far each was outside of them.
    """
    n, num_starts = starts.shape[1], starts.shape[0]
    total = num_starts + claims.shape[1]
    for lane in range(LANES):
        number = min(group + lane, total - 1)  # none left: the last one once more
        worst = 0.0
        for i in range(n):
            j = get(kinds, KIND_SIZE * i + COLUMN)
            if number < num_starts:
                value = starts[number, j]
            else:
                value = get(scales, i) * claims[i, number - num_starts] + get(shifts, i)
            lower, upper = get(variables, LOWER * n + j), get(variables, UPPER * n + j)
            period = get(variables, PERIOD * n + j)
            value = nearest_turn(value, reference[j], lower, upper, period)
            inside = min(max(value, lower), upper)
            if value != inside and period > 0.0:  # at the turn that is least far outside
                value -= period * np.rint((value - 0.5 * (lower + upper)) / period)
                inside = min(max(value, lower), upper)
            if abs(value) < np.inf:
                worst = max(worst, abs(value - inside))
            else:
                worst, inside = np.inf, min(max(reference[j], lower), upper)
            put(q, LANES * j + lane, inside)
        put(beyond, lane, worst)


@njit(**FAST_INNER)
def _polish(kinds, motions, tip, variables, n, goal, effort, q, beyond, work):
    """Bring all lanes to the goal, in place, inside the limits, as far as claims are near to it.

    Returns bits of the lanes that are solutions, errors of the claims before, and steps made.
    """
    axes = work
    jacobian = after(axes, LANES * 6 * n)
    moves = after(jacobian, LANES * 6 * n)
    accept_p2, accept_o2 = effort[ACCEPT_POSITION] ** 2, effort[ACCEPT_ORIENTATION] ** 2
    aim_p2, aim_o2 = effort[AIM_POSITION] ** 2, effort[AIM_ORIENTATION] ** 2
    hopeful = lanes_below(lanes_at(beyond, 0), _BESIDE_LIMITS)
    stalls = 0.0 * lanes_at(q, 0)
    previous = np.inf + stalls
    at_first = stalls
    steps = 0
    weight = ORIENTATION_WEIGHT
    while True:
        px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = tip_pose_lanes(motions, kinds, n, q, tip, axes)
        e0, e1, e2 = get(goal, 0) - px, get(goal, 1) - py, get(goal, 2) - pz
        e3, e4, e5 = rotation_error(goal, xx, xy, xz, yx, yy, yz, zx, zy, zz)
        p2 = e0 * e0 + e1 * e1 + e2 * e2
        o2 = e3 * e3 + e4 * e4 + e5 * e5
        if steps == 0:
            at_first = p2 / accept_p2 + o2 / accept_o2
            hopeful &= lanes_below(p2, max(accept_p2, _NEAR_POSITION**2))
            hopeful &= lanes_below(o2, max(accept_o2, _NEAR_ORIENTATION**2))
        reached = lanes_below(p2, aim_p2) & lanes_below(o2, aim_o2)
        e3, e4, e5 = weight * e3, weight * e4, weight * e5
        error = (e0 * e0 + e1 * e1 + e2 * e2) + (e3 * e3 + e4 * e4 + e5 * e5)
        stalls += 1.0 - choose(STALL_RATIO * previous, error, 1.0, 0.0)
        previous = error
        working = lanes_below(stalls, _MOST_STALLS) & hopeful & ~reached
        if steps >= _MOST_STEPS or working == 0:
            accepted = hopeful & lanes_below(p2, accept_p2) & lanes_below(o2, accept_o2)
            return accepted, at_first, steps
        step(
            kinds, motions, variables, n, n, axes, jacobian, moves, q, px, py, pz,
            e0, e1, e2, e3, e4, e5, weight,
        )  # fmt: skip
        steps += 1


@njit(**FAST_INNER)
def _is_near(variables, n, one, other, separation):
    """Check whether two configurations are one solution, whole turns aside."""
    for j in range(n):
        difference = one[j] - other[j]
        period = get(variables, PERIOD * n + j)
        if period > 0.0:
            difference -= period * np.rint(difference / period)
        if not abs(difference) <= separation:
            return False
    return True


@njit(**FAST_INNER)
def _sort_distinct(variables, q, costs, count, separation):
    """Sort the first rows by cost, in place, and keep those that are distinct from all better ones; return how many."""
    n = q.shape[1]
    kept = 0
    for _ in range(count):
        best = kept
        for k in range(kept + 1, count):
            if costs[k] < costs[best]:
                best = k
        if costs[best] == np.inf:
            break
        for j in range(n):
            q[kept, j], q[best, j] = q[best, j], q[kept, j]
        costs[kept], costs[best] = costs[best], costs[kept]
        for k in range(kept):
            if _is_near(variables, n, q[k], q[kept], separation):
                costs[kept] = np.inf
                break
        if costs[kept] < np.inf:
            kept += 1
    return kept


@njit(
    "UniTuple(int64, 2)(float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], int64[::1], float64[::1], "
    "float64[::1], float64[::1], float64, float64[:, ::1], float64[::1], float64[::1])",
    **FAST_OUTER,
)
def solve_branches(
    target, claims, starts, numbers, shape, effort, reference, weight, separation, q, costs, attempt
):
    """Find the distinct solutions among claims; return how many, and steps made.

    Args:
        target: pose of the tip in the base link, (4, 4).
        claims: angles of a closed form, a column for each claim, (n, N).
        starts: more claims, as values of the variables, (S, n); the state is the first, so that there is one.
        numbers: the chain, see ``closed_form.py``.
        shape: rows of the motions' kinds.
        effort: as ``solvers.kernels.layout`` says.
        reference: values that solutions are measured from, (n,).
        weight: of each variable there.
        separation: least difference of two solutions in one of the variables.
        q: receives solutions, the nearest to the reference first, (S + N, n).
        costs: receives the squares of their weighted distances, (S + N,).
        attempt: receives the claim that was nearest to the target, inside the limits.
    """
    n = starts.shape[1]
    kinds, base = pointer_to(shape), pointer_to(numbers)
    tip = after(base, BASE_SIZE)
    motions = after(tip, TIP_SIZE)
    variables = after(motions, MOTION_SIZE * n)
    scales = after(variables, NUM_VARIABLE_ROWS * n)
    shifts = after(scales, n)
    goal = new_memory(12)
    lanes_q = new_memory(LANES * n)
    beyond = new_memory(LANES)
    errors = new_memory(LANES)
    work = new_memory(LANES * 13 * n)
    set_goal(base, pointer_to(target), goal)
    total = starts.shape[0] + claims.shape[1]
    count, steps, smallest = 0, 0, np.inf
    for group in range(0, total, LANES):
        _fill(group, starts, claims, scales, shifts, kinds, variables, reference, lanes_q, beyond)
        if group == 0:
            for j in range(n):
                attempt[j] = get(lanes_q, LANES * j)
        solved, before, made = _polish(kinds, motions, tip, variables, n, goal, effort, lanes_q, beyond, work)
        put_lanes(errors, 0, before)
        steps += made
        for lane in range(min(LANES, total - group)):
            if get(errors, lane) < smallest:
                smallest = get(errors, lane)
                for j in range(n):
                    attempt[j] = get(lanes_q, LANES * j + lane)
            if (solved >> lane) & 1 == 0:
                continue
            cost = 0.0
            for j in range(n):
                value = get(lanes_q, LANES * j + lane)
                q[count, j] = value
                cost += weight[j] * (value - reference[j]) ** 2
            costs[count] = cost
            count += 1
    return _sort_distinct(variables, q, costs, count, separation), steps
