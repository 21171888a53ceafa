"""Compiled search of the pairs of shapes that may be near to each other in a configuration.

All other pairs are cleared by lower bounds of their distances.
"""

import numpy as np

from kinopt_ros.collision.kernels.ball_distances import ball_distance
from kinopt_ros.collision.kernels.box_gaps import box_gap
from kinopt_ros.collision.kernels.hull_gap import CENTER, FIRST, LAST, REACH, ROUNDING, hull_gap, plane_gap
from kinopt_ros.collision.kernels.tree import place_links
from kinopt_ros.compiler_options import ALLOCATING, INLINE, INNER, OUTER
from kinopt_ros.numba_cache import njit

HULLS, GROUND, BALLS, BOXES = range(4)
"""Ways to bound the distance of a pair of shapes.

By convex pieces of both; by pieces of one and the plane that the other is; by balls about one and the exact distance of
balls from the other, which does not move; by boxes only."""
_MANY = 64
"""Points of two pieces beyond which the boxes around them are compared first."""
_SAME_POSE = 1e9
"""Reciprocal of the length to which relative poses are rounded before they are compared, 1/m."""


@njit(**OUTER)
def near_pairs(q, packed, chosen, least, enough, poses, found, bounds):
    """Find which of the chosen pairs are not known to be at least ``enough`` (m) apart, paddings added.

    Args: configuration (nq), finite; ``packed_bodies.PackedArrays``; numbers of pairs (n); bounds that are known to
    stay below ``least`` (m) are not improved any more; changed: poses of the tree's links (L, 4, 4), the pairs (n) and
    lower bounds of their distances (n), paddings subtracted, in no order.

    Returns how many there are.
    """
    tree, shapes, pairs = packed.tree, packed.shapes, packed.pairs
    origins, axes = np.empty(tree.axis.shape), np.empty(tree.axis.shape)
    place_links(q, tree, poses, origins, axes)
    placed = np.empty(shapes.T_link_box.shape)
    for s in range(placed.shape[0]):
        place_shape(s, shapes, poses, placed)
    W = np.empty((5, 3))
    still = np.zeros((shapes.pieces.shape[0], 1))
    count = 0
    for k in range(chosen.shape[0]):
        p = chosen[k]
        margin = pairs.margin[p]
        bound = sphere_gap(p, pairs.numbers, shapes.reach, placed)
        if bound >= enough + margin:
            continue
        wanted = least + margin, enough + margin, 0.0
        bound, far = pair_gap(p, packed, placed, bound, wanted, (0.0, 0.0, still, still.shape[1] - 1), W)
        if not far:
            found[count] = p
            bounds[count] = bound - margin
            count += 1
    return count


@njit(**OUTER)
def group_gaps(configurations, packed, chosen, group, asked, enough, gaps):
    """Compute lower bounds (m) of the least distance of groups of pairs, paddings subtracted; at most ``enough``.

    Args: configurations (N, nq), finite; ``packed_bodies.PackedArrays``; numbers of pairs (n) and the group of each
    (n); which groups are of interest in which configuration (N, G); changed: bounds (N, G) of those that are.
    """
    tree, shapes, pairs = packed.tree, packed.shapes, packed.pairs
    origins, axes = np.empty(tree.axis.shape), np.empty(tree.axis.shape)
    poses = np.empty((tree.parent.shape[0], 4, 4))
    placed = np.empty(shapes.T_link_box.shape)
    where = np.full(placed.shape[0], -1)
    for s in range(placed.shape[0]):
        if shapes.numbers[s, 0] < 0:
            place_shape(s, shapes, poses, placed)
    W = np.empty((5, 3))
    still = np.zeros((shapes.pieces.shape[0], 1))
    for i in range(configurations.shape[0]):
        place_links(configurations[i], tree, poses, origins, axes)
        for g in range(asked.shape[1]):
            if asked[i, g]:
                gaps[i, g] = enough
        for c in range(chosen.shape[0]):
            p, g = chosen[c], group[c]
            if not asked[i, g]:
                continue
            for k in range(2):
                s = pairs.numbers[p, k]
                if where[s] != i and shapes.numbers[s, 0] >= 0:
                    place_shape(s, shapes, poses, placed)
                    where[s] = i
            enough_here = gaps[i, g] + pairs.margin[p]
            bound = sphere_gap(p, pairs.numbers, shapes.reach, placed)
            if bound >= enough_here:
                continue
            wanted = -np.inf, enough_here, 0.0
            bound, far = pair_gap(p, packed, placed, bound, wanted, (0.0, 0.0, still, still.shape[1] - 1), W)
            if not far:
                gaps[i, g] = bound - pairs.margin[p]


