"""Inverse of Yoshikawa's index and its exact derivative, compiled.

With G = (J J^T)^-1 J the index m changes by dm = m sum(G * dJ), and as motion k turns all that it moves,

    dJ_i/dk = (w_k x v_i, w_k x w_i) of motions i from k on,    (w_i x v_k, 0) of those before,

v and w being the velocities of the tip by the motions.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.compiler_options import FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.objectives.kernels.model import ALL_ROWS, ROTATION_ROWS
from kinopt_ros.solvers.cpu.objectives.kernels.places import child_axis

_FLOOR = 1e-6
"""Added to the index, as in ``costs.manipulability``."""


class IndexRoom(NamedTuple):
    """Memory for a chain of M motions, three for a quaternion."""

    motion: Annotated[Float64, "M 6"]
    """Linear and angular velocity of the tip by each."""
    direction: Annotated[Int64, "M"]
    group: Annotated[Int64, "M"]
    """Number of the motion in the chain: the three of a quaternion have the same."""
    J: Annotated[Float64, "6 nv"]
    G: Annotated[Float64, "6 nv"]
    factor: Annotated[Float64, "6 6"]


@njit(**FAST_INNER)
def _velocities(tree, frame, places, room):
    """Write the velocities by all motions of a frame's chain, held ones too; return how many there are."""
    F = places.frame[frame]
    count = 0
    for at in range(tree.chain_start[frame], tree.chain_start[frame + 1]):
        i = tree.chain[at]
        T = places.motion[i]
        rx, ry, rz = F[9] - T[9], F[10] - T[10], F[11] - T[11]
        for k in range(1 if tree.kind[i] <= 1 else 3):
            x, y, z = places.axis[i, 0], places.axis[i, 1], places.axis[i, 2]
            m = room.motion[count]
            room.direction[count], room.group[count] = tree.direction[i] + k, at
            count += 1
            if tree.kind[i] == 1:
                m[0], m[1], m[2], m[3], m[4], m[5] = x, y, z, 0.0, 0.0, 0.0
                continue
            if tree.kind[i] == 2:
                x, y, z = child_axis(T, k)
            m[0], m[1], m[2] = y * rz - z * ry, z * rx - x * rz, x * ry - y * rx
            m[3], m[4], m[5] = x, y, z
    return count


@njit(**FAST_INNER)
def _root_of_determinant(A, n):
    """Replace a matrix by its Cholesky factor; return the root of its determinant, 0 if it is not positive."""
    root = 1.0
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= A[i, k] * A[j, k]
            if j < i:
                A[i, j] = s / A[j, j]
            elif s > 0.0:
                A[i, i] = np.sqrt(s)
                root *= A[i, i]
            else:
                return 0.0
    return root


@njit(**FAST_INNER)
def manipulability(tree, frame, variant, counted, places, room, differentiate, slopes):
    """Return the inverse of the index of a frame; write its derivatives (d,) if ``differentiate``.

    ``counted``: per direction 1 if its column counts, else 0; ``variant``: which rows do.
    """
    first, last = (3, 6) if variant == ROTATION_ROWS else (0, 6 if variant == ALL_ROWS else 3)
    J, factor = room.J, room.factor
    count = _velocities(tree, frame, places, room)
    n, nv = last - first, J.shape[1]
    for r in range(n):
        for j in range(nv):
            J[r, j] = 0.0
    for m in range(count):
        j = room.direction[m]
        if counted[j]:
            for r in range(n):
                J[r, j] += room.motion[m, first + r]
    for r in range(n):
        for s in range(r + 1):
            total = 0.0
            for j in range(nv):
                total += J[r, j] * J[s, j]
            factor[r, s] = total
    index = _root_of_determinant(factor, n)
    if differentiate:
        for c in range(slopes.shape[0]):
            slopes[c] = 0.0
        if index > 0.0:
            _derive(tree, room, counted, first, n, count, slopes)
            scale = -index / (index + _FLOOR) ** 2
            for c in range(slopes.shape[0]):
                slopes[c] *= scale
    return 1.0 / (index + _FLOOR)


@njit(**FAST_INNER)
def _derive(tree, room, counted, first, n, count, slopes):
    """Add sum(G * dJ) by each direction that moves to ``slopes``."""
    J, G, factor = room.J, room.G, room.factor
    nv = J.shape[1]
    for j in range(nv):
        for r in range(n):  # forwards, then backwards through the factor
            s = J[r, j]
            for k in range(r):
                s -= factor[r, k] * G[k, j]
            G[r, j] = s / factor[r, r]
        for r in range(n - 1, -1, -1):
            s = G[r, j]
            for k in range(r + 1, n):
                s -= factor[k, r] * G[k, j]
            G[r, j] = s / factor[r, r]
    for i in range(count):
        j = room.direction[i]
        if not counted[j]:
            continue
        # What the velocities of this motion are weighed by.
        lx = ly = lz = tx = ty = tz = 0.0
        if first == 0:
            lx, ly, lz = G[0, j], G[1, j], G[2, j]
        if first == 3:
            tx, ty, tz = G[0, j], G[1, j], G[2, j]
        elif n == 6:
            tx, ty, tz = G[3, j], G[4, j], G[5, j]
        own = room.motion[i]
        vx, vy, vz, wx, wy, wz = own[0], own[1], own[2], own[3], own[4], own[5]
        # w_k . (v x l + w x t) of motions before, and of itself; v_k . (l x w) of those behind.
        ax = vy * lz - vz * ly + wy * tz - wz * ty
        ay = vz * lx - vx * lz + wz * tx - wx * tz
        az = vx * ly - vy * lx + wx * ty - wy * tx
        bx, by, bz = ly * wz - lz * wy, lz * wx - lx * wz, lx * wy - ly * wx
        for k in range(count):
            c = tree.column[room.direction[k]]
            if c < 0:
                continue
            other = room.motion[k]
            if room.group[k] <= room.group[i]:
                slopes[c] += ax * other[3] + ay * other[4] + az * other[5]
            else:
                slopes[c] += bx * other[0] + by * other[1] + bz * other[2]
