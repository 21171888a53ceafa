"""Bounds of a motion's velocity, acceleration and jerk beside their limits, compiled.

A segment is a quintic of each joint; its derivatives are kept as Bernstein control points, whose hull they lie in
(``interpolation``). Where the hull passes a limit the polynomial is halved until its bound is close.
"""

import numpy as np

from kinopt_ros.compiler_options import INNER, OUTER
from kinopt_ros.numba_cache import njit

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_HALVINGS = 40


@njit(**INNER)
def _largest(stack, depth, count, floor, gap):
    """Return an upper bound of the absolute value of a polynomial, ``count`` control points in ``stack[0]``: at most
    ``gap`` times the largest of them too high where it is above ``floor``.

    ``stack`` (_MOST_HALVINGS + 2, 5) and ``depth`` of as many rows are overwritten.
    """
    hull = 0.0
    for i in range(count):
        hull = max(hull, abs(stack[0, i]))
    known = max(abs(stack[0, 0]), abs(stack[0, count - 1]))
    allowed, bound = gap * hull, known
    depth[0] = 0
    top = 1
    while top > 0:
        top -= 1
        level = depth[top]
        hull = 0.0
        for i in range(count):
            hull = max(hull, abs(stack[top, i]))
        if hull <= max(floor, known + allowed) or level >= _MOST_HALVINGS:
            bound = max(bound, hull)
            continue
        # De Casteljau: the later half stays here, the earlier one lies on top of it.
        for m in range(count):
            stack[top + 1, m] = stack[top, 0]
            for i in range(count - 1 - m):
                stack[top, i] = 0.5 * (stack[top, i] + stack[top, i + 1])
        known = max(known, abs(stack[top, 0]))
        depth[top] = depth[top + 1] = level + 1
        top += 2
    return bound


@njit(**OUTER)
def limit_ratios(nanoseconds, position, velocity, acceleration, limits, floor, gap, out):
    """Write upper bounds of the absolute velocity, acceleration and jerk of a motion in every segment over their
    limits, the largest of all joints (3, K): never too low, and close where they are above ``floor``.

    Args:
        nanoseconds: (K + 1,) times of the waypoints.
        position, velocity, acceleration: (K + 1, n) at the waypoints, rad or m; per s, s^2.
        limits: (3, n) of velocity, acceleration and jerk. What rounding may do beyond them is granted, as by
            ``interpolation.rounding``.
        floor: ratio up to which a bound may be loose.
        gap: share of a polynomial's magnitude by which a bound above it may be too high.
        out: is written.
    """
    count, n = position.shape
    stack, depth = np.empty((_MOST_HALVINGS + 2, 5)), np.empty(_MOST_HALVINGS + 2, np.int64)
    farthest, fastest = np.zeros(n), np.zeros(n)
    for i in range(count):
        for j in range(n):
            farthest[j] = max(farthest[j], abs(position[i, j]))
            fastest[j] = max(fastest[j], abs(velocity[i, j]))
    control = np.empty((3, 5))
    for i in range(count - 1):
        h = (nanoseconds[i + 1] - nanoseconds[i]) / 1e9
        out[0, i] = out[1, i] = out[2, i] = 0.0
        for j in range(n):
            v0, v1, a0, a1 = velocity[i, j], velocity[i + 1, j], acceleration[i, j], acceleration[i + 1, j]
            v, a, u = control[0], control[1], control[2]
            v[0], v[1], v[3], v[4] = v0, v0 + h * a0 / 4.0, v1 - h * a1 / 4.0, v1
            v[2] = 5.0 * (position[i + 1, j] - position[i, j]) / h - 2.0 * (v0 + v1) + h * (a1 - a0) / 4.0
            a[0], a[1], a[2], a[3] = a0, 4.0 * (v[2] - v[1]) / h, 4.0 * (v[3] - v[2]) / h, a1
            for m in range(3):
                u[m] = 3.0 * (a[m + 1] - a[m]) / h
            if not np.isfinite(u[0] + u[1] + u[2]):  # all numbers are in these
                out[0, i] = out[1, i] = out[2, i] = np.inf
                break
            # 10, 40 / h and 240 / h^2 times the unit of rounding.
            granted = 10.0 * _EPSILON * (farthest[j] / h + fastest[j])
            for k in range(3):
                points = 5 - k
                limit = limits[k, j] + (granted if np.isfinite(granted) else 0.0)
                granted *= (4.0 if k == 0 else 6.0) / h
                hull = 0.0
                for m in range(points):
                    control[k, m] /= limit
                    hull = max(hull, abs(control[k, m]))
                if hull > 1.0:
                    for m in range(points):
                        stack[0, m] = control[k, m]
                    hull = _largest(stack, depth, points, floor, gap)
                out[k, i] = max(out[k, i], hull)
