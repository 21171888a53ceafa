"""Compiled float64 evaluation of costs, for verdicts: with numpy it takes most of the time of a small problem.

Written for the verdict alone, from the formulas of ``kinopt_ros.costs``, so that no error of a solver's kernels can be
in both. The tests hold it to the costs' own residuals by numpy; where numba is not installed, or nothing is compiled
yet, these take its place.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.compiler_options import INNER, OUTER
from kinopt_ros.numba_cache import njit

POSE, DISTANCE, LIMITS, INDEX, ALIGNMENT, LOOK_AT, CENTER_OF_MASS = range(7)
"""Formulas: ``link_pose`` and ``relative_pose``; ``rest`` and ``reference``; ``position_limits``;
``manipulability``; the others by name."""
FORMULA, FRAME, BASE, FIRST, SIZE, NUMBERS, LISTED, COUNT, VARIANT, ONE_SIDED, HOLDS = range(11)
"""Columns of ``Plan.costs``: formula; frame, and frame of the base link or -1; first row and number of them; where its
numbers begin; where what it lists begins in ``Plan.lists``, and its length; a switch; whether r <= 0 is content;
whether it has a tolerance."""
COLUMNS = 11
TOOL, IN_BASE_AXES = 1, 2
"""Variants of POSE, which can be added: numbers of a tool follow; the residual is along the axes of the base link."""
ROTATION, TRANSLATION, QUATERNION = range(3)
"""Kinds of motions, as in ``robot.chain.Motion``."""
_ROUNDINGS = 4.0 * np.finfo(np.float64).eps
_FLOOR = 1e-6
"""Added to the index, as in ``costs.manipulability``."""
_PARALLEL = 1e-24
"""Squared sine below which directions count as parallel, as in ``costs.directions``."""
_SMALL = 1e-4
"""Sine below which a series takes the place of a quotient."""


class Plan(NamedTuple):
    """A robot and a structure of costs: N elementary motions, F frames fixed to them, K costs with R rows in all."""

    parent: Annotated[Int64, "N"]
    """The motion before each; -1: none."""
    kind: Annotated[Int64, "N"]
    variable: Annotated[Int64, "N"]
    direction: Annotated[Int64, "N"]
    """Direction of the robot, of quaternions the first of three."""
    drive: Annotated[Float64, "N 2"]
    """Multiplier and offset."""
    axis: Annotated[Float64, "N 3"]
    basis: Annotated[Float64, "N 4 3 4"]
    """A motion behind its fixed transform is linear in (1, sin v, cos v, v) (``kinematics/motions.py``); of quaternions
    the first is the fixed transform."""
    frame_motion: Annotated[Int64, "F"]
    frame_fixed: Annotated[Float64, "F 3 4"]
    costs: Annotated[Int64, "K 11"]
    lists: Annotated[Int64, "L"]
    bounds: Annotated[Float64, "nv 2"]
    """Position limits of the directions."""
    masses: Annotated[Float64, "m 4"]
    """Share of the robot's mass of frames 0 to m - 1, and its centre in them, m."""


class Claims(NamedTuple):
    """What is judged: B configurations, and what each was asked for."""

    q: Annotated[Float64, "B nq"]
    state: Annotated[Float64, "B nq"]
    held: Annotated[Int64, "h"]
    """Variables that do not move."""
    moving: Annotated[Int64, "k"]
    limits: Annotated[Float64, "k 2"]
    """Of those that move."""
    mimics: Annotated[Float64, "m 4"]
    """Multiplier, offset and limits of mimic joints that they drive."""
    drivers: Annotated[Int64, "m"]
    numbers: Annotated[Float64, "B N"]
    weights: Annotated[Float64, "B R"]
    tolerances: Annotated[Float64, "B R"]
    """Of poses that of the distance in the first row, and that of the angle in the fourth."""


class Verdict(NamedTuple):
    """What is found."""

    right: Annotated[Bool, "B"]
    """Whether the numbers are finite, those of the costs, too, within limits, and what is held is."""
    residual: Annotated[Float64, "B R"]
    value: Annotated[Float64, "B K"]
    """Sums of weighted squares."""
    met: Annotated[Bool, "B"]
    """Whether all costs hold that have to."""


