"""Rotation vectors and their derivatives, compiled (J. Sola et al., "A micro Lie theory for state estimation in
robotics", 2018, appendix B)."""

import numpy as np

from kinopt_ros.compiler_options import FAST_INLINE
from kinopt_ros.numba_cache import njit

_SMALL_SINE, _SMALL_ANGLE = 1e-4, 1e-2
"""Below them series take the place of quotients."""
_PARALLEL = 1e-24
"""Squared sine below which two directions count as parallel, as in ``costs.directions``."""


@njit(**FAST_INLINE)
def turn_of(w, x, y, z):
    """Return the rotation vector, rad, at most pi, of a unit quaternion."""
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    sine = np.sqrt(x * x + y * y + z * z)
    f = 2.0 + sine * sine / 3.0 if sine < _SMALL_SINE else 2.0 * np.arctan2(sine, w) / sine
    return f * x, f * y, f * z


@njit(**FAST_INLINE)
def inverse_left_jacobian(x, y, z):
    """Return, row by row, how the rotation vector changes with a turn w after it: exp(w) exp(v), at w = 0."""
    squared = x * x + y * y + z * z
    angle = np.sqrt(squared)
    if angle < _SMALL_ANGLE:
        c = 1.0 / 12.0 + squared / 720.0
    else:
        half = 0.5 * angle
        c = (1.0 - half * np.cos(half) / np.sin(half)) / squared
    straight = 1.0 - c * squared
    return (
        straight + c * x * x, c * x * y + 0.5 * z, c * x * z - 0.5 * y,
        c * x * y - 0.5 * z, straight + c * y * y, c * y * z + 0.5 * x,
        c * x * z + 0.5 * y, c * y * z - 0.5 * x, straight + c * z * z,
    )  # fmt: skip


@njit(**FAST_INLINE)
def angle_between(ax, ay, az, bx, by, bz, out):
    """Write to ``out`` (21,) the rotation vector that turns unit vector a into b, and its derivatives by both, row by
    row; b may be 0, for no direction: half a turn."""
    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    cosine, squared = ax * bx + ay * by + az * bz, nx * nx + ny * ny + nz * nz
    for k in range(21):
        out[k] = 0.0
    if squared < _PARALLEL and cosine < 0.5:
        # Half a turn about any axis at right angles; it becomes less as a turns about it.
        ux, uy, uz = 1.0, 0.0, 0.0
        if abs(az) < min(abs(ax), abs(ay)):
            ux, uz = 0.0, 1.0
        elif abs(ay) < abs(ax):
            ux, uy = 0.0, 1.0
        along = ux * ax + uy * ay + uz * az
        ux, uy, uz = ux - along * ax, uy - along * ay, uz - along * az
        f = 1.0 / np.sqrt(ux * ux + uy * uy + uz * uz)
        ux, uy, uz = f * ux, f * uy, f * uz
        out[0], out[1], out[2] = np.pi * ux, np.pi * uy, np.pi * uz
        # -u (u . (a x da)): the part of a's turn about u.
        gx, gy, gz = uy * az - uz * ay, uz * ax - ux * az, ux * ay - uy * ax
        out[3], out[4], out[5] = -ux * gx, -ux * gy, -ux * gz
        out[6], out[7], out[8] = -uy * gx, -uy * gy, -uy * gz
        out[9], out[10], out[11] = -uz * gx, -uz * gy, -uz * gz
        return
    sine = np.sqrt(squared)
    if sine < _SMALL_SINE and cosine > 0.0:
        f, slope = 1.0 + squared / 6.0, 1.0 / 3.0 + 0.3 * squared
    elif sine > 0.0:
        f = np.arctan2(sine, cosine) / sine
        slope = (cosine - f) / squared
    else:
        f, slope = 1.0, 0.0
    out[0], out[1], out[2] = f * nx, f * ny, f * nz
    # d(f n) = f dn + n (slope n . dn - (a . db + b . da)), as d(angle) = cos ds - sin dc.
    # f [.] with dn = da x b = -[b] da, and = a x db = [a] db.
    # Where the sine is small, f is a function of it alone.
    weight = 0.0 if sine < _SMALL_SINE and cosine > 0.0 else 1.0
    dx, dy, dz = slope * nx, slope * ny, slope * nz
    ex, ey, ez = weight * nx, weight * ny, weight * nz
    # n . dn for da: n . (da x b) = da . (b x n); for db: n . (a x db) = db . (n x a).
    px, py, pz = by * nz - bz * ny, bz * nx - bx * nz, bx * ny - by * nx
    qx, qy, qz = ny * az - nz * ay, nz * ax - nx * az, nx * ay - ny * ax
    out[3] = dx * px - ex * bx
    out[4] = f * bz + dx * py - ex * by
    out[5] = -f * by + dx * pz - ex * bz
    out[6] = -f * bz + dy * px - ey * bx
    out[7] = dy * py - ey * by
    out[8] = f * bx + dy * pz - ey * bz
    out[9] = f * by + dz * px - ez * bx
    out[10] = -f * bx + dz * py - ez * by
    out[11] = dz * pz - ez * bz
    out[12] = dx * qx - ex * ax
    out[13] = -f * az + dx * qy - ex * ay
    out[14] = f * ay + dx * qz - ex * az
    out[15] = f * az + dy * qx - ey * ax
    out[16] = dy * qy - ey * ay
    out[17] = -f * ax + dy * qz - ey * az
    out[18] = -f * ay + dz * qx - ez * ax
    out[19] = f * ax + dz * qy - ez * ay
    out[20] = dz * qz - ez * az
