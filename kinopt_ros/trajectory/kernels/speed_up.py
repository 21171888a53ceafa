"""The barrier method of ``path_law``, compiled.

Derivatives of the path are by its parameter s, those of s by time in units of ``exp(lam)`` seconds. Control points c of
s(t) come in the order of time; cell i, between knots i and i + 1, depends on c[i] to c[i + 3].
"""

import numpy as np

from kinopt_ros.compiler_options import OUTER
from kinopt_ros.numba_cache import njit
from kinopt_ros.trajectory.kernels.banded import factorize, solve_factorized
from kinopt_ros.trajectory.kernels.quintics import path_derivatives

_ROOM = 0.02
"""Logarithm of the time that is added to the least of a given law, to begin off the limits."""
_FAST = OUTER | {"fastmath": {"reassoc", "contract", "nsz", "arcp", "nnan"}}


@njit(**OUTER)
def law_at_knots(c, at_knot, out):
    """Write s and its first two derivatives (T, 3) at the knots."""
    for i in range(out.shape[0]):
        for d in range(3):
            out[i, d] = at_knot[i, d, 0] * c[i] + at_knot[i, d, 1] * c[i + 1] + at_knot[i, d, 2] * c[i + 2]


@njit(**_FAST)
def _merit(path, state, slope, jerk, lam, inverse, share, weight):
    """Compute the weighted logarithm of time plus barrier (infinite outside), and the largest ratio of a value to its
    limit."""
    cells, n = slope.size, inverse.shape[1]
    e1, e2, e3 = np.exp(-lam), np.exp(-2.0 * lam), np.exp(-3.0 * lam)
    total, least = weight * lam, 1.0
    product = 1.0
    for i in range(cells):
        fv, fa, fj = e1 / share[i, 0] * slope[i], e2 / share[i, 1], e3 / share[i, 2]
        for end in range(2):
            q = path[i + end]
            s1, s2 = state[i + end, 1], state[i + end, 2]
            j1, j2, j3 = fj * jerk[i], fj * 3.0 * s1 * s2, fj * s1 * s1 * s1
            for j in range(n):
                r = (q[1, j] * j1 + q[2, j] * j2 + q[3, j] * j3) * inverse[2, j]
                room = 1.0 - r * r
                least = min(least, room)
                product *= room
            if i > 0 or end > 0:
                for j in range(n):
                    r = q[1, j] * fv * inverse[0, j]
                    room = 1.0 - r * r
                    least = min(least, room)
                    product *= room
            if i > 0 and end == 0:
                a1, a2 = fa * s2, fa * s1 * s1
                for j in range(n):
                    r = (q[1, j] * a1 + q[2, j] * a2) * inverse[1, j]
                    room = 1.0 - r * r
                    least = min(least, room)
                    product *= room
            # Not below the smallest float64: n = 20 ratios of 1 - 1e-12.
            if least > 0.0 and (product < 1e-60 or i == cells - 1):
                total -= np.log(product)
                product = 1.0
    if not least > 0.0:
        total = np.inf
    return total, np.sqrt(1.0 - least)


@njit(**OUTER)
def _largest(path, state, slope, jerk, lam, inverse, share):
    """Return the largest ratio to its limit of velocity, of acceleration and of jerk."""
    e1, e2, e3 = np.exp(-lam), np.exp(-2.0 * lam), np.exp(-3.0 * lam)
    velocity = acceleration = worst_jerk = 0.0
    for i in range(slope.size):
        for end in range(2):
            q = path[i + end]
            s1, s2 = state[i + end, 1], state[i + end, 2]
            for j in range(inverse.shape[1]):
                third = q[1, j] * jerk[i] + s1 * (3.0 * q[2, j] * s2 + q[3, j] * s1 * s1)
                worst_jerk = max(worst_jerk, abs(third) * inverse[2, j] * e3 / share[i, 2])
                if i > 0 or end > 0:
                    velocity = max(velocity, abs(q[1, j] * slope[i]) * inverse[0, j] * e1 / share[i, 0])
                if i > 0 and end == 0:
                    second = q[1, j] * s2 + q[2, j] * s1 * s1
                    acceleration = max(acceleration, abs(second) * inverse[1, j] * e2 / share[i, 1])
    return velocity, acceleration, worst_jerk


@njit(**OUTER)
def _states(c, at_knot, in_cell, breaks, pieces, state, slope, jerk, path):
    law_at_knots(c, at_knot, state)
    for i in range(slope.size):
        slope[i] = in_cell[i, 0, 1] * c[i + 1] + in_cell[i, 0, 2] * c[i + 2]
        jerk[i] = (
            in_cell[i, 1, 0] * c[i]
            + in_cell[i, 1, 1] * c[i + 1]
            + in_cell[i, 1, 2] * c[i + 2]
            + in_cell[i, 1, 3] * c[i + 3]
        )
    path_derivatives(breaks, pieces, state[:, 0].copy(), path)  # as Python calls it: compiled once


