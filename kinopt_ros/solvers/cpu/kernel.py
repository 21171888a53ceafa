"""Compiled inverse kinematics: damped least squares from many seeds, one thread, no allocation in the loop.

Everything that numba compiles is in this one file, because numba decides by a file's own modification time
whether its cached machine code is still valid; a function imported from another file would go stale unseen.

A robot comes as two packed arrays, ``numbers`` and ``shape`` (written by ``chain.py``): every further array
argument would add some 0.1 us to each call. All poses are relative to the frame before the first motion, and
every motion is about or along its local z axis.

Source of the damping, proportional to the squared error: T. Sugihara, "Solvability-unconcerned inverse kinematics
by the Levenberg-Marquardt method", IEEE Transactions on Robotics 27 (2011).
"""

import numpy as np
from numba import njit

# Columns of the table of motions: joint value = MULTIPLIER * q + OFFSET.
MULTIPLIER, OFFSET, COS_TWIST, SIN_TWIST, SHIFT_X, SHIFT_Y, SHIFT_Z, COS_FIXED, SIN_FIXED = range(9)
MOTION_SIZE = 9
# Rows of the table of variables.
LOWER, UPPER, SAMPLE_LOWER, SAMPLE_UPPER, PERIOD, STEP_LIMIT = range(6)
NUM_VARIABLE_ROWS = 6
# Entries of ``shape``, followed by a row for every motion; ADDS marks a motion whose variable moved one before.
NUM_VARIABLES, NUM_MOTIONS, NUM_SEEDS = range(3)
SHAPE_HEADER = 3
IS_TRANSLATION, COLUMN, ADDS = range(3)
KIND_SIZE = 3
INDEX_MASK = 1023  # lowest bits of a score, which hold the index: at most 1024 table seeds
# A table seed is its pose (x, y, z, qw, qx, qy, qz); the table is stored one pose component after the other.
POSE_SIZE = 7
# ``numbers`` starts with the inverse of the first fixed transform (position, rotation rows) and the transposed
# rotation of the last one (rows), then the last one's position.
BASE_SIZE = 21
TIP_SIZE = 3

# Entries of ``effort``.
AIM_POSITION, AIM_ORIENTATION = 0, 1  # an attempt that comes so near ends,
ACCEPT_POSITION, ACCEPT_ORIENTATION = 2, 3  # one that ends so near is a solution,
SLACK_POSITION, SLACK_ORIENTATION = 4, 5  # and errors below this do not count
EFFORT_SIZE = 6

# Tuned on 10,000 Panda targets and checked on 6R, 7R and prismatic arms.
ORIENTATION_WEIGHT = 0.4  # metres per radian
MAX_STEPS = 16
STALL_RATIO = 0.75  # a step that leaves more of the error than this is a stall ...
MAX_STALLS = 2  # ... and so many of them end an attempt
DAMPING = 0.05
MIN_DAMPING = 1e-9
POLISH_STEPS = 40
FARTHEST_TURN = 1e6  # rad: beyond, adding turns to an angle costs more precision than requests leave
QUICK_TABLE_TRIES = 10

