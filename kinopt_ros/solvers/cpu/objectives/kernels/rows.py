"""Residuals of costs and their derivatives, compiled: the formulas of ``kinopt_ros.costs``, of one configuration."""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.objectives.kernels.manipulability import IndexRoom, manipulability
from kinopt_ros.solvers.cpu.objectives.kernels.model import (
    ALIGNMENT,
    BASE,
    CENTER_OF_MASS,
    CODE,
    COUNT,
    FIRST,
    FRAME,
    IN_BASE_AXES,
    LIMITS,
    LISTED,
    LOOK_AT,
    MANIPULABILITY,
    NUMBERS,
    POSE,
    REST,
    SIZE,
    VARIANT,
)
from kinopt_ros.solvers.cpu.objectives.kernels.places import (
    Places,
    center_of_mass,
    compose,
    differentiate_frames,
    place,
)
from kinopt_ros.solvers.cpu.objectives.kernels.turns import angle_between, inverse_left_jacobian, turn_of
from kinopt_ros.solvers.kernels.forward import quaternion


class RowRoom(NamedTuple):
    """Memory of an evaluation."""

    places: Places
    index_room: IndexRoom
    poses: Annotated[Float64, "2 12"]
    numbers: Annotated[Float64, "2 12"]
    turn: Annotated[Float64, "21"]
    velocity: Annotated[Float64, "6 d"]


@njit(**FAST_INLINE)
def _turned_back(T, x, y, z):
    """Return a vector of the root link in the axes of a pose."""
    return (
        T[0] * x + T[3] * y + T[6] * z,
        T[1] * x + T[4] * y + T[7] * z,
        T[2] * x + T[5] * y + T[8] * z,
    )


@njit(**FAST_INLINE)
def _turned(T, x, y, z):
    """Return a vector in the axes of a pose in those of the root link."""
    return (
        T[0] * x + T[1] * y + T[2] * z,
        T[3] * x + T[4] * y + T[5] * z,
        T[6] * x + T[7] * y + T[8] * z,
    )


@njit(**FAST_INNER)
def _pose(row, numbers, room, differentiate, r, J):
    """``costs.link_pose``, and ``costs.relative_pose``."""
    frames, first, at = room.places.frame, row[FIRST], row[NUMBERS]
    target, poses = room.numbers[0], room.poses
    for k in range(12):
        target[k] = numbers[at + k]
        room.numbers[1, k] = numbers[at + 12 + k]
    compose(frames, row[FRAME], room.numbers, 1, poses, 0)
    T, base = poses[0], row[BASE]
    px, py, pz = T[9], T[10], T[11]
    if base >= 0:
        B = frames[base]
        px, py, pz = _turned_back(B, px - B[9], py - B[10], pz - B[11])
    # Columns of the tip's rotation, in the base link, and then in the target.
    x0, x1, x2, y0, y1, y2, z0, z1, z2 = T[0], T[3], T[6], T[1], T[4], T[7], T[2], T[5], T[8]
    if base >= 0:
        x0, x1, x2 = _turned_back(B, x0, x1, x2)
        y0, y1, y2 = _turned_back(B, y0, y1, y2)
        z0, z1, z2 = _turned_back(B, z0, z1, z2)
    x0, x1, x2 = _turned_back(target, x0, x1, x2)
    y0, y1, y2 = _turned_back(target, y0, y1, y2)
    z0, z1, z2 = _turned_back(target, z0, z1, z2)
    w, a, b, c = quaternion(x0, x1, x2, y0, y1, y2, z0, z1, z2)
    ex, ey, ez = turn_of(w, a, b, c)
    sx, sy, sz = px - target[9], py - target[10], pz - target[11]
    along_base = row[VARIANT] == IN_BASE_AXES
    if along_base:
        r[first], r[first + 1], r[first + 2] = sx, sy, sz
        r[first + 3], r[first + 4], r[first + 5] = _turned(target, ex, ey, ez)
    else:
        r[first], r[first + 1], r[first + 2] = _turned_back(target, sx, sy, sz)
        r[first + 3], r[first + 4], r[first + 5] = ex, ey, ez
    if not differentiate:
        return
    l0, l1, l2, l3, l4, l5, l6, l7, l8 = inverse_left_jacobian(ex, ey, ez)
    V, F = room.places.velocity[row[FRAME]], frames[row[FRAME]]
    tx, ty, tz = T[9] - F[9], T[10] - F[10], T[11] - F[11]
    for j in range(J.shape[1]):
        wx, wy, wz = V[3, j], V[4, j], V[5, j]
        vx, vy, vz = V[0, j] + wy * tz - wz * ty, V[1, j] + wz * tx - wx * tz, V[2, j] + wx * ty - wy * tx
        if base >= 0:
            U = room.places.velocity[base]
            ux, uy, uz = U[3, j], U[4, j], U[5, j]
            gx, gy, gz = T[9] - B[9], T[10] - B[10], T[11] - B[11]
            vx -= U[0, j] + uy * gz - uz * gy
            vy -= U[1, j] + uz * gx - ux * gz
            vz -= U[2, j] + ux * gy - uy * gx
            vx, vy, vz = _turned_back(B, vx, vy, vz)
            wx, wy, wz = _turned_back(B, wx - ux, wy - uy, wz - uz)
        wx, wy, wz = _turned_back(target, wx, wy, wz)
        fx, fy, fz = l0 * wx + l1 * wy + l2 * wz, l3 * wx + l4 * wy + l5 * wz, l6 * wx + l7 * wy + l8 * wz
        if along_base:
            fx, fy, fz = _turned(target, fx, fy, fz)
        else:
            vx, vy, vz = _turned_back(target, vx, vy, vz)
        J[first, j], J[first + 1, j], J[first + 2, j] = vx, vy, vz
        J[first + 3, j], J[first + 4, j], J[first + 5, j] = fx, fy, fz


