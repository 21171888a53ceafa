"""Compiled: poses to reach and constraints along a path, as rows of a least-squares problem.

Errors are those of ``kinematics/pose_errors.py``, with their exact derivatives. With R = R_target_tip and w the angular
velocity of the tip in the target's frame:

- rotation vector e of R: e' = (I - [e]/2 + (1 - a/2 cot(a/2)) / a^2 [e]^2) w with a = |e| (the inverse of the left
  Jacobian of SO(3); J. Sola et al., "A micro Lie theory", 2018);
- swing e = a n of an axis u, with m = u x n: e' = n (n . w) + m (a cot(a) m + a u) . w;
- twist about u, 2 atan2(v . u, c) of the quaternion (c, v): (c^2 u + c (v x u) + (v . u) v) . w / (c^2 + (v . u)^2).
"""

import numpy as np

from kinopt_ros.compiler_options import FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.paths.kernels.frames import add_point_row, add_turn_row

# Columns of ``numbers``: poses of the tip on its node, of the base on its node, of the target in the base (rotation,
# row by row, then position); tolerances; lines: a point of the line and its direction, in the base; share of the
# tolerances beyond which errors are excess; weight of squared errors.
TIP, BASE, TARGET, TOLERANCE, LINE, SHARE, WEIGHT = 0, 12, 24, 36, 42, 48, 49
NUMBERS = 50
# Columns of ``integers``: kind; nodes of tip and base; first and last point that it holds for; whether the first
# position (orientation) tolerance bounds a length; whether the middle is aimed at where a tolerance is small.
KIND, TIP_NODE, BASE_NODE, FIRST, LAST, ONE_POSITION, ONE_ORIENTATION, AIM = range(8)
INTEGERS = 8
POSE, STRAIGHT = 0, 1

TIGHT_POSITION, TIGHT_ORIENTATION = 5e-3, 0.05
"""Tolerances up to these (m, rad) are aimed at the middle of; of larger ones 0.9 is used, of constraints always."""
USED = 0.9
ROWS = 6


@njit(**FAST_INNER)
def _compose(F, numbers, k, out):
    """Compute the pose of what is fixed to a node, in the root's frame: rotation (row-major), position."""
    B = numbers[k : k + 12]
    for i in range(3):
        a, b, c = F[3 * i], F[3 * i + 1], F[3 * i + 2]
        for j in range(3):
            out[3 * i + j] = a * B[j] + b * B[3 + j] + c * B[6 + j]
        out[9 + i] = a * B[9] + b * B[10] + c * B[11] + F[9 + i]


@njit(**FAST_INNER)
def orientation_errors(R, free, errors, directions):
    """Errors (3,) of a rotation (9,), 0 on free axes, and directions (3, 3): their derivatives by angular velocity in
    the frame of the target."""
    count, one, last = 0, 0, 0
    for k in range(3):
        errors[k] = 0.0
        for i in range(3):
            directions[k, i] = 0.0
        if free[k]:
            count += 1
            one = k
        else:
            last = k
    if count == 3:
        return
    if count == 1:
        u = one
        i, j = (u + 1) % 3, (u + 2) % 3
        vi, vj, vu = R[3 * i + u], R[3 * j + u], R[3 * u + u]
        sine = np.sqrt(vi * vi + vj * vj)
        angle = np.arctan2(sine, vu)
        ni, nj = (-vj / sine, vi / sine) if sine > 1e-9 else (1.0, 0.0)
        mi, mj = -nj, ni  # u x n
        ratio = angle * vu / sine if sine > 1e-9 else 1.0
        errors[i], errors[j] = angle * ni, angle * nj
        directions[i, i] = ni * ni + mi * ratio * mi
        directions[i, j] = ni * nj + mi * ratio * mj
        directions[i, u] = mi * angle
        directions[j, i] = nj * ni + mj * ratio * mi
        directions[j, j] = nj * nj + mj * ratio * mj
        directions[j, u] = mj * angle
        return
    # The quaternion (c, v), c >= 0; near half a turn from the largest entry.
    trace = R[0] + R[4] + R[8]
    c, v0, v1, v2 = 1.0 + trace, R[7] - R[5], R[2] - R[6], R[3] - R[1]
    if trace < 0.0:
        if R[0] >= R[4] and R[0] >= R[8]:
            c, v0, v1, v2 = R[7] - R[5], 1.0 + R[0] - R[4] - R[8], R[1] + R[3], R[2] + R[6]
        elif R[4] >= R[8]:
            c, v0, v1, v2 = R[2] - R[6], R[1] + R[3], 1.0 + R[4] - R[0] - R[8], R[5] + R[7]
        else:
            c, v0, v1, v2 = R[3] - R[1], R[2] + R[6], R[5] + R[7], 1.0 + R[8] - R[0] - R[4]
    length = np.sqrt(c * c + v0 * v0 + v1 * v1 + v2 * v2)
    if c < 0.0:
        length = -length
    c, v0, v1, v2 = c / length, v0 / length, v1 / length, v2 / length
    if count == 2:
        u, i, j = last, (last + 1) % 3, (last + 2) % 3
        vu = v0 if u == 0 else (v1 if u == 1 else v2)
        vi = v0 if i == 0 else (v1 if i == 1 else v2)
        vj = v0 if j == 0 else (v1 if j == 1 else v2)
        square = max(c * c + vu * vu, 1e-12)
        errors[u] = 2.0 * np.arctan2(vu, c)
        directions[u, u] = (c * c + vu * vu) / square
        directions[u, i] = (c * vj + vu * vi) / square
        directions[u, j] = (-c * vi + vu * vj) / square
        return
    sine = np.sqrt(v0 * v0 + v1 * v1 + v2 * v2)
    angle = 2.0 * np.arctan2(sine, c)
    f = angle / sine if sine > 1e-9 else 2.0
    e0, e1, e2 = f * v0, f * v1, f * v2
    h = (1.0 - 0.5 * angle * c / sine) / (angle * angle) if angle > 1e-4 else 1.0 / 12.0
    errors[0], errors[1], errors[2] = e0, e1, e2
    square = e0 * e0 + e1 * e1 + e2 * e2
    directions[0, 0] = 1.0 + h * (e0 * e0 - square)
    directions[1, 1] = 1.0 + h * (e1 * e1 - square)
    directions[2, 2] = 1.0 + h * (e2 * e2 - square)
    directions[0, 1], directions[1, 0] = 0.5 * e2 + h * e0 * e1, -0.5 * e2 + h * e0 * e1
    directions[0, 2], directions[2, 0] = -0.5 * e1 + h * e0 * e2, 0.5 * e1 + h * e0 * e2
    directions[1, 2], directions[2, 1] = 0.5 * e0 + h * e1 * e2, -0.5 * e0 + h * e1 * e2


@njit(**FAST_INNER)
def _drop(errors, directions, k):
    errors[k] = 0.0
    directions[k, 0] = directions[k, 1] = directions[k, 2] = 0.0


@njit(**FAST_INNER)
def _shorten(errors, directions, first, tolerance, one, tight, aim, share):
    """Replace three errors by what counts of them; return how far they are beyond a share of their tolerances.

    With one tolerance for all three the first row becomes the length, where less than the middle is asked for.
    """
    excess = 0.0
    if one:
        limit = tolerance[first]
        if np.isinf(limit):
            for k in range(first, first + 3):
                _drop(errors, directions, k)
            return 0.0
        a, b, c = errors[first], errors[first + 1], errors[first + 2]
        length = np.sqrt(a * a + b * b + c * c)
        excess = max(length - share * limit, 0.0)
        if not (aim and limit <= tight):
            f = 1.0 / max(length, 1e-12)
            for i in range(3):
                directions[first, i] = f * (
                    a * directions[first, i] + b * directions[first + 1, i] + c * directions[first + 2, i]
                )
            _drop(errors, directions, first + 1)
            _drop(errors, directions, first + 2)
            if length > USED * limit:
                errors[first] = length - USED * limit
            else:
                _drop(errors, directions, first)
        return excess
    for k in range(first, first + 3):
        limit = tolerance[k]
        if np.isinf(limit):
            _drop(errors, directions, k)
            continue
        size = abs(errors[k])
        excess = max(excess, size - share * limit)
        if not (aim and limit <= tight):
            if size > USED * limit:
                errors[k] = np.copysign(size - USED * limit, errors[k])
            else:
                _drop(errors, directions, k)
    return excess


