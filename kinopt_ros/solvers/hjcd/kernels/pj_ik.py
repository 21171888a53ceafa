"""Algorithm 4 of the paper; see ``reference.pj_ik``, which this computes.

Systems of n equations are turned into ones of 6: for D diagonal, (A' A + lambda D)^-1 A' = D^-1 A' (A D^-1 A' +
lambda I)^-1.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import warp as wp

from kinopt_ros.solvers.hjcd.chain import ChainShape
from kinopt_ros.solvers.hjcd.kernels.kit import kit
from kinopt_ros.solvers.hjcd.kernels.noise import key_of, normal
from kinopt_ros.solvers.hjcd.reference.pj_ik import (
    LARGEST_DAMPING,
    LEAST_DAMPING,
    PSEUDO,
    ROW_FLOOR,
    SCALE_FLOOR,
)
from kinopt_ros.solvers.hjcd.reference.residual import METRES_PER_RADIAN

PROPOSALS = 13
"""Number of proposals: damped ones at four lengths, the dogleg, a single variable at four lengths either way."""


@cache
def pj_ik_kernels(shape: ChainShape, scalar: Any) -> SimpleNamespace:
    """Build ``replicate`` and ``pj_ik`` for chains of a shape."""
    K = kit(shape, scalar)
    S, n = scalar, shape.variables
    Chain, Tip, vec6, mat66, vecn, rows_n = K.Chain, K.Tip, K.vec6, K.mat66, K.vecn, K.rows_n
    tip_of, moved_by, jacobian, target_of = K.tip_of, K.moved_by, K.jacobian, K.target_of
    rotation_vector, load, store, clamped, row, solved = (
        K.rotation_vector, K.load, K.store, K.clamped, K.row, K.solved,
    )  # fmt: skip

    @wp.func
    def residual(target: Tip, tip: Tip):
        distance = target.p - tip.p
        turn = rotation_vector(target.R, tip.R)
        return vec6(distance[0], distance[1], distance[2], turn[0], turn[1], turn[2])

    @wp.func
    def length_of(r: vec6, first: int):
        return wp.sqrt(r[first] * r[first] + r[first + 1] * r[first + 1] + r[first + 2] * r[first + 2])

    @wp.func
    def weights_of(J: rows_n):
        W = vec6()
        for i in range(6):
            total = S(0.0)
            for k in range(n):
                total = total + J[k, i] * J[k, i]
            W[i] = S(1.0) / wp.max(wp.sqrt(total), S(wp.static(ROW_FLOOR)))
        return W

    @wp.func
    def damped_step(chain: Chain, x: vecn, A: rows_n, e: vec6, D: vecn, damping: S, radius: S):
        """Eq. (12), without what a limit forbids, at most R per variable."""
        M = mat66()
        for i in range(6):
            M[i, i] = damping
        for k in range(n):
            M = M + (S(1.0) / D[k]) * wp.outer(row(A, k), row(A, k))
        y = solved(M, e)
        d = vecn()
        for k in range(n):
            value = wp.dot(row(A, k), y) / D[k]
            at_lower = x[k] <= chain.ranges[0, k] and value < S(0.0)
            if at_lower or (x[k] >= chain.ranges[1, k] and value > S(0.0)):
                value = S(0.0)
            d[k] = wp.min(wp.max(value, -radius), radius)
        return d

    @wp.func
    def dogleg_step(A: rows_n, e: vec6, radius: S):
        """Eqs. (14), (15)."""
        M = mat66()
        for i in range(6):
            M[i, i] = S(wp.static(PSEUDO))
        g = vecn()
        steep = vec6()
        for k in range(n):
            column = row(A, k)
            M = M + wp.outer(column, column)
            g[k] = wp.dot(column, e)
            steep = steep + g[k] * column
        y = solved(M, e)
        newton = vecn()
        for k in range(n):
            newton[k] = wp.dot(row(A, k), y)
        curvature = wp.dot(steep, steep)
        descent = g
        if curvature > S(0.0):
            descent = (wp.dot(g, g) / curvature) * g
        out = newton
        if wp.length(newton) > radius:
            length = wp.length(descent)
            if length >= radius:
                out = (radius / length) * descent
            else:
                way = descent - newton
                a = wp.dot(way, way)
                b = wp.dot(newton, way)
                c = wp.dot(newton, newton) - radius * radius
                tau = (-b - wp.sqrt(wp.max(b * b - a * c, S(0.0)))) / a
                out = newton + wp.min(wp.max(tau, S(0.0)), S(1.0)) * way
        return out

    @wp.func
    def single_step(A: rows_n, e: vec6, radius: S):
        """Eq. (16)."""
        best = int(0)
        steepest = S(-1.0)
        value = S(0.0)
        for k in range(n):
            g = wp.dot(row(A, k), e)
            if wp.abs(g) > steepest:
                steepest = wp.abs(g)
                best = k
                value = g / wp.max(wp.dot(row(A, k), row(A, k)), S(wp.static(SCALE_FLOOR)))
        d = vecn()
        d[best] = wp.min(wp.max(value, -radius), radius)
        return d

    @wp.func
    def next_damping(damping: S, damped: int, gain: S, expected: S):
        if damped == 0 or gain < S(0.25) * expected:
            damping = damping * S(3.0)
        elif gain > S(0.9) * expected:
            damping = damping * S(0.3)
        elif gain > S(0.5) * expected:
            damping = damping * S(0.5)
        return wp.min(wp.max(damping, S(wp.static(LEAST_DAMPING))), S(wp.static(LARGEST_DAMPING)))

    def replicate(
        chain: Chain,
        kept: wp.array2d(dtype=float),
        keep: int,
        copies: int,
        noise: S,
        seed: wp.uint32,
        q: wp.array2d(dtype=S),
    ):
        """Lines 7, 8 of Algorithm 2; the first copies are not perturbed."""
        lane = wp.tid()
        lanes = keep * copies
        own = lane % lanes
        source = (lane // lanes) * keep + own % keep
        key = key_of(seed, own, 0)
        for k in range(n):
            value = S(kept[k, source])
            if own >= keep:
                value = value + noise * chain.ranges[3, k] * S(normal(key, k))
            q[k, lane] = wp.min(wp.max(value, chain.ranges[0, k]), chain.ranges[1, k])

    def pj_ik(
        chain: Chain,
        targets: wp.array2d(dtype=S),
        done: wp.array(dtype=int),
        lanes: int,
        first: int,
        end: int,
        iterations: int,
        position: S,
        orientation: S,
        radius: S,
        noise: S,
        seed: wp.uint32,
        proposals: int,
        q: wp.array2d(dtype=S),
        damping: wp.array(dtype=S),
        best: wp.array2d(dtype=S),
        best_score: wp.array(dtype=S),
        errors: wp.array2d(dtype=S),
        spent: wp.array(dtype=int),
    ):
        """Iterations ``first`` to ``end`` - 1 of lanes of targets that are not done; at the last of ``iterations`` the
        result is only looked at. ``errors``: of ``best``, m and rad."""
        lane = wp.tid()
        target_number = lane // lanes
        if done[target_number] != 0 or spent[lane] < first:
            return
        target = target_of(targets, target_number)
        x = clamped(chain, load(q, lane))
        lam = damping[lane]
        k = int(first)
        running = int(1)
        while running == 1:
            moved = moved_by(chain, x)
            tip = Tip()
            tip.p = moved.p
            tip.R = moved.R
            r = residual(target, tip)
            r_p = length_of(r, 0)
            r_o = length_of(r, 3)
            score = r_p + S(wp.static(METRES_PER_RADIAN)) * r_o
            if score < best_score[lane]:
                best_score[lane] = score
                errors[0, lane] = r_p
                errors[1, lane] = r_o
                store(best, lane, x)
            if k == wp.min(iterations, end) or (r_p < position and r_o < orientation):
                running = 0
            else:
                J = jacobian(chain, moved)
                W = weights_of(J)
                e = vec6()
                for i in range(6):
                    e[i] = W[i] * r[i]
                cost = S(0.5) * wp.dot(e, e)
                A = J
                D = vecn()
                for c in range(n):
                    D[c] = wp.dot(row(J, c), row(J, c)) + S(wp.static(SCALE_FLOOR))
                    for i in range(6):
                        A[c, i] = W[i] * J[c, i]
                step = damped_step(chain, x, A, e, D, lam, radius)
                alpha = S(1.0)
                tries = int(0)
                damped = int(1)
                found = int(0)
                stepped = x
                lower = cost
                while tries < proposals and found == 0:
                    if tries == 4:
                        damped = 0
                        alpha = S(1.0)
                        step = dogleg_step(A, e, radius)
                    if tries == 5:
                        step = single_step(A, e, radius)
                    if tries == 5:
                        alpha = S(1.0)
                    if tries == 9:
                        alpha = S(-1.0)
                    stepped = clamped(chain, x + alpha * step)
                    r = residual(target, tip_of(chain, stepped))
                    lower = S(0.0)
                    for i in range(6):
                        lower = lower + S(0.5) * W[i] * r[i] * W[i] * r[i]
                    if lower < cost:
                        found = 1
                    alpha = S(0.5) * alpha
                    tries = tries + 1
                if found == 0:
                    key = key_of(seed, lane % lanes, k)
                    stepped = x
                    for c in range(n):
                        stepped[c] = x[c] + noise * chain.ranges[3, c] * S(normal(key, c))
                    stepped = clamped(chain, stepped)
                    damped = 0
                change = vec6()
                for c in range(n):
                    change = change + (stepped[c] - x[c]) * row(A, c)
                expected = wp.dot(e, change) - S(0.5) * wp.dot(change, change)
                lam = next_damping(lam, damped, cost - lower, expected)
                x = stepped
                k = k + 1
        spent[lane] = k
        damping[lane] = lam
        store(q, lane, x)

    name = f"kinopt_hjcd_pj_ik_{S.__name__}_{shape.motions}_{n}_{int(shape.one_to_one)}"
    options: dict[str, Any] = {"enable_backward": False, "module": name}
    return SimpleNamespace(
        Chain=Chain, replicate=wp.kernel(replicate, **options), pj_ik=wp.kernel(pj_ik, **options)
    )
