"""Damped least squares from given starts, and the poses of starts."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import warp as wp

from kinopt_ros.solvers.hjcd.chain import ChainShape
from kinopt_ros.solvers.hjcd.kernels.kit import kit

WEIGHT = 0.4
"""Metres that a radian counts as."""


@cache
def lm_kernels(shape: ChainShape, scalar: Any) -> SimpleNamespace:
    """``descend`` and ``tips`` for chains of a shape."""
    K = kit(shape, scalar)
    S, n = scalar, shape.variables
    Chain, vecn, vec6, mat66, rows_n = K.Chain, K.vecn, K.vec6, K.mat66, K.rows_n
    moved_by, jacobian, target_of, half_turn = K.moved_by, K.jacobian, K.target_of, K.half_turn
    load, store, row, solved, tip_of = K.load, K.store, K.row, K.solved, K.tip_of

    @wp.func
    def step_of(J: rows_n, e: vec6, damping: S, free: vecn):
        """J' (J J' + damping I)^-1 e of the variables that are free (1, not 0)."""
        A = mat66()
        for k in range(6):
            A[k, k] = damping
        for k in range(n):
            column = row(J, k)
            A = A + free[k] * wp.outer(column, column)
        y = solved(A, e)
        d = vecn()
        for k in range(n):
            d[k] = free[k] * wp.dot(row(J, k), y)
        return d

    def descend(
        chain: Chain,
        targets: wp.array2d(dtype=S),
        done: wp.array(dtype=int),
        lanes: int,
        steps: int,
        near: S,
        gate: S,
        q: wp.array2d(dtype=S),
        errors: wp.array2d(dtype=S),
        strikes: wp.array(dtype=int),
        spent: wp.array(dtype=int),
    ):
        """Steps of all lanes of targets that are not done, until both errors (m, rad) are below ``near``.

        Lanes whose errors are above ``gate`` in the beginning are left alone, as are those that failed twice to lower
        theirs by a tenth (``strikes``).
        """
        lane = wp.tid()
        target_number = lane // lanes
        if done[target_number] != 0 or strikes[lane] >= 2:
            return
        if wp.max(errors[0, lane], errors[1, lane]) > gate:
            return
        target = target_of(targets, target_number)
        x = load(q, lane)
        before = S(wp.inf)
        failed = strikes[lane]
        made = int(0)
        running = int(1)
        while running == 1:
            moved = moved_by(chain, x)
            distance = target.p - moved.p
            turn = S(2.0) * half_turn(target.R, moved.R)
            errors[0, lane] = wp.length(distance)
            errors[1, lane] = S(2.0) * wp.asin(wp.min(S(0.5) * wp.length(turn), S(1.0)))
            e = vec6()
            for k in range(3):
                e[k] = distance[k]
                e[k + 3] = S(wp.static(WEIGHT)) * turn[k]
            squared = wp.dot(e, e)
            if squared > S(0.9) * before:
                failed = failed + 1
            before = wp.min(before, squared)
            if made == steps or failed >= 2 or wp.max(errors[0, lane], errors[1, lane]) < near:
                running = 0
            else:
                J = jacobian(chain, moved)
                for k in range(n):
                    for i in range(3):
                        J[k, i + 3] = S(wp.static(WEIGHT)) * J[k, i + 3]
                damping = S(0.05) * squared + S(1.0e-9)
                free = vecn()
                for k in range(n):
                    free[k] = S(1.0)
                d = step_of(J, e, damping, free)
                blocked = int(0)
                for k in range(n):
                    at_lower = x[k] <= chain.ranges[0, k] and d[k] < S(0.0)
                    if at_lower or (x[k] >= chain.ranges[1, k] and d[k] > S(0.0)):
                        free[k] = S(0.0)
                        blocked = 1
                if blocked == 1:
                    d = step_of(J, e, damping, free)
                for k in range(n):
                    most = chain.ranges[4, k]
                    moved_to = x[k] + wp.min(wp.max(d[k], -most), most)
                    x[k] = wp.min(wp.max(moved_to, chain.ranges[0, k]), chain.ranges[1, k])
                made = made + 1
        strikes[lane] = failed
        spent[lane] = spent[lane] + made
        store(q, lane, x)

    def tips(chain: Chain, q: wp.array2d(dtype=S), poses: wp.array2d(dtype=S)):
        """Position and quaternion (x, y, z, w) of the tip for every configuration, in columns."""
        lane = wp.tid()
        tip = tip_of(chain, load(q, lane))
        quaternion = wp.quat_from_matrix(tip.R)
        for k in range(3):
            poses[k, lane] = tip.p[k]
        for k in range(4):
            poses[k + 3, lane] = quaternion[k]

    name = f"kinopt_hjcd_lm_{shape.motions}_{shape.variables}_{int(shape.one_to_one)}"
    options = {"enable_backward": False, "module": name}
    bits = str(S.__name__)
    return SimpleNamespace(
        Chain=Chain,
        descend=wp.kernel(descend, name=f"descend_{bits}", **options),
        tips=wp.kernel(tips, name=f"tips_{bits}", **options),
    )
