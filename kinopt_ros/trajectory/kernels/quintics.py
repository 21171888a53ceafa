"""Quintic splines and the derivatives of paths, compiled."""

import numpy as np

from kinopt_ros.compiler_options import OUTER
from kinopt_ros.numba_cache import njit


@njit(**OUTER)
def fit_quintics(s, p, ends, clamped, out):
    """Coefficients (K, 6, n) of the C4 quintic spline through p (K + 1, n) at s: the interpolating curve with the least
    integral of the squared third derivative. First and second derivative at an end are ``ends`` (2, 2, n) where it is
    ``clamped`` (2,).

    Slope m and second derivative k at the knots make the third and fourth derivatives continuous: a block tridiagonal
    positive definite system, the same for all joints.
    """
    count, n = p.shape
    # Rows of the eliminated system: diagonal block inverse times (upper block, right-hand side).
    upper = np.zeros((count, 2, 2))
    right = np.zeros((count, 2, n))
    r = np.zeros((2, n))
    for i in range(count):
        a00 = a01 = a11 = 0.0
        l00 = l01 = l10 = l11 = u00 = u01 = u10 = u11 = 0.0
        for j in range(n):
            r[0, j] = r[1, j] = 0.0
        if i > 0:
            h = s[i] - s[i - 1]
            a00 += 192.0 / h**3
            a01 -= 36.0 / h**2
            a11 += 9.0 / h
            l00, l01, l10, l11 = 168.0 / h**3, 24.0 / h**2, -24.0 / h**2, -3.0 / h
            for j in range(n):
                step = p[i, j] - p[i - 1, j]
                r[0, j] += 360.0 * step / h**4
                r[1, j] -= 60.0 * step / h**3
        if i < count - 1:
            h = s[i + 1] - s[i]
            a00 += 192.0 / h**3
            a01 += 36.0 / h**2
            a11 += 9.0 / h
            u00, u01, u10, u11 = 168.0 / h**3, -24.0 / h**2, 24.0 / h**2, -3.0 / h
            for j in range(n):
                step = p[i + 1, j] - p[i, j]
                r[0, j] += 360.0 * step / h**4
                r[1, j] += 60.0 * step / h**3
        a10 = a01
        if (i == 0 and clamped[0]) or (i == count - 1 and clamped[1]):
            a00, a01, a10, a11 = 1.0, 0.0, 0.0, 1.0
            l00 = l01 = l10 = l11 = u00 = u01 = u10 = u11 = 0.0
            end = 0 if i == 0 else 1
            for j in range(n):
                r[0, j] = ends[end, 0, j]
                r[1, j] = ends[end, 1, j]
        if i > 0:
            before = upper[i - 1]
            a00 -= l00 * before[0, 0] + l01 * before[1, 0]
            a01 -= l00 * before[0, 1] + l01 * before[1, 1]
            a10 -= l10 * before[0, 0] + l11 * before[1, 0]
            a11 -= l10 * before[0, 1] + l11 * before[1, 1]
            for j in range(n):
                r[0, j] -= l00 * right[i - 1, 0, j] + l01 * right[i - 1, 1, j]
                r[1, j] -= l10 * right[i - 1, 0, j] + l11 * right[i - 1, 1, j]
        scale = 1.0 / (a00 * a11 - a01 * a10)
        upper[i, 0, 0] = scale * (a11 * u00 - a01 * u10)
        upper[i, 0, 1] = scale * (a11 * u01 - a01 * u11)
        upper[i, 1, 0] = scale * (a00 * u10 - a10 * u00)
        upper[i, 1, 1] = scale * (a00 * u11 - a10 * u01)
        for j in range(n):
            right[i, 0, j] = scale * (a11 * r[0, j] - a01 * r[1, j])
            right[i, 1, j] = scale * (a00 * r[1, j] - a10 * r[0, j])
    for i in range(count - 2, -1, -1):
        for j in range(n):
            m, k = right[i + 1, 0, j], right[i + 1, 1, j]
            right[i, 0, j] -= upper[i, 0, 0] * m + upper[i, 0, 1] * k
            right[i, 1, j] -= upper[i, 1, 0] * m + upper[i, 1, 1] * k
    for i in range(count - 1):
        h = s[i + 1] - s[i]
        for j in range(n):
            step = p[i + 1, j] - p[i, j]
            m0, m1 = right[i, 0, j] * h, right[i + 1, 0, j] * h
            k0, k1 = right[i, 1, j] * h * h, right[i + 1, 1, j] * h * h
            out[i, 0, j] = p[i, j]
            out[i, 1, j] = right[i, 0, j]
            out[i, 2, j] = right[i, 1, j] / 2.0
            out[i, 3, j] = (20.0 * step - 8.0 * m1 - 12.0 * m0 - 3.0 * k0 + k1) / (2.0 * h**3)
            out[i, 4, j] = (-30.0 * step + 14.0 * m1 + 16.0 * m0 + 3.0 * k0 - 2.0 * k1) / (2.0 * h**4)
            out[i, 5, j] = (12.0 * step - 6.0 * (m0 + m1) - k0 + k1) / (2.0 * h**5)


