"""Compiled float64 check of configurations: with numpy it takes most of the time of a single request.

Written for the check alone, so that no error of a solver's kernels can be in both. The tests hold it to the reference
kinematics; where numba is not installed, that takes its place.
"""

import numpy as np
from numba import types

from kinopt_ros.compiler_options import INLINE, OUTER
from kinopt_ros.numba_cache import njit

ROTATION, TRANSLATION, QUATERNION = range(3)
"""Kinds of motions, as in ``robot.chain.Motion``."""
_ROUNDINGS = 4.0 * np.finfo(np.float64).eps

# Compiled for these types when the module is imported, so that no request waits. What is read may be read-only.
# Each array takes 0.05 us, so that numbers of a kind share one.
_numbers, _rows, _frames = (types.Array(types.float64, ndim, "C", readonly=True) for ndim in (1, 2, 3))
_indices = types.Array(types.int64, 1, "C", readonly=True)
_flags_out, _values_out, _frames_out = (
    types.Array(kind, ndim, "C")
    for kind, ndim in ((types.boolean, 2), (types.float64, 2), (types.float64, 3))
)
_TARGET = (_frames, _rows, types.float64, types.float64)
_REPORT = (_flags_out, _values_out, _frames_out)


@njit(**OUTER)
def _multiply(T, F):
    """Replace T by T F; the last row of F is 0 0 0 1."""
    for i in range(3):
        a, b, c = T[i, 0], T[i, 1], T[i, 2]
        T[i, 0] = a * F[0, 0] + b * F[1, 0] + c * F[2, 0]
        T[i, 1] = a * F[0, 1] + b * F[1, 1] + c * F[2, 1]
        T[i, 2] = a * F[0, 2] + b * F[1, 2] + c * F[2, 2]
        T[i, 3] += a * F[0, 3] + b * F[1, 3] + c * F[2, 3]


@njit(**OUTER)
def _turn(T, x, y, z, sine, cosine):
    """Replace T by T R, a rotation about a unit axis of T's frame (Rodrigues).

    Each row r of T becomes r cos + (r x a) sin + a (a r) (1 - cos).
    """
    for i in range(3):
        a, b, c = T[i, 0], T[i, 1], T[i, 2]
        along = (a * x + b * y + c * z) * (1.0 - cosine)
        T[i, 0] = a * cosine + (b * z - c * y) * sine + x * along
        T[i, 1] = b * cosine + (c * x - a * z) * sine + y * along
        T[i, 2] = c * cosine + (a * y - b * x) * sine + z * along


@njit(**OUTER)
def _turn_by_quaternion(T, w, x, y, z, forwards):
    """Replace T by T R, or T R^-1."""
    length = np.sqrt(w * w + x * x + y * y + z * z)
    sine = np.sqrt(x * x + y * y + z * z) / length
    if sine == 0.0:
        return
    scale = 1.0 / (sine * length)
    half_cosine = w / length if forwards else -w / length
    _turn(T, x * scale, y * scale, z * scale, 2.0 * sine * half_cosine, 1.0 - 2.0 * sine * sine)


@njit(**INLINE)
def _fill(full, state, number, variables, q, row):
    """Write a configuration of the whole robot into ``full`` (nq); return whether the row of q is finite.

    If it is not, the configuration is the state.
    """
    for k in range(full.shape[0]):
        full[k] = state[number, k]
    for k in range(q.shape[1]):
        if not np.isfinite(q[row, k]):
            return False
    for k in range(q.shape[1]):
        full[variables[k]] = q[row, k]
    return True


@njit(**INLINE)
def _outside(full, variables, limits, mimics, drivers):
    """Return how far the worst joint is outside its limits; 0 inside."""
    worst = 0.0
    for k in range(variables.shape[0]):
        value = full[variables[k]]
        worst = max(worst, limits[k, 0] - value, value - limits[k, 1])
    for k in range(drivers.shape[0]):
        value = mimics[k, 0] * full[drivers[k]] + mimics[k, 1]
        over = max(mimics[k, 2] - value, value - mimics[k, 3])
        worst = max(worst, over - _ROUNDINGS * (1.0 + abs(value)))
    return worst


