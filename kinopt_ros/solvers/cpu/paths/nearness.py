"""Compiled: how near a path comes to obstacles and to the robot itself, as rows of a least-squares problem.

A sphere at signed distance d costs max(0, wanted - d)^2, where wanted is a demand plus ``BUFFER``, within which a path
is pushed already. Between two points of the path spheres are looked at, too, where they move by more than their
radius and where the distances at both points do not rule out that something is between them, as d changes by no more
than the sphere moves.

What is nearer than demanded at an anchor (a point of the path that is given: start, goal, waypoint) need not be farther
away near it: of spheres and obstacles the demand grows by ``RAMP`` per metre from there, of two spheres it is what
they have there. Spheres contain the shapes, so that tight places would be refused otherwise.

Distances that were computed are kept with where the sphere was, and spare computing them again as long as the sphere
has not moved so far that they could matter.
"""

import numpy as np
from numba import njit

from kinopt_ros.collision.kernels import ball_distance
from kinopt_ros.solvers.cpu.paths.frames import _INNER, add_point_row, set_frames

BUFFER = 0.01
"""m"""
RAMP = 0.3
LOOK = 0.1
"""m; distances are exact up to this beyond what matters."""
SWEEP = 1.0
"""Spheres that move by more than this share of their radius are looked at in between."""
MOST_BETWEEN = 16
"""Looks between two points."""

# Entries of ``found``.
COST, SLACK = range(2)


@njit(**_INNER)
def place_spheres(around, frames, positions):
    """Centres of all spheres, (S, 3), from the poses of the nodes."""
    node, centers = around[0], around[1]
    for s in range(node.shape[0]):
        F = frames[node[s]]
        a, b, c = centers[s, 0], centers[s, 1], centers[s, 2]
        positions[s, 0] = F[0] * a + F[1] * b + F[2] * c + F[9]
        positions[s, 1] = F[3] * a + F[4] * b + F[5] * c + F[10]
        positions[s, 2] = F[6] * a + F[7] * b + F[8] * c + F[11]


@njit(**_INNER)
def _add_rows(row, r, weight, before, after, g0, D0, g1, D1, E):
    """Add a residual r whose derivative by the configuration is ``row``, where that configuration is ``before`` times
    one point of the path plus ``after`` times the next."""
    n = row.shape[0]
    for i in range(n):
        f = weight * row[i]
        if f == 0.0:
            continue
        g0[i] += before * f * r
        for j in range(i, n):
            D0[i, j] += before * before * f * row[j]
        if after > 0.0:
            g1[i] += after * f * r
            for j in range(i, n):
                D1[i, j] += after * after * f * row[j]
            for j in range(n):
                E[i, j] += before * after * f * row[j]


@njit(**_INNER)
def _demand(anchors, demand, s, x, y, z):
    """What is demanded of a sphere, and the gradient of that by its place."""
    gaps, places = anchors[0], anchors[1]
    best, gx, gy, gz = demand, 0.0, 0.0, 0.0
    for a in range(gaps.shape[0]):
        gap = gaps[a, s]
        if gap >= best:
            continue
        dx, dy, dz = x - places[a, s, 0], y - places[a, s, 1], z - places[a, s, 2]
        way = np.sqrt(dx * dx + dy * dy + dz * dz)
        if gap + RAMP * way < best:
            best = gap + RAMP * way
            f = RAMP / max(way, 1e-9)
            gx, gy, gz = f * dx, f * dy, f * dz
    return best, gx, gy, gz