@njit(**OUTER)
def path_derivatives(breaks, pieces, at, out):
    """Compute position and the first four derivatives (M, 5, n) of piecewise polynomials, pieces (K, d, n), at M
    parameters.

    Parameters outside go on with the first or last polynomial.
    """
    last = pieces.shape[0] - 1
    order, n = pieces.shape[1], pieces.shape[2]
    k = 0
    for i in range(at.size):
        x = at[i]
        while k < last and x >= breaks[k + 1]:
            k += 1
        while k > 0 and x < breaks[k]:
            k -= 1
        x -= breaks[k]
        if order == 6:  # written out, so that several joints at a time are a vector of the processor
            for j in range(n):
                c0, c1, c2 = pieces[k, 0, j], pieces[k, 1, j], pieces[k, 2, j]
                c3, c4, c5 = pieces[k, 3, j], pieces[k, 4, j], pieces[k, 5, j]
                out[i, 0, j] = ((((c5 * x + c4) * x + c3) * x + c2) * x + c1) * x + c0
                out[i, 1, j] = (((5.0 * c5 * x + 4.0 * c4) * x + 3.0 * c3) * x + 2.0 * c2) * x + c1
                out[i, 2, j] = ((20.0 * c5 * x + 12.0 * c4) * x + 6.0 * c3) * x + 2.0 * c2
                out[i, 3, j] = (60.0 * c5 * x + 24.0 * c4) * x + 6.0 * c3
                out[i, 4, j] = 120.0 * c5 * x + 24.0 * c4
            continue
        for j in range(n):
            p0 = p1 = p2 = p3 = p4 = 0.0
            for d in range(order - 1, -1, -1):
                p4 = p4 * x + p3
                p3 = p3 * x + p2
                p2 = p2 * x + p1
                p1 = p1 * x + p0
                p0 = p0 * x + pieces[k, d, j]
            out[i, 0, j] = p0
            out[i, 1, j] = p1
            out[i, 2, j] = 2.0 * p2
            out[i, 3, j] = 6.0 * p3
            out[i, 4, j] = 24.0 * p4


@njit(**OUTER)
def passable_speed(q, s, limits, start_speed, steady, out):
    """Speeds ds/dt (M,) at parameters s at which no joint has to pass its velocity limit, nor those of acceleration and
    jerk by much: pointwise, then by going forwards and backwards with half of the acceleration.

    ``q`` (M, 5, n) has the path's derivatives; the first ``steady`` of s is passed at the speed of the start, after
    which the robot brakes with all it has, if it must.
    """
    count, n = s.size, limits.shape[1]
    gain = np.empty(count)
    for i in range(count):
        slowest = np.inf
        gain[i] = np.inf
        for j in range(n):
            q1, q2, q3 = abs(q[i, 1, j]), abs(q[i, 2, j]), abs(q[i, 3, j])
            if q1 > 0.0:
                slowest = min(slowest, limits[0, j] / q1)
                gain[i] = min(gain[i], limits[1, j] / q1)
            if q2 > 0.0:
                slowest = min(slowest, np.sqrt(limits[1, j] / q2))
            if q3 > 0.0:
                slowest = min(slowest, np.cbrt(limits[2, j] / q3))
        out[i] = 0.8 * slowest
    # Not zero, which would take for ever; what is gained in half a step from rest.
    out[count - 1] = min(out[count - 1], np.sqrt(0.5 * gain[count - 1] * (s[count - 1] - s[count - 2])))
    out[0] = min(out[0], np.sqrt(0.5 * gain[0] * s[1]))
    for i in range(count - 2, -1, -1):
        out[i] = min(out[i], np.sqrt(out[i + 1] ** 2 + min(gain[i], gain[i + 1]) * (s[i + 1] - s[i])))
    if start_speed > 0.0:
        out[0] = start_speed
    for i in range(1, count):
        step = min(gain[i], gain[i - 1]) * (s[i] - s[i - 1])
        out[i] = min(out[i], np.sqrt(out[i - 1] ** 2 + step))
        if start_speed > 0.0:
            fastest = out[i - 1] ** 2 - 1.6 * step
            out[i] = start_speed if s[i] < steady else max(out[i], np.sqrt(max(fastest, 0.0)))
