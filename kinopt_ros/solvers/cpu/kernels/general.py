"""Compiled inverse kinematics for everything beyond one plain target: several links at once, tolerances per axis,
free axes, several solutions, preferred postures. About three times slower per step than ``plain.py``.
"""

import numpy as np

from kinopt_ros.compiler_options import FAST_INNER, FAST_OUTER
from kinopt_ros.numba_cache import loaded_or_compiled, njit
from kinopt_ros.solvers.cpu.kernels.general_descent import LEAST_WEIGHT, descend_to_poses
from kinopt_ros.solvers.cpu.kernels.pose_rows import ROWS, set_goals
from kinopt_ros.solvers.cpu.kernels.starts import _random_configuration
from kinopt_ros.solvers.kernels.forward import quaternion, tip_pose
from kinopt_ros.solvers.kernels.layout import LOWER, PERIOD, UPPER
from kinopt_ros.solvers.kernels.memory import _copy
from kinopt_ros.solvers.kernels.tuning import MAX_STALLS, MAX_STEPS, ORIENTATION_WEIGHT, POLISH_STEPS
from kinopt_ros.solvers.kernels.turns import _choose_turn

POSTURE_STEPS = 40
FLIPS = 3
"""Number of configurations tried per variable of a solution, see ``_flip``."""
# Entries of ``search``.
USE_SEEDS, TABLE_TRIES, LAST, RANDOM_SEED, POLISH, ENOUGH, MOST_STEPS = range(7)
# Entries of ``progress``: attempts made of each kind.
SEEDS, TABLE, RANDOM, POLISHED = range(4)


@njit(**FAST_INNER)
def _cost(weight, reference, q):
    cost = 0.0
    for j in range(q.shape[0]):
        cost += weight[j] * (q[j] - reference[j]) ** 2
    return cost


@njit(**FAST_INNER)
def _score(poses, goals, tolerance, base, scores):
    """Write the squared distance of every table entry from the targets, in what is not free."""
    for i in range(scores.shape[0]):
        scores[i] = 0.0
    for t in range(goals.shape[0]):
        goal = goals[t]
        if not (np.isinf(tolerance[t, 0]) or np.isinf(tolerance[t, 1]) or np.isinf(tolerance[t, 2])):
            for i in range(scores.shape[0]):
                dx, dy, dz = (
                    poses[t, 0, i] - goal[0],
                    poses[t, 1, i] - goal[1],
                    poses[t, 2, i] - goal[2],
                )
                scores[i] += dx * dx + dy * dy + dz * dz
        if not (np.isinf(tolerance[t, 3]) or np.isinf(tolerance[t, 4]) or np.isinf(tolerance[t, 5])):
            w, x, y, z = quaternion(
                goal[3], goal[4], goal[5], goal[6], goal[7], goal[8], goal[9], goal[10], goal[11]
            )
            f = 4.0 * ORIENTATION_WEIGHT * ORIENTATION_WEIGHT
            for i in range(scores.shape[0]):
                dot = poses[t, 3, i] * w + poses[t, 4, i] * x + poses[t, 5, i] * y + poses[t, 6, i] * z
                scores[i] += f * abs(1.0 - dot * dot)


@njit(**FAST_INNER)
def _nearest(scores):
    smallest = 0
    for i in range(scores.shape[0]):
        if scores[i] < scores[smallest]:
            smallest = i
    return smallest


@njit(**FAST_INNER)
def _flip(source, number, variables, q):
    """Make a configuration that may lead from one branch to another.

    Joint j is turned by half a turn, mirrored, or mirrored with half turns of its neighbours, as wrists flip.
    """
    n = q.shape[0]
    _copy(source, q)
    j, kind = number // FLIPS, number % FLIPS
    if kind == 0:
        q[j] += np.pi
    else:
        q[j] = -q[j]
        if kind == 2:
            if j > 0:
                q[j - 1] += np.pi
            if j + 1 < n:
                q[j + 1] += np.pi
    for k in range(n):
        low, high = variables[LOWER, k], variables[UPPER, k]
        if q[k] > high and variables[PERIOD, k] > 0.0:
            q[k] -= 2.0 * np.pi
        q[k] = min(max(q[k], low), high)