@njit(**OUTER)
def relative_poses(T_a, T_b, rounded):
    """Write the pose of b in a, from poses (4, 4), rounded into ``rounded`` (12): equal up to rounding errors."""
    for i in range(3):
        for j in range(3):
            value = T_a[0, i] * T_b[0, j] + T_a[1, i] * T_b[1, j] + T_a[2, i] * T_b[2, j]
            rounded[4 * i + j] = np.int64(np.rint(value * _SAME_POSE))
        x, y, z = T_b[0, 3] - T_a[0, 3], T_b[1, 3] - T_a[1, 3], T_b[2, 3] - T_a[2, 3]
        rounded[4 * i + 3] = np.int64(np.rint((T_a[0, i] * x + T_a[1, i] * y + T_a[2, i] * z) * _SAME_POSE))


@njit(**INLINE)
def place_shape(s, shapes, poses, placed):
    """Write the pose, in the root's frame, of the box of a shape into ``placed[s]``."""
    link, T_link_box = shapes.numbers[s, 0], shapes.T_link_box
    if link < 0:
        for i in range(4):
            for j in range(4):
                placed[s, i, j] = T_link_box[s, i, j]
        return
    for i in range(3):
        for j in range(4):
            placed[s, i, j] = (
                poses[link, i, 0] * T_link_box[s, 0, j]
                + poses[link, i, 1] * T_link_box[s, 1, j]
                + poses[link, i, 2] * T_link_box[s, 2, j]
            )
        placed[s, i, 3] += poses[link, i, 3]
    placed[s, 3, 0] = placed[s, 3, 1] = placed[s, 3, 2] = 0.0
    placed[s, 3, 3] = 1.0


@njit(**INLINE)
def sphere_gap(p, pair_numbers, reach, placed):
    """Return the gap between the spheres around a pair's shapes; minus infinity if one is endless."""
    a, b = pair_numbers[p, 0], pair_numbers[p, 1]
    x, y, z = (
        placed[b, 0, 3] - placed[a, 0, 3],
        placed[b, 1, 3] - placed[a, 1, 3],
        placed[b, 2, 3] - placed[a, 2, 3],
    )
    return np.sqrt(x * x + y * y + z * z) - reach[a] - reach[b] - ROUNDING


@njit(**INLINE)
def between_centres(a, b, placed):
    """Return a direction from one shape's centre to another's, not 0."""
    x, y, z = (
        placed[b, 0, 3] - placed[a, 0, 3],
        placed[b, 1, 3] - placed[a, 1, 3],
        placed[b, 2, 3] - placed[a, 2, 3],
    )
    return (1.0 if x == 0.0 and y == 0.0 and z == 0.0 else x), y, z


@njit(**INNER)
def pair_gap(p, packed, placed, best, asked, nearer, W):
    """A lower bound (m) of the distance of a pair's shapes, ``best`` or better, and whether they are ``enough`` apart
    even if both come nearer.

    The bound is not improved beyond what that takes, nor where it is known to stay below ``least``, nor where it is
    not enough and known to ``loose``; and pieces that are far enough do not count in it.

    Args: number of the pair; ``packed_bodies.PackedArrays``; poses (S, 4, 4), which must hold those of both; bound so
    far; ``least``, ``enough``, ``loose`` (m); how much nearer come the first and the other (m), ``moved`` and a column
    of it, whose rows say that of each piece; W (5, 3): memory.
    """
    shapes = packed.shapes
    numbers, half, reach = shapes.numbers, shapes.half, shapes.reach
    pieces, hulls = shapes.pieces, (shapes.pieces, shapes.points, shapes.clusters)
    a, b, how = packed.pairs.numbers[p, 0], packed.pairs.numbers[p, 1], packed.pairs.numbers[p, 2]
    least, enough, loose = asked
    wanted = enough + nearer[0] + nearer[1]
    if how == GROUND:
        best = _above(a, b, shapes, placed, wanted)
        return best, best >= wanted
    if how == BALLS:
        best = _from_obstacle(a, packed.pairs.numbers[p, 4], packed, placed, least, wanted)
        return best, best >= wanted
    if how == HULLS and numbers[a, 2] - numbers[a, 1] == 1 and numbers[b, 2] - numbers[b, 1] == 1:
        direction = between_centres(a, b, placed)
        i, j = numbers[a, 1], numbers[b, 1]
        many = pieces[i, LAST] - pieces[i, FIRST] + pieces[j, LAST] - pieces[j, FIRST] > _MANY
        if many and box_gap(placed, half, a, b, best, wanted + ROUNDING) - ROUNDING >= wanted:
            return wanted, True
        best = max(best, hull_gap(hulls, placed, a, i, b, j, direction, (least, wanted, loose), W))
        return best, best >= wanted
    if reach[a] == np.inf or reach[b] == np.inf:
        return -np.inf, False
    best = max(best, box_gap(placed, half, a, b, best, wanted + ROUNDING) - ROUNDING)
    if how == BOXES or best >= wanted:
        return best, best >= wanted
    lowest, far = _of_pieces(a, b, shapes, placed, asked, nearer, W)
    return max(best, lowest), far


