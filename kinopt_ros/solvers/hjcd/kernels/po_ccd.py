"""Algorithm 3 of the paper; see ``reference.po_ccd``, which this computes.

What a single variable would do is not computed by forward kinematics of the whole chain: turning about (or moving
along) an axis of the present configuration moves the tip rigidly, so 2 n trials cost little more than one evaluation.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import warp as wp

from kinopt_ros.solvers.hjcd.chain import ChainShape
from kinopt_ros.solvers.hjcd.kernels.kit import kit
from kinopt_ros.solvers.hjcd.kernels.noise import key_of, normal, uniform
from kinopt_ros.solvers.hjcd.reference.coordinate_steps import TINY
from kinopt_ros.solvers.hjcd.reference.po_ccd import TIE
from kinopt_ros.solvers.hjcd.reference.residual import METRES_PER_RADIAN


@cache
def po_ccd_kernels(shape: ChainShape, scalar: Any) -> SimpleNamespace:
    """Build ``draw`` and ``po_ccd`` for chains of a shape."""
    K = kit(shape, scalar)
    S, n, m, one_to_one = scalar, shape.variables, shape.motions, shape.one_to_one
    Chain, Moved, Tip, vec3, rows_n = K.Chain, K.Moved, K.Tip, K.vec3, K.rows_n
    tip_of, moved_by, jacobian, target_of, half_turn = (
        K.tip_of,
        K.moved_by,
        K.jacobian,
        K.target_of,
        K.half_turn,
    )
    load, store, clamped = K.load, K.store, K.clamped

    @wp.func
    def angle_between(target: Tip, tip: Tip):
        sine = wp.length(half_turn(target.R, tip.R))
        return S(2.0) * wp.atan2(sine, wp.sqrt(wp.max(S(1.0) - sine * sine, S(0.0))))

    @wp.func
    def axis_of(moved: Moved, i: int):
        return vec3(moved.axes[i, 0], moved.axes[i, 1], moved.axes[i, 2])

    @wp.func
    def point_of(moved: Moved, i: int):
        return vec3(moved.points[i, 0], moved.points[i, 1], moved.points[i, 2])

    @wp.func
    def turned(chain: Chain, moved: Moved, i: int, change: S, tip: Tip):
        """The tip after motion i has gone on."""
        way = chain.motions[i, 0] * change
        after = Tip()
        if chain.translates[i] == 1:
            after.p = tip.p + way * axis_of(moved, i)
            after.R = tip.R
        else:
            R = wp.quat_to_matrix(wp.quat_from_axis_angle(axis_of(moved, i), way))
            after.p = point_of(moved, i) + R * (tip.p - point_of(moved, i))
            after.R = R * tip.R
        return after

    @wp.func
    def tried(chain: Chain, moved: Moved, j: int, change: S):
        """The tip after one variable has changed."""
        tip = Tip()
        tip.p = moved.p
        tip.R = moved.R
        if wp.static(one_to_one):
            tip = turned(chain, moved, j, change, tip)
        else:
            count = chain.column.shape[
                0
            ]  # no constant: as n m copies of this CUDA's compiler takes half a minute
            for back in range(count):
                i = count - 1 - back  # what is nearer to the base turns what comes behind it
                if chain.column[i] == j:
                    tip = turned(chain, moved, i, change, tip)
        return tip

    @wp.func
    def exact_step(chain: Chain, moved: Moved, target: Tip, i: int):
        """Eqs. (8), (9), the angle signed, for one motion."""
        z = axis_of(moved, i)
        step = S(0.0)
        if chain.translates[i] == 1:
            step = wp.dot(z, target.p - moved.p)
        else:
            u = moved.p - point_of(moved, i)
            v = target.p - point_of(moved, i)
            u = u - wp.dot(u, z) * z
            v = v - wp.dot(v, z) * z
            if wp.min(wp.length(u), wp.length(v)) >= S(wp.static(TINY)):
                step = wp.atan2(wp.dot(z, wp.cross(u, v)), wp.dot(u, v))
        return step / chain.motions[i, 0]

    @wp.func
    def position_step(chain: Chain, moved: Moved, target: Tip, J: rows_n, j: int):
        """Return the step of variable j towards the position; by the Jacobian's column if j drives several motions."""
        step = S(0.0)
        if wp.static(one_to_one):
            step = exact_step(chain, moved, target, j)
        else:
            driven = int(0)
            for i in range(chain.column.shape[0]):
                if chain.column[i] == j:
                    driven = driven + 1
                    if driven == 1:
                        step = exact_step(chain, moved, target, i)
            if driven > 1:
                column = vec3(J[j, 0], J[j, 1], J[j, 2])
                squared = wp.dot(column, column)
                step = S(0.0)
                if squared > S(wp.static(TINY * TINY)):
                    step = wp.dot(column, target.p - moved.p) / squared
        return step

    @wp.func
    def orientation_step(J: rows_n, missing: vec3, factor: S, j: int):
        """Eq. (11)."""
        column = vec3(J[j, 3], J[j, 4], J[j, 5])
        phi = wp.length(missing)
        length = wp.length(column)
        along = wp.dot(column, missing)
        step = S(0.0)
        if length > S(wp.static(TINY)) and wp.abs(along) > S(wp.static(TINY)) * phi:
            step = factor * wp.sign(along) * phi / length
        return step

    @wp.func
    def allowed(chain: Chain, j: int, value: S, step: S, turn: S):
        """The value after a step that is not larger than ``turn`` (rotations) and keeps the limits."""
        if chain.ranges[5, j] > S(0.0):
            step = wp.min(wp.max(step, -turn), turn)
        return wp.min(wp.max(value + step, chain.ranges[0, j]), chain.ranges[1, j])

    def draw(
        chain: Chain,
        seed: wp.uint32,
        lanes: int,
        given: int,
        own: wp.array2d(dtype=S),
        q: wp.array2d(dtype=S),
    ):
        """Line 3: uniform in the sampled ranges, the same for every target; the first ``given`` lanes of each take
        ``own``."""
        lane = wp.tid()
        key = key_of(seed, lane % lanes, 0)
        for k in range(n):
            value = own[k, lane]
            if lane % lanes >= given:
                value = chain.ranges[2, k] + chain.ranges[3, k] * S(uniform(key, k))
            q[k, lane] = value

    def po_ccd(
        chain: Chain,
        targets: wp.array2d(dtype=S),
        idle: wp.array(dtype=int),
        lanes: int,
        iterations: int,
        position: S,
        orientation: S,
        gain: S,
        noise: S,
        turn: S,
        seed: wp.uint32,
        q: wp.array2d(dtype=S),
        scores: wp.array(dtype=float),
        spent: wp.array(dtype=int),
    ):
        """``spent``: iterations. Targets that are ``idle`` are left out."""
        lane = wp.tid()
        if idle[lane // lanes] != 0:
            return
        target = target_of(targets, lane // lanes)
        x = clamped(chain, load(q, lane))
        made = int(0)
        running = int(1)
        while running == 1:
            moved = moved_by(chain, x)
            now = Tip()
            now.p = moved.p
            now.R = moved.R
            r_p = wp.length(target.p - moved.p)
            r_o = angle_between(target, now)
            if made == iterations or (r_p < position and r_o < orientation):
                scores[lane] = float(r_p + S(wp.static(METRES_PER_RADIAN)) * r_o)
                running = 0
            else:
                J = jacobian(chain, moved)
                v = half_turn(target.R, moved.R)
                missing = vec3()
                if wp.length(v) > S(0.0):
                    missing = (r_o / wp.length(v)) * v
                factor = S(0.75) + S(0.25) * (S(1.0) - S(made) / S(iterations))
                least_p = S(wp.inf)
                least_o = S(wp.inf)
                best_p = int(0)
                best_o = int(0)
                to_p = S(0.0)
                to_o = S(0.0)
                for j in range(n):
                    to = allowed(chain, j, x[j], position_step(chain, moved, target, J, j), turn)
                    distance = wp.length(target.p - tried(chain, moved, j, to - x[j]).p)
                    if distance < least_p - S(wp.static(TIE)):
                        least_p = distance
                        best_p = j
                        to_p = to
                    to = allowed(chain, j, x[j], orientation_step(J, missing, factor, j), turn)
                    angle = angle_between(target, tried(chain, moved, j, to - x[j]))
                    if angle < least_o - S(wp.static(TIE)):
                        least_o = angle
                        best_o = j
                        to_o = to
                stepped = x
                both = int(1)
                if best_o == best_p and wp.abs(to_o - x[best_o]) <= wp.abs(to_p - x[best_p]):
                    both = 0
                stepped[best_p] = to_p
                if both == 1:
                    stepped[best_o] = to_o
                tip = tip_of(chain, stepped)
                gained = wp.max(r_p - wp.length(target.p - tip.p), r_o - angle_between(target, tip))
                if gained > gain:
                    x = stepped
                else:
                    key = key_of(seed, lane % lanes, made)
                    for k in range(n):
                        x[k] = x[k] + noise * chain.ranges[3, k] * S(normal(key, k))
                    x = clamped(chain, x)
                made = made + 1
        spent[lane] = made
        store(q, lane, x)

    name = f"kinopt_hjcd_po_ccd_{S.__name__}_{m}_{n}_{int(one_to_one)}"
    options: dict[str, Any] = {"enable_backward": False, "module": name}
    return SimpleNamespace(Chain=Chain, draw=wp.kernel(draw, **options), po_ccd=wp.kernel(po_ccd, **options))