@njit(**FAST_INNER)
def _keep(q, cost, separation, periodic, found, costs, flips, count):
    """Add a solution to the found ones; return their new number.

    It takes the place of those that it is not distinct from, if it is better than all of these; of too many, the better
    stay.
    """
    n = q.shape[0]
    left = 0  # number of rows that stay, which are moved together
    flipped = FLIPS * n
    for look in range(2):
        for k in range(count):
            same = True
            for j in range(n):
                difference = q[j] - found[k, j]
                if periodic[j]:
                    difference -= 2.0 * np.pi * np.rint(difference / (2.0 * np.pi))
                if abs(difference) > separation:
                    same = False
                    break
            if same:
                if costs[k] <= cost:
                    return count
                flipped = min(flipped, flips[k])
            elif look == 1:
                if left < k:
                    costs[left] = costs[k]
                    flips[left] = flips[k]
                    _copy(found[k], found[left])
                left += 1
    place = left
    if left == count:  # distinct from all
        flipped = 0
        if count == found.shape[0]:
            place = 0
            for k in range(count):
                if costs[k] > costs[place]:
                    place = k
            if costs[place] <= cost:
                return count
            left -= 1
    costs[place] = cost
    flips[place] = flipped
    _copy(q, found[place])
    return left + 1


@njit(**FAST_OUTER)
def solve_general(
    targets, seeds, reference, posture, weight, base, tip, motions, kinds, starts, variables, table, poses,
    tolerance, scalar, separation, periodic, search, found, costs, flips, count, progress, best, errors, steps, done,
):  # fmt: skip
    """Search for every request that is not ``done``; what follows ``search`` is updated in place.

    Args:
        targets: (T, B, 4, 4).
        seeds: (B, S, n).
        reference: (B, n), what whole turns are chosen by.
        posture: (B, n), wanted values; without rows if any will do.
        weight: (n,), of the posture.
        base, tip, motions, kinds, starts: packed chains, see ``tree.py``.
        variables: limits and the like, see ``layout.py``.
        table, poses: seeds (k, n) and their poses (T, 7, k).
        tolerance: (T, 6), m and rad; inf frees an axis.
        scalar: (T, 2), whether the first position (orientation) tolerance bounds the length of the error.
        separation, periodic: what makes solutions distinct.
        search: see ``USE_SEEDS`` and the following.
        found: (B, K, n), solutions, of which the first ``count`` are valid; costs likewise; flips: (B, K), how many
            were tried from each.
        progress: (B, 4), attempts made, see ``SEEDS`` and the following.
        best: (B, n), best attempt; errors: (B,), its error.

    Returns:
        Whether the search is through. If not, its steps are spent: call again to go on where it stopped.
    """
    n, T = variables.shape[1], base.shape[0]
    longest = 0
    for t in range(T):
        longest = max(longest, starts[t + 1] - starts[t])
    tree = (base, tip, motions, kinds, starts, variables)
    work = (
        np.empty((longest, 6)),
        np.zeros(ROWS * T),
        np.empty((ROWS + 3, 3)),
        np.empty((n, ROWS * T)),
        np.empty((ROWS * T, ROWS * T)),
        np.empty(ROWS * T),
        np.empty(n),
        np.empty(n),
    )
    goals = np.empty((T, 12))
    wish, plain, ease, now = np.zeros(n), np.ones(n), np.ones(n), np.empty(n)
    scores = np.empty(table.shape[0])
    wanted = posture.shape[0] > 0
    if wanted:
        heaviest = 1e-300
        for j in range(n):
            heaviest = max(heaviest, weight[j])
        for j in range(n):
            ease[j] = 1.0 / max(weight[j] / heaviest, LEAST_WEIGHT)
    capacity = found.shape[1]
    spent = 0
    for b in range(targets.shape[1]):
        if done[b]:
            continue
        set_goals(base, targets, b, goals)
        wanted_b = posture[b] if wanted else reference[b]
        tried = progress[b]
        scored = False
        while True:
            if not wanted and count[b] == capacity:
                done[b] = True
                break
            if spent >= search[MOST_STEPS]:
                return False
            max_steps, max_stalls = MAX_STEPS, MAX_STALLS
            flipped = count[b]  # a solution from which not every flip was tried
            if capacity > 1 or wanted:
                flipped = 0
                while flipped < count[b] and flips[b, flipped] == FLIPS * n:
                    flipped += 1
            if search[USE_SEEDS] != 0 and tried[SEEDS] < seeds.shape[1] + 1:
                number = tried[SEEDS]  # the posture comes first
                tried[SEEDS] += 1
                if number == 0 and not wanted:
                    continue
                for j in range(n):
                    value = seeds[b, number - 1, j] if number > 0 else posture[b, j]
                    if variables[PERIOD, j] > 0.0 and abs(value) > np.pi:
                        turned = value - 2.0 * np.pi * np.rint(value / (2.0 * np.pi))
                        if variables[LOWER, j] <= turned <= variables[UPPER, j]:
                            value = turned
                    now[j] = min(max(value, variables[LOWER, j]), variables[UPPER, j])
            elif search[USE_SEEDS] != 0 and tried[TABLE] < min(search[TABLE_TRIES], table.shape[0]):
                nearest = 0
                if not scored:
                    _score(poses, goals, tolerance, base, scores)
                for _ in range(1 if scored else tried[TABLE] + 1):
                    nearest = _nearest(scores)
                    scores[nearest] = np.inf
                scored = True
                _copy(table[nearest], now)
                tried[TABLE] += 1
            elif flipped < count[b]:
                _flip(found[b, flipped], flips[b, flipped], variables, now)
                flips[b, flipped] += 1
            elif count[b] > 0 and tried[RANDOM] >= search[ENOUGH]:
                done[b] = True
                break
            elif tried[RANDOM] < search[LAST]:
                _random_configuration(search[RANDOM_SEED], tried[RANDOM], variables, now)
                tried[RANDOM] += 1
            elif search[POLISH] != 0 and count[b] == 0 and tried[POLISHED] == 0:
                # Attempts were abandoned once they could not succeed: bring the best one as near as it gets.
                _copy(best[b], now)
                max_steps, max_stalls = POLISH_STEPS, POLISH_STEPS
                tried[POLISHED] = 1
            else:
                break
            cost = np.inf
            for refining in range(2 if wanted else 1):
                worst, made = descend_to_poses(
                    tree, goals, tolerance, scalar, work, wanted_b, weight, ease, plain, wish, now,
                    POSTURE_STEPS * refining, max_steps, max_stalls,
                )  # fmt: skip
                steps[b] += made
                spent += made
                if worst < errors[b]:
                    errors[b] = worst
                    _copy(now, best[b])
                if worst > 1.0:
                    break
                before = cost
                _choose_turn(variables, reference[b], now)
                cost = _cost(weight, wanted_b, now)
                if cost < before:
                    count[b] = _keep(now, cost, separation, periodic, found[b], costs[b], flips[b], count[b])
                max_steps, max_stalls = POLISH_STEPS, MAX_STALLS
    return True


