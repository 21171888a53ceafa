"""Compiled: how near a path comes to obstacles and to the robot itself, as rows of a least-squares problem.

A sphere at signed distance d costs max(0, wanted - d)^2. A path holds if every distance is at least ``accepted``, which
is less: what is left is room for the other costs. Between two points of the path spheres are looked at, too, where they
move by more than about their size and where the distances at both points do not rule out that something is between
them, as d changes by no more than the sphere moves.

What is nearer than wanted at an anchor (a point of the path that is given: start, goal, waypoint) need not be farther
away near it: of spheres and obstacles what is wanted grows by ``RAMP`` per metre from there, of two spheres it is what
they have there. Spheres contain the shapes, so that tight places would be refused otherwise.

Distances that were computed are kept with where the sphere was, and spare computing them again as long as the sphere
has not moved so far that they could matter. Between points it is the place looked at before, and the next point, that
tell.

The matrix of all rows of spheres on one node is a 6 x 6 matrix of wrenches; sums over the nodes below a joint give the
joint's entries, as composite bodies give those of a mass matrix (R. Featherstone, "Rigid Body Dynamics Algorithms",
2008, 6.2).
"""

import numpy as np

from kinopt_ros.collision.kernels.ball_distances import ball_distance
from kinopt_ros.collision.kernels.copying import copy_to
from kinopt_ros.compiler_options import FAST_ALLOCATING, FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.paths.kernels.frames import add_point_row, set_frames
from kinopt_ros.solvers.cpu.paths.kernels.spheres import (
    COST,
    SLACK,
    TIGHT,
    balls_apart,
    distance,
    place_spheres,
    wanted_of,
)

LOOK = 0.3
"""Distance beyond what matters up to which distances are exact, m: the farther, the longer they spare others."""
SWEEP = 1.5
"""Movement, in radii of theirs, from which on spheres are checked between points."""
MOST_BETWEEN = 16
"""Most checks between two points."""


@njit(**FAST_ALLOCATING)
def world_rows(around, gaps, places, less, wanted, accepted, positions, known, found, pushed, f, W):
    """Compute the cost of all spheres at one configuration against obstacles.

    ``less`` (S,) is what spheres stick out by; ``known`` (S,) are lower bounds of their distances, which become better
    ones; f (M, 6) and W (M, 6, 6) the sums of residuals times wrenches, and of products of wrenches, of nodes that are
    ``pushed``.
    """
    node, padded, mask, skipped, numbers, integers, resting = (
        around.node, around.padded, around.mask, around.skipped, around.numbers, around.integers, around.resting,
    )  # fmt: skip
    row = -1
    skip = skipped[0] if skipped.shape[0] > 0 else np.empty(0, dtype=np.bool_)
    w = np.empty(6)
    for s in range(resting[0], node.shape[0]):
        if known[s] >= wanted:
            continue
        if mask[s] != row:
            row = mask[s]
            skip = skipped[row]
        px, py, pz = positions[s, 0], positions[s, 1], positions[s, 2]
        d, x, y, z, _ = ball_distance(numbers, integers, skip, px, py, pz, padded[s], wanted + LOOK)
        known[s] = d
        if d >= wanted:
            continue
        least, ax, ay, az = wanted_of(gaps, places, wanted, s, px, py, pz)
        found[SLACK] = min(found[SLACK], d + less[s] - min(accepted, least - TIGHT))
        least -= less[s]
        r = least - d
        if r <= 0.0:
            continue
        found[COST] += r * r
        m = node[s]
        if not pushed[m]:
            pushed[m] = True
            f[m] = 0.0
            W[m] = 0.0
        ax, ay, az = ax - x, ay - y, az - z
        w[0], w[1], w[2] = py * az - pz * ay, pz * ax - px * az, px * ay - py * ax
        w[3], w[4], w[5] = ax, ay, az
        for i in range(6):
            f[m, i] += r * w[i]
            for k in range(i, 6):
                W[m, i, k] += w[i] * w[k]


@njit(**FAST_ALLOCATING)
def _spread(parent, turns, column, multiplier, frames, pushed, f, W, screws, g, H):
    """Add the effect of wrenches on nodes on the variables: g (n,), H (n, n), upper half. Clears ``pushed``."""
    some = False
    for m in range(1, parent.shape[0]):
        some = some or pushed[m]
    if not some:
        return
    F = np.empty(6)
    for m in range(1, parent.shape[0]):
        x, y, z = frames[m, 2], frames[m, 5], frames[m, 8]
        if turns[m]:
            a, b, c = frames[m, 9], frames[m, 10], frames[m, 11]
            screws[m, 0], screws[m, 1], screws[m, 2] = x, y, z
            screws[m, 3], screws[m, 4], screws[m, 5] = b * z - c * y, c * x - a * z, a * y - b * x
        else:
            screws[m, 0] = screws[m, 1] = screws[m, 2] = 0.0
            screws[m, 3], screws[m, 4], screws[m, 5] = x, y, z
    for m in range(parent.shape[0] - 1, 0, -1):
        if not pushed[m]:
            continue
        pushed[m] = False
        above, j, scale = parent[m], column[m], multiplier[m]
        total = 0.0
        for i in range(6):
            total += screws[m, i] * f[m, i]
            value = 0.0
            for k in range(6):
                value += (W[m, i, k] if k >= i else W[m, k, i]) * screws[m, k]
            F[i] = value
        g[j] += scale * total
        i = m
        while i > 0:
            value = 0.0
            for k in range(6):
                value += screws[i, k] * F[k]
            value *= scale * multiplier[i]
            c = column[i]
            if c == j and i != m:
                value *= 2.0
            H[min(c, j), max(c, j)] += value
            i = parent[i]
        if above > 0:
            if pushed[above]:
                for i in range(6):
                    f[above, i] += f[m, i]
                    for k in range(i, 6):
                        W[above, i, k] += W[m, i, k]
            else:
                pushed[above] = True
                copy_to(f[above], f[m])
                copy_to(W[above], W[m])
    pushed[0] = False


@njit(**FAST_INNER)
def self_rows(tree, around, floor, less, gap, frames, positions, wanted, accepted, row, balls, found, g, H):
    """Compute the cost of all pairs of bodies at one configuration; ``balls`` of those that do not move are in place.

    ``less`` (P,) is what spheres of pairs stick out by, NaN where it is not known; there ``gap`` (P,) will do.
    """
    node, radii, body_node, first, ball, pairs, resting = (
        around.node, around.radii, around.body_node, around.body_first, around.body_ball, around.pairs, around.resting,
    )  # fmt: skip
    place_spheres(body_node, ball, frames, balls, resting[1], body_node.shape[0])
    for k in range(pairs.shape[0]):
        one, two = pairs[k, 0], pairs[k, 1]
        if balls_apart(ball, balls, one, two, wanted):
            continue
        for a in range(first[one], first[one + 1]):
            px, py, pz = positions[a, 0], positions[a, 1], positions[a, 2]
            x, y, z = px - balls[two, 0], py - balls[two, 1], pz - balls[two, 2]
            far = radii[a] + ball[two, 3] + wanted
            if x * x + y * y + z * z >= far * far:
                continue
            for b in range(first[two], first[two + 1]):
                x, y, z = px - positions[b, 0], py - positions[b, 1], pz - positions[b, 2]
                touching = radii[a] + radii[b]
                far = touching + wanted
                square = x * x + y * y + z * z
                if square >= far * far:
                    continue
                length = np.sqrt(square)
                d = length - touching
                if less[k] >= 0.0:
                    least = min(wanted, gap[k])
                    found[SLACK] = min(found[SLACK], d + less[k] - min(accepted, least - TIGHT))
                    least -= less[k]
                else:
                    least = min(wanted, floor[a, b])
                    found[SLACK] = min(found[SLACK], d - min(accepted, least - TIGHT))
                r = least - d
                if r <= 0.0:
                    continue
                found[COST] += r * r
                f = -1.0 / max(length, 1e-9)
                x, y, z = f * x, f * y, f * z
                row[:] = 0.0
                add_point_row(tree, frames, node[a], px, py, pz, x, y, z, row)
                add_point_row(tree, frames, node[b], px, py, pz, -x, -y, -z, row)
                for i in range(row.shape[0]):
                    g[i] += row[i] * r
                    for j in range(i, row.shape[0]):
                        H[i, j] += row[i] * row[j]


@njit(**FAST_ALLOCATING)
def add_at_points(tree, around, anchors, sticking, demand, frames, positions, kept, work, found, g, D):
    """Add the cost of nearness at the points of a path, with its derivatives.

    Args:
        tree, around: of ``MovingTree`` and ``Surroundings``.
        anchors: gaps (A, S) and places (A, S, 3) of spheres, floors (S, S) of pairs.
        sticking: of ``sphere_slack.py``: by how much spheres (T, S) and those of pairs (T, P) are nearer than shapes,
            and what will do for pairs (T, P) as anchors have no more.
        demand: wanted and accepted distance, m.
        frames, positions: (T, M, 12), (T, S, 3), of the path.
        kept: distances (T, S), and where the spheres were (T, S, 3), updated; and what ``add_between`` has.
        work: row (n,), q (n,), frames (M, 12), positions (S, 3), balls (B, 3), bounds (T, S), which are set to lower
            bounds of distances, and (S,), pushed (M,), all False, f (M, 6), W (M, 6, 6), screws (M, 6), slope (n,),
            H (n, n).
        found: cost, least slack against the demand; updated.
        g, D: gradient (T, n), blocks of points (T, n, n), upper halves; added to. Points count equally, and all
            together as much as one.
    """
    parent, _, turns, column, multiplier, _ = tree
    mask, resting = around.mask, around.resting[0]
    gaps, places, floor = anchors
    distances, were = kept[0], kept[1]
    row, _, _, _, balls, bound, known, pushed, f, W, screws, slope, H = work
    less, pair_less, pair_gap = sticking
    T, S, n = positions.shape[0], positions.shape[1], g.shape[1]
    wanted, accepted, weight = demand[0], demand[1], 1.0 / T
    before_all = found[COST]
    found[COST] = 0.0
    for t in range(T):
        for s in range(resting, S):
            known[s] = np.inf
            if mask[s] < 0:
                continue
            a, b, c = positions[t, s, 0], positions[t, s, 1], positions[t, s, 2]
            dx, dy, dz = a - were[t, s, 0], b - were[t, s, 1], c - were[t, s, 2]
            known[s] = distances[t, s] - np.sqrt(dx * dx + dy * dy + dz * dz)
            if not known[s] >= wanted:
                known[s] = -np.inf
                were[t, s, 0], were[t, s, 1], were[t, s, 2] = a, b, c
        world_rows(around, gaps, places, less[t], wanted, accepted, positions[t], known, found, pushed, f, W)
        for s in range(resting, S):
            bound[t, s] = known[s]
            a, b, c = positions[t, s, 0], positions[t, s, 1], positions[t, s, 2]
            if a == were[t, s, 0] and b == were[t, s, 1] and c == were[t, s, 2]:
                distances[t, s] = known[s]
        slope[:] = 0.0
        H[:] = 0.0
        _spread(parent, turns, column, multiplier, frames[t], pushed, f, W, screws, slope, H)
        self_rows(
            tree,
            around,
            floor,
            pair_less[t],
            pair_gap[t],
            frames[t],
            positions[t],
            wanted,
            accepted,
            row,
            balls,
            found,
            slope,
            H,
        )
        for i in range(n):
            g[t, i] += weight * slope[i]
            for j in range(i, n):
                D[t, i, j] += weight * H[i, j]
    found[COST] = before_all + weight * found[COST]


