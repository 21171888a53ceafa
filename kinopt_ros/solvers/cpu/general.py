"""Compiled inverse kinematics for everything beyond one plain target: several links at once, tolerances per axis,
free axes, several solutions, preferred postures. About three times slower per step than ``kernel.py``.

Rows of a target: position errors along, and orientation errors about, the axes of its frame; rows that are free, or
loose and satisfied, are zero. A step minimises the distance from a wish d inside the linearised targets,

    change = d + W^-1 J^T (J W^-1 J^T + damping)^-1 (error - J d),

where d is 0 and W the identity for a plain search, and d leads to the preferred posture and W is its weight when a
solution is brought nearer to it along the self-motion (Gauss-Newton for equality constraints: J. Nocedal, S. Wright,
"Numerical Optimization", 2nd ed. 2006, 18.1). Damping as in ``kernel.py``.

Functions of ``kernel.py`` are compiled into these.
"""

import numpy as np

from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.kernel import (
    _INNER,
    _OUTER,
    COLUMN,
    DAMPING,
    FAR,
    IS_TRANSLATION,
    LOWER,
    MAX_STALLS,
    MAX_STEPS,
    MIN_DAMPING,
    MULTIPLIER,
    ORIENTATION_WEIGHT,
    PERIOD,
    POLISH_STEPS,
    STALL_RATIO,
    STEP_LIMIT,
    UPPER,
    _choose_turn,
    _copy,
    _forward,
    _quaternion,
    _random_configuration,
)

ROWS = 6
"""Number of rows per target: three of position, three of orientation."""
AIM = 5e-7
"""Error (m and rad) to which attempts go on even if more is allowed, except along loose axes."""
LOOSE_POSITION, LOOSE_ORIENTATION = 5e-3, 0.05
"""Tolerances above these (m, rad) are used: what is inside 0.9 of them does not count."""
SLACK, LOOSE_AIM, ACCEPT = 0.9, 0.95, 0.999
LIMIT_ROUNDS = 3
"""Most times that variables pushed out of their limits are taken out of a step, and the rest solved again."""
POSTURE_STEPS = 40
POSTURE_REACH = 0.4
"""Largest wish of a posture step, rad or m: the targets are linear only so far."""
POSTURE_DONE = 2e-4
"""Largest change of a variable, rad or m, at which a posture step is the last."""
LEAST_WEIGHT = 1e-3
"""Share of the heaviest weight that variables without weight count."""

FLIPS = 3
"""Number of configurations tried per variable of a solution, see ``_flip``."""

# Entries of ``search``.
USE_SEEDS, TABLE_TRIES, LAST, RANDOM_SEED, POLISH, ENOUGH, MOST_STEPS = range(7)
# Entries of ``progress``: attempts made of each kind.
SEEDS, TABLE, RANDOM, POLISHED = range(4)


@njit(**_INNER)
def _set_goals(base, targets, b, goals):
    """Write position and rotation columns of every target in the frame before its first motion."""
    for t in range(base.shape[0]):
        for i in range(3):
            r0, r1, r2 = base[t, 3 + 3 * i], base[t, 4 + 3 * i], base[t, 5 + 3 * i]
            goals[t, i] = (
                base[t, i] + r0 * targets[t, b, 0, 3] + r1 * targets[t, b, 1, 3] + r2 * targets[t, b, 2, 3]
            )
            for k in range(3):
                goals[t, 3 + 3 * k + i] = (
                    r0 * targets[t, b, 0, k] + r1 * targets[t, b, 1, k] + r2 * targets[t, b, 2, k]
                )