@njit(**INNER)
def _of_pieces(a, b, shapes, placed, asked, nearer, W):
    """Whether all pieces of one are far enough from those of the other, as ``pair_gap``, and the least bound of those
    that are not. In the order of the pieces; ends with a bound below ``least``."""
    numbers, half, pieces = shapes.numbers, shapes.half, shapes.pieces
    hulls = pieces, shapes.points, shapes.clusters
    least, enough, loose = asked
    _, nearer_b, moved, column = nearer
    lowest, far = np.inf, True
    for i in range(numbers[a, 1], numbers[a, 2]):
        x, y, z = at(placed, a, pieces[i, CENTER], pieces[i, CENTER + 1], pieces[i, CENTER + 2])
        # In the frame of b's box, where its pieces' centres are known.
        x, y, z = x - placed[b, 0, 3], y - placed[b, 1, 3], z - placed[b, 2, 3]
        lx = placed[b, 0, 0] * x + placed[b, 1, 0] * y + placed[b, 2, 0] * z
        ly = placed[b, 0, 1] * x + placed[b, 1, 1] * y + placed[b, 2, 1] * z
        lz = placed[b, 0, 2] * x + placed[b, 1, 2] * y + placed[b, 2, 2] * z
        ox = max(abs(lx) - half[b, 0], 0.0)
        oy = max(abs(ly) - half[b, 1], 0.0)
        oz = max(abs(lz) - half[b, 2], 0.0)
        # After the first that is not far enough only nearer ones are of interest.
        reached = min(enough + nearer_b + moved[i, column], lowest) + pieces[i, REACH] + ROUNDING
        if reached <= 0.0 or ox * ox + oy * oy + oz * oz >= reached * reached:
            continue
        for j in range(numbers[b, 1], numbers[b, 2]):
            x, y, z = pieces[j, CENTER] - lx, pieces[j, CENTER + 1] - ly, pieces[j, CENTER + 2] - lz
            wanted = min(enough + moved[i, column] + moved[j, column], lowest)
            reached = wanted + pieces[i, REACH] + pieces[j, REACH] + ROUNDING
            if reached <= 0.0 or x * x + y * y + z * z >= reached * reached:
                continue
            if x == 0.0 and y == 0.0 and z == 0.0:
                x = 1.0
            gx = placed[b, 0, 0] * x + placed[b, 0, 1] * y + placed[b, 0, 2] * z
            gy = placed[b, 1, 0] * x + placed[b, 1, 1] * y + placed[b, 1, 2] * z
            gz = placed[b, 2, 0] * x + placed[b, 2, 1] * y + placed[b, 2, 2] * z
            bound = hull_gap(hulls, placed, a, i, b, j, (gx, gy, gz), (least, wanted, loose), W)
            if bound < wanted:
                far = False
                lowest = min(lowest, bound)
                if lowest < least:
                    return lowest, False
    return lowest, far


@njit(**INLINE)
def at(placed, s, x, y, z):
    """Return a point of a shape's box in the root's frame."""
    return (
        placed[s, 0, 0] * x + placed[s, 0, 1] * y + placed[s, 0, 2] * z + placed[s, 0, 3],
        placed[s, 1, 0] * x + placed[s, 1, 1] * y + placed[s, 1, 2] * z + placed[s, 1, 3],
        placed[s, 2, 0] * x + placed[s, 2, 1] * y + placed[s, 2, 2] * z + placed[s, 2, 3],
    )


@njit(**INNER)
def _above(a, b, shapes, placed, enough):
    """Return the height of a's pieces above the plane b."""
    numbers, reach, hulls = shapes.numbers, shapes.reach, (shapes.pieces, shapes.points, shapes.clusters)
    nx, ny, nz = placed[b, 0, 2], placed[b, 1, 2], placed[b, 2, 2]
    height = nx * placed[b, 0, 3] + ny * placed[b, 1, 3] + nz * placed[b, 2, 3]
    best = nx * placed[a, 0, 3] + ny * placed[a, 1, 3] + nz * placed[a, 2, 3] - height - reach[a] - ROUNDING
    if best >= enough:
        return best
    lowest = np.inf
    for i in range(numbers[a, 1], numbers[a, 2]):
        lowest = min(lowest, plane_gap(hulls, placed, a, i, nx, ny, nz, height))
    return max(best, lowest)


@njit(**ALLOCATING)
def _from_obstacle(a, obstacle, packed, placed, least, enough):
    """Return the least distance of a's balls from an obstacle."""
    numbers, reach, balls = packed.shapes.numbers, packed.shapes.reach, packed.shapes.balls
    skipped = np.zeros(1, dtype=np.bool_)
    one = packed.obstacles[obstacle : obstacle + 1]
    its_integers = packed.integers[obstacle : obstacle + 1]
    most = enough + ROUNDING
    x, y, z = at(placed, a, 0.0, 0.0, 0.0)
    best = ball_distance(one, its_integers, skipped, x, y, z, reach[a], most)[0]
    if best >= most:
        return enough
    lowest = most
    for k in range(numbers[a, 3], numbers[a, 4]):
        x, y, z = at(placed, a, balls[k, 0], balls[k, 1], balls[k, 2])
        lowest = ball_distance(one, its_integers, skipped, x, y, z, balls[k, 3], lowest)[0]
        if lowest < least:
            break
    return max(best, lowest) - ROUNDING
