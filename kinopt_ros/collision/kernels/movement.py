"""How much nearer shapes come to each other within a part of a motion, compiled: bounds that are never too small."""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.collision.kernels.hull_gap import CENTER, REACH
from kinopt_ros.collision.kernels.near import at
from kinopt_ros.collision.kernels.tree import QUATERNION, TRANSLATION
from kinopt_ros.compiler_options import INNER
from kinopt_ros.numba_cache import njit


class Places(NamedTuple):
    """Where shapes and axes are in one configuration, in the root's frame."""

    placed: Annotated[Float64, "S 4 4"]
    """Poses of the shapes' boxes."""
    origins: Annotated[Float64, "m 3"]
    """A point of each axis."""
    axes: Annotated[Float64, "m 3"]


@njit(**INNER)
def change_of_gap(s, sign, meeting, column, packed, places, W, change, linear):
    """Add to ``linear`` (nq, 7) by how much a shape's motion against the link ``meeting`` widens a gap along W[4], per
    change of each variable: of the centre of its box into column 0, and of what lies one metre from it along each of
    the box's axes into the three from ``column`` on."""
    tree, link = packed.tree, packed.shapes.numbers[s, 0]
    placed, origins, axes = places
    nx, ny, nz = W[4, 0], W[4, 1], W[4, 2]
    while link >= 0 and link != meeting:
        for k in range(tree.last[link] - 1, tree.first[link] - 1, -1):
            v, rate = tree.variable[k], sign * tree.multiplier[k]
            if tree.motion[k] == QUATERNION or change[v] == 0.0:
                continue
            ax, ay, az = axes[k, 0], axes[k, 1], axes[k, 2]
            if tree.motion[k] == TRANSLATION:
                linear[v, 0] += rate * (nx * ax + ny * ay + nz * az)
                continue
            # n (a x r) = (n x a) r
            tx, ty, tz = ny * az - nz * ay, nz * ax - nx * az, nx * ay - ny * ax
            linear[v, 0] += rate * (
                tx * (placed[s, 0, 3] - origins[k, 0])
                + ty * (placed[s, 1, 3] - origins[k, 1])
                + tz * (placed[s, 2, 3] - origins[k, 2])
            )
            for i in range(3):
                linear[v, column + i] += rate * (
                    tx * placed[s, 0, i] + ty * placed[s, 1, i] + tz * placed[s, 2, i]
                )
        link = tree.parent[link]


@njit(**INNER)
def least_change(chords, variables, half, a, b, linear):
    """Return the least change of a gap, to first order, of a part that is no farther from two chords than their last
    row."""
    lower, off = 0.0, 0.0
    for k in range(variables.shape[0]):
        v = variables[k]
        off += chords[2, v] * (
            abs(linear[v, 0])
            + half[a, 0] * abs(linear[v, 1])
            + half[a, 1] * abs(linear[v, 2])
            + half[a, 2] * abs(linear[v, 3])
            + half[b, 0] * abs(linear[v, 4])
            + half[b, 1] * abs(linear[v, 5])
            + half[b, 2] * abs(linear[v, 6])
        )
    for side in range(2):
        value = x0 = x1 = x2 = y0 = y1 = y2 = 0.0
        for k in range(variables.shape[0]):
            v = variables[k]
            by = chords[side, v]
            value += by * linear[v, 0]
            x0 += by * linear[v, 1]
            x1 += by * linear[v, 2]
            x2 += by * linear[v, 3]
            y0 += by * linear[v, 4]
            y1 += by * linear[v, 5]
            y2 += by * linear[v, 6]
        value -= half[a, 0] * abs(x0) + half[a, 1] * abs(x1) + half[a, 2] * abs(x2)
        value -= half[b, 0] * abs(y0) + half[b, 1] * abs(y1) + half[b, 2] * abs(y2)
        lower = min(lower, value)
    return lower - off