@njit(**INNER)
def _right(claims, b, most_held):
    """Return whether a configuration is within limits, and what is held where it was."""
    q = claims.q
    for k in range(q.shape[1]):
        if not np.isfinite(q[b, k]):
            return False
    for k in range(claims.held.shape[0]):
        v = claims.held[k]
        if not abs(q[b, v] - claims.state[b, v]) <= most_held:
            return False
    for k in range(claims.moving.shape[0]):
        value = q[b, claims.moving[k]]
        if not (claims.limits[k, 0] <= value <= claims.limits[k, 1]):
            return False
    for k in range(claims.drivers.shape[0]):
        value = claims.mimics[k, 0] * q[b, claims.drivers[k]] + claims.mimics[k, 1]
        rounding = _ROUNDINGS * (1.0 + abs(value))
        if not max(claims.mimics[k, 2] - value, value - claims.mimics[k, 3]) <= rounding:
            return False
    return True


@njit(**INNER)
def _product(A, B, out):
    """Write A B, of poses without their last rows."""
    for r in range(3):
        for c in range(4):
            total = A[r, 0] * B[0, c] + A[r, 1] * B[1, c] + A[r, 2] * B[2, c]
            out[r, c] = total + A[r, 3] if c == 3 else total


@njit(**INNER)
def _place(plan, q, local, motions, frames):
    """Write the poses behind all motions, and those of all frames, in the root link."""
    for i in range(plan.parent.shape[0]):
        v, basis = plan.variable[i], plan.basis[i]
        if plan.kind[i] == QUATERNION:
            w, x, y, z = q[v], q[v + 1], q[v + 2], q[v + 3]
            f = 2.0 / (w * w + x * x + y * y + z * z)
            if plan.drive[i, 0] < 0.0:
                w = -w
            R = motions[i]  # a place to put it until the product is made
            R[0, 0], R[0, 1], R[0, 2] = 1.0 - f * (y * y + z * z), f * (x * y - w * z), f * (x * z + w * y)
            R[1, 0], R[1, 1], R[1, 2] = f * (x * y + w * z), 1.0 - f * (x * x + z * z), f * (y * z - w * x)
            R[2, 0], R[2, 1], R[2, 2] = f * (x * z - w * y), f * (y * z + w * x), 1.0 - f * (x * x + y * y)
            R[0, 3] = R[1, 3] = R[2, 3] = 0.0
            _product(basis[0], R, local)
        else:
            value = plan.drive[i, 0] * q[v] + plan.drive[i, 1]
            sine, cosine = np.sin(value), np.cos(value)
            for r in range(3):
                for c in range(4):
                    local[r, c] = (
                        basis[0, r, c]
                        + sine * basis[1, r, c]
                        + cosine * basis[2, r, c]
                        + value * basis[3, r, c]
                    )
        _after(motions, plan.parent[i], local, motions[i])
    for k in range(plan.frame_motion.shape[0]):
        _after(motions, plan.frame_motion[k], plan.frame_fixed[k], frames[k])


@njit(**INNER)
def _after(motions, before, T, out):
    """Write a pose behind a motion, -1 for the root, in the root link."""
    if before >= 0:
        _product(motions[before], T, out)
        return
    for r in range(3):
        for c in range(4):
            out[r, c] = T[r, c]


@njit(**INNER)
def _log(R, out):
    """Write the rotation vector of a rotation: by the largest component of its quaternion."""
    xx, yy, zz = R[0, 0], R[1, 1], R[2, 2]
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, xz, yz = R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1]
    s0, s1, s2, s3 = 1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz
    largest = max(s0, s1, s2, s3)
    if s0 == largest:
        w, a, b, c = s0, x, y, z
    elif s1 == largest:
        w, a, b, c = x, s1, xy, xz
    elif s2 == largest:
        w, a, b, c = y, xy, s2, yz
    else:
        w, a, b, c = z, xz, yz, s3
    _turn(w, a, b, c, out)


@njit(**INNER)
def _turn(w, a, b, c, out):
    """Write the rotation vector of a quaternion of any length."""
    length = np.sqrt(w * w + a * a + b * b + c * c)
    if w < 0.0:
        length = -length
    w, a, b, c = w / length, a / length, b / length, c / length
    sine = np.sqrt(a * a + b * b + c * c)
    f = 2.0 + sine * sine / 3.0 if sine < _SMALL else 2.0 * np.arctan2(sine, w) / sine
    out[0], out[1], out[2] = f * a, f * b, f * c