# Fused multiply-add is allowed; NaN and infinity keep their meaning.
_OUTER = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}}
# Without wrappers for callers in Python, which only cost compile time.
_INNER = _OUTER | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_TWO_OVER_PI = 2.0 / np.pi
# pi/2 as a sum (fdlibm, e_rem_pio2.c): k * the first is exact for |k| < 2**20.
_HALF_PI_1 = 1.57079632673412561417e00
_HALF_PI_2 = 6.07710050650619224932e-11
_U30, _U27, _U31, _U11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_MIX_0 = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@njit(**_INNER)
def _sin_cos(x):
    """Both at once, for |x| < 1e6, within 1e-15: three times as quick as two calls of the C library.

    Polynomials of fdlibm (k_sin.c, k_cos.c) on [-pi/4, pi/4].
    """
    k = np.floor(x * _TWO_OVER_PI + 0.5)
    r = (x - k * _HALF_PI_1) - k * _HALF_PI_2
    z = r * r
    s = 1.58969099521155010221e-10
    s = s * z - 2.50507602534068634195e-08
    s = s * z + 2.75573137070700676789e-06
    s = s * z - 1.98412698298579493134e-04
    s = s * z + 8.33333333332248946124e-03
    s = s * z - 1.66666666666666324348e-01
    s = r + r * z * s
    c = -1.13596475577881948265e-11
    c = c * z + 2.08757232129817482790e-09
    c = c * z - 2.75573143513906633035e-07
    c = c * z + 2.48015872894767294178e-05
    c = c * z - 1.38888888888741095749e-03
    c = c * z + 4.16666666666666019037e-02
    c = 1.0 - 0.5 * z + z * z * c
    # Quadrant by arithmetic: joint angles make a branch here unpredictable.
    quadrant = int(k)
    odd = float(quadrant & 1)
    even = 1.0 - odd
    sign_s = 1.0 - float(quadrant & 2)
    sign_c = 1.0 - float((quadrant + 1) & 2)
    return sign_s * (even * s + odd * c), sign_c * (even * c + odd * s)


@njit(**_INNER)
def _forward(motions, kinds, q, tip, axes):
    """Pose of the tip; z axis and origin of every motion go to the rows of ``axes``.

    The fixed transform before a motion is a shift and a twist about x: the turns about z on both sides of it
    were moved into the joint offsets. 33 multiplications per joint instead of 48.
    """
    px, py, pz = 0.0, 0.0, 0.0
    xx, xy, xz = 1.0, 0.0, 0.0
    yx, yy, yz = 0.0, 1.0, 0.0
    zx, zy, zz = 0.0, 0.0, 1.0
    for i in range(motions.shape[0]):
        tx, ty, tz = motions[i, SHIFT_X], motions[i, SHIFT_Y], motions[i, SHIFT_Z]
        px += xx * tx + yx * ty + zx * tz
        py += xy * tx + yy * ty + zy * tz
        pz += xz * tx + yz * ty + zz * tz
        c, s = motions[i, COS_TWIST], motions[i, SIN_TWIST]
        yx, zx = c * yx + s * zx, c * zx - s * yx
        yy, zy = c * yy + s * zy, c * zy - s * yy
        yz, zz = c * yz + s * zz, c * zz - s * yz
        value = motions[i, MULTIPLIER] * q[kinds[i, COLUMN]] + motions[i, OFFSET]
        if kinds[i, IS_TRANSLATION] == 0:
            s, c = _sin_cos(value)
        else:
            c, s = motions[i, COS_FIXED], motions[i, SIN_FIXED]
            px += value * zx
            py += value * zy
            pz += value * zz
        axes[i, 0], axes[i, 1], axes[i, 2] = zx, zy, zz
        axes[i, 3], axes[i, 4], axes[i, 5] = px, py, pz
        xx, yx = c * xx + s * yx, c * yx - s * xx
        xy, yy = c * xy + s * yy, c * yy - s * xy
        xz, yz = c * xz + s * yz, c * yz - s * xz
    tx, ty, tz = tip[0], tip[1], tip[2]
    px += xx * tx + yx * ty + zx * tz
    py += xy * tx + yy * ty + zy * tz
    pz += xz * tx + yz * ty + zz * tz
    return px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz


@njit(**_INNER)
def _quaternion(xx, xy, xz, yx, yy, yz, zx, zy, zz):
    """Unit quaternion (w, x, y, z) of the rotation whose columns are x, y, z (Shepperd 1978)."""
    trace = xx + yy + zz
    if trace >= xx and trace >= yy and trace >= zz:
        w = 0.5 * np.sqrt(max(0.0, 1.0 + trace))
        f = 0.25 / w
        return w, f * (yz - zy), f * (zx - xz), f * (xy - yx)
    if xx >= yy and xx >= zz:
        x = 0.5 * np.sqrt(max(0.0, 1.0 + xx - yy - zz))
        f = 0.25 / x
        return f * (yz - zy), x, f * (xy + yx), f * (zx + xz)
    if yy >= zz:
        y = 0.5 * np.sqrt(max(0.0, 1.0 + yy - xx - zz))
        f = 0.25 / y
        return f * (zx - xz), f * (xy + yx), y, f * (yz + zy)
    z = 0.5 * np.sqrt(max(0.0, 1.0 + zz - xx - yy))
    f = 0.25 / z
    return f * (xy - yx), f * (zx + xz), f * (yz + zy), z