@njit(**_FAST)
def _newton_step(
    path, state, slope, jerk, lam, base, at_knot, in_cell, inverse, share, weight, free, band, border, step
):
    """Compute the Gauss-Newton step (last entry: by lam) of the merit; return minus its slope along the step."""
    cells, n, size = slope.size, inverse.shape[1], base.size
    e, e1, e2, e3 = np.exp(lam), np.exp(-lam), np.exp(-2.0 * lam), np.exp(-3.0 * lam)
    for i in range(size):
        band[i, 0] = band[i, 1] = band[i, 2] = band[i, 3] = 0.0
        border[i] = step[i] = 0.0
    step[size] = 0.0
    corner0 = corner1 = 0.0
    for i in range(cells):
        m31, m32 = in_cell[i, 0, 1], in_cell[i, 0, 2]
        m40, m41, m42, m43 = in_cell[i, 1, 0], in_cell[i, 1, 1], in_cell[i, 1, 2], in_cell[i, 1, 3]
        c0, c1, c2, c3 = e * base[i], e * base[i + 1], e * base[i + 2], e * base[i + 3]
        y3, y4 = m31 * c1 + m32 * c2, m40 * c0 + m41 * c1 + m42 * c2 + m43 * c3
        for end in range(2):
            q, knot = path[i + end], at_knot[i + end]
            s1, s2, d, u = state[i + end, 1], state[i + end, 2], slope[i], jerk[i]
            # mab: derivative by c[i + b] of s (a = 0), of its first two derivatives at this end, of the cell's slope
            # (3) and of its jerk (4).
            if end == 0:
                m00, m01, m02, m03 = knot[0, 0], knot[0, 1], knot[0, 2], 0.0
                m10, m11, m12, m13 = knot[1, 0], knot[1, 1], knot[1, 2], 0.0
                m20, m21, m22, m23 = knot[2, 0], knot[2, 1], knot[2, 2], 0.0
            else:
                m00, m01, m02, m03 = 0.0, knot[0, 0], knot[0, 1], knot[0, 2]
                m10, m11, m12, m13 = 0.0, knot[1, 0], knot[1, 1], knot[1, 2]
                m20, m21, m22, m23 = 0.0, knot[2, 0], knot[2, 1], knot[2, 2]
            y0 = m00 * c0 + m01 * c1 + m02 * c2 + m03 * c3
            y1 = m10 * c0 + m11 * c1 + m12 * c2 + m13 * c3
            y2 = m20 * c0 + m21 * c1 + m22 * c2 + m23 * c3
            g0 = g1 = g2 = g3 = b0 = b1 = b2 = b3 = 0.0
            h00 = h10 = h11 = h20 = h21 = h22 = h30 = h31 = h32 = h33 = 0.0
            f = e3 / share[i, 2]
            for j in range(n):
                w = f * inverse[2, j]
                q1, q2, q3, q4 = q[1, j] * w, q[2, j] * w, q[3, j] * w, q[4, j] * w
                r = q1 * u + s1 * (3.0 * q2 * s2 + q3 * s1 * s1)
                d0 = q2 * u + s1 * (3.0 * q3 * s2 + q4 * s1 * s1)
                d1 = 3.0 * (q2 * s2 + q3 * s1 * s1)
                d2 = 3.0 * q2 * s1
                # Derivative by lam: the row is exp(-3 lam) times a function of c, of which a part, ``base``, goes with
                # exp(lam). With that part goes the second derivative, where it is positive.
                dl = d0 * y0 + d1 * y1 + d2 * y2 + q1 * y4 - 3.0 * r
                room = 1.0 / (1.0 - r * r)
                first = 2.0 * r * room
                second = 2.0 * (1.0 + r * r) * room * room
                corner1 += first * dl
                corner0 += second * dl * dl + max(-first * (6.0 * r + 5.0 * dl), 0.0)
                dl *= second
                a0 = d0 * m00 + d1 * m10 + d2 * m20 + q1 * m40
                a1 = d0 * m01 + d1 * m11 + d2 * m21 + q1 * m41
                a2 = d0 * m02 + d1 * m12 + d2 * m22 + q1 * m42
                a3 = d0 * m03 + d1 * m13 + d2 * m23 + q1 * m43
                g0, g1, g2, g3 = g0 + first * a0, g1 + first * a1, g2 + first * a2, g3 + first * a3
                b0, b1, b2, b3 = b0 + dl * a0, b1 + dl * a1, b2 + dl * a2, b3 + dl * a3
                z1, z2, z3 = second * a1, second * a2, second * a3
                h00, h10, h11 = h00 + second * a0 * a0, h10 + z1 * a0, h11 + z1 * a1
                h20, h21, h22 = h20 + z2 * a0, h21 + z2 * a1, h22 + z2 * a2
                h30, h31, h32, h33 = h30 + z3 * a0, h31 + z3 * a1, h32 + z3 * a2, h33 + z3 * a3
            if i > 0 or end > 0:
                f = e1 / share[i, 0]
                for j in range(n):
                    w = f * inverse[0, j]
                    d3 = q[1, j] * w
                    d0 = q[2, j] * w * d
                    r = d3 * d
                    dl = d0 * y0 + d3 * y3 - r
                    room = 1.0 / (1.0 - r * r)
                    first = 2.0 * r * room
                    second = 2.0 * (1.0 + r * r) * room * room
                    corner1 += first * dl
                    corner0 += second * dl * dl + max(-first * dl, 0.0)
                    dl *= second
                    a0, a1, a2, a3 = d0 * m00, d0 * m01 + d3 * m31, d0 * m02 + d3 * m32, d0 * m03
                    g0, g1, g2, g3 = g0 + first * a0, g1 + first * a1, g2 + first * a2, g3 + first * a3
                    b0, b1, b2, b3 = b0 + dl * a0, b1 + dl * a1, b2 + dl * a2, b3 + dl * a3
                    z1, z2, z3 = second * a1, second * a2, second * a3
                    h00, h10, h11 = h00 + second * a0 * a0, h10 + z1 * a0, h11 + z1 * a1
                    h20, h21, h22 = h20 + z2 * a0, h21 + z2 * a1, h22 + z2 * a2
                    h30, h31, h32, h33 = h30 + z3 * a0, h31 + z3 * a1, h32 + z3 * a2, h33 + z3 * a3
            if i > 0 and end == 0:
                f = e2 / share[i, 1]
                for j in range(n):
                    w = f * inverse[1, j]
                    d2 = q[1, j] * w
                    d1 = 2.0 * q[2, j] * w * s1
                    d0 = w * (q[2, j] * s2 + q[3, j] * s1 * s1)
                    r = d2 * s2 + 0.5 * d1 * s1
                    dl = d0 * y0 + d1 * y1 + d2 * y2 - 2.0 * r
                    room = 1.0 / (1.0 - r * r)
                    first = 2.0 * r * room
                    second = 2.0 * (1.0 + r * r) * room * room
                    corner1 += first * dl
                    corner0 += second * dl * dl + max(-first * (2.0 * r + 3.0 * dl), 0.0)
                    dl *= second
                    a0 = d0 * m00 + d1 * m10 + d2 * m20
                    a1 = d0 * m01 + d1 * m11 + d2 * m21
                    a2 = d0 * m02 + d1 * m12 + d2 * m22
                    z1, z2 = second * a1, second * a2
                    g0, g1, g2 = g0 + first * a0, g1 + first * a1, g2 + first * a2
                    b0, b1, b2 = b0 + dl * a0, b1 + dl * a1, b2 + dl * a2
                    h00, h10, h11 = h00 + second * a0 * a0, h10 + z1 * a0, h11 + z1 * a1
                    h20, h21, h22 = h20 + z2 * a0, h21 + z2 * a1, h22 + z2 * a2
            step[i] -= g0
            step[i + 1] -= g1
            step[i + 2] -= g2
            step[i + 3] -= g3
            border[i] += b0
            border[i + 1] += b1
            border[i + 2] += b2
            border[i + 3] += b3
            band[i, 0] += h00
            band[i + 1, 1] += h10
            band[i + 1, 0] += h11
            band[i + 2, 2] += h20
            band[i + 2, 1] += h21
            band[i + 2, 0] += h22
            band[i + 3, 3] += h30
            band[i + 3, 2] += h31
            band[i + 3, 1] += h32
            band[i + 3, 0] += h33
    # Fixed control points take no part.
    for i in range(size):
        if i < 3 or i >= size - 3:
            band[i, 1] = band[i, 2] = band[i, 3] = 0.0
            band[i, 0] = 1.0
            step[i] = border[i] = 0.0
            for k in range(1, 4):
                if i + k < size:
                    band[i + k, k] = 0.0
        else:
            band[i, 0] *= 1.0 + 1e-11
    gradient_lam = corner1 + weight
    slope_c = np.empty(size)
    for i in range(size):
        slope_c[i] = step[i]
    factorize(band)
    solve_factorized(band, step)
    if free:
        bent = np.empty(size)
        for i in range(size):
            bent[i] = border[i]
        solve_factorized(band, bent)
        pivot, residual = corner0 * (1.0 + 1e-11), -gradient_lam
        for i in range(size):
            pivot -= border[i] * bent[i]
            residual -= border[i] * step[i]
        step[size] = residual / max(pivot, 1e-12 * corner0)
        for i in range(size):
            step[i] -= bent[i] * step[size]
    descent = -gradient_lam * step[size]
    for i in range(size):
        descent += slope_c[i] * step[i]
    return descent


