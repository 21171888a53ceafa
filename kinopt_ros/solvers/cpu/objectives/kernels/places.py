"""Poses of motions and frames, and velocities of frames, compiled."""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER
from kinopt_ros.numba_cache import njit

_ROTATION, _TRANSLATION = 0, 1


class Places(NamedTuple):
    """Where everything is in one configuration."""

    motion: Annotated[Float64, "N 12"]
    """Pose in the root link behind each motion."""
    axis: Annotated[Float64, "N 3"]
    """Axis of each motion in the root link, by its multiplier."""
    frame: Annotated[Float64, "F 12"]
    velocity: Annotated[Float64, "F 6 d"]
    """Linear and angular velocity of each frame by those of the directions that move."""
    below: Annotated[Float64, "N 4"]
    """Share of the mass that each motion moves, and its moment in the root link, m."""


@njit(**FAST_INLINE)
def compose(a, i, b, j, out, k):
    """Write a[i] b[j] to out[k], poses of 12 numbers each."""
    for r in range(3):
        x, y, z = a[i, 3 * r], a[i, 3 * r + 1], a[i, 3 * r + 2]
        out[k, 3 * r] = x * b[j, 0] + y * b[j, 3] + z * b[j, 6]
        out[k, 3 * r + 1] = x * b[j, 1] + y * b[j, 4] + z * b[j, 7]
        out[k, 3 * r + 2] = x * b[j, 2] + y * b[j, 5] + z * b[j, 8]
        out[k, 9 + r] = x * b[j, 9] + y * b[j, 10] + z * b[j, 11] + a[i, 9 + r]


@njit(**FAST_INLINE)
def _turn(T, x, y, z, sine, cosine):
    """Replace the rotation R of a pose by R exp(angle axis), the axis of length 1 in its own frame."""
    versine = 1.0 - cosine
    for r in range(3):
        a, b, c = T[3 * r], T[3 * r + 1], T[3 * r + 2]
        along = (a * x + b * y + c * z) * versine
        T[3 * r] = a * cosine + (b * z - c * y) * sine + x * along
        T[3 * r + 1] = b * cosine + (c * x - a * z) * sine + y * along
        T[3 * r + 2] = c * cosine + (a * y - b * x) * sine + z * along


@njit(**FAST_INNER)
def place(tree, q, places):
    """Write the poses of all motions and frames in a configuration (nq,)."""
    motion, axis, fixed = places.motion, places.axis, tree.fixed
    for i in range(tree.parent.shape[0]):
        before, T = tree.parent[i], motion[i]
        if before < 0:
            for k in range(12):
                T[k] = fixed[i, k]
        else:
            compose(motion, before, fixed, i, motion, i)
        x, y, z = tree.axis[i, 0], tree.axis[i, 1], tree.axis[i, 2]
        factor = tree.drive[i, 0]
        ax, ay, az = (
            T[0] * x + T[1] * y + T[2] * z,
            T[3] * x + T[4] * y + T[5] * z,
            T[6] * x + T[7] * y + T[8] * z,
        )
        axis[i, 0], axis[i, 1], axis[i, 2] = factor * ax, factor * ay, factor * az
        v = tree.variable[i]
        if tree.kind[i] == _ROTATION:
            value = factor * q[v] + tree.drive[i, 1]
            _turn(T, x, y, z, np.sin(value), np.cos(value))
        elif tree.kind[i] == _TRANSLATION:
            value = factor * q[v] + tree.drive[i, 1]
            T[9] += value * ax
            T[10] += value * ay
            T[11] += value * az
        else:
            w, bx, by, bz = q[v], q[v + 1], q[v + 2], q[v + 3]
            squared = bx * bx + by * by + bz * bz
            length = np.sqrt(w * w + squared)
            long = np.sqrt(squared)
            if long > 0.0:
                sine = long / length
                _turn(T, bx / long, by / long, bz / long, 2.0 * sine * w / length, 1.0 - 2.0 * sine * sine)
    for f in range(tree.frame_motion.shape[0]):
        if tree.frame_motion[f] < 0:
            for k in range(12):
                places.frame[f, k] = tree.frame_fixed[f, k]
        else:
            compose(motion, tree.frame_motion[f], tree.frame_fixed, f, places.frame, f)