@njit(**_INNER)
def _rotation_error(goal, xx, xy, xz, yx, yy, yz, zx, zy, zz):
    """2 sin(angle / 2) * axis of the rotation that brings the tip's rotation to the goal's.

    The antisymmetric part of R_goal R_tip^T is sin(angle) * axis, and cos(angle / 2) follows from its trace.
    """
    # Columns of the goal's rotation, as those of the tip.
    gxx, gxy, gxz = goal[3], goal[6], goal[9]
    gyx, gyy, gyz = goal[4], goal[7], goal[10]
    gzx, gzy, gzz = goal[5], goal[8], goal[11]
    trace = gxx * xx + gxy * xy + gxz * xz + gyx * yx + gyy * yy + gyz * yz + gzx * zx + gzy * zy + gzz * zz
    if trace > -0.9:
        f = 0.5 / np.sqrt(0.25 * (1.0 + trace))  # 1 / (2 cos(angle / 2))
        ex = (xy * gxz - xz * gxy) + (yy * gyz - yz * gyy) + (zy * gzz - zz * gzy)
        ey = (xz * gxx - xx * gxz) + (yz * gyx - yx * gyz) + (zz * gzx - zx * gzz)
        ez = (xx * gxy - xy * gxx) + (yx * gyy - yy * gyx) + (zx * gzy - zy * gzx)
        return f * ex, f * ey, f * ez
    # Near half a turn the antisymmetric part vanishes: take the axis from the whole matrix.
    w, x, y, z = _quaternion(
        gxx * xx + gyx * yx + gzx * zx, gxy * xx + gyy * yx + gzy * zx, gxz * xx + gyz * yx + gzz * zx,
        gxx * xy + gyx * yy + gzx * zy, gxy * xy + gyy * yy + gzy * zy, gxz * xy + gyz * yy + gzz * zy,
        gxx * xz + gyx * yz + gzx * zz, gxy * xz + gyy * yz + gzy * zz, gxz * xz + gyz * yz + gzz * zz,
    )  # fmt: skip
    f = -2.0 if w < 0.0 else 2.0
    return f * x, f * y, f * z


@njit(**_INNER)
def _solve_6x6(
    a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
    b0, b1, b2, b3, b4, b5,
):  # fmt: skip
    """x of A x = b for a symmetric positive definite A by A = L D L^T, unrolled, in registers."""
    d0 = 1.0 / a00
    l10, l20, l30, l40, l50 = a10 * d0, a20 * d0, a30 * d0, a40 * d0, a50 * d0
    d1 = 1.0 / (a11 - l10 * a10)
    m21, m31, m41, m51 = a21 - l20 * a10, a31 - l30 * a10, a41 - l40 * a10, a51 - l50 * a10
    l21, l31, l41, l51 = m21 * d1, m31 * d1, m41 * d1, m51 * d1
    d2 = 1.0 / (a22 - l20 * a20 - l21 * m21)
    m32 = a32 - l30 * a20 - l31 * m21
    m42 = a42 - l40 * a20 - l41 * m21
    m52 = a52 - l50 * a20 - l51 * m21
    l32, l42, l52 = m32 * d2, m42 * d2, m52 * d2
    d3 = 1.0 / (a33 - l30 * a30 - l31 * m31 - l32 * m32)
    m43 = a43 - l40 * a30 - l41 * m31 - l42 * m32
    m53 = a53 - l50 * a30 - l51 * m31 - l52 * m32
    l43, l53 = m43 * d3, m53 * d3
    d4 = 1.0 / (a44 - l40 * a40 - l41 * m41 - l42 * m42 - l43 * m43)
    m54 = a54 - l50 * a40 - l51 * m41 - l52 * m42 - l53 * m43
    l54 = m54 * d4
    d5 = 1.0 / (a55 - l50 * a50 - l51 * m51 - l52 * m52 - l53 * m53 - l54 * m54)
    b1 -= l10 * b0
    b2 -= l20 * b0 + l21 * b1
    b3 -= l30 * b0 + l31 * b1 + l32 * b2
    b4 -= l40 * b0 + l41 * b1 + l42 * b2 + l43 * b3
    b5 -= l50 * b0 + l51 * b1 + l52 * b2 + l53 * b3 + l54 * b4
    x5 = b5 * d5
    x4 = b4 * d4 - l54 * x5
    x3 = b3 * d3 - l43 * x4 - l53 * x5
    x2 = b2 * d2 - l32 * x3 - l42 * x4 - l52 * x5
    x1 = b1 * d1 - l21 * x2 - l31 * x3 - l41 * x4 - l51 * x5
    x0 = b0 * d0 - l10 * x1 - l20 * x2 - l30 * x3 - l40 * x4 - l50 * x5
    return x0, x1, x2, x3, x4, x5


@njit(**_INNER)
def _step(kinds, motions, variables, axes, jacobian, change, q, px, py, pz, e0, e1, e2, e3, e4, e5, weight):
    """One damped step inside the limits: change = J^T (J J^T + damping * I)^-1 error, q += change.

    A variable that is at its limit and pushed outwards is taken out and the rest solved once more, so that
    the others make up for it (clamping alone is slower and leaves failures).
    """
    n = q.shape[0]
    a00 = a11 = a22 = a33 = a44 = a55 = (
        DAMPING * (e0 * e0 + e1 * e1 + e2 * e2 + e3 * e3 + e4 * e4 + e5 * e5) + MIN_DAMPING
    )
    a10 = a20 = a21 = a30 = a31 = a32 = a40 = a41 = a42 = a43 = a50 = a51 = a52 = a53 = a54 = 0.0
    for i in range(motions.shape[0]):
        j = kinds[i, COLUMN]
        f = motions[i, MULTIPLIER]
        zx, zy, zz = f * axes[i, 0], f * axes[i, 1], f * axes[i, 2]
        if kinds[i, IS_TRANSLATION] == 0:
            rx, ry, rz = px - axes[i, 3], py - axes[i, 4], pz - axes[i, 5]
            c0, c1, c2 = zy * rz - zz * ry, zz * rx - zx * rz, zx * ry - zy * rx
            c3, c4, c5 = weight * zx, weight * zy, weight * zz
        else:
            c0, c1, c2 = zx, zy, zz
            c3 = c4 = c5 = 0.0
        if kinds[i, ADDS] != 0:  # a mimic joint
            c0 += jacobian[j, 0]
            c1 += jacobian[j, 1]
            c2 += jacobian[j, 2]
            c3 += jacobian[j, 3]
            c4 += jacobian[j, 4]
            c5 += jacobian[j, 5]
        jacobian[j, 0], jacobian[j, 1], jacobian[j, 2] = c0, c1, c2
        jacobian[j, 3], jacobian[j, 4], jacobian[j, 5] = c3, c4, c5
    for j in range(n):
        c0, c1, c2 = jacobian[j, 0], jacobian[j, 1], jacobian[j, 2]
        c3, c4, c5 = jacobian[j, 3], jacobian[j, 4], jacobian[j, 5]
        a00 += c0 * c0
        a10 += c1 * c0
        a11 += c1 * c1
        a20 += c2 * c0
        a21 += c2 * c1
        a22 += c2 * c2
        a30 += c3 * c0
        a31 += c3 * c1
        a32 += c3 * c2
        a33 += c3 * c3
        a40 += c4 * c0
        a41 += c4 * c1
        a42 += c4 * c2
        a43 += c4 * c3
        a44 += c4 * c4
        a50 += c5 * c0
        a51 += c5 * c1
        a52 += c5 * c2
        a53 += c5 * c3
        a54 += c5 * c4
        a55 += c5 * c5
    solve_again = True
    while True:
        y0, y1, y2, y3, y4, y5 = _solve_6x6(
            a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
            e0, e1, e2, e3, e4, e5,
        )  # fmt: skip
        blocked = False
        for j in range(n):
            c0, c1, c2 = jacobian[j, 0], jacobian[j, 1], jacobian[j, 2]
            c3, c4, c5 = jacobian[j, 3], jacobian[j, 4], jacobian[j, 5]
            d = (c0 * y0 + c1 * y1 + c2 * y2) + (c3 * y3 + c4 * y4 + c5 * y5)
            if (d < 0.0 and q[j] <= variables[LOWER, j]) or (d > 0.0 and q[j] >= variables[UPPER, j]):
                d = 0.0
                if solve_again:
                    blocked = True
                    a00 -= c0 * c0
                    a10 -= c1 * c0
                    a11 -= c1 * c1
                    a20 -= c2 * c0
                    a21 -= c2 * c1
                    a22 -= c2 * c2
                    a30 -= c3 * c0
                    a31 -= c3 * c1
                    a32 -= c3 * c2
                    a33 -= c3 * c3
                    a40 -= c4 * c0
                    a41 -= c4 * c1
                    a42 -= c4 * c2
                    a43 -= c4 * c3
                    a44 -= c4 * c4
                    a50 -= c5 * c0
                    a51 -= c5 * c1
                    a52 -= c5 * c2
                    a53 -= c5 * c3
                    a54 -= c5 * c4
                    a55 -= c5 * c5
                    for k in range(6):
                        jacobian[j, k] = 0.0
            change[j] = d
        if not blocked:
            break
        solve_again = False
    for j in range(n):
        most = variables[STEP_LIMIT, j]
        moved = q[j] + min(max(change[j], -most), most)
        q[j] = min(max(moved, variables[LOWER, j]), variables[UPPER, j])