@njit(**_INNER)
def _sphere_row(
    tree, around, anchors, frames, demand, s, p, known, weight, before, after, row, found, g0, D0, g1, D1, E
):
    """One sphere at p against all obstacles. Returns its distance (a lower bound of it, where it does not matter)."""
    padded, mask, skipped, numbers, integers = around[3], around[4], around[5], around[6], around[7]
    wanted = demand + BUFFER
    d, x, y, z, _ = ball_distance(
        numbers, integers, skipped[mask[s]], p[0], p[1], p[2], padded[s], wanted + LOOK
    )
    if d >= wanted:
        return d
    least, ax, ay, az = _demand(anchors, demand, s, p[0], p[1], p[2])
    found[SLACK] = min(found[SLACK], d - least)
    r = least + BUFFER - d
    if r <= 0.0:
        return d
    found[COST] += weight * r * r
    if before + after > 0.0:
        row[:] = 0.0
        add_point_row(tree, frames, around[0][s], p[0], p[1], p[2], ax - x, ay - y, az - z, row)
        _add_rows(row, r, weight, before, after, g0, D0, g1, D1, E)
    return d


@njit(**_INNER)
def _self_rows(
    tree,
    around,
    anchors,
    frames,
    positions,
    demand,
    weight,
    before,
    after,
    row,
    balls,
    found,
    g0,
    D0,
    g1,
    D1,
    E,
):
    """All pairs of bodies at one configuration."""
    node, radii = around[0], around[2]
    body_node, first, ball, pairs = around[8], around[9], around[10], around[11]
    floor = anchors[2]
    wanted = demand + BUFFER
    for b in range(body_node.shape[0]):
        F = frames[body_node[b]]
        u, v, w = ball[b, 0], ball[b, 1], ball[b, 2]
        balls[b, 0] = F[0] * u + F[1] * v + F[2] * w + F[9]
        balls[b, 1] = F[3] * u + F[4] * v + F[5] * w + F[10]
        balls[b, 2] = F[6] * u + F[7] * v + F[8] * w + F[11]
    for k in range(pairs.shape[0]):
        one, two = pairs[k, 0], pairs[k, 1]
        x, y, z = balls[one, 0] - balls[two, 0], balls[one, 1] - balls[two, 1], balls[one, 2] - balls[two, 2]
        far = ball[one, 3] + ball[two, 3] + wanted
        if x * x + y * y + z * z >= far * far:
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
                least = min(demand, floor[a, b])
                found[SLACK] = min(found[SLACK], d - least)
                r = least + BUFFER - d
                if r <= 0.0:
                    continue
                found[COST] += weight * r * r
                if before + after > 0.0:
                    f = -1.0 / max(length, 1e-9)
                    x, y, z = f * x, f * y, f * z
                    row[:] = 0.0
                    add_point_row(tree, frames, node[a], px, py, pz, x, y, z, row)
                    add_point_row(
                        tree,
                        frames,
                        node[b],
                        positions[b, 0],
                        positions[b, 1],
                        positions[b, 2],
                        -x,
                        -y,
                        -z,
                        row,
                    )
                    _add_rows(row, r, weight, before, after, g0, D0, g1, D1, E)