@njit(**FAST_ALLOCATING)
def add_between(tree, around, anchors, sticking, x, demand, positions, kept, work, found, g, D, E):
    """Add the cost of nearness between the points of a path (T, n), with its derivatives, after ``add_at_points``.

    Args: as there. ``kept`` has in how many parts intervals between points are looked at (T,), and in how many they
    ought to be, which is set. That the first do not change by themselves keeps the cost continuous. E (T, n, n) are
    blocks of neighbours; added to.
    """
    parent, _, turns, column, multiplier, _ = tree
    node, centers, radii, resting = around.node, around.centers, around.radii, around.resting[0]
    gaps, places = anchors[0], anchors[1]
    looks, wished = kept[2], kept[3]
    _, q, between, middle, _, bound, known, pushed, f, W, screws, slope, H = work
    less = sticking[0]
    T, S, n = x.shape[0], radii.shape[0], x.shape[1]
    less_between = np.empty(S)
    wanted, accepted, weight = demand[0], demand[1], 1.0 / T
    before_all = found[COST]
    found[COST] = 0.0
    for t in range(T - 1):
        wished[t] = 1
        for s in range(resting, S):
            known[s] = np.inf
            dx = positions[t + 1, s, 0] - positions[t, s, 0]
            dy = positions[t + 1, s, 1] - positions[t, s, 1]
            dz = positions[t + 1, s, 2] - positions[t, s, 2]
            square = dx * dx + dy * dy + dz * dz
            far = SWEEP * radii[s]
            if square <= far * far:
                continue
            way = np.sqrt(square)
            left = bound[t, s] + bound[t + 1, s] - way + less[t, s] + less[t + 1, s]
            if left < 2.0 * accepted:
                known[s] = bound[t, s]
                copy_to(middle[s], positions[t, s])
                wished[t] = max(wished[t], min(int(np.ceil(way / far)), MOST_BETWEEN))
        if wished[t] == 1:
            continue
        for k in range(1, looks[t]):
            after = k / looks[t]
            before = 1.0 - after
            for i in range(n):
                q[i] = before * x[t, i] + after * x[t + 1, i]
            set_frames(tree, q, between)
            for s in range(resting, S):
                if known[s] < np.inf:
                    a, b, c = middle[s, 0], middle[s, 1], middle[s, 2]
                    place_spheres(node, centers, between, middle, s, s + 1)
                    dx, dy, dz = middle[s, 0] - a, middle[s, 1] - b, middle[s, 2] - c
                    known[s] = max(
                        known[s] - np.sqrt(dx * dx + dy * dy + dz * dz),
                        bound[t + 1, s] - distance(middle, s, positions[t + 1], s),
                    )
                    less_between[s] = before * less[t, s] + after * less[t + 1, s]
            world_rows(
                around, gaps, places, less_between, wanted, accepted, middle, known, found, pushed, f, W
            )
            slope[:] = 0.0
            H[:] = 0.0
            _spread(parent, turns, column, multiplier, between, pushed, f, W, screws, slope, H)
            for i in range(n):
                g[t, i] += weight * before * slope[i]
                g[t + 1, i] += weight * after * slope[i]
                for j in range(i, n):
                    value = weight * H[i, j]
                    D[t, i, j] += before * before * value
                    D[t + 1, i, j] += after * after * value
                    E[t, i, j] += before * after * value
                    if j > i:
                        E[t, j, i] += before * after * value
    found[COST] = before_all + weight * found[COST]