@njit(**_INNER)
def _turn_to(x0, x1, x2, y0, y1, y2, z0, z1, z2, goal):
    """Return 2 sin(angle / 2) * axis of the rotation from columns x, y, z to the goal's columns."""
    # R = sum of goal_k tip_k^T
    q = _quaternion(
        goal[3] * x0 + goal[6] * y0 + goal[9] * z0,
        goal[4] * x0 + goal[7] * y0 + goal[10] * z0,
        goal[5] * x0 + goal[8] * y0 + goal[11] * z0,
        goal[3] * x1 + goal[6] * y1 + goal[9] * z1,
        goal[4] * x1 + goal[7] * y1 + goal[10] * z1,
        goal[5] * x1 + goal[8] * y1 + goal[11] * z1,
        goal[3] * x2 + goal[6] * y2 + goal[9] * z2,
        goal[4] * x2 + goal[7] * y2 + goal[10] * z2,
        goal[5] * x2 + goal[8] * y2 + goal[11] * z2,
    )
    f = -2.0 if q[0] < 0.0 else 2.0
    return f * q[1], f * q[2], f * q[3]


@njit(**_INNER)
def _orientation_rows(goal, tolerance, rotation, rows, directions):
    """Write orientation errors of one target, and the direction whose angular velocity changes each, in place.

    ``rotation``: columns of the tip's rotation, 9 numbers. Definitions: kinematics/pose_errors.py; angles are
    measured by 2 sin(angle / 2), as in ``kernel.py``.
    """
    free = 0
    one, last = 0, 0
    for k in range(3):
        if np.isinf(tolerance[3 + k]):
            free += 1
            one = k
        else:
            last = k
        rows[3 + k] = 0.0
        for i in range(3):
            directions[3 + k, i] = goal[3 + 3 * k + i]
    if free == 0:
        ex, ey, ez = _turn_to(
            rotation[0], rotation[1], rotation[2], rotation[3], rotation[4], rotation[5], rotation[6], rotation[7],
            rotation[8], goal,
        )  # fmt: skip
        for k in range(3):
            rows[3 + k] = goal[3 + 3 * k] * ex + goal[4 + 3 * k] * ey + goal[5 + 3 * k] * ez
    elif free == 1:
        u0, u1, u2 = goal[3 + 3 * one], goal[4 + 3 * one], goal[5 + 3 * one]
        v0, v1, v2 = rotation[3 * one], rotation[3 * one + 1], rotation[3 * one + 2]
        c0, c1, c2 = v1 * u2 - v2 * u1, v2 * u0 - v0 * u2, v0 * u1 - v1 * u0
        cosine = u0 * v0 + u1 * v1 + u2 * v2
        sine = np.sqrt(c0 * c0 + c1 * c1 + c2 * c2)
        if sine > 1e-12:
            f = np.sqrt(max(0.0, 2.0 - 2.0 * cosine)) / sine  # 2 sin(angle / 2) / sin(angle)
            if cosine > 0.0:
                f = 1.0 / np.sqrt(0.5 + 0.5 * cosine)  # this form has no cancellation
            c0, c1, c2 = f * c0, f * c1, f * c2
        elif cosine < 0.0:  # half a turn, about any perpendicular axis
            k = (one + 1) % 3
            c0, c1, c2 = 2.0 * goal[3 + 3 * k], 2.0 * goal[4 + 3 * k], 2.0 * goal[5 + 3 * k]
        for k in range(3):
            if k != one:
                rows[3 + k] = goal[3 + 3 * k] * c0 + goal[4 + 3 * k] * c1 + goal[5 + 3 * k] * c2
    elif free == 2:
        # Twist of R_target_tip about the axis: its quaternion, up to a factor.
        i, j = (last + 1) % 3, (last + 2) % 3
        trace = 0.0
        difference = 0.0
        for a in range(3):
            for k in range(3):
                trace += goal[3 + 3 * k + a] * rotation[3 * k + a]
            # R[j, i] - R[i, j] with R[r, c] = goal_r . tip_c
            difference += (
                goal[3 + 3 * j + a] * rotation[3 * i + a] - goal[3 + 3 * i + a] * rotation[3 * j + a]
            )
        w, v = 1.0 + trace, difference
        length = np.sqrt(w * w + v * v)
        if length > 1e-12:
            # sin(half the twist); w is not negative, so that the half twist is in [-pi/2, pi/2]
            rows[3 + last] = -2.0 * v / length
        else:
            rows[3 + last] = 2.0
        cosine = 0.0
        for a in range(3):
            cosine += goal[3 + 3 * last + a] * rotation[3 * last + a]
        f = 1.0 / max(0.1, 1.0 + cosine)
        for a in range(3):
            directions[3 + last, a] = f * (goal[3 + 3 * last + a] + rotation[3 * last + a])


