"""Weighted errors of several targets, squared, with their exact gradient and second derivatives, compiled.

Minimised is half of the sum over targets and axes of (weight x error)^2, with the errors of kinematics/pose_errors.py:
m along, rad about the axes of the target's frame, none along or about axes of weight 0. Second derivatives are exact,
as targets out of reach leave large errors: there Gauss-Newton's matrix is singular in the direction of a stretched arm,
and the way that it converges is slow.

With v_i and w_i the velocities of a tip that motion i gives, and force f and torque t the derivatives of the cost by
the tip's place and turn, the gradient is f v_i + t w_i, and for i before j, as v_j and w_j turn with motion i,

    H_ij = v_i P v_j + f (w_i x v_j) + w_j C w_i + t (w_i x w_j),

P and C being the derivatives of f and t.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.kernels.forward import quaternion, tip_pose
from kinopt_ros.solvers.kernels.layout import COLUMN, IS_TRANSLATION, MULTIPLIER

_DIFFERENCE = 1e-5
"""Step, rad, of the central differences by which a torque is differentiated where weights or axes differ."""
_SMALL = 1e-2
"""Angle, rad, below which series take the place of quotients."""
_NO_DIRECTION = 1e-12
"""Sine below which a direction cannot be seen."""


class Tree(NamedTuple):
    """Chains of all targets, as ``tree.PackedTree`` has them."""

    base: Annotated[Float64, "T 21"]
    tip: Annotated[Float64, "T 3"]
    motions: Annotated[Float64, "M 9"]
    kinds: Annotated[Int64, "M 3"]
    starts: Annotated[Int64, "T+1"]


class Wanted(NamedTuple):
    """What one request is to come near to."""

    goals: Annotated[Float64, "T 12"]
    """Position and rotation columns of the targets in the frame before the first motion (``pose_rows.set_goals``)."""
    squares: Annotated[Float64, "T 6"]
    """Squared weights along and about the axes of each target's frame."""


class Tips(NamedTuple):
    """Where the tips are in one configuration, seen in their targets' frames, and how the cost depends on that."""

    axes: Annotated[Float64, "M 6"]
    """Axis and origin of every motion, in the frame before the first one."""
    place: Annotated[Float64, "T 3"]
    """Place of the tip, likewise."""
    turn: Annotated[Float64, "T 4"]
    """Quaternion, w first and not negative, of the tip's rotation."""
    force: Annotated[Float64, "T 3"]
    """Derivative of the cost by the tip's place."""
    torque: Annotated[Float64, "T 3"]
    """Derivative of the cost by turns about the axes."""
    velocities: Annotated[Float64, "M 6"]
    """Linear and angular velocity of the tip that a unit velocity of each motion's variable gives."""
    curvature: Annotated[Float64, "3 3"]
    """Derivatives of the torque of one target (rows) by turns about the axes (columns)."""


@njit(**FAST_INLINE)
def _coefficient(angle, cotangent):
    """Return (1 - h cot h) / angle^2 with h = angle / 2, of the inverse of the left Jacobian of SO(3)."""
    if angle < _SMALL:
        return 1.0 / 12.0 + angle * angle / 720.0
    return (1.0 - 0.5 * angle * cotangent) / (angle * angle)


@njit(**FAST_INLINE)
def _rotation_vector(w, x, y, z):
    """Return rotation vector, angle and cotangent of half the angle of a unit quaternion, w not negative."""
    sine = np.sqrt(x * x + y * y + z * z)
    if sine < _NO_DIRECTION:
        return 2.0 * x, 2.0 * y, 2.0 * z, 2.0 * sine, 1.0 / _NO_DIRECTION
    angle = 2.0 * np.arctan2(sine, w)
    f = angle / sine
    return f * x, f * y, f * z, angle, w / sine


@njit(**FAST_INLINE)
def _whole_turn(w, x, y, z, sx, sy, sz):
    """Return cost and torque where no axis is free: of the rotation vector."""
    ex, ey, ez, angle, cotangent = _rotation_vector(w, x, y, z)
    px, py, pz = sx * ex, sy * ey, sz * ez
    cost = 0.5 * (px * ex + py * ey + pz * ez)
    # (I + [e] / 2 + c [e]^2) p, the transposed inverse of the left Jacobian.
    cx, cy, cz = ey * pz - ez * py, ez * px - ex * pz, ex * py - ey * px
    c = _coefficient(angle, cotangent)
    return (
        cost,
        px + 0.5 * cx + c * (ey * cz - ez * cy),
        py + 0.5 * cy + c * (ez * cx - ex * cz),
        pz + 0.5 * cz + c * (ex * cy - ey * cx),
    )