@njit(**FAST_INNER)
def _rest(row, numbers, lists, column, q, differentiate, r, J):
    """``costs.rest``: per row variable, component of a quaternion's turn or -1, and first direction."""
    at = row[NUMBERS]
    for k in range(row[SIZE]):
        i = row[FIRST] + k
        v, part, direction = (
            lists[row[LISTED] + 3 * k], lists[row[LISTED] + 3 * k + 1], lists[row[LISTED] + 3 * k + 2],
        )  # fmt: skip
        if differentiate:
            for j in range(J.shape[1]):
                J[i, j] = 0.0
        if part < 0:
            r[i] = q[v] - numbers[at + v]
            if differentiate and column[direction] >= 0:
                J[i, column[direction]] = 1.0
            continue
        # The conjugate of the wanted quaternion times the own one.
        a, b, c, d = numbers[at + v], numbers[at + v + 1], numbers[at + v + 2], numbers[at + v + 3]
        w, x, y, z = q[v], q[v + 1], q[v + 2], q[v + 3]
        f = 1.0 / np.sqrt((a * a + b * b + c * c + d * d) * (w * w + x * x + y * y + z * z))
        turn = turn_of(
            f * (a * w + b * x + c * y + d * z),
            f * (a * x - b * w - c * z + d * y),
            f * (a * y + b * z - c * w - d * x),
            f * (a * z - b * y + c * x - d * w),
        )
        r[i] = turn[0] if part == 0 else turn[1] if part == 1 else turn[2]
        if differentiate:
            # The turn comes behind: the inverse of the right Jacobian, which is that of the left one at minus it.
            slopes = inverse_left_jacobian(-turn[0], -turn[1], -turn[2])
            own = slopes[0:3] if part == 0 else slopes[3:6] if part == 1 else slopes[6:9]
            for m in range(3):
                if column[direction + m] >= 0:
                    J[i, column[direction + m]] = own[m]


@njit(**FAST_INNER)
def _limits(row, numbers, lists, column, q, differentiate, r, J):
    """``costs.position_limits``: per row variable, direction, and -1 or 1; 0 where there is no limit."""
    at = row[NUMBERS]
    for k in range(row[SIZE]):
        i = row[FIRST] + k
        v, direction, sign = (
            lists[row[LISTED] + 3 * k], lists[row[LISTED] + 3 * k + 1], lists[row[LISTED] + 3 * k + 2],
        )  # fmt: skip
        r[i] = -1.0 if sign == 0 else sign * (q[v] - numbers[at + 1 + k]) + numbers[at]
        if differentiate:
            for j in range(J.shape[1]):
                J[i, j] = 0.0
            if column[direction] >= 0:
                J[i, column[direction]] = float(sign)