@njit(**INNER)
def _pose(row, numbers, frames, T, S, r):
    at, base = row[NUMBERS], row[BASE]
    target = numbers[at : at + 16].reshape(4, 4)
    if row[VARIANT] & TOOL:
        _product(frames[row[FRAME]], numbers[at + 16 : at + 32].reshape(4, 4), T)
    else:
        for i in range(3):
            for j in range(4):
                T[i, j] = frames[row[FRAME], i, j]
    if base >= 0:  # into the base link
        B = frames[base]
        for j in range(4):
            x, y, z = T[0, j], T[1, j], T[2, j]
            if j == 3:
                x, y, z = x - B[0, 3], y - B[1, 3], z - B[2, 3]
            for i in range(3):
                T[i, j] = B[0, i] * x + B[1, i] * y + B[2, i] * z
    dx, dy, dz = T[0, 3] - target[0, 3], T[1, 3] - target[1, 3], T[2, 3] - target[2, 3]
    for i in range(3):
        for j in range(3):
            S[i, j] = target[0, i] * T[0, j] + target[1, i] * T[1, j] + target[2, i] * T[2, j]
    _log(S, r[3:6])
    if row[VARIANT] & IN_BASE_AXES:
        r[0], r[1], r[2] = dx, dy, dz
        x, y, z = r[3], r[4], r[5]
        for i in range(3):
            r[3 + i] = target[i, 0] * x + target[i, 1] * y + target[i, 2] * z
    else:
        for i in range(3):
            r[i] = target[0, i] * dx + target[1, i] * dy + target[2, i] * dz


@njit(**INNER)
def _distance(plan, row, numbers, q, turn, r):
    """Per row a variable, and the component of a quaternion's turn or -1."""
    at, listed = row[NUMBERS], row[LISTED]
    for k in range(row[SIZE]):
        v, part = plan.lists[listed + 2 * k], plan.lists[listed + 2 * k + 1]
        if part < 0:
            r[k] = q[v] - numbers[at + v]
            continue
        a, b, c, d = numbers[at + v], numbers[at + v + 1], numbers[at + v + 2], numbers[at + v + 3]
        w, x, y, z = q[v], q[v + 1], q[v + 2], q[v + 3]
        # The conjugate of the wanted one times the own one.
        _turn(
            a * w + b * x + c * y + d * z,
            a * x - b * w - c * z + d * y,
            a * y + b * z - c * w - d * x,
            a * z - b * y + c * x - d * w,
            turn,
        )
        r[k] = turn[part]


@njit(**INNER)
def _limits(plan, row, numbers, q, r):
    """Per direction its variable, or -1 where it has no limits, and itself."""
    margin, count = numbers[row[NUMBERS]], row[SIZE] // 2
    for k in range(count):
        v, direction = plan.lists[row[LISTED] + 2 * k], plan.lists[row[LISTED] + 2 * k + 1]
        lower, upper = plan.bounds[direction, 0], plan.bounds[direction, 1]
        r[k] = lower - q[v] + margin if v >= 0 and np.isfinite(lower) else -1.0
        r[count + k] = q[v] - upper + margin if v >= 0 and np.isfinite(upper) else -1.0


@njit(**INNER)
def _index(plan, row, motions, frames, J, A):
    """Return Yoshikawa's index. Lists which directions count (nv), then the motions of the chain."""
    nv, listed, p = plan.bounds.shape[0], row[LISTED], frames[row[FRAME]]
    for i in range(6):
        for j in range(nv):
            J[i, j] = 0.0
    for k in range(listed + nv, listed + row[COUNT]):
        m = plan.lists[k]
        T, j = motions[m], plan.direction[m]
        lx, ly, lz = p[0, 3] - T[0, 3], p[1, 3] - T[1, 3], p[2, 3] - T[2, 3]
        for turn in range(3 if plan.kind[m] == QUATERNION else 1):
            if plan.kind[m] == QUATERNION:
                x, y, z = T[0, turn], T[1, turn], T[2, turn]
            else:
                f, a, b, c = plan.drive[m, 0], plan.axis[m, 0], plan.axis[m, 1], plan.axis[m, 2]
                x = f * (T[0, 0] * a + T[0, 1] * b + T[0, 2] * c)
                y = f * (T[1, 0] * a + T[1, 1] * b + T[1, 2] * c)
                z = f * (T[2, 0] * a + T[2, 1] * b + T[2, 2] * c)
            if not plan.lists[listed + j + turn]:
                continue
            if plan.kind[m] == TRANSLATION:
                J[0, j] += x
                J[1, j] += y
                J[2, j] += z
                continue
            J[0, j + turn] += y * lz - z * ly
            J[1, j + turn] += z * lx - x * lz
            J[2, j + turn] += x * ly - y * lx
            J[3, j + turn] += x
            J[4, j + turn] += y
            J[5, j + turn] += z
    first, n = row[VARIANT] % 10, row[VARIANT] // 10
    for i in range(n):
        for k in range(n):
            A[i, k] = 0.0
            for j in range(nv):
                A[i, k] += J[first + i, j] * J[first + k, j]
    return np.sqrt(max(_determinant(A, n), 0.0))