@njit(**_INNER)
def _judge(rows, tolerance, scalar, first, loose):
    """Return the error of three rows in units of what is accepted, squared, and whether the aim is met.

    Rows that shall not count any more are shortened or zeroed in place.
    """
    error = 0.0
    met = True
    if scalar:
        length = np.sqrt(rows[first] ** 2 + rows[first + 1] ** 2 + rows[first + 2] ** 2)
        limit = tolerance[first]
        if np.isinf(limit):
            rows[first] = rows[first + 1] = rows[first + 2] = 0.0
            return 0.0, True
        if limit > loose:
            met = length <= LOOSE_AIM * limit
            g = max(0.0, 1.0 - SLACK * limit / (length + 1e-300))
            rows[first] *= g
            rows[first + 1] *= g
            rows[first + 2] *= g
        else:
            met = length <= min(AIM, 0.5 * limit)
        return (length / (ACCEPT * limit)) ** 2, met
    for k in range(first, first + 3):
        limit = tolerance[k]
        if np.isinf(limit):
            rows[k] = 0.0
            continue
        size = abs(rows[k])
        if limit > loose:
            met = met and size <= LOOSE_AIM * limit
            rows[k] *= max(0.0, 1.0 - SLACK * limit / (size + 1e-300))
        else:
            met = met and size <= min(AIM, 0.5 * limit)
        error = max(error, (size / (ACCEPT * limit)) ** 2)
    return error, met


@njit(**_INNER)
def _residuals(
    base, tip, motions, kinds, starts, goals, tolerance, scalar, q, axes, rows, directions, jacobian
):
    """Write weighted errors of all targets and their Jacobian (a row of ``jacobian`` per variable), in place.

    Returns the largest error in units of what is accepted, squared (at most 1: a solution), and whether all aims
    are met.
    """
    worst = 0.0
    met = True
    rotation = directions[directions.shape[0] - 3 :].reshape(9)
    for j in range(jacobian.shape[0]):
        for r in range(jacobian.shape[1]):
            jacobian[j, r] = 0.0
    for t in range(base.shape[0]):
        a, z = starts[t], starts[t + 1]
        px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = _forward(motions[a:z], kinds[a:z], q, tip[t], axes)
        goal = goals[t]
        for c in range(3):  # the last fixed rotation, whose transpose is stored
            f0, f1, f2 = base[t, 12 + 3 * c], base[t, 13 + 3 * c], base[t, 14 + 3 * c]
            rotation[3 * c] = f0 * xx + f1 * yx + f2 * zx
            rotation[3 * c + 1] = f0 * xy + f1 * yy + f2 * zy
            rotation[3 * c + 2] = f0 * xz + f1 * yz + f2 * zz
        block = rows[ROWS * t : ROWS * (t + 1)]
        dx, dy, dz = goal[0] - px, goal[1] - py, goal[2] - pz
        for k in range(3):
            directions[k, 0], directions[k, 1], directions[k, 2] = (
                goal[3 + 3 * k],
                goal[4 + 3 * k],
                goal[5 + 3 * k],
            )
            block[k] = directions[k, 0] * dx + directions[k, 1] * dy + directions[k, 2] * dz
        _orientation_rows(goal, tolerance[t], rotation, block, directions)
        for group in range(2):
            error, ok = _judge(
                block,
                tolerance[t],
                scalar[t, group] != 0,
                3 * group,
                LOOSE_ORIENTATION if group else LOOSE_POSITION,
            )
            worst, met = max(worst, error), met and ok
        for i in range(z - a):
            j = kinds[a + i, COLUMN]
            f = motions[a + i, MULTIPLIER]
            ax, ay, az = f * axes[i, 0], f * axes[i, 1], f * axes[i, 2]
            if kinds[a + i, IS_TRANSLATION] == 0:
                rx, ry, rz = px - axes[i, 3], py - axes[i, 4], pz - axes[i, 5]
                vx, vy, vz = ay * rz - az * ry, az * rx - ax * rz, ax * ry - ay * rx
                for k in range(3, 6):
                    if not np.isinf(tolerance[t, k]):
                        jacobian[j, ROWS * t + k] += ORIENTATION_WEIGHT * (
                            directions[k, 0] * ax + directions[k, 1] * ay + directions[k, 2] * az
                        )
            else:
                vx, vy, vz = ax, ay, az
            for k in range(3):
                jacobian[j, ROWS * t + k] += (
                    directions[k, 0] * vx + directions[k, 1] * vy + directions[k, 2] * vz
                )
        for k in range(3, 6):
            block[k] *= ORIENTATION_WEIGHT
        _drop_rows(block, tolerance[t], scalar[t], jacobian[:, ROWS * t : ROWS * (t + 1)])
    return worst, met