@njit(**OUTER)
def _invert(limits, wider, out):
    for k in range(3):
        for j in range(limits.shape[1]):
            out[k, j] = 1.0 / (limits[k, j] * wider)


@njit(**OUTER)
def speed_up(
    breaks,
    pieces,
    limits,
    share,
    at_knot,
    in_cell,
    base,
    c,
    lam,
    free,
    first_weight,
    last_weight,
    growth,
    most_steps,
):
    """Find the control points and, if ``free``, the unit of time exp(lam) of the least time within limits, by a barrier
    method.

    ``base`` times exp(lam) is the part of c that goes on at the speed of the start, so that the other part need not
    change much with lam: it has to be all of the first three, which do not take part otherwise.

    ``limits`` (3, n) of velocity, acceleration and jerk; ``share`` (K, 3) of them that each cell may use. Starts
    anywhere: what is outside of the limits gets wider ones, which are narrowed as the motion comes within them. Changes
    ``c``; returns lam, the largest ratio to a limit (below 1: success), and the number of steps.
    """
    cells, n = in_cell.shape[0], pieces.shape[2]
    size = c.size
    state, path = np.empty((cells + 1, 3)), np.empty((cells + 1, 5, n))
    slope, jerk = np.empty(cells), np.empty(cells)
    band, border, step = np.empty((size, 4)), np.empty(size), np.empty(size + 1)
    trial = np.empty(size)
    weight = first_weight
    _states(c, at_knot, in_cell, breaks, pieces, state, slope, jerk, path)
    wide = np.empty_like(limits)
    _invert(limits, 1.0, wide)
    velocity, acceleration, most_jerk = _largest(path, state, slope, jerk, lam, wide, share)
    if not np.isfinite(velocity + acceleration + most_jerk):
        return lam, np.inf, 0
    moves = False
    for i in range(size):
        moves = moves or base[i] != 0.0
    wider = 1.0
    if free and not moves:
        # From rest all that matters is the unit of time.
        lam += np.log(max(velocity, np.sqrt(acceleration), np.cbrt(most_jerk))) + _ROOM
    else:
        wider = max(1.0, 1.1 * max(velocity, acceleration, most_jerk))
        _invert(limits, wider, wide)
    merit, worst = _merit(path, state, slope, jerk, lam, wide, share, weight)
    for count in range(most_steps):
        descent = _newton_step(
            path,
            state,
            slope,
            jerk,
            lam,
            base,
            at_knot,
            in_cell,
            wide,
            share,
            weight,
            free,
            band,
            border,
            step,
        )
        length = 1.0
        if abs(step[size]) > 0.7:
            length = 0.7 / abs(step[size])
        accepted = False
        for _ in range(30):
            new_lam = lam + length * step[size]
            for i in range(size):
                trial[i] = c[i] + length * step[i] + base[i] * (np.exp(new_lam) - np.exp(lam))
            _states(trial, at_knot, in_cell, breaks, pieces, state, slope, jerk, path)
            new_merit, new_worst = _merit(path, state, slope, jerk, new_lam, wide, share, weight)
            # Not straight to a limit, from where it is slow to move on.
            if new_worst <= 1.0 - 0.1 * (
                1.0 - worst
            ) and new_merit <= merit - 0.01 * length * descent + 1e-9 * abs(merit):
                accepted = True
                break
            length *= 0.5
        if accepted:
            for i in range(size):
                c[i] = trial[i]
            lam = new_lam
            merit, worst = new_merit, new_worst
        else:
            _states(c, at_knot, in_cell, breaks, pieces, state, slope, jerk, path)
        if wider > 1.0:
            closer = max(1.0, 1.02 * worst * wider)
            if closer >= 0.999 * wider and (not accepted or descent < 1e-2):
                return lam, worst * wider, count + 1
            wider = min(wider, closer)
            _invert(limits, wider, wide)
            merit, worst = _merit(path, state, slope, jerk, lam, wide, share, weight)
            continue
        # Small steps: a knot at a bend of the path's fourth derivative.
        if not accepted or descent < 0.5 or length > 0.5 or length < 0.01:
            if weight >= last_weight:
                return lam, worst, count + 1
            weight = min(weight * growth, last_weight)
            merit, worst = _merit(path, state, slope, jerk, lam, wide, share, weight)
    return lam, worst * wider, most_steps