@njit(**INLINE)
def _place(T, full, T_fixed, kinds, motions, T_tip_tool):
    """Write the pose of a chain's tool into T (4, 4)."""
    for i in range(4):
        for j in range(4):
            T[i, j] = T_fixed[0, i, j]
    for k in range(kinds.shape[0]):
        kind, v = kinds[k, 0], kinds[k, 1]
        x, y, z, multiplier, offset = (
            motions[k, 0],
            motions[k, 1],
            motions[k, 2],
            motions[k, 3],
            motions[k, 4],
        )
        if kind == QUATERNION:
            _turn_by_quaternion(T, full[v], full[v + 1], full[v + 2], full[v + 3], multiplier > 0.0)
        else:
            by = multiplier * full[v] + offset
            if kind == TRANSLATION:
                for i in range(3):
                    T[i, 3] += by * (T[i, 0] * x + T[i, 1] * y + T[i, 2] * z)
            else:
                _turn(T, x, y, z, np.sin(by), np.cos(by))
        _multiply(T, T_fixed[k + 1])
    _multiply(T, T_tip_tool)


@njit(**INLINE)
def _distance_and_angle(T, G):
    """Return the distance (m) and angle (rad) from pose G to pose T."""
    dx, dy, dz = T[0, 3] - G[0, 3], T[1, 3] - G[1, 3], T[2, 3] - G[2, 3]
    # The antisymmetric part of G^T T, and its trace.
    x = y = z = trace = 0.0
    for i in range(3):
        x += G[i, 2] * T[i, 1] - G[i, 1] * T[i, 2]
        y += G[i, 0] * T[i, 2] - G[i, 2] * T[i, 0]
        z += G[i, 1] * T[i, 0] - G[i, 0] * T[i, 1]
        trace += G[i, 0] * T[i, 0] + G[i, 1] * T[i, 1] + G[i, 2] * T[i, 2]
    angle = np.arctan2(np.sqrt(x * x + y * y + z * z), trace - 1.0)
    return np.sqrt(dx * dx + dy * dy + dz * dz), angle


@njit(**INLINE)
def _from_state(full, state, number, variables):
    """Return the distance of the solved joints from their state (rad or m)."""
    total = 0.0
    for k in range(variables.shape[0]):
        difference = full[variables[k]] - state[number, variables[k]]
        total += difference * difference
    return np.sqrt(total)


@njit(types.void(_rows, _indices, _rows, _indices, _numbers, *_TARGET, *_REPORT), **OUTER)
def check_target(
    q,
    request,
    state,
    indices,
    constants,
    T_base_target,
    T_tip_tool,
    position_tolerance,
    orientation_tolerance,
    flags,
    numbers,
    tools,
):
    """Whether configurations are finite, inside the limits and within tolerances (m, rad) of one target, and whether
    they are finite: ``flags`` (2, N); distances (m) and angles (rad) from the target, how far the worst joint is
    outside its limits, and the distance of the solved joints from their state: ``numbers`` (4, N); poses of the tool,
    ``tools`` (N, 4, 4).

    Args: solved variables of each row (N, n), its request, values of all variables per request (B, nq); what is known
    of the robot, see ``configuration._packed``; targets (B, 4, 4); the tool in the chain's tip (4, 4). Of rows that are
    not finite the state is looked at.
    """
    n, d, m = q.shape[1], indices[0], indices[1]
    variables, drivers = indices[2 : 2 + n], indices[2 + n : 2 + n + d]
    kinds = indices[2 + n + d :].reshape((m, 2))
    end_limits, end_mimics = 2 * n, 2 * n + 4 * d
    end_fixed = end_mimics + 16 * (m + 1)
    limits, mimics = (
        constants[:end_limits].reshape((n, 2)),
        constants[end_limits:end_mimics].reshape((d, 4)),
    )
    T_fixed, motions = (
        constants[end_mimics:end_fixed].reshape((m + 1, 4, 4)),
        constants[end_fixed:].reshape((m, 5)),
    )
    full = np.empty(state.shape[1])
    for row in range(q.shape[0]):
        number = request[row]
        finite = _fill(full, state, number, variables, q, row)
        violation = _outside(full, variables, limits, mimics, drivers)
        _place(tools[row], full, T_fixed, kinds, motions, T_tip_tool)
        distance, angle = _distance_and_angle(tools[row], T_base_target[number])
        numbers[0, row], numbers[1, row], numbers[2, row] = distance, angle, violation
        numbers[3, row] = _from_state(full, state, number, variables)
        ok = finite and violation <= 0.0 and distance <= position_tolerance and angle <= orientation_tolerance
        flags[0, row], flags[1, row] = ok, finite
