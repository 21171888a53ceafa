"""Compiled inverse kinematics for one pose: damped least squares from many seeds, one thread, no allocation.

A robot comes as two packed arrays, ``numbers`` and ``shape`` (``layout.py``): every further array argument would add
some 0.1 us to each call. Inside, arrays are bare pointers (``memory.py``). ``LANES`` attempts are made in step with
each other by vector instructions, and the first to succeed ends them all: an attempt fails in one case of four and
takes 4 to 8 steps, the quickest of four hardly ever fails and takes 5.

All poses are relative to the frame before the first motion, and every motion is about or along its local z axis.
"""

import numpy as np
from numba import types

from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER, FAST_OUTER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.kernels.starts import nearest_of_each_lane, random_value, score_table
from kinopt_ros.solvers.kernels.descent import descend
from kinopt_ros.solvers.kernels.forward import quaternion, tip_pose
from kinopt_ros.solvers.kernels.goal import set_goal
from kinopt_ros.solvers.kernels.lanes import LANES, lanes_below, put_lanes
from kinopt_ros.solvers.kernels.layout import (
    ACCEPT_ORIENTATION,
    ACCEPT_POSITION,
    BASE_SIZE,
    KIND_SIZE,
    LOWER,
    MOTION_SIZE,
    NUM_MOTIONS,
    NUM_SEEDS,
    NUM_VARIABLE_ROWS,
    NUM_VARIABLES,
    PERIOD,
    POSE_SIZE,
    SAMPLE_LOWER,
    SAMPLE_UPPER,
    SHAPE_HEADER,
    TIP_SIZE,
    UPPER,
)
from kinopt_ros.solvers.kernels.memory import after, as_indices, get, new_memory, pointer_to, put
from kinopt_ros.solvers.kernels.tuning import (
    MAX_STALLS,
    MAX_STEPS,
    ORIENTATION_WEIGHT,
    POLISH_STEPS,
    QUICK_TABLE_TRIES,
)
from kinopt_ros.solvers.kernels.turns import nearest_turn


@njit(**FAST_INNER)
def _search(robot, goal, effort, state, seeds, num_seeds, table_tries, first, last, random_seed, work, best):
    """Make attempts, some at once: seeds, of which the state is the first, near ones of the table, random numbers first
    to last.

    Ends when one reaches the aim, or ends inside the accepted tolerances; seeds go first. ``best`` receives the
    solution, or the attempt of the smallest normalised error. Returns that error, steps made, success.
    """
    n, m, k, kinds, _, tip, motions, variables, poses, table = robot
    accept_p2, accept_o2 = get(effort, ACCEPT_POSITION) ** 2, get(effort, ACCEPT_ORIENTATION) ** 2
    table_end = num_seeds + table_tries
    count = table_end + last - first
    q, errors, nearest, scores, rest = _work_parts(work, n, k)
    smallest = np.inf
    steps = 0
    for group in range(0, count, LANES):
        if group < table_end and table_end > num_seeds:
            if group <= num_seeds < group + LANES:
                score_table(poses, k, goal, scores)
            if num_seeds < group + LANES:
                nearest_of_each_lane(scores, k, nearest)
        for lane in range(LANES):
            attempt = group + lane
            if attempt < num_seeds:
                seed = after(seeds, n * (attempt - 1)) if attempt > 0 else state
                for j in range(n):
                    lower, upper, period = _limits(variables, n, j)
                    value = get(seed, j)
                    if period > 0.0:  # an endless joint may have been turned far: stay precise
                        value -= period * np.rint(value / period)
                        if not (lower <= value <= upper):
                            value = get(seed, j)
                    put(q, LANES * j + lane, min(max(value, lower), upper))
            elif attempt < table_end:
                chosen = int(get(nearest, lane))
                put(scores, chosen, np.inf)
                seed = after(table, n * chosen)
                for j in range(n):
                    put(q, LANES * j + lane, get(seed, j))
            elif attempt < count:
                number = first + attempt - table_end
                for j in range(n):
                    low, high = get(variables, SAMPLE_LOWER * n + j), get(variables, SAMPLE_UPPER * n + j)
                    put(q, LANES * j + lane, random_value(random_seed, number, n, j, low, high))
            else:  # none left: as the first, which changes nothing
                for j in range(n):
                    put(q, LANES * j + lane, get(q, LANES * j))
        p2, o2, made, reached = descend(
            kinds, motions, tip, variables, n, m, goal, effort, rest, q, ORIENTATION_WEIGHT, MAX_STEPS, MAX_STALLS,
            min(max(num_seeds - group, 0), LANES),
        )  # fmt: skip
        steps += made
        accepted = lanes_below(p2, accept_p2) & lanes_below(o2, accept_o2)
        if reached != 0:
            accepted = reached
        put_lanes(errors, 0, p2 / accept_p2 + o2 / accept_o2)
        for lane in range(LANES):
            error = get(errors, lane)
            found = (accepted >> lane) & 1 != 0
            if found or error < smallest:
                smallest = error
                for j in range(n):
                    put(best, j, get(q, LANES * j + lane))
            if found:
                return smallest, steps, True
    return smallest, steps, False