@njit(**INNER)
def _determinant(A, n):
    """Return the determinant of a matrix, which is overwritten: by elimination, with pivots."""
    determinant = 1.0
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if A[best, k] == 0.0:
            return 0.0
        if best != k:
            determinant = -determinant
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
        determinant *= A[k, k]
        for i in range(k + 1, n):
            f = A[i, k] / A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= f * A[k, j]
    return determinant


@njit(**INNER)
def _angle(ax, ay, az, bx, by, bz, r):
    """Write the rotation vector that turns one direction into another; half a turn where the latter has no length."""
    length = ax * ax + ay * ay + az * az
    f = 1.0 / np.sqrt(length) if length > 0.0 else 1.0
    ax, ay, az = f * ax, f * ay, f * az
    length = bx * bx + by * by + bz * bz
    f = 1.0 / np.sqrt(length) if length > 0.0 else 1.0
    bx, by, bz = f * bx, f * by, f * bz
    x, y, z = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    cosine, squared = ax * bx + ay * by + az * bz, x * x + y * y + z * z
    if squared < _PARALLEL and cosine < 0.5:
        x = 1.0 if abs(ax) <= abs(ay) and abs(ax) <= abs(az) else 0.0
        y = 1.0 if x == 0.0 and abs(ay) <= abs(az) else 0.0
        z = 1.0 - x - y
        along = x * ax + y * ay + z * az
        x, y, z = x - along * ax, y - along * ay, z - along * az
        f = np.pi / np.sqrt(x * x + y * y + z * z)
    else:
        sine = np.sqrt(squared)
        f = 1.0 if squared < _PARALLEL else np.arctan2(sine, cosine) / sine
    r[0], r[1], r[2] = f * x, f * y, f * z


@njit(**INNER)
def _direction(row, numbers, frames, r):
    at, T = row[NUMBERS], frames[row[FRAME]]
    a, b, c = numbers[at], numbers[at + 1], numbers[at + 2]
    x, y, z = numbers[at + 3], numbers[at + 4], numbers[at + 5]
    if row[FORMULA] == LOOK_AT:
        if row[BASE] >= 0:
            B = frames[row[BASE]]
            x, y, z = (
                B[0, 0] * x + B[0, 1] * y + B[0, 2] * z + B[0, 3],
                B[1, 0] * x + B[1, 1] * y + B[1, 2] * z + B[1, 3],
                B[2, 0] * x + B[2, 1] * y + B[2, 2] * z + B[2, 3],
            )
        x, y, z = x - T[0, 3], y - T[1, 3], z - T[2, 3]
    _angle(
        T[0, 0] * a + T[0, 1] * b + T[0, 2] * c,
        T[1, 0] * a + T[1, 1] * b + T[1, 2] * c,
        T[2, 0] * a + T[2, 1] * b + T[2, 2] * c,
        x, y, z, r,
    )  # fmt: skip


