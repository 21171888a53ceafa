"""Errors of several targets and their Jacobian, row by row, compiled.

Rows of a target: position errors along, and orientation errors about, the axes of its frame; rows that are free, or
loose and satisfied, are zero.
"""

import numpy as np

from kinopt_ros.compiler_options import FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.kernels.forward import quaternion, tip_pose
from kinopt_ros.solvers.kernels.layout import COLUMN, IS_TRANSLATION, MULTIPLIER
from kinopt_ros.solvers.kernels.tuning import ORIENTATION_WEIGHT

ROWS = 6
"""Number of rows per target: three of position, three of orientation."""
AIM = 5e-7
"""Error (m and rad) to which attempts go on even if more is allowed, except along loose axes."""
LOOSE_POSITION, LOOSE_ORIENTATION = 5e-3, 0.05
"""Tolerances above these (m, rad) are used: what is inside 0.9 of them does not count."""
SLACK, LOOSE_AIM, ACCEPT = 0.9, 0.95, 0.999


@njit(**FAST_INNER)
def set_goals(base, targets, b, goals):
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


@njit(**FAST_INNER)
def _turn_to(x0, x1, x2, y0, y1, y2, z0, z1, z2, goal):
    """Return 2 sin(angle / 2) * axis of the rotation from columns x, y, z to the goal's columns."""
    # R = sum of goal_k tip_k^T
    q = quaternion(
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


@njit(**FAST_INNER)
def _orientation_rows(goal, tolerance, rotation, rows, directions):
    """Write orientation errors of one target, and the direction whose angular velocity changes each, in place.

    ``rotation``: columns of the tip's rotation, 9 numbers. Definitions: kinematics/pose_errors.py; angles are
    measured by 2 sin(angle / 2), as in ``descent.py``.
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


@njit(**FAST_INNER)
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


@njit(**FAST_INNER)
def residuals(
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
        px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = tip_pose(motions[a:z], kinds[a:z], q, tip[t], axes)
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


@njit(**FAST_INNER)
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