@njit(**_INNER)
def _descend(
    kinds, motions, tip, variables, goal, effort, axes, jacobian, change, q, weight, max_steps, max_stalls
):
    """Steps from q, in place, until the aim is reached or progress ends.

    Returns position error, 2 sin(half the angle error), steps made, whether the aim was reached.
    """
    aim_p2 = effort[AIM_POSITION] ** 2
    aim_o2 = effort[AIM_ORIENTATION] ** 2
    accept_p2, accept_o2 = effort[ACCEPT_POSITION] ** 2, effort[ACCEPT_ORIENTATION] ** 2
    slack_p, slack_o = effort[SLACK_POSITION], effort[SLACK_ORIENTATION]
    previous = np.inf
    stalls = 0
    steps = 0
    while True:
        px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = _forward(motions, kinds, q, tip, axes)
        e0, e1, e2 = goal[0] - px, goal[1] - py, goal[2] - pz
        e3, e4, e5 = _rotation_error(goal, xx, xy, xz, yx, yy, yz, zx, zy, zz)
        p2 = e0 * e0 + e1 * e1 + e2 * e2
        o2 = e3 * e3 + e4 * e4 + e5 * e5
        if p2 <= aim_p2 and o2 <= aim_o2:
            return p2, o2, steps, True
        f = weight
        if slack_p > 0.0 or slack_o > 0.0:
            # Loose tolerances: only what exceeds them counts, so that the rest of the target can be met.
            g = max(0.0, 1.0 - slack_p / np.sqrt(p2 + 1e-300))
            e0, e1, e2 = g * e0, g * e1, g * e2
            f *= max(0.0, 1.0 - slack_o / np.sqrt(o2 + 1e-300))
        e3, e4, e5 = f * e3, f * e4, f * e5
        error = e0 * e0 + e1 * e1 + e2 * e2 + e3 * e3 + e4 * e4 + e5 * e5
        if not error <= STALL_RATIO * previous:
            stalls += 1
        previous = error
        good_enough = p2 <= accept_p2 and o2 <= accept_o2
        if steps >= max_steps or (stalls >= max_stalls and not good_enough):
            return p2, o2, steps, False
        _step(
            kinds, motions, variables, axes, jacobian, change, q, px, py, pz, e0, e1, e2, e3, e4, e5, weight
        )
        steps += 1


