"""Types and functions that the kernels of a chain's shape and a scalar type share."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import warp as wp

from kinopt_ros.solvers.hjcd.chain import ChainShape

Kit = SimpleNamespace
"""Types and functions by name."""


@cache
def kit(shape: ChainShape, scalar: Any) -> Kit:
    """Build the types and functions for m motions, n variables, and float32 or float64."""
    m, n, one_to_one = shape.motions, shape.variables, shape.one_to_one
    S = scalar
    least_pivot = (
        1.0e-9 if S is wp.float32 else 1.0e-18
    )  # the matrices' entries are about 1; rounding may leave smaller pivots
    vec3 = wp.types.vector(length=3, dtype=S)
    vec6 = wp.types.vector(length=6, dtype=S)
    mat33 = wp.types.matrix(shape=(3, 3), dtype=S)
    mat66 = wp.types.matrix(shape=(6, 6), dtype=S)
    vecn = wp.types.vector(length=n, dtype=S)
    rows_m = wp.types.matrix(shape=(m, 3), dtype=S)
    rows_n = wp.types.matrix(shape=(n, 6), dtype=S)

    @wp.struct
    class Chain:
        """The arrays of a KernelChain."""

        motions: wp.array2d(dtype=S)
        translates: wp.array(dtype=int)
        column: wp.array(dtype=int)
        frame: wp.array(dtype=S)
        ranges: wp.array2d(dtype=S)

    @wp.struct
    class Tip:
        """Pose of the tip."""

        p: vec3
        R: mat33

    @wp.struct
    class Moved:
        """Pose of the tip, and axes and points on them of all motions."""

        p: vec3
        R: mat33
        axes: rows_m
        points: rows_m

    @wp.func
    def value(chain: Chain, q: vecn, i: int):
        c = i
        if wp.static(not one_to_one):
            c = chain.column[i]
        return chain.motions[i, 0] * q[c] + chain.motions[i, 1]

    @wp.func
    def first(chain: Chain):
        tip = Tip()
        tip.p = vec3(chain.frame[0], chain.frame[1], chain.frame[2])
        tip.R = mat33(
            chain.frame[3], chain.frame[4], chain.frame[5],
            chain.frame[6], chain.frame[7], chain.frame[8],
            chain.frame[9], chain.frame[10], chain.frame[11],
        )  # fmt: skip
        return tip

    @wp.func
    def step(chain: Chain, i: int, v: S, tip: Tip):
        """The frame behind motion i, whose z is its axis; for a turn its origin is on the axis."""
        t = chain.motions
        p = tip.p + tip.R * vec3(t[i, 4], t[i, 5], t[i, 6])
        x = vec3(tip.R[0, 0], tip.R[1, 0], tip.R[2, 0])
        y = vec3(tip.R[0, 1], tip.R[1, 1], tip.R[2, 1])
        z = vec3(tip.R[0, 2], tip.R[1, 2], tip.R[2, 2])
        y_twisted = t[i, 2] * y + t[i, 3] * z
        z_twisted = t[i, 2] * z - t[i, 3] * y
        c = t[i, 7]
        s = t[i, 8]
        if chain.translates[i] == 1:
            p = p + v * z_twisted
        else:
            c = wp.cos(v)
            s = wp.sin(v)
        behind = Tip()
        behind.p = p
        behind.R = wp.matrix_from_cols(c * x + s * y_twisted, c * y_twisted - s * x, z_twisted)
        return behind

    @wp.func
    def tip_of(chain: Chain, q: vecn):
        tip = first(chain)
        for i in range(m):
            tip = step(chain, i, value(chain, q, i), tip)
        tip.p = tip.p + tip.R * vec3(chain.frame[12], chain.frame[13], chain.frame[14])
        return tip

    @wp.func
    def moved_by(chain: Chain, q: vecn):
        tip = first(chain)
        out = Moved()
        for i in range(m):
            tip = step(chain, i, value(chain, q, i), tip)
            for k in range(3):
                out.axes[i, k] = tip.R[k, 2]
                out.points[i, k] = tip.p[k]
        out.p = tip.p + tip.R * vec3(chain.frame[12], chain.frame[13], chain.frame[14])
        out.R = tip.R
        return out

    @wp.func
    def jacobian(chain: Chain, moved: Moved):
        """Rows: linear and angular velocity per variable."""
        J = rows_n()
        for i in range(m):
            c = i
            if wp.static(not one_to_one):
                c = chain.column[i]
            axis = chain.motions[i, 0] * vec3(moved.axes[i, 0], moved.axes[i, 1], moved.axes[i, 2])
            if chain.translates[i] == 1:
                for k in range(3):
                    J[c, k] = J[c, k] + axis[k]
            else:
                arm = moved.p - vec3(moved.points[i, 0], moved.points[i, 1], moved.points[i, 2])
                linear = wp.cross(axis, arm)
                for k in range(3):
                    J[c, k] = J[c, k] + linear[k]
                    J[c, k + 3] = J[c, k + 3] + axis[k]
        return J

    @wp.func
    def target_of(targets: wp.array2d(dtype=S), t: int):
        tip = Tip()
        tip.p = vec3(targets[t, 0], targets[t, 1], targets[t, 2])
        tip.R = mat33(
            targets[t, 3], targets[t, 4], targets[t, 5],
            targets[t, 6], targets[t, 7], targets[t, 8],
            targets[t, 9], targets[t, 10], targets[t, 11],
        )  # fmt: skip
        return tip

    @wp.func
    def half_turn(R_target: mat33, R: mat33):
        """Vector part of the quaternion of the missing rotation, the shortest way: sin(angle / 2) axis."""
        quaternion = wp.quat_from_matrix(R_target * wp.transpose(R))
        v = vec3(quaternion[0], quaternion[1], quaternion[2])
        if quaternion[3] < S(0.0):
            v = -v
        return v

    @wp.func
    def rotation_vector(R_target: mat33, R: mat33):
        """Eq. (5), with the sign that it lacks."""
        v = half_turn(R_target, R)
        sine = wp.min(wp.length(v), S(1.0))
        factor = S(2.0)
        if sine > S(1.0e-6):
            factor = S(2.0) * wp.asin(sine) / sine
            if sine > S(0.5):
                factor = S(2.0) * wp.acos(wp.sqrt(wp.max(S(1.0) - sine * sine, S(0.0)))) / sine
        return factor * v

    @wp.func
    def load(q: wp.array2d(dtype=S), lane: int):
        out = vecn()
        for k in range(n):
            out[k] = q[k, lane]
        return out

    @wp.func
    def store(q: wp.array2d(dtype=S), lane: int, values: vecn):
        for k in range(n):
            q[k, lane] = values[k]

    @wp.func
    def clamped(chain: Chain, q: vecn):
        out = vecn()
        for k in range(n):
            out[k] = wp.min(wp.max(q[k], chain.ranges[0, k]), chain.ranges[1, k])
        return out

    @wp.func
    def row(J: rows_n, k: int):
        return vec6(J[k, 0], J[k, 1], J[k, 2], J[k, 3], J[k, 4], J[k, 5])

    @wp.func
    def solved(A: mat66, b: vec6):
        """x with A x = b for a symmetric positive definite A, by L D L'."""
        L = A
        D = vec6()
        x = b
        for i in range(6):
            for j in range(i):
                total = A[i, j]
                for k in range(j):
                    total = total - L[i, k] * L[j, k] * D[k]
                L[i, j] = total / D[j]
            total = A[i, i]
            for k in range(i):
                total = total - L[i, k] * L[i, k] * D[k]
            D[i] = wp.max(total, S(wp.static(least_pivot)))
            for k in range(i):
                x[i] = x[i] - L[i, k] * x[k]
        for i in range(6):
            x[i] = x[i] / D[i]
        for back in range(6):
            i = 5 - back
            for k in range(i + 1, 6):
                x[i] = x[i] - L[k, i] * x[k]
        return x

    return Kit(**{name: thing for name, thing in locals().items() if name not in ("shape", "scalar")})