@njit(**_INNER)
def add_nearness(tree, around, anchors, x, demand, frames, positions, kept, work, found, g, D, E):
    """Add what a path costs, with its derivatives.

    Args:
        tree, around: of ``MovingTree`` and ``Surroundings``.
        anchors: gaps (A, S) and places (A, S, 3) of spheres, floors (S, S) of pairs.
        x: the path (T, n).
        demand: distance to keep, m.
        frames, positions: (T, M, 12), (T, S, 3), of the path.
        kept: distances (T, S), and where the spheres were (T, S, 3); updated.
        work: row (n,), q (n,), frames (M, 12), positions (S, 3), balls (B, 3), bounds (T, S).
        found: cost, least slack against the demand; updated.
        g, D, E: gradient (T, n), blocks of points (T, n, n), upper halves, and of neighbours (T, n, n); added to.
            Points count equally, and all together as much as one.
    """
    radii, mask = around[2], around[4]
    gaps_kept, places_kept = kept
    row, q, between, middle, balls, bound = work
    T, S, n = x.shape[0], radii.shape[0], x.shape[1]
    wanted, weight = demand + BUFFER, 1.0 / T
    for t in range(T):
        for s in range(S):
            if mask[s] < 0:
                bound[t, s] = np.inf
                continue
            p, old = positions[t, s], places_kept[t, s]
            dx, dy, dz = p[0] - old[0], p[1] - old[1], p[2] - old[2]
            least = gaps_kept[t, s] - np.sqrt(dx * dx + dy * dy + dz * dz)
            if not least >= wanted:
                least = _sphere_row(
                    tree, around, anchors, frames[t], demand, s, p, least, weight, 1.0, 0.0, row, found,
                    g[t], D[t], g[t], D[t], E[t],
                )  # fmt: skip
                gaps_kept[t, s] = least
                old[0], old[1], old[2] = p[0], p[1], p[2]
            bound[t, s] = least
        _self_rows(
            tree, around, anchors, frames[t], positions[t], demand, weight, 1.0, 0.0, row, balls, found,
            g[t], D[t], g[t], D[t], E[t],
        )  # fmt: skip
    for t in range(T - 1):
        looks = 1
        for s in range(S):
            dx = positions[t + 1, s, 0] - positions[t, s, 0]
            dy = positions[t + 1, s, 1] - positions[t, s, 1]
            dz = positions[t + 1, s, 2] - positions[t, s, 2]
            square = dx * dx + dy * dy + dz * dz
            far = SWEEP * radii[s]
            if square <= far * far:
                continue
            way = np.sqrt(square)
            if bound[t, s] + bound[t + 1, s] - way < 2.0 * wanted:
                looks = max(looks, int(np.ceil(way / far)))
        if looks == 1:
            continue
        looks = min(looks, MOST_BETWEEN)
        for k in range(1, looks):
            after = k / looks
            before = 1.0 - after
            for i in range(n):
                q[i] = before * x[t, i] + after * x[t + 1, i]
            set_frames(tree, q, between)
            place_spheres(around, between, middle)
            for s in range(S):
                if mask[s] < 0:
                    continue
                least = max(
                    bound[t, s] - _distance(middle[s], positions[t, s]),
                    bound[t + 1, s] - _distance(middle[s], positions[t + 1, s]),
                )
                if least < wanted:
                    _sphere_row(
                        tree, around, anchors, between, demand, s, middle[s], least, weight, before, after, row, found,
                        g[t], D[t], g[t + 1], D[t + 1], E[t],
                    )  # fmt: skip
            _self_rows(
                tree, around, anchors, between, middle, demand, weight, before, after, row, balls, found,
                g[t], D[t], g[t + 1], D[t + 1], E[t],
            )  # fmt: skip


@njit(**_INNER)
def _distance(a, b):
    x, y, z = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    return np.sqrt(x * x + y * y + z * z)


@njit(**_INNER)
def set_anchor(tree, around, q, demand, frames, positions, gaps, places, floor):
    """Take down what one given configuration has: gaps (S,), places (S, 3); ``floor`` (S, S) is lowered to it."""
    radii, padded, mask, skipped = around[2], around[3], around[4], around[5]
    first, pairs = around[9], around[11]
    set_frames(tree, q, frames)
    place_spheres(around, frames, positions)
    for s in range(radii.shape[0]):
        gaps[s] = np.inf
        p = positions[s]
        for i in range(3):
            places[s, i] = p[i]
        if mask[s] >= 0:
            d = ball_distance(around[6], around[7], skipped[mask[s]], p[0], p[1], p[2], padded[s], demand)[0]
            if d < demand:
                gaps[s] = d
    for k in range(pairs.shape[0]):
        one, two = pairs[k, 0], pairs[k, 1]
        for a in range(first[one], first[one + 1]):
            for b in range(first[two], first[two + 1]):
                d = _distance(positions[a], positions[b]) - radii[a] - radii[b]
                floor[a, b] = min(floor[a, b], d)