@njit(**_INNER)
def _random_configuration(random_seed, number, variables, q):
    """The number-th random configuration: a pure function of its arguments (splitmix64, Steele et al. 2014), so
    that there is no generator state to keep between calls or to share between threads."""
    n = q.shape[0]
    start = np.uint64(random_seed) * _MIX_1 + np.uint64(number) * np.uint64(n)
    for j in range(n):
        x = (start + np.uint64(j) + np.uint64(1)) * _MIX_0
        x = (x ^ (x >> _U30)) * _MIX_1
        x = (x ^ (x >> _U27)) * _MIX_2
        x = x ^ (x >> _U31)
        u = float(x >> _U11) * (1.0 / 9007199254740992.0)
        low, high = variables[SAMPLE_LOWER, j], variables[SAMPLE_UPPER, j]
        q[j] = min(max(low + u * (high - low), low), high)


@njit(**_INNER)
def _score_table(poses, goal, scores):
    """Squared distance of every table pose from the goal: |dp|^2 + (w 2 sin(angle / 2))^2."""
    w, x, y, z = _quaternion(
        goal[3], goal[6], goal[9], goal[4], goal[7], goal[10], goal[5], goal[8], goal[11]
    )  # fmt: skip
    gx, gy, gz = goal[0], goal[1], goal[2]
    f = 4.0 * ORIENTATION_WEIGHT * ORIENTATION_WEIGHT
    for i in range(scores.shape[0]):
        dx, dy, dz = poses[0, i] - gx, poses[1, i] - gy, poses[2, i] - gz
        dot = poses[3, i] * w + poses[4, i] * x + poses[5, i] * y + poses[6, i] * z
        scores[i] = dx * dx + dy * dy + dz * dz + f * abs(1.0 - dot * dot)
    keys = scores.view(np.int64)
    for i in range(keys.shape[0]):
        keys[i] = (keys[i] & ~INDEX_MASK) | i


@njit(**_INNER)
def _copy(source, target):
    """target[:] = source, which numba would take two more seconds to compile."""
    for j in range(target.shape[0]):
        target[j] = source[j]


@njit(**_INNER)
def _smallest(values):
    """Index of the smallest number; none is negative.

    Such numbers sort as their bits do: with the index in the lowest bits, an integer minimum finds both, which
    the compiler vectorizes (ten times as quick as np.argmin)."""
    keys = values.view(np.int64)
    smallest = keys[0]
    for i in range(keys.shape[0]):
        smallest = min(smallest, keys[i])
    return smallest & INDEX_MASK


@njit(**_INNER)
def _set_goal(base, target, goal):
    """goal = base^-1 target tip_rotation^-1; ``base`` holds the inverse of the first fixed transform (position,
    rotation rows) and then the transposed rotation of the last one."""
    for i in range(3):
        b0, b1, b2 = base[3 + 3 * i], base[4 + 3 * i], base[5 + 3 * i]
        goal[i] = base[i] + b0 * target[0, 3] + b1 * target[1, 3] + b2 * target[2, 3]
        r0 = b0 * target[0, 0] + b1 * target[1, 0] + b2 * target[2, 0]
        r1 = b0 * target[0, 1] + b1 * target[1, 1] + b2 * target[2, 1]
        r2 = b0 * target[0, 2] + b1 * target[1, 2] + b2 * target[2, 2]
        for j in range(3):
            goal[3 + 3 * i + j] = r0 * base[12 + j] + r1 * base[15 + j] + r2 * base[18 + j]