@njit(**FAST_INNER)
def _direction(row, numbers, room, differentiate, r, J):
    """``costs.alignment`` and ``costs.look_at``."""
    places, first, at, turn = room.places, row[FIRST], row[NUMBERS], room.turn
    F, V = places.frame[row[FRAME]], places.velocity[row[FRAME]]
    ax, ay, az = _turned(F, numbers[at], numbers[at + 1], numbers[at + 2])
    bx, by, bz = numbers[at + 3], numbers[at + 4], numbers[at + 5]
    looks, base, inverse = row[CODE] == LOOK_AT, row[BASE], 0.0
    gx = gy = gz = 0.0
    if looks:
        if base >= 0:
            B = places.frame[base]
            gx, gy, gz = _turned(B, bx, by, bz)  # from the base link's origin
            bx, by, bz = gx + B[9], gy + B[10], gz + B[11]
        bx, by, bz = bx - F[9], by - F[10], bz - F[11]
        squared = bx * bx + by * by + bz * bz
        if squared > 0.0:
            inverse = 1.0 / np.sqrt(squared)
            bx, by, bz = inverse * bx, inverse * by, inverse * bz
    angle_between(ax, ay, az, bx, by, bz, turn)
    for k in range(3):
        r[first + k] = turn[k]
    if not differentiate:
        return
    for j in range(J.shape[1]):
        wx, wy, wz = V[3, j], V[4, j], V[5, j]
        dx, dy, dz = wy * az - wz * ay, wz * ax - wx * az, wx * ay - wy * ax
        sx = sy = sz = 0.0
        if looks:
            sx, sy, sz = -V[0, j], -V[1, j], -V[2, j]
            if base >= 0:
                U = places.velocity[base]
                sx += U[0, j] + U[4, j] * gz - U[5, j] * gy
                sy += U[1, j] + U[5, j] * gx - U[3, j] * gz
                sz += U[2, j] + U[3, j] * gy - U[4, j] * gx
            along = sx * bx + sy * by + sz * bz
            sx, sy, sz = inverse * (sx - along * bx), inverse * (sy - along * by), inverse * (sz - along * bz)
        for k in range(3):
            a, b = 3 + 3 * k, 12 + 3 * k
            J[first + k, j] = (
                turn[a] * dx + turn[a + 1] * dy + turn[a + 2] * dz
                + turn[b] * sx + turn[b + 1] * sy + turn[b + 2] * sz
            )  # fmt: skip


@njit(**FAST_INNER)
def _center_of_mass(tree, row, numbers, room, differentiate, r, J):
    """``costs.center_of_mass``."""
    places, first, at, base = room.places, row[FIRST], row[NUMBERS], row[BASE]
    x, y, z = center_of_mass(tree, places, differentiate, room.velocity)
    if base >= 0:
        B = places.frame[base]
        gx, gy, gz = x - B[9], y - B[10], z - B[11]
        x, y, z = _turned_back(B, gx, gy, gz)
    r[first], r[first + 1], r[first + 2] = x - numbers[at], y - numbers[at + 1], z - numbers[at + 2]
    if not differentiate:
        return
    for j in range(J.shape[1]):
        vx, vy, vz = room.velocity[0, j], room.velocity[1, j], room.velocity[2, j]
        if base >= 0:
            U = places.velocity[base]
            vx -= U[0, j] + U[4, j] * gz - U[5, j] * gy
            vy -= U[1, j] + U[5, j] * gx - U[3, j] * gz
            vz -= U[2, j] + U[3, j] * gy - U[4, j] * gx
            vx, vy, vz = _turned_back(B, vx, vy, vz)
        J[first, j], J[first + 1, j], J[first + 2, j] = vx, vy, vz


@njit(**FAST_INNER)
def evaluate(model, numbers, q, room, r, J):
    """Write residuals (R,) of a configuration (nq,), and their derivatives (R, d), or nothing in (0, d).

    A constant that says which would have numba compile all of this twice.
    """
    tree, costs = model.tree, model.costs
    differentiate = J.shape[0] > 0
    place(tree, q, room.places)
    if differentiate:
        differentiate_frames(tree, room.places)
    for k in range(costs.rows.shape[0]):
        row = costs.rows[k]
        code = row[CODE]
        if code == POSE:
            _pose(row, numbers, room, differentiate, r, J)
        elif code == REST:
            _rest(row, numbers, costs.lists, tree.column, q, differentiate, r, J)
        elif code == LIMITS:
            _limits(row, numbers, costs.lists, tree.column, q, differentiate, r, J)
        elif code == MANIPULABILITY:
            counted = costs.lists[row[LISTED] : row[LISTED] + row[COUNT]]
            r[row[FIRST]] = manipulability(
                tree,
                row[FRAME],
                row[VARIANT],
                counted,
                room.places,
                room.index_room,
                differentiate,
                J[row[FIRST]] if differentiate else r,  # which is not written
            )
        elif code in (ALIGNMENT, LOOK_AT):
            _direction(row, numbers, room, differentiate, r, J)
        elif code == CENTER_OF_MASS:
            _center_of_mass(tree, row, numbers, room, differentiate, r, J)