@njit(**FAST_INNER)
def _swing(w, x, y, z, sx, sy):
    """Return cost and torque where the axis z is free, or the last of another order: of the swing that turns it."""
    along = 1.0 - 2.0 * (x * x + y * y)
    tx, ty = 2.0 * (x * z + w * y), 2.0 * (y * z - w * x)
    cx, cy = -ty, tx  # the axis of the target x that of the tip
    sine = np.sqrt(cx * cx + cy * cy)
    angle = np.arctan2(sine, along)
    if sine < _NO_DIRECTION and along < 0.0:  # half a turn about any axis will do
        return 0.5 * sx * angle * angle, sx * angle, 0.0, 0.0
    if angle < _SMALL:
        f, k = 1.0 + angle * angle / 6.0, 1.0 / 3.0 + 2.0 * angle * angle / 15.0
    else:
        f = angle / sine
        k = (1.0 - f * along) / (sine * sine)
    px, py = sx * f * cx, sy * f * cy
    aligned = k * (px * cx + py * cy)
    return (
        0.5 * f * (px * cx + py * cy),
        f * along * px + aligned * cx,
        f * along * py + aligned * cy,
        -f * (px * tx + py * ty),
    )


@njit(**FAST_INNER)
def _twist(w, x, y, z, sz):
    """Return cost and torque where x and y are free, or the first two of another order: of the twist about z."""
    squared = w * w + z * z
    if squared < _NO_DIRECTION * _NO_DIRECTION:
        return 0.5 * sz * np.pi * np.pi, 0.0, 0.0, 0.0
    angle = 2.0 * np.arctan2(z, w)
    p = sz * angle
    return 0.5 * p * angle, p * (w * y + z * x) / squared, p * (z * y - w * x) / squared, p


@njit(**FAST_INLINE)
def turn_cost(w, x, y, z, sx, sy, sz):
    """Return cost and torque of a rotation in the target's frame, a unit quaternion with w not negative.

    ``sx``, ``sy``, ``sz``: squared weights about the axes; those of weight 0 are free. Not all are.
    """
    if sx > 0.0:
        if sy > 0.0:
            if sz > 0.0:
                return _whole_turn(w, x, y, z, sx, sy, sz)
            return _swing(w, x, y, z, sx, sy)
        if sz > 0.0:
            cost, tz, tx, ty = _swing(w, z, x, y, sz, sx)
            return cost, tx, ty, tz
        cost, ty, tz, tx = _twist(w, y, z, x, sx)
        return cost, tx, ty, tz
    if sy > 0.0:
        if sz > 0.0:
            cost, ty, tz, tx = _swing(w, y, z, x, sy, sz)
            return cost, tx, ty, tz
        cost, tz, tx, ty = _twist(w, z, x, y, sy)
        return cost, tx, ty, tz
    return _twist(w, x, y, z, sz)


@njit(**FAST_INNER)
def _bend(tips, t, k, sx, sy, sz):
    """Write column k of the curvature of target t, by central differences."""
    i, j = (k + 1) % 3, (k + 2) % 3
    curvature = tips.curvature
    w, vk, vi, vj = tips.turn[t, 0], tips.turn[t, 1 + k], tips.turn[t, 1 + i], tips.turn[t, 1 + j]
    cosine = np.cos(0.5 * _DIFFERENCE)
    for a in range(3):
        curvature[a, k] = 0.0
    for sign in (1.0, -1.0):
        s = sign * np.sin(0.5 * _DIFFERENCE)
        # The turn about axis k, then the rotation; its parts in the order k, i, j and then in that of the axes.
        r = cosine * w - s * vk
        pk, pi, pj = cosine * vk + s * w, cosine * vi - s * vj, cosine * vj + s * vi
        if r < 0.0:
            r, pk, pi, pj = -r, -pk, -pi, -pj
        px = pk if k == 0 else pj if k == 1 else pi
        py = pi if k == 0 else pk if k == 1 else pj
        pz = pj if k == 0 else pi if k == 1 else pk
        _, tx, ty, tz = turn_cost(r, px, py, pz, sx, sy, sz)
        f = sign / (2.0 * _DIFFERENCE)
        curvature[0, k] += f * tx
        curvature[1, k] += f * ty
        curvature[2, k] += f * tz