@njit(**INNER)
def _center(plan, row, numbers, frames, r):
    x = y = z = 0.0
    for k in range(plan.masses.shape[0]):
        share, a, b, c = plan.masses[k, 0], plan.masses[k, 1], plan.masses[k, 2], plan.masses[k, 3]
        T = frames[k]
        x += share * (T[0, 0] * a + T[0, 1] * b + T[0, 2] * c + T[0, 3])
        y += share * (T[1, 0] * a + T[1, 1] * b + T[1, 2] * c + T[1, 3])
        z += share * (T[2, 0] * a + T[2, 1] * b + T[2, 2] * c + T[2, 3])
    if row[BASE] >= 0:
        B = frames[row[BASE]]
        x, y, z = x - B[0, 3], y - B[1, 3], z - B[2, 3]
        x, y, z = (
            B[0, 0] * x + B[1, 0] * y + B[2, 0] * z,
            B[0, 1] * x + B[1, 1] * y + B[2, 1] * z,
            B[0, 2] * x + B[1, 2] * y + B[2, 2] * z,
        )
    at = row[NUMBERS]
    r[0], r[1], r[2] = x - numbers[at], y - numbers[at + 1], z - numbers[at + 2]


@njit(**INNER)
def _value(row, weights, r):
    """Return the sum of weighted squares; NaN if a residual is not finite."""
    total = 0.0
    for k in range(r.shape[0]):
        if not np.isfinite(r[k]):
            return np.nan
        x = weights[k] * (max(r[k], 0.0) if row[ONE_SIDED] else r[k])
        total += x * x
    return total


@njit(**INNER)
def _met(row, weights, tolerances, r):
    """Return whether a cost holds; NaN does not."""
    if row[FORMULA] == POSE:
        for part in (0, 3):
            squared = 0.0
            for k in range(part, part + 3):
                if weights[k] != 0.0:
                    squared += r[k] * r[k]
            if not np.sqrt(squared) <= tolerances[part]:
                return False
        return True
    for k in range(r.shape[0]):
        if weights[k] != 0.0 and not (r[k] if row[ONE_SIDED] else abs(r[k])) <= tolerances[k]:
            return False
    return True


@njit(**INNER)
def _judge_in(plan, claims, most_held, verdict, motions, frames, T, J):
    for b in range(claims.q.shape[0]):
        verdict.right[b], verdict.met[b] = _right(claims, b, most_held), True
        if not verdict.right[b]:
            continue
        q, numbers = claims.q[b], claims.numbers[b]
        _place(plan, q, T[0], motions, frames)
        for k in range(plan.costs.shape[0]):
            row = plan.costs[k]
            formula, first, last = row[FORMULA], row[FIRST], row[FIRST] + row[SIZE]
            r, weights = verdict.residual[b, first:last], claims.weights[b, first:last]
            if formula == POSE:
                _pose(row, numbers, frames, T[0], T[1], r)
            elif formula == DISTANCE:
                _distance(plan, row, numbers, q, T[0, 0], r)
            elif formula == LIMITS:
                _limits(plan, row, numbers, q, r)
            elif formula == INDEX:
                r[0] = 1.0 / (_index(plan, row, motions, frames, J, T[0]) + _FLOOR)
            elif formula == CENTER_OF_MASS:
                _center(plan, row, numbers, frames, r)
            else:
                _direction(row, numbers, frames, r)
            verdict.value[b, k] = _value(row, weights, r)
            if not np.isfinite(verdict.value[b, k]):
                verdict.right[b] = False
            if row[HOLDS] and not _met(row, weights, claims.tolerances[b, first:last], r):
                verdict.met[b] = False


@njit(**OUTER)
def judge(
    parent, kind, variable, direction, drive, axis, basis, frame_motion, frame_fixed, costs, lists, bounds, masses,
    q, state, held, moving, limits, mimics, drivers, numbers, weights, tolerances, most_held, right, residual, value,
    met,
):  # fmt: skip
    """Judge all claims; ``most_held``: how far what is held may have moved, rad or m.

    Of claims that are not right nothing else is looked at. The other arguments are the arrays of a ``Plan``, of
    ``Claims`` and of a ``Verdict``: one by one, as numba looks at a tuple's several times as long before each call.
    """
    plan = Plan(
        parent, kind, variable, direction, drive, axis, basis, frame_motion, frame_fixed, costs, lists, bounds, masses
    )  # fmt: skip
    claims = Claims(q, state, held, moving, limits, mimics, drivers, numbers, weights, tolerances)
    verdict = Verdict(right, residual, value, met)
    motions = np.empty((plan.parent.shape[0], 3, 4))
    frames = np.empty((plan.frame_motion.shape[0], 3, 4))
    _judge_in(
        plan,
        claims,
        most_held,
        verdict,
        motions,
        frames,
        np.empty((2, 6, 6)),
        np.empty((6, plan.bounds.shape[0])),
    )