@njit(**_INNER)
def _search(
    kinds, motions, tip, variables, poses, table, goal, effort, seeds, table_tries, first, last, random_seed,
    work, scores, q, best,
):  # fmt: skip
    """Attempts in order: seeds, the nearest table_tries of the table, random numbers first to last.

    Stops at the first that reaches the aim, or ends inside the accepted tolerances. ``best`` receives the
    solution, or the attempt of the smallest normalised error. Returns that error, steps made, success.
    """
    n, m = variables.shape[1], motions.shape[0]
    axes, jacobian, change = work[:m], work[m : m + n], q[1]
    now = q[0]
    accept_p2, accept_o2 = effort[ACCEPT_POSITION] ** 2, effort[ACCEPT_ORIENTATION] ** 2
    num_seeds = seeds.shape[0]
    smallest = np.inf
    steps = 0
    for attempt in range(num_seeds + table_tries + last - first):
        if attempt < num_seeds:
            for j in range(n):
                value = seeds[attempt, j]
                if variables[PERIOD, j] > 0.0:  # an endless joint may have been turned far: stay precise
                    value -= variables[PERIOD, j] * np.rint(value / variables[PERIOD, j])
                    if not (variables[LOWER, j] <= value <= variables[UPPER, j]):
                        value = seeds[attempt, j]
                now[j] = min(max(value, variables[LOWER, j]), variables[UPPER, j])
        elif attempt < num_seeds + table_tries:
            if attempt == num_seeds:
                _score_table(poses, goal, scores)
            nearest = _smallest(scores)
            scores[nearest] = np.inf
            _copy(table[nearest], now)
        else:
            _random_configuration(random_seed, first + attempt - num_seeds - table_tries, variables, now)
        p2, o2, made, reached = _descend(
            kinds, motions, tip, variables, goal, effort, axes, jacobian, change, now, ORIENTATION_WEIGHT,
            MAX_STEPS, MAX_STALLS,
        )  # fmt: skip
        steps += made
        accepted = reached or (p2 <= accept_p2 and o2 <= accept_o2)
        error = p2 / accept_p2 + o2 / accept_o2
        if accepted or error < smallest:
            smallest = error
            _copy(now, best)
        if accepted:
            return smallest, steps, True
    return smallest, steps, False


@njit(**_INNER)
def _choose_turn(variables, reference, q):
    """Bring joints of period 2 pi to the turn nearest to the reference, if the limits allow it."""
    for j in range(q.shape[0]):
        period = variables[PERIOD, j]
        if period > 0.0:
            turned = q[j] + period * np.rint((reference[j] - q[j]) / period)
            if variables[LOWER, j] <= turned <= variables[UPPER, j] and abs(turned) < FARTHEST_TURN:
                q[j] = turned


@njit(**_INNER)
def _unpack(numbers, shape):
    """Views of the packed arrays, see ``chain.PackedChain``."""
    n, m, k = shape[NUM_VARIABLES], shape[NUM_MOTIONS], shape[NUM_SEEDS]
    kinds = shape[SHAPE_HEADER : SHAPE_HEADER + KIND_SIZE * m].reshape((m, KIND_SIZE))
    a = BASE_SIZE + TIP_SIZE
    b = a + MOTION_SIZE * m
    c = b + NUM_VARIABLE_ROWS * n
    d = c + POSE_SIZE * k
    motions = numbers[a:b].reshape((m, MOTION_SIZE))
    variables = numbers[b:c].reshape((NUM_VARIABLE_ROWS, n))
    poses = numbers[c:d].reshape((POSE_SIZE, k))
    table = numbers[d : d + k * n].reshape((k, n))
    return kinds, numbers[:BASE_SIZE], numbers[BASE_SIZE:a], motions, variables, poses, table


_NUMBERS, _SHAPE = "float64[::1]", "int64[::1]"