@njit(**INNER)
def movement(s, packed, places, change, moved, bent):
    """Bound how far any point of shape s moves against each link above it while variables change by at most ``change``.

    Writes that to ``moved[s]``, and to ``bent[s]`` how far points may be from where a linear motion would put them.
    The last entries are for the world.
    """
    tree, link = packed.tree, packed.shapes.numbers[s, 0]
    L = tree.parent.shape[0]
    way, off = 0.0, 0.0
    while link >= 0:
        moved[s, link], bent[s, link] = way, off
        for k in range(tree.last[link] - 1, tree.first[link] - 1, -1):
            if tree.motion[k] == QUATERNION:  # their variables do not move
                continue
            by = abs(tree.multiplier[k]) * change[tree.variable[k]]
            if by == 0.0:
                continue
            if tree.motion[k] == TRANSLATION:
                way += by
                continue
            lever = _lever(s, packed.shapes, places, k)
            # Turning what has moved already, and the arc instead of its tangent.
            off += by * way + 0.5 * by * by * (lever + way)
            way += by * (way + lever)
        link = tree.parent[link]
    moved[s, L], bent[s, L] = way, off


@njit(**INNER)
def pieces_movement(s, packed, places, change, moved):
    """Bound how far every piece of shape s moves against each link above it while variables change by ``change``.

    Uses the sphere around each piece, and writes to the piece's row of ``moved``.
    """
    tree, numbers, pieces = packed.tree, packed.shapes.numbers, packed.shapes.pieces
    placed, origins, axes = places
    L = tree.parent.shape[0]
    for i in range(numbers[s, 1], numbers[s, 2]):
        x, y, z = at(placed, s, pieces[i, CENTER], pieces[i, CENTER + 1], pieces[i, CENTER + 2])
        link, way = numbers[s, 0], 0.0
        while link >= 0:
            moved[i, link] = way
            for k in range(tree.last[link] - 1, tree.first[link] - 1, -1):
                if tree.motion[k] == QUATERNION:
                    continue
                by = abs(tree.multiplier[k]) * change[tree.variable[k]]
                if by == 0.0:
                    continue
                if tree.motion[k] == TRANSLATION:
                    way += by
                    continue
                px, py, pz = x - origins[k, 0], y - origins[k, 1], z - origins[k, 2]
                cx = axes[k, 1] * pz - axes[k, 2] * py
                cy = axes[k, 2] * px - axes[k, 0] * pz
                cz = axes[k, 0] * py - axes[k, 1] * px
                way += by * (way + np.sqrt(cx * cx + cy * cy + cz * cz) + pieces[i, REACH])
            link = tree.parent[link]
        moved[i, L] = way


@njit(**INNER)
def _lever(s, shapes, places, k):
    """Return the largest distance of a point of a shape from an axis: by the sphere and the box around the shape."""
    half, reach = shapes.half, shapes.reach
    placed, origins, axes = places
    ax, ay, az = axes[k, 0], axes[k, 1], axes[k, 2]
    x, y, z = (
        placed[s, 0, 3] - origins[k, 0],
        placed[s, 1, 3] - origins[k, 1],
        placed[s, 2, 3] - origins[k, 2],
    )
    cx, cy, cz = ay * z - az * y, az * x - ax * z, ax * y - ay * x
    # Seen along the axis: the corners of the box.
    c0 = ax * placed[s, 0, 0] + ay * placed[s, 1, 0] + az * placed[s, 2, 0]
    c1 = ax * placed[s, 0, 1] + ay * placed[s, 1, 1] + az * placed[s, 2, 1]
    c2 = ax * placed[s, 0, 2] + ay * placed[s, 1, 2] + az * placed[s, 2, 2]
    h0, h1, h2 = half[s, 0], half[s, 1], half[s, 2]
    square = h0 * h0 * (1.0 - c0 * c0) + h1 * h1 * (1.0 - c1 * c1) + h2 * h2 * (1.0 - c2 * c2)
    square += 2.0 * (h0 * h1 * abs(c0 * c1) + h0 * h2 * abs(c0 * c2) + h1 * h2 * abs(c1 * c2))
    corner = np.sqrt(max(square, 0.0)) * (1.0 + 1e-9) + 1e-9
    return np.sqrt(cx * cx + cy * cy + cz * cz) + min(reach[s], corner)