@njit(**_INNER)
def _drop_rows(rows, tolerance, scalar, jacobian):
    """Take free rows out of the Jacobian, and loose ones that are satisfied."""
    for group in range(2):
        loose = LOOSE_ORIENTATION if group else LOOSE_POSITION
        first = 3 * group
        satisfied = rows[first] == 0.0 and rows[first + 1] == 0.0 and rows[first + 2] == 0.0
        for k in range(first, first + 3):
            limit = tolerance[k]
            done = satisfied if scalar[group] != 0 else rows[k] == 0.0
            if np.isinf(limit) or (limit > loose and done):
                for j in range(jacobian.shape[0]):
                    jacobian[j, k] = 0.0


@njit(**_INNER)
def _cholesky_solve(a, x):
    """Replace x by a^-1 x for a symmetric positive definite a, of which the lower triangle is used and overwritten."""
    size = x.shape[0]
    for i in range(size):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] * a[j, k]
            if i == j:
                a[i, i] = np.sqrt(max(s, 1e-300))
            else:
                a[i, j] = s / a[j, j]
    for i in range(size):
        s = x[i]
        for k in range(i):
            s -= a[i, k] * x[k]
        x[i] = s / a[i, i]
    for i in range(size - 1, -1, -1):
        s = x[i]
        for k in range(i + 1, size):
            s -= a[k, i] * x[k]
        x[i] = s / a[i, i]


@njit(**_INNER)
def _move(variables, rows, jacobian, wish, ease, normal, y, frozen, change, q, squared):
    """Make one step inside the limits (see the module); return the largest change of a variable."""
    n, size = jacobian.shape
    damping = DAMPING * min(squared, FAR) + MIN_DAMPING
    for j in range(n):
        frozen[j] = 0.0
    for _ in range(LIMIT_ROUNDS):
        for r in range(size):
            y[r] = rows[r]
            for c in range(r + 1):
                normal[r, c] = 0.0
            normal[r, r] = damping
        for j in range(n):
            if frozen[j] == 0.0:
                for r in range(size):
                    value = jacobian[j, r]
                    if value != 0.0:
                        y[r] -= value * wish[j]
                        value *= ease[j]
                        for c in range(r + 1):
                            normal[r, c] += value * jacobian[j, c]
        _cholesky_solve(normal, y)
        blocked = False
        for j in range(n):
            change[j] = 0.0
            if frozen[j] == 0.0:
                s = 0.0
                for r in range(size):
                    s += jacobian[j, r] * y[r]
                s = wish[j] + ease[j] * s
                if (s < 0.0 and q[j] <= variables[LOWER, j]) or (s > 0.0 and q[j] >= variables[UPPER, j]):
                    frozen[j] = 1.0
                    blocked = True
                else:
                    change[j] = s
        if not blocked:
            break
    largest = 0.0
    for j in range(n):
        most = variables[STEP_LIMIT, j]
        moved = q[j] + min(max(change[j], -most), most)
        moved = min(max(moved, variables[LOWER, j]), variables[UPPER, j])
        largest = max(largest, abs(moved - q[j]))
        q[j] = moved
    return largest