@njit(**FAST_INLINE)
def child_axis(T, k):
    """Return axis k of the frame of a pose, in the root link."""
    return T[k], T[3 + k], T[6 + k]


@njit(**FAST_INNER)
def differentiate_frames(tree, places):
    """Write the velocities of all frames, after ``place``."""
    velocity = places.velocity
    for f in range(velocity.shape[0]):
        J, frame = velocity[f], places.frame[f]
        for r in range(6):
            for c in range(J.shape[1]):
                J[r, c] = 0.0
        for at in range(tree.chain_start[f], tree.chain_start[f + 1]):
            i = tree.chain[at]
            T, first = places.motion[i], tree.direction[i]
            rx, ry, rz = frame[9] - T[9], frame[10] - T[10], frame[11] - T[11]
            turns = 1 if tree.kind[i] <= _TRANSLATION else 3
            for k in range(turns):
                c = tree.column[first + k]
                if c < 0:
                    continue
                x, y, z = places.axis[i, 0], places.axis[i, 1], places.axis[i, 2]
                if tree.kind[i] == _TRANSLATION:
                    J[0, c] += x
                    J[1, c] += y
                    J[2, c] += z
                    continue
                if turns == 3:
                    x, y, z = child_axis(T, k)
                J[0, c] += y * rz - z * ry
                J[1, c] += z * rx - x * rz
                J[2, c] += x * ry - y * rx
                J[3, c] += x
                J[4, c] += y
                J[5, c] += z


@njit(**FAST_INNER)
def center_of_mass(tree, places, differentiate, J):
    """Return the center of mass in the root link, m; write its velocity (3, d) if ``differentiate``."""
    N = tree.parent.shape[0]
    mass, below = tree.mass, places.below
    x, y, z = mass[N, 1], mass[N, 2], mass[N, 3]
    for i in range(N):
        share, T = mass[i, 0], places.motion[i]
        a, b, c = mass[i, 1], mass[i, 2], mass[i, 3]
        below[i, 0] = share
        below[i, 1] = T[0] * a + T[1] * b + T[2] * c + share * T[9]
        below[i, 2] = T[3] * a + T[4] * b + T[5] * c + share * T[10]
        below[i, 3] = T[6] * a + T[7] * b + T[8] * c + share * T[11]
        x += below[i, 1]
        y += below[i, 2]
        z += below[i, 3]
    if not differentiate:
        return x, y, z
    for r in range(3):
        for c in range(J.shape[1]):
            J[r, c] = 0.0
    for i in range(N - 1, -1, -1):
        T, share, first = places.motion[i], below[i, 0], tree.direction[i]
        rx, ry, rz = below[i, 1] - share * T[9], below[i, 2] - share * T[10], below[i, 3] - share * T[11]
        turns = 1 if tree.kind[i] <= _TRANSLATION else 3
        for k in range(turns):
            c = tree.column[first + k]
            if c < 0:
                continue
            ax, ay, az = places.axis[i, 0], places.axis[i, 1], places.axis[i, 2]
            if tree.kind[i] == _TRANSLATION:
                J[0, c] += share * ax
                J[1, c] += share * ay
                J[2, c] += share * az
                continue
            if turns == 3:
                ax, ay, az = child_axis(T, k)
            J[0, c] += ay * rz - az * ry
            J[1, c] += az * rx - ax * rz
            J[2, c] += ax * ry - ay * rx
        before = tree.parent[i]
        if before >= 0:
            for k in range(4):
                below[before, k] += below[i, k]
    return x, y, z