@njit(**FAST_INLINE)
def _limits(variables, n, j):
    """Return lower limit, upper limit and period of variable j."""
    return get(variables, LOWER * n + j), get(variables, UPPER * n + j), get(variables, PERIOD * n + j)


@njit(**FAST_INLINE)
def _work_size(n, m, k):
    """Return the size of the memory that ``_work_parts`` divides, in numbers."""
    return LANES * (8 * n + 6 * m + 2) + (k + LANES - 1) // LANES * LANES


@njit(**FAST_INLINE)
def _work_parts(work, n, k):
    """Divide memory: configurations, errors, table seeds chosen, scores of the table, and the rest for ``descend``."""
    errors = after(work, LANES * n)
    nearest = after(errors, LANES)
    scores = after(nearest, LANES)
    return work, errors, nearest, scores, after(scores, (k + LANES - 1) // LANES * LANES)


@njit(**FAST_INLINE)
def _shape_size(shape):
    """Return the number of entries of ``shape``: header, motions, restarts, variables."""
    return SHAPE_HEADER + KIND_SIZE * get(shape, NUM_MOTIONS) + 1 + get(shape, NUM_VARIABLES)


@njit(**FAST_INLINE)
def _unpack(numbers, shape):
    """Return numbers of variables, motions and seeds, and pointers into the packed arrays, see
    ``chain.PackedChain``."""
    n, m, k = get(shape, NUM_VARIABLES), get(shape, NUM_MOTIONS), get(shape, NUM_SEEDS)
    kinds = after(shape, SHAPE_HEADER)
    tip = after(numbers, BASE_SIZE)
    motions = after(tip, TIP_SIZE)
    variables = after(motions, MOTION_SIZE * m)
    poses = after(variables, NUM_VARIABLE_ROWS * n)
    table = after(poses, POSE_SIZE * k)
    return n, m, k, kinds, numbers, tip, motions, variables, poses, table


_NUMBERS, _INDICES, _ROWS = types.float64[::1], types.int64[::1], types.float64[:, ::1]
_ROBOT = _EFFORT = _NUMBERS, _INDICES
_STATES = types.Array(types.float64, 2, "C", readonly=True)
_TARGETS = _SEEDS = types.Array(types.float64, 3, "C", readonly=True)


SOLVE_ONE = "boolean(float64[:, ::1], float64[::1], float64[::1])"
"""Signature of ``solve_one``, which is compiled when somebody wants it: benchmarks do."""


@njit(**FAST_OUTER)
def solve_one(target, packed, q):
    """Search one answer the quickest way: table seeds, then random ones. Return whether q solves the target to 1e-6.

    ``packed``: shape, as if its integers were floats, and numbers in one array.
    """
    shape = as_indices(pointer_to(packed))
    robot = _unpack(after(pointer_to(packed), _shape_size(shape)), shape)
    n, m, k, _, base, _, _, variables, _, table = robot
    goal = new_memory(12)
    work = new_memory(_work_size(n, m, k))
    best = pointer_to(q)
    set_goal(base, pointer_to(target), goal)
    _, _, success = _search(
        robot, goal, after(table, k * n), table, table, 0, min(QUICK_TABLE_TRIES, k),
        0, get(shape, SHAPE_HEADER + KIND_SIZE * m), 0, work, best,
    )  # fmt: skip
    for j in range(n):
        lower, upper, period = _limits(variables, n, j)
        q[j] = nearest_turn(q[j], 0.0, lower, upper, period)
    return success


@njit(
    types.void(_TARGETS, _STATES, _SEEDS, *_ROBOT, *_EFFORT, _ROWS, _NUMBERS, _INDICES, types.boolean[::1]),
    **FAST_OUTER,
)
def solve_many(targets, states, seeds, numbers, shape, effort, search, q, errors, steps, solved):
    """Search for every request that is not yet ``solved``; q, errors, steps and solved are updated in place.

    ``states``: per request values of all variables of the robot: the first seed, and what joints with several
    equivalent turns shall be near to.
    ``search``: table seeds to try, first and last random number, random seed, polish the best attempt (0 or 1), try
    state and seeds (0 or 1).
    """
    robot = _unpack(pointer_to(numbers), pointer_to(shape))
    n, m, k, kinds, base, tip, motions, variables, _, _ = robot
    goal, state, best = new_memory(12), new_memory(n), new_memory(n)
    chosen = after(pointer_to(shape), _shape_size(pointer_to(shape)) - n)
    work = new_memory(_work_size(n, m, k))
    lanes_q, lanes_errors, _, _, rest = _work_parts(work, n, k)
    efforts = pointer_to(effort)
    accept_p2, accept_o2 = effort[ACCEPT_POSITION] ** 2, effort[ACCEPT_ORIENTATION] ** 2
    tries, first, last, random_seed, polish = search[0], search[1], search[2], search[3], search[4]
    num_seeds = seeds.shape[1] + 1 if search[5] else 0
    weight = min(max(effort[ACCEPT_POSITION] / effort[ACCEPT_ORIENTATION], 0.05), 1.0)
    for b in range(targets.shape[0]):
        if solved[b]:
            continue
        set_goal(base, after(pointer_to(targets), 16 * b), goal)
        for j in range(n):
            put(state, j, states[b, get(chosen, j)])
        error, made, success = _search(
            robot, goal, efforts, state, after(pointer_to(seeds), seeds.shape[1] * n * b), num_seeds, min(tries, k),
            first, last, random_seed, work, best,
        )  # fmt: skip
        steps[b] += made
        if error < errors[b] or success:
            errors[b] = error
            for j in range(n):
                q[b, j] = get(best, j)
        if polish and not success:
            # An attempt was abandoned once it could not succeed; bring the best one as near as it gets.
            for j in range(n):
                for lane in range(LANES):
                    put(lanes_q, LANES * j + lane, q[b, j])
            p2, o2, made, _ = descend(
                kinds, motions, tip, variables, n, m, goal, efforts, rest, lanes_q, weight, POLISH_STEPS,
                POLISH_STEPS, 0,
            )  # fmt: skip
            steps[b] += made
            success = lanes_below(p2, accept_p2) & lanes_below(o2, accept_o2) & 1 != 0
            put_lanes(lanes_errors, 0, p2 / accept_p2 + o2 / accept_o2)
            error = get(lanes_errors, 0)
            if error < errors[b] or success:
                errors[b] = error
                for j in range(n):
                    q[b, j] = get(lanes_q, LANES * j)
        for j in range(n):
            lower, upper, period = _limits(variables, n, j)
            q[b, j] = nearest_turn(q[b, j], get(state, j), lower, upper, period)
        solved[b] = success


@njit(types.void(*_ROBOT, _ROWS, _ROWS), **FAST_OUTER)
def tip_poses(numbers, shape, configurations, poses):
    """Compute poses (x, y, z, qw, qx, qy, qz) of the tip, for the table of seeds."""
    m = shape[NUM_MOTIONS]
    kinds = shape[SHAPE_HEADER : SHAPE_HEADER + KIND_SIZE * m].reshape((m, KIND_SIZE))
    tip = numbers[BASE_SIZE : BASE_SIZE + TIP_SIZE]
    motions = numbers[BASE_SIZE + TIP_SIZE : BASE_SIZE + TIP_SIZE + MOTION_SIZE * m].reshape((m, MOTION_SIZE))
    axes = np.empty((m, 6))
    for i in range(configurations.shape[0]):
        px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = tip_pose(
            motions, kinds, configurations[i], tip, axes
        )
        poses[0, i], poses[1, i], poses[2, i] = px, py, pz
        w, x, y, z = quaternion(xx, xy, xz, yx, yy, yz, zx, zy, zz)
        poses[3, i], poses[4, i], poses[5, i], poses[6, i] = w, x, y, z