@njit(**_INNER)
def _descend(
    tree, goals, tolerance, scalar, work, posture, weight, ease, plain, wish, q, draws, max_steps, max_stalls
):
    """Make steps from q, in place, until all aims are met or progress ends; return the error and the number of steps.

    Up to ``draws`` steps before lead from a solution towards the posture, along the self-motion.
    """
    base, tip, motions, kinds, starts, variables = tree
    axes, rows, directions, jacobian, normal, y, frozen, change = work
    previous = np.inf
    reach = POSTURE_REACH
    stalls = 0
    steps = 0
    made = 0
    while True:
        worst, met = _residuals(
            base, tip, motions, kinds, starts, goals, tolerance, scalar, q, axes, rows, directions, jacobian
        )
        squared = 0.0
        for r in range(rows.shape[0]):
            squared += rows[r] * rows[r]
        softness = squared
        easy = plain
        f = 0.0
        if draws > 0:
            if squared > 1e-3 and squared > previous:
                reach *= 0.5
            most = 1e-300
            for j in range(q.shape[0]):
                wish[j] = posture[j] - q[j] if weight[j] > 0.0 else 0.0
                most = max(most, abs(wish[j]))
            f = min(1.0, reach / most)
            softness = 0.01 * squared
            easy = ease
        elif met:
            return worst, made
        else:
            if not squared <= STALL_RATIO * previous:
                stalls += 1
            if steps >= max_steps or (stalls >= max_stalls and worst > 1.0):
                return worst, made
            steps += 1
        for j in range(q.shape[0]):
            wish[j] *= f
        previous = squared
        largest = _move(variables, rows, jacobian, wish, easy, normal, y, frozen, change, q, softness)
        made += 1
        if draws > 0:
            draws = 0 if largest < POSTURE_DONE else draws - 1
            if draws == 0:
                previous = np.inf


@njit(**_INNER)
def _cost(weight, reference, q):
    cost = 0.0
    for j in range(q.shape[0]):
        cost += weight[j] * (q[j] - reference[j]) ** 2
    return cost


@njit(**_INNER)
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
            w, x, y, z = _quaternion(
                goal[3], goal[4], goal[5], goal[6], goal[7], goal[8], goal[9], goal[10], goal[11]
            )
            f = 4.0 * ORIENTATION_WEIGHT * ORIENTATION_WEIGHT
            for i in range(scores.shape[0]):
                dot = poses[t, 3, i] * w + poses[t, 4, i] * x + poses[t, 5, i] * y + poses[t, 6, i] * z
                scores[i] += f * abs(1.0 - dot * dot)


@njit(**_INNER)
def _nearest(scores):
    smallest = 0
    for i in range(scores.shape[0]):
        if scores[i] < scores[smallest]:
            smallest = i
    return smallest


@njit(**_INNER)
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


@njit(**_INNER)
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


@njit(**_OUTER)
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
        variables: limits and the like, see ``kernel.py``.
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
        _set_goals(base, targets, b, goals)
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
                worst, made = _descend(
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


@njit(**_OUTER)
def tree_poses(base, tip, motions, kinds, starts, table, poses):
    """Compute poses (x, y, z, qw, qx, qy, qz) of every target's tip for the table of seeds, as ``goals`` are given."""
    axes = np.empty((motions.shape[0], 6))
    for t in range(base.shape[0]):
        a, z = starts[t], starts[t + 1]
        for i in range(table.shape[0]):
            px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = _forward(
                motions[a:z], kinds[a:z], table[i], tip[t], axes
            )
            poses[t, 0, i], poses[t, 1, i], poses[t, 2, i] = px, py, pz
            f = base[t, 12:21]
            poses[t, 3, i], poses[t, 4, i], poses[t, 5, i], poses[t, 6, i] = _quaternion(
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
    for function, signature in _COMPILED:
        if function.overloads:
            continue
        # What Dispatcher.compile asks first, too; numba has no public way to ask for nothing more.
        if not may_compile and function._cache.load_overload(signature, function.targetctx) is None:
            return False
        function.compile(signature)
        function.disable_compile()  # other argument types are a mistake, not a reason to compile in a request
    return True