@njit(
    f"boolean(float64[:, ::1], {_NUMBERS}, {_SHAPE}, float64[::1])",
    **_OUTER,
)
def solve_one(target, numbers, shape, q):
    """The quickest way to one answer: table seeds, then random ones. Whether q solves the target to 1e-6."""
    kinds, base, tip, motions, variables, poses, table = _unpack(numbers, shape)
    n, m, k = variables.shape[1], motions.shape[0], poses.shape[1]
    work = np.empty((m + n + 2, 6))
    goal = work[m + n :].reshape(12)
    configurations = np.empty((2, n))
    scores = np.empty(k)
    effort = numbers[numbers.shape[0] - EFFORT_SIZE :]
    _set_goal(base, target, goal)
    _, _, success = _search(
        kinds, motions, tip, variables, poses, table, goal, effort, table[:0], min(QUICK_TABLE_TRIES, k),
        0, shape[SHAPE_HEADER + KIND_SIZE * m], 0, work, scores, configurations, q,
    )  # fmt: skip
    configurations[0, :] = 0.0
    _choose_turn(variables, configurations[0], q)
    return success


@njit(
    f"void(float64[:, :, ::1], float64[:, :, ::1], float64[:, ::1], {_NUMBERS}, {_SHAPE}, float64[::1], int64[::1], "
    "float64[:, ::1], float64[::1], int64[::1], boolean[::1])",
    **_OUTER,
)
def solve_many(targets, seeds, reference, numbers, shape, effort, search, q, errors, steps, solved):
    """Search for every request that is not yet ``solved``; q, errors, steps and solved are updated in place.

    ``search``: table seeds to try, first and last random number, random seed, polish the best attempt (0 or 1).
    ``reference``: per request values that joints with several equivalent turns shall be near to.
    """
    kinds, base, tip, motions, variables, poses, table = _unpack(numbers, shape)
    n, m, k = variables.shape[1], motions.shape[0], poses.shape[1]
    work = np.empty((m + n + 2, 6))
    goal = work[m + n :].reshape(12)
    configurations = np.empty((2, n))
    best = np.empty(n)
    scores = np.empty(k)
    tries, first, last, random_seed, polish = search[0], search[1], search[2], search[3], search[4]
    weight = min(max(effort[ACCEPT_POSITION] / effort[ACCEPT_ORIENTATION], 0.05), 1.0)
    for b in range(targets.shape[0]):
        if solved[b]:
            continue
        _set_goal(base, targets[b], goal)
        error, made, success = _search(
            kinds, motions, tip, variables, poses, table, goal, effort, seeds[b], min(tries, k), first, last,
            random_seed, work, scores, configurations, best,
        )  # fmt: skip
        steps[b] += made
        if error < errors[b] or success:
            errors[b] = error
            _copy(best, q[b])
        if polish and not success:
            # An attempt was abandoned once it could not succeed; bring the best one as near as it gets.
            _copy(q[b], best)
            p2, o2, made, success = _descend(
                kinds, motions, tip, variables, goal, effort, work[:m], work[m : m + n], configurations[1], best,
                weight, POLISH_STEPS, POLISH_STEPS,
            )  # fmt: skip
            steps[b] += made
            success = success or (
                p2 <= effort[ACCEPT_POSITION] ** 2 and o2 <= effort[ACCEPT_ORIENTATION] ** 2
            )
            error = p2 / effort[ACCEPT_POSITION] ** 2 + o2 / effort[ACCEPT_ORIENTATION] ** 2
            if error < errors[b] or success:
                errors[b] = error
                _copy(best, q[b])
        _choose_turn(variables, reference[b], q[b])
        solved[b] = success


@njit(f"void({_NUMBERS}, {_SHAPE}, float64[:, ::1], float64[:, ::1])", **_OUTER)
def tip_poses(numbers, shape, configurations, poses):
    """Poses (x, y, z, qw, qx, qy, qz) of the tip, for the table of seeds."""
    kinds, _, tip, motions, _, _, _ = _unpack(numbers, shape)
    axes = np.empty((motions.shape[0], 6))
    for i in range(configurations.shape[0]):
        px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = _forward(
            motions, kinds, configurations[i], tip, axes
        )
        poses[0, i], poses[1, i], poses[2, i] = px, py, pz
        w, x, y, z = _quaternion(xx, xy, xz, yx, yy, yz, zx, zy, zz)
        poses[3, i], poses[4, i], poses[5, i], poses[6, i] = w, x, y, z
