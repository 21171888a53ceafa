"""Damped least squares from given starts, and the poses of starts."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import warp as wp

from kinopt_ros.solvers.hjcd.chain import ChainShape
from kinopt_ros.solvers.hjcd.kernels.kit import kit

WEIGHT = 0.4
"""Length that a radian counts as, m."""
WEIGHT_HERE = wp.constant(WEIGHT)
LEAST_DAMPING = wp.constant(1e-8)
"""Least damping of J J', whose entries are about 1.

More damping is slow near singularities. float32 needs the floor of pivots besides."""


@cache
def lm_kernels(shape: ChainShape, scalar: Any) -> SimpleNamespace:
    """Build ``descend`` and ``tips`` for chains of a shape."""
    K, single = kit(shape, scalar), kit(shape, wp.float32)
    S, n = scalar, shape.variables
    Chain, moved_by, jacobian, target_of, half_turn = (
        K.Chain,
        K.moved_by,
        K.jacobian,
        K.target_of,
        K.half_turn,
    )
    load, store, tip_of = K.load, K.store, K.tip_of
    vecn, vec6, mat66, rows_n = single.vecn, single.vec6, single.mat66, single.rows_n
    row, solved = single.row, single.solved

    @wp.func
    def step_of(J: rows_n, e: vec6, damping: float, free: vecn):
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
        patience: int,
        near: S,
        gate: S,
        q: wp.array2d(dtype=S),
        errors: wp.array2d(dtype=S),
        strikes: wp.array(dtype=int),
        spent: wp.array(dtype=int),
    ):
        """Steps of all lanes of targets that are not done, until both errors (m, rad) are below ``near``.

        Lanes whose errors are above ``gate`` in the beginning are left alone, as are those that failed ``patience``
        times to lower theirs by a tenth (``strikes``). Poses and errors are of the scalar type; steps are float32's
        always: they need not be exact, and double precision would not fit into registers.
        """
        lane = wp.tid()
        target_number = lane // lanes
        if done[target_number] != 0 or strikes[lane] >= patience:
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
            squared = wp.dot(distance, distance) + S(wp.static(WEIGHT * WEIGHT)) * wp.dot(turn, turn)
            if squared > S(0.9) * before:
                failed = failed + 1
            before = wp.min(before, squared)
            if made == steps or failed >= patience or wp.max(errors[0, lane], errors[1, lane]) < near:
                running = 0
            else:
                e = vec6()
                for i in range(3):
                    e[i] = float(distance[i])
                    e[i + 3] = WEIGHT_HERE * float(turn[i])
                exact = jacobian(chain, moved)
                J = rows_n()
                free = vecn()
                for k in range(n):
                    free[k] = float(1.0)
                    for i in range(3):
                        J[k, i] = float(exact[k, i])
                        J[k, i + 3] = WEIGHT_HERE * float(exact[k, i + 3])
                damping = 0.05 * float(squared) + LEAST_DAMPING
                d = vecn()
                tries = int(0)
                while tries < 2:
                    d = step_of(J, e, damping, free)
                    tries = tries + 1
                    if tries == 1:  # once more, if a limit forbids a part of the step
                        tries = int(2)
                        for k in range(n):
                            at_lower = x[k] <= chain.ranges[0, k] and d[k] < 0.0
                            if at_lower or (x[k] >= chain.ranges[1, k] and d[k] > 0.0):
                                free[k] = float(0.0)
                                tries = int(1)
                for k in range(n):
                    most = chain.ranges[4, k]
                    moved_to = x[k] + wp.min(wp.max(S(d[k]), -most), most)
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
