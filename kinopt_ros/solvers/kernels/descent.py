"""Damped least squares for one pose, some attempts at once.

Source of the damping, proportional to the squared error: T. Sugihara, "Solvability-unconcerned inverse kinematics
by the Levenberg-Marquardt method", IEEE Transactions on Robotics 27 (2011).
"""

import numpy as np

from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.kernels.forward import tip_pose_lanes
from kinopt_ros.solvers.kernels.lanes import LANES, choose, lanes_at, lanes_below, put_lanes
from kinopt_ros.solvers.kernels.layout import (
    ACCEPT_ORIENTATION,
    ACCEPT_POSITION,
    ADDS,
    AIM_ORIENTATION,
    AIM_POSITION,
    COLUMN,
    IS_TRANSLATION,
    KIND_SIZE,
    LOWER,
    MOTION_SIZE,
    MULTIPLIER,
    SLACK_ORIENTATION,
    SLACK_POSITION,
    STEP_LIMIT,
    UPPER,
)
from kinopt_ros.solvers.kernels.memory import after, get, put_six, six_at
from kinopt_ros.solvers.kernels.tuning import DAMPING, FAR, HALF_TURN, MIN_DAMPING, STALL_RATIO


@njit(**FAST_INLINE)
def _solve_6x6(
    a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
    b0, b1, b2, b3, b4, b5,
):  # fmt: skip
    """Solve A x = b for a symmetric positive definite A by A = L D L^T, unrolled, in registers."""
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


@njit(**FAST_INLINE)
def rotation_error(goal, xx, xy, xz, yx, yy, yz, zx, zy, zz):
    """Return 2 sin(angle / 2) * axis of the rotation that brings the tip's rotation to the goal's.

    The antisymmetric part of R_goal R_tip^T is sin(angle) * axis, and cos(angle / 2) follows from its trace.
    """
    # Columns of the goal's rotation, as those of the tip.
    gxx, gxy, gxz = get(goal, 3), get(goal, 6), get(goal, 9)
    gyx, gyy, gyz = get(goal, 4), get(goal, 7), get(goal, 10)
    gzx, gzy, gzz = get(goal, 5), get(goal, 8), get(goal, 11)
    trace = gxx * xx + gxy * xy + gxz * xz + gyx * yx + gyy * yy + gyz * yz + gzx * zx + gzy * zy + gzz * zz
    ex = (xy * gxz - xz * gxy) + (yy * gyz - yz * gyy) + (zy * gzz - zz * gzy)
    ey = (xz * gxx - xx * gxz) + (yz * gyx - yx * gyz) + (zz * gzx - zx * gzz)
    ez = (xx * gxy - xy * gxx) + (yx * gyy - yy * gyx) + (zx * gzy - zy * gzx)
    rest = 1.0 + trace
    f = 1.0 / np.sqrt(choose(rest, HALF_TURN, rest, HALF_TURN))  # 1 / (2 cos(angle / 2))
    # At half a turn the antisymmetric part vanishes: any axis leads away from there.
    return (
        choose(rest, HALF_TURN, f * ex, 1.1),
        choose(rest, HALF_TURN, f * ey, 1.2),
        choose(rest, HALF_TURN, f * ez, 1.16),
    )


@njit(**FAST_INLINE)
def step(
    kinds, motions, variables, n, num_motions, axes, jacobian, moves, q, px, py, pz, e0, e1, e2, e3, e4, e5, weight
):  # fmt: skip
    """Make one damped step inside the limits: change = J^T (J J^T + damping * I)^-1 error, q += change.

    A variable at a limit that the error's gradient pushes outwards is taken out, so that the others make up for
    it (D. Bertsekas, "Projected Newton methods for optimization problems with simple constraints", SIAM Journal
    on Control and Optimization 20, 1982).
    """
    squared = e0 * e0 + e1 * e1 + e2 * e2 + e3 * e3 + e4 * e4 + e5 * e5
    a00 = DAMPING * choose(squared, FAR, FAR, squared) + MIN_DAMPING
    a11 = a22 = a33 = a44 = a55 = a00
    a10 = a20 = a21 = a30 = a31 = a32 = a40 = a41 = a42 = a43 = a50 = a51 = a52 = a53 = a54 = 0.0 * e0
    for i in range(num_motions):
        kind = after(kinds, KIND_SIZE * i)
        column = get(kind, COLUMN)
        f = get(after(motions, MOTION_SIZE * i), MULTIPLIER)
        zx, zy, zz, ox, oy, oz = six_at(axes, i)
        zx, zy, zz = f * zx, f * zy, f * zz
        if get(kind, IS_TRANSLATION) == 0:
            rx, ry, rz = px - ox, py - oy, pz - oz
            c0, c1, c2 = zy * rz - zz * ry, zz * rx - zx * rz, zx * ry - zy * rx
            c3, c4, c5 = weight * zx, weight * zy, weight * zz
        else:
            c0, c1, c2 = zx, zy, zz
            c3 = c4 = c5 = 0.0 * zx
        if get(kind, ADDS) != 0:  # a mimic joint
            b0, b1, b2, b3, b4, b5 = six_at(jacobian, column)
            c0, c1, c2, c3, c4, c5 = c0 + b0, c1 + b1, c2 + b2, c3 + b3, c4 + b4, c5 + b5
        put_six(jacobian, column, c0, c1, c2, c3, c4, c5)
    for j in range(n):
        c0, c1, c2, c3, c4, c5 = six_at(jacobian, j)
        push = (c0 * e0 + c1 * e1 + c2 * e2) + (c3 * e3 + c4 * e4 + c5 * e5)
        value = lanes_at(q, j)
        room = choose(push, 0.0, get(variables, UPPER * n + j) - value, value - get(variables, LOWER * n + j))
        f = choose(room, 0.0, 1.0, 0.0)
        put_lanes(moves, j, f)
        d0, d1, d2, d3, d4, d5 = f * c0, f * c1, f * c2, f * c3, f * c4, f * c5
        a00 += c0 * d0
        a10 += c1 * d0
        a11 += c1 * d1
        a20 += c2 * d0
        a21 += c2 * d1
        a22 += c2 * d2
        a30 += c3 * d0
        a31 += c3 * d1
        a32 += c3 * d2
        a33 += c3 * d3
        a40 += c4 * d0
        a41 += c4 * d1
        a42 += c4 * d2
        a43 += c4 * d3
        a44 += c4 * d4
        a50 += c5 * d0
        a51 += c5 * d1
        a52 += c5 * d2
        a53 += c5 * d3
        a54 += c5 * d4
        a55 += c5 * d5
    y0, y1, y2, y3, y4, y5 = _solve_6x6(
        a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
        e0, e1, e2, e3, e4, e5,
    )  # fmt: skip
    for j in range(n):
        c0, c1, c2, c3, c4, c5 = six_at(jacobian, j)
        change = lanes_at(moves, j) * ((c0 * y0 + c1 * y1 + c2 * y2) + (c3 * y3 + c4 * y4 + c5 * y5))
        most = get(variables, STEP_LIMIT * n + j)
        change = choose(change, -most, change, -most)
        value = lanes_at(q, j) + choose(most, change, change, most)
        lower, upper = get(variables, LOWER * n + j), get(variables, UPPER * n + j)
        value = choose(value, lower, value, lower)
        put_lanes(q, j, choose(upper, value, value, upper))