@njit(**FAST_OUTER)
def tree_poses(base, tip, motions, kinds, starts, table, poses):
    """Compute poses (x, y, z, qw, qx, qy, qz) of every target's tip for the table of seeds, as ``goals`` are given."""
    axes = np.empty((motions.shape[0], 6))
    for t in range(base.shape[0]):
        a, z = starts[t], starts[t + 1]
        for i in range(table.shape[0]):
            px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = tip_pose(
                motions[a:z], kinds[a:z], table[i], tip[t], axes
            )
            poses[t, 0, i], poses[t, 1, i], poses[t, 2, i] = px, py, pz
            f = base[t, 12:21]
            poses[t, 3, i], poses[t, 4, i], poses[t, 5, i], poses[t, 6, i] = quaternion(
                f[0] * xx + f[1] * yx + f[2] * zx,
                f[0] * xy + f[1] * yy + f[2] * zy,
                f[0] * xz + f[1] * yz + f[2] * zz,
                f[3] * xx + f[4] * yx + f[5] * zx,
                f[3] * xy + f[4] * yy + f[5] * zy,
                f[3] * xz + f[4] * yz + f[5] * zz,
                f[6] * xx + f[7] * yx + f[8] * zx,
                f[6] * xy + f[7] * yy + f[8] * zy,
                f[6] * xz + f[7] * yz + f[8] * zz,
            )


_F1, _F2, _F3, _F4 = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]", "float64[:, :, :, ::1]"
_I1, _I2, _B1 = "int64[::1]", "int64[:, ::1]", "boolean[::1]"
_TREE = f"{_F2}, {_F2}, {_F2}, {_I2}, {_I1}"
_COMPILED = (
    (
        solve_general,
        f"boolean({_F4}, {_F3}, {_F2}, {_F2}, {_F1}, {_TREE}, {_F2}, {_F2}, {_F3}, {_F2}, {_I2}, float64, {_B1}, "
        f"{_I1}, {_F3}, {_F2}, {_I2}, {_I1}, {_I2}, {_F2}, {_F1}, {_I1}, {_B1})",
    ),
    (tree_poses, f"void({_TREE}, {_F2}, {_F3})"),
)


def load_or_compile(may_compile: bool) -> bool:
    """Make both entry points ready; return whether they are.

    They are loaded if they were compiled before, else compiled if that may be.

    Whether they are ready.
    """
    return all(loaded_or_compiled(function, signature, may_compile) for function, signature in _COMPILED)