@njit(**FAST_INLINE)
def _turn_curvature(tips, t, s):
    """Write the derivatives of the torque of target t where all axes have the same squared weight."""
    ex, ey, ez = tips.torque[t, 0] / s, tips.torque[t, 1] / s, tips.torque[t, 2] / s
    x, y, z = tips.turn[t, 1], tips.turn[t, 2], tips.turn[t, 3]
    angle, sine = np.sqrt(ex * ex + ey * ey + ez * ez), np.sqrt(x * x + y * y + z * z)
    # weight^2 (I - [e] / 2 + c [e]^2), the inverse of the left Jacobian; [e]^2 = e e^T - |e|^2 I.
    c = s * _coefficient(angle, tips.turn[t, 0] / max(sine, _NO_DIRECTION))
    straight, h = s - c * angle * angle, 0.5 * s
    bend = tips.curvature
    bend[0, 0], bend[0, 1], bend[0, 2] = straight + c * ex * ex, c * ex * ey + h * ez, c * ex * ez - h * ey
    bend[1, 0], bend[1, 1], bend[1, 2] = c * ex * ey - h * ez, straight + c * ey * ey, c * ey * ez + h * ex
    bend[2, 0], bend[2, 1], bend[2, 2] = c * ex * ez + h * ey, c * ey * ez - h * ex, straight + c * ez * ez


@njit(**FAST_INLINE)
def _set_curvature(tips, t, sx, sy, sz):
    """Write the derivatives of the torque of target t."""
    if sx == sy and sy == sz:
        if sx > 0.0:
            _turn_curvature(tips, t, sx)
        else:
            for a in range(3):
                for k in range(3):
                    tips.curvature[a, k] = 0.0
    else:
        for k in range(3):
            _bend(tips, t, k, sx, sy, sz)


@njit(**FAST_INLINE)
def place_tips(tree, wanted, q, tips):
    """Return the cost of a configuration; keep in ``tips`` what its derivatives follow from."""
    total = 0.0
    goals, squares, base = wanted.goals, wanted.squares, tree.base
    for t in range(base.shape[0]):
        a, z = tree.starts[t], tree.starts[t + 1]
        px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = tip_pose(
            tree.motions[a:z], tree.kinds[a:z], q, tree.tip[t], tips.axes[a:z]
        )
        tips.place[t, 0], tips.place[t, 1], tips.place[t, 2] = px, py, pz
        dx, dy, dz = px - goals[t, 0], py - goals[t, 1], pz - goals[t, 2]
        for k in range(3):
            error = goals[t, 3 + 3 * k] * dx + goals[t, 4 + 3 * k] * dy + goals[t, 5 + 3 * k] * dz
            pull = squares[t, k] * error
            total += 0.5 * pull * error
            tips.force[t, k] = pull
        sx, sy, sz = squares[t, 3], squares[t, 4], squares[t, 5]
        if sx == sy == sz == 0.0:
            tips.torque[t, 0] = tips.torque[t, 1] = tips.torque[t, 2] = 0.0
            continue
        # Columns of the tip's rotation, after the last fixed one, whose transpose is stored.
        f0, f1, f2 = base[t, 12], base[t, 13], base[t, 14]
        x0, x1, x2 = f0 * xx + f1 * yx + f2 * zx, f0 * xy + f1 * yy + f2 * zy, f0 * xz + f1 * yz + f2 * zz
        f0, f1, f2 = base[t, 15], base[t, 16], base[t, 17]
        y0, y1, y2 = f0 * xx + f1 * yx + f2 * zx, f0 * xy + f1 * yy + f2 * zy, f0 * xz + f1 * yz + f2 * zz
        f0, f1, f2 = base[t, 18], base[t, 19], base[t, 20]
        z0, z1, z2 = f0 * xx + f1 * yx + f2 * zx, f0 * xy + f1 * yy + f2 * zy, f0 * xz + f1 * yz + f2 * zz
        a0, a1, a2 = goals[t, 3], goals[t, 4], goals[t, 5]
        b0, b1, b2 = goals[t, 6], goals[t, 7], goals[t, 8]
        c0, c1, c2 = goals[t, 9], goals[t, 10], goals[t, 11]
        w, vx, vy, vz = quaternion(
            a0 * x0 + a1 * x1 + a2 * x2, b0 * x0 + b1 * x1 + b2 * x2, c0 * x0 + c1 * x1 + c2 * x2,
            a0 * y0 + a1 * y1 + a2 * y2, b0 * y0 + b1 * y1 + b2 * y2, c0 * y0 + c1 * y1 + c2 * y2,
            a0 * z0 + a1 * z1 + a2 * z2, b0 * z0 + b1 * z1 + b2 * z2, c0 * z0 + c1 * z1 + c2 * z2,
        )  # fmt: skip
        if w < 0.0:
            w, vx, vy, vz = -w, -vx, -vy, -vz
        tips.turn[t, 0], tips.turn[t, 1], tips.turn[t, 2], tips.turn[t, 3] = w, vx, vy, vz
        cost, tx, ty, tz = turn_cost(w, vx, vy, vz, sx, sy, sz)
        total += cost
        tips.torque[t, 0], tips.torque[t, 1], tips.torque[t, 2] = tx, ty, tz
    return total