@njit(**FAST_INNER)
def descend(
    kinds, motions, tip, variables, n, num_motions, goal, effort, work, q, weight, max_steps, max_stalls, in_order
):  # fmt: skip
    """Make steps from q, in place, in all lanes, until one reaches the aim or none makes progress.

    The first ``in_order`` lanes are waited for while they make progress, even if a later one was quicker. Returns
    position errors and 2 sin(half the angle errors), both squared, steps made, and bits of the lanes at their aim.
    """
    axes = work
    jacobian = after(axes, LANES * 6 * num_motions)
    moves = after(jacobian, LANES * 6 * n)
    aim_p2 = get(effort, AIM_POSITION) ** 2
    aim_o2 = get(effort, AIM_ORIENTATION) ** 2
    accept_p2, accept_o2 = get(effort, ACCEPT_POSITION) ** 2, get(effort, ACCEPT_ORIENTATION) ** 2
    slack_p, slack_o = get(effort, SLACK_POSITION), get(effort, SLACK_ORIENTATION)
    stalls = 0.0 * lanes_at(q, 0)
    previous = np.inf + stalls
    steps = 0
    while True:
        px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = tip_pose_lanes(
            motions, kinds, num_motions, q, tip, axes
        )
        e0, e1, e2 = get(goal, 0) - px, get(goal, 1) - py, get(goal, 2) - pz
        e3, e4, e5 = rotation_error(goal, xx, xy, xz, yx, yy, yz, zx, zy, zz)
        p2 = e0 * e0 + e1 * e1 + e2 * e2
        o2 = e3 * e3 + e4 * e4 + e5 * e5
        reached = lanes_below(p2, aim_p2) & lanes_below(o2, aim_o2)
        if slack_p > 0.0 or slack_o > 0.0:
            # Loose tolerances: only what exceeds them counts, so that the rest of the target can be met.
            f = 1.0 - slack_p / np.sqrt(p2 + 1e-300)
            f = choose(f, 0.0, f, 0.0)
            e0, e1, e2 = f * e0, f * e1, f * e2
            f = 1.0 - slack_o / np.sqrt(o2 + 1e-300)
            f = weight * choose(f, 0.0, f, 0.0)
            e3, e4, e5 = f * e3, f * e4, f * e5
        else:
            e3, e4, e5 = weight * e3, weight * e4, weight * e5
        error = (e0 * e0 + e1 * e1 + e2 * e2) + (e3 * e3 + e4 * e4 + e5 * e5)
        stalls += 1.0 - choose(STALL_RATIO * previous, error, 1.0, 0.0)
        previous = error
        good_enough = lanes_below(p2, accept_p2) & lanes_below(o2, accept_o2)
        moving = (lanes_below(stalls, max_stalls - 1.0) | good_enough) & ~reached
        if reached != 0:
            first = (reached & -reached) - 1  # the lanes before the first that reached its aim
            if moving & first & ((1 << in_order) - 1) == 0:
                return p2, o2, steps, reached
        if steps >= max_steps or moving == 0:
            return p2, o2, steps, reached
        step(
            kinds, motions, variables, n, num_motions, axes, jacobian, moves, q, px, py, pz,
            e0, e1, e2, e3, e4, e5, weight,
        )  # fmt: skip
        steps += 1