@njit(**FAST_INNER)
def task_rows(tree, frames, numbers, integers, work, jacobian):
    """Compute errors of one task at one configuration, and how the variables change them, jacobian (6, n).

    ``work``: errors (6,), directions (6, 3), poses (3, 12), free (3,). Returns how far errors are beyond
    their tolerances, m or rad, whichever is more.
    """
    errors, directions, poses, free = work
    tip, base, target = poses[0], poses[1], poses[2]
    _compose(frames[integers[TIP_NODE]], numbers, TIP, tip)
    _compose(frames[integers[BASE_NODE]], numbers, BASE, base)
    px, py, pz = tip[9], tip[10], tip[11]
    for k in range(ROWS):
        errors[k] = 0.0
        for i in range(jacobian.shape[1]):
            jacobian[k, i] = 0.0
    excess = 0.0
    if integers[KIND] == POSE:
        _compose(base, numbers, TARGET, target)
        dx, dy, dz = px - target[9], py - target[10], pz - target[11]
        for k in range(3):
            errors[k] = target[k] * dx + target[3 + k] * dy + target[6 + k] * dz
            for i in range(3):
                directions[k, i] = 1.0 if i == k else 0.0
            free[k] = np.isinf(numbers[TOLERANCE + 3 + (0 if integers[ONE_ORIENTATION] else k)])
        R = base  # not needed any more but for its place: R_target_tip
        for i in range(3):
            for k in range(3):
                R[3 * i + k] = target[i] * tip[k] + target[3 + i] * tip[3 + k] + target[6 + i] * tip[6 + k]
        orientation_errors(R, free, errors[3:], directions[3:])
        tolerance, aim, share = numbers[TOLERANCE : TOLERANCE + 6], integers[AIM], numbers[SHARE]
        one, other = integers[ONE_POSITION], integers[ONE_ORIENTATION]
        excess = max(
            _shorten(errors, directions, 0, tolerance, one, TIGHT_POSITION, aim, share),
            _shorten(errors, directions, 3, tolerance, other, TIGHT_ORIENTATION, aim, share),
        )
    else:
        for i in range(12):
            target[i] = base[i]  # directions are those of the base
        x, y, z = px - base[9], py - base[10], pz - base[11]
        a = base[0] * x + base[3] * y + base[6] * z - numbers[LINE]
        b = base[1] * x + base[4] * y + base[7] * z - numbers[LINE + 1]
        c = base[2] * x + base[5] * y + base[8] * z - numbers[LINE + 2]
        u, v, w = numbers[LINE + 3], numbers[LINE + 4], numbers[LINE + 5]
        along = a * u + b * v + c * w
        a, b, c = a - along * u, b - along * v, c - along * w
        length = np.sqrt(a * a + b * b + c * c)
        excess = max(length - numbers[SHARE] * numbers[TOLERANCE], 0.0)
        for k in range(ROWS):
            _drop(errors, directions, k)
        if length > USED * numbers[TOLERANCE]:
            errors[0] = length - USED * numbers[TOLERANCE]
            directions[0, 0], directions[0, 1], directions[0, 2] = a / length, b / length, c / length
    for k in range(ROWS):
        a, b, c = directions[k, 0], directions[k, 1], directions[k, 2]
        if a == 0.0 and b == 0.0 and c == 0.0:
            continue
        ux = target[0] * a + target[1] * b + target[2] * c
        uy = target[3] * a + target[4] * b + target[5] * c
        uz = target[6] * a + target[7] * b + target[8] * c
        if k < 3:
            add_point_row(tree, frames, integers[TIP_NODE], px, py, pz, ux, uy, uz, jacobian[k])
            add_point_row(tree, frames, integers[BASE_NODE], px, py, pz, -ux, -uy, -uz, jacobian[k])
        else:
            add_turn_row(tree, frames, integers[TIP_NODE], ux, uy, uz, jacobian[k])
            add_turn_row(tree, frames, integers[BASE_NODE], -ux, -uy, -uz, jacobian[k])
    return excess