@njit(**FAST_INLINE)
def _turned(goals, t, x, y, z):
    """Return a vector in the frame of target t."""
    return (
        goals[t, 3] * x + goals[t, 4] * y + goals[t, 5] * z,
        goals[t, 6] * x + goals[t, 7] * y + goals[t, 8] * z,
        goals[t, 9] * x + goals[t, 10] * y + goals[t, 11] * z,
    )


@njit(**FAST_INLINE)
def differentiate(tree, wanted, tips, gradient, hessian):
    """Write gradient (n) and second derivatives (n, n) of the configuration that ``place_tips`` looked at last."""
    n = gradient.shape[0]
    goals, squares, kinds, bend, velocities = (
        wanted.goals, wanted.squares, tree.kinds, tips.curvature, tips.velocities,
    )  # fmt: skip
    for j in range(n):
        gradient[j] = 0.0
        for k in range(n):
            hessian[j, k] = 0.0
    for t in range(tree.base.shape[0]):
        sx, sy, sz = squares[t, 0], squares[t, 1], squares[t, 2]
        _set_curvature(tips, t, squares[t, 3], squares[t, 4], squares[t, 5])
        fx, fy, fz = tips.force[t, 0], tips.force[t, 1], tips.force[t, 2]
        tx, ty, tz = tips.torque[t, 0], tips.torque[t, 1], tips.torque[t, 2]
        px, py, pz = tips.place[t, 0], tips.place[t, 1], tips.place[t, 2]
        first = tree.starts[t]
        for j in range(first, tree.starts[t + 1]):
            f = tree.motions[j, MULTIPLIER]
            ax, ay, az = f * tips.axes[j, 0], f * tips.axes[j, 1], f * tips.axes[j, 2]
            wx = wy = wz = 0.0
            if kinds[j, IS_TRANSLATION] == 0:
                wx, wy, wz = _turned(goals, t, ax, ay, az)
                rx, ry, rz = px - tips.axes[j, 3], py - tips.axes[j, 4], pz - tips.axes[j, 5]
                ax, ay, az = ay * rz - az * ry, az * rx - ax * rz, ax * ry - ay * rx
            vx, vy, vz = _turned(goals, t, ax, ay, az)
            velocities[j, 0], velocities[j, 1], velocities[j, 2] = vx, vy, vz
            velocities[j, 3], velocities[j, 4], velocities[j, 5] = wx, wy, wz
            column = kinds[j, COLUMN]
            gradient[column] += fx * vx + fy * vy + fz * vz + tx * wx + ty * wy + tz * wz
            # What an earlier motion's velocities meet: v_i (P v_j) + w_i (C^T w_j + v_j x f + w_j x t).
            qx, qy, qz = sx * vx, sy * vy, sz * vz
            bx = bend[0, 0] * wx + bend[1, 0] * wy + bend[2, 0] * wz + vy * fz - vz * fy + wy * tz - wz * ty
            by = bend[0, 1] * wx + bend[1, 1] * wy + bend[2, 1] * wz + vz * fx - vx * fz + wz * tx - wx * tz
            bz = bend[0, 2] * wx + bend[1, 2] * wy + bend[2, 2] * wz + vx * fy - vy * fx + wx * ty - wy * tx
            for i in range(first, j + 1):
                h = qx * velocities[i, 0] + qy * velocities[i, 1] + qz * velocities[i, 2]
                h += bx * velocities[i, 3] + by * velocities[i, 4] + bz * velocities[i, 5]
                row = kinds[i, COLUMN]
                hessian[row, column] += h
                if i != j:
                    hessian[column, row] += h
