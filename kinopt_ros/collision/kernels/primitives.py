"""Signed distances of points to primitives, with gradients, compiled."""

import numpy as np

from kinopt_ros.compiler_options import FAST_INLINE
from kinopt_ros.numba_cache import njit

TINY = 1e-12
"""Distance from a surface below which its normal is the gradient, m."""


@njit(**FAST_INLINE)
def sphere_distance(x, y, z, radius):
    length = np.sqrt(x * x + y * y + z * z)
    if length < TINY:
        return length - radius, 0.0, 0.0, 1.0
    return length - radius, x / length, y / length, z / length


@njit(**FAST_INLINE)
def box_distance(x, y, z, hx, hy, hz):
    """Compute the signed distance to a box with half edges hx, hy, hz."""
    dx, dy, dz = abs(x) - hx, abs(y) - hy, abs(z) - hz
    if dx > 0.0 or dy > 0.0 or dz > 0.0:
        dx, dy, dz = max(dx, 0.0), max(dy, 0.0), max(dz, 0.0)
        length = np.sqrt(dx * dx + dy * dy + dz * dz)
        return length, np.copysign(dx / length, x), np.copysign(dy / length, y), np.copysign(dz / length, z)
    if dx >= dy and dx >= dz:
        return dx, np.copysign(1.0, x), 0.0, 0.0
    if dy >= dz:
        return dy, 0.0, np.copysign(1.0, y), 0.0
    return dz, 0.0, 0.0, np.copysign(1.0, z)


@njit(**FAST_INLINE)
def cylinder_distance(x, y, z, radius, h):
    """Compute the signed distance to a cylinder of half length h."""
    rho = np.sqrt(x * x + y * y)
    ux, uy = (x / rho, y / rho) if rho > TINY else (1.0, 0.0)
    dr, dz = rho - radius, abs(z) - h
    if dr > 0.0 and dz > 0.0:
        length = np.sqrt(dr * dr + dz * dz)
        return length, dr / length * ux, dr / length * uy, np.copysign(dz / length, z)
    if dr > dz:
        return dr, ux, uy, 0.0
    return dz, 0.0, 0.0, np.copysign(1.0, z)


@njit(**FAST_INLINE)
def cone_distance(x, y, z, radius, h):
    """Compute the signed distance to a cone of half length h.

    In the half plane of the axis and the point it is a triangle, of which two sides are surface.
    """
    rho = np.sqrt(x * x + y * y)
    ux, uy = (x / rho, y / rho) if rho > TINY else (1.0, 0.0)
    slant = np.sqrt(radius * radius + 4.0 * h * h)
    # The slanted side runs from (radius, -h) along (tr, tz) to the apex; its outward normal is (tz, -tr).
    tr, tz = -radius / slant, 2.0 * h / slant
    along = (rho - radius) * tr + (z + h) * tz
    beyond = (rho - radius) * tz - (z + h) * tr
    below = -h - z
    if beyond <= 0.0 and below <= 0.0:
        if beyond > below:
            return beyond, tz * ux, tz * uy, -tr
        return below, 0.0, 0.0, -1.0
    if rho <= radius and below > 0.0:
        return below, 0.0, 0.0, -1.0
    along = min(max(along, 0.0), slant)
    dr, dz = rho - (radius + along * tr), z - (-h + along * tz)
    length = np.sqrt(dr * dr + dz * dz)
    if length < TINY:
        return length, tz * ux, tz * uy, -tr
    return length, dr / length * ux, dr / length * uy, dz / length
