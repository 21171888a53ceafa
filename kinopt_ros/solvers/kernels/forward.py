"""Forward kinematics of a chain whose motions are about or along local z: one configuration, or one in every lane."""

import numpy as np

from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.kernels.lanes import lanes_at
from kinopt_ros.solvers.kernels.layout import (
    COLUMN,
    COS_FIXED,
    COS_TWIST,
    IS_TRANSLATION,
    KIND_SIZE,
    MOTION_SIZE,
    MULTIPLIER,
    OFFSET,
    SHIFT_X,
    SHIFT_Y,
    SHIFT_Z,
    SIN_FIXED,
    SIN_TWIST,
)
from kinopt_ros.solvers.kernels.memory import after, get, put_six

_TWO_OVER_PI = 2.0 / np.pi
# pi/2 as a sum (fdlibm, e_rem_pio2.c): k * the first is exact for |k| < 2**20.
_HALF_PI_1 = 1.57079632673412561417e00
_HALF_PI_2 = 6.07710050650619224932e-11


@njit(**FAST_INLINE)
def _sin_cos(x):
    """Return sine and cosine for |x| < 1e6, within 1e-15: three times as quick as two calls of the C library.

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
    half = np.floor(0.5 * k)
    odd = k - 2.0 * half  # k modulo 2
    even = 1.0 - odd
    second = half - 2.0 * np.floor(0.5 * half)  # k modulo 4 is 2 or 3
    sign_s = 1.0 - 2.0 * second
    sign_c = sign_s * (even - odd)
    return sign_s * (even * s + odd * c), sign_c * (even * c + odd * s)


@njit(**FAST_INNER)
def tip_pose(motions, kinds, q, tip, axes):
    """Compute the pose of the tip; z axis and origin of every motion go to the rows of ``axes``.

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


@njit(**FAST_INNER)
def quaternion(xx, xy, xz, yx, yy, yz, zx, zy, zz):
    """Return the unit quaternion (w, x, y, z) of the rotation whose columns are x, y, z (Shepperd 1978)."""
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


@njit(**FAST_INLINE)
def tip_pose_lanes(motions, kinds, num_motions, q, tip, axes):
    """Compute ``tip_pose`` in all lanes: six rows of ``axes`` for every motion."""
    px = py = pz = xy = xz = yx = yz = zx = zy = 0.0 * lanes_at(q, 0)
    xx = yy = zz = 1.0 + px
    for i in range(num_motions):
        motion, kind = after(motions, MOTION_SIZE * i), after(kinds, KIND_SIZE * i)
        tx, ty, tz = get(motion, SHIFT_X), get(motion, SHIFT_Y), get(motion, SHIFT_Z)
        px += xx * tx + yx * ty + zx * tz
        py += xy * tx + yy * ty + zy * tz
        pz += xz * tx + yz * ty + zz * tz
        ct, st = get(motion, COS_TWIST), get(motion, SIN_TWIST)
        yx, zx = ct * yx + st * zx, ct * zx - st * yx
        yy, zy = ct * yy + st * zy, ct * zy - st * yy
        yz, zz = ct * yz + st * zz, ct * zz - st * yz
        value = get(motion, MULTIPLIER) * lanes_at(q, get(kind, COLUMN)) + get(motion, OFFSET)
        if get(kind, IS_TRANSLATION) == 0:
            s, c = _sin_cos(value)
        else:
            c, s = 0.0 * value + get(motion, COS_FIXED), 0.0 * value + get(motion, SIN_FIXED)
            px += value * zx
            py += value * zy
            pz += value * zz
        put_six(axes, i, zx, zy, zz, px, py, pz)
        xx, yx = c * xx + s * yx, c * yx - s * xx
        xy, yy = c * xy + s * yy, c * yy - s * xy
        xz, yz = c * xz + s * yz, c * yz - s * xz
    tx, ty, tz = get(tip, 0), get(tip, 1), get(tip, 2)
    px += xx * tx + yx * ty + zx * tz
    py += xy * tx + yy * ty + zy * tz
    pz += xz * tx + yz * ty + zz * tz
    return px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz
