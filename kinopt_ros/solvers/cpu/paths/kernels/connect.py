"""Compiled: two trees of straight lines that grow towards random configurations and each other, from the start and from
the ends, until they meet (RRT-Connect: J. Kuffner, S. LaValle, "RRT-Connect: An efficient approach to single-query
path planning", ICRA 2000), and shortcuts along what was found.

What is looked at is the optimizer's model: spheres that contain the robot's shapes, every ``RESOLUTION`` along a line.
So it takes a microsecond a look, and is a beginning for the optimizer, not an answer.

Movements of variables are weighed by how far they move the robot (``set_reach``): a turn of the wrist takes few looks,
and makes two configurations little different.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.collision.kernels.ball_distances import ball_distance
from kinopt_ros.collision.kernels.copying import copy_to
from kinopt_ros.compiler_options import FAST_INNER, FAST_OUTER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.paths.kernels.frames import set_frames
from kinopt_ros.solvers.cpu.paths.kernels.spheres import (
    TIGHT,
    balls_apart,
    distance,
    place_resting,
    place_spheres,
    wanted_of,
)

RESOLUTION = 0.06
"""Largest movement of a variable between two collision checks: m, or rad of a turn that reaches farthest."""
STRIDE = 10
"""Number of collision checks between two nodes of a tree."""
LOOK = 0.2
"""Distance beyond what is wanted up to which distances from obstacles are exact, m. What is as far as that need not be
looked at again before it has moved so far."""
LONGEST = 1_000
"""Most collision checks of one shortcut: longer ones are not tried, as nobody could stop in between."""

# Entries of ``state``.
DRAWN, SIDE, LOOKS, MEETING = range(4)


class Work(NamedTuple):
    """What the trees are grown in."""

    frames: Annotated[Float64, "M 12"]
    positions: Annotated[Float64, "S 3"]
    """Of the spheres of bodies that are ``placed``."""
    balls: Annotated[Float64, "B 3"]
    q: Annotated[Float64, "n"]
    placed: Annotated[Bool, "B"]
    sphere_gaps: Annotated[Float64, "S"]
    """Distances from obstacles, and where the spheres were."""
    sphere_places: Annotated[Float64, "S 3"]
    ball_gaps: Annotated[Float64, "B"]
    ball_places: Annotated[Float64, "B 3"]
    reach: Annotated[Float64, "n"]
    """Weights of movements: of turns how far they reach, against the one that reaches farthest; of lengths 1,
    or how many times they move a joint that follows."""


def work_of(n: int, M: int, S: int, B: int) -> Work:
    """Return memory for n variables, M nodes, S spheres and B bodies."""
    return Work(
        frames=np.empty((M, 12)),
        positions=np.empty((S, 3)),
        balls=np.empty((B, 3)),
        q=np.empty(n),
        placed=np.empty(B, dtype=np.bool_),
        sphere_gaps=np.full(S, -np.inf),
        sphere_places=np.zeros((S, 3)),
        ball_gaps=np.full(B, -np.inf),
        ball_places=np.zeros((B, 3)),
        reach=np.ones(n),
    )


@njit(**FAST_INNER)
def _prepare(around, work):
    """Write the positions of spheres that do not move."""
    place_resting(around, work.positions, work.balls)
    work.placed[: around.resting[1]] = True


@njit(**FAST_INNER)
def _gap(around, mask, k, padded, wanted, positions, gaps, places):
    """Return the distance of sphere or ball k from obstacles, or a lower bound of it that is not below ``wanted``.

    ``gaps`` and ``places`` have the last distance that was computed, and where that was.
    """
    least = gaps[k] - distance(positions, k, places, k)
    if least >= wanted:
        return least
    x, y, z = positions[k, 0], positions[k, 1], positions[k, 2]
    gaps[k] = ball_distance(
        around.numbers, around.integers, around.skipped[mask], x, y, z, padded[k], wanted + LOOK
    )[0]
    copy_to(places[k], positions[k])
    return gaps[k]


@njit(**FAST_INNER)
def _world_is_clear(around, anchors, k, wanted, mask, work):
    """Check whether the spheres of one body are as far from obstacles as is wanted, or as the anchors have it."""
    first, positions = around.body_first, work.positions
    for s in range(first[k], first[k + 1]):
        d = _gap(around, mask, s, around.padded, wanted, positions, work.sphere_gaps, work.sphere_places)
        if d < wanted:
            x, y, z = positions[s, 0], positions[s, 1], positions[s, 2]
            if d < wanted_of(anchors[0], anchors[1], wanted, s, x, y, z)[0] - TIGHT:
                return False
    return True


@njit(**FAST_INNER)
def _pair_is_clear(around, floor, one, two, wanted, positions, balls):
    """Check whether the spheres of two bodies are as far apart as is wanted, or as the anchors have it."""
    radii, first, ball = around.radii, around.body_first, around.body_ball
    for a in range(first[one], first[one + 1]):
        px, py, pz = positions[a, 0], positions[a, 1], positions[a, 2]
        x, y, z = px - balls[two, 0], py - balls[two, 1], pz - balls[two, 2]
        far = radii[a] + ball[two, 3] + wanted
        if far <= 0.0 or x * x + y * y + z * z >= far * far:
            continue
        for b in range(first[two], first[two + 1]):
            x, y, z = px - positions[b, 0], py - positions[b, 1], pz - positions[b, 2]
            far = radii[a] + radii[b] + min(wanted, floor[a, b] - TIGHT)
            if far > 0.0 and x * x + y * y + z * z < far * far:
                return False
    return True


@njit(**FAST_INNER)
def _is_clear(tree, around, anchors, q, wanted, work):
    """Check whether spheres at one configuration are as far from everything as is wanted, or as the anchors have it.

    Balls around bodies first: of most bodies they are enough.
    """
    node, centers, body_node, first, ball, body_mask, pairs = (
        around.node, around.centers, around.body_node, around.body_first, around.body_ball, around.body_mask,
        around.pairs,
    )  # fmt: skip
    resting, B = around.resting[1], body_node.shape[0]
    frames, positions, balls, placed = work.frames, work.positions, work.balls, work.placed
    set_frames(tree, q, frames)
    place_spheres(body_node, ball, frames, balls, resting, B)
    placed[resting:] = False
    for k in range(B - 1, resting - 1, -1):  # what is far from the base touches something most often
        mask = body_mask[k]
        if mask < 0:
            continue
        gap = _gap(around, mask, k, around.body_padded, wanted, balls, work.ball_gaps, work.ball_places)
        if gap < wanted:
            place_spheres(node, centers, frames, positions, first[k], first[k + 1])
            placed[k] = True
            if not _world_is_clear(around, anchors, k, wanted, mask, work):
                return False
    for p in range(pairs.shape[0]):
        one, two = pairs[p, 0], pairs[p, 1]
        if balls_apart(ball, balls, one, two, wanted):
            continue
        for k in (one, two):
            if not placed[k]:
                place_spheres(node, centers, frames, positions, first[k], first[k + 1])
                placed[k] = True
        if not _pair_is_clear(around, anchors[2], one, two, wanted, positions, balls):
            return False
    return True


@njit(**FAST_INNER)
def _looks(a, b, reach):
    """Return how many collision checks a line takes."""
    most = 0.0
    for i in range(a.shape[0]):
        most = max(most, reach[i] * abs(b[i] - a[i]))
    return max(1, int(np.ceil(most / RESOLUTION)))


@njit(**FAST_INNER)
def _walk(tree, around, anchors, a, b, wanted, work, state, most):
    """Return the share of a line that is clear, by ``most`` checks at most; ``a`` is taken to be clear."""
    count = _looks(a, b, work.reach)
    q = work.q
    for k in range(1, min(count, most) + 1):
        for i in range(a.shape[0]):
            q[i] = a[i] + (b[i] - a[i]) * k / count
        state[LOOKS] += 1
        if not _is_clear(tree, around, anchors, q, wanted, work):
            return (k - 1) / count
    return min(count, most) / count


@njit(**FAST_INNER)
def _nearest(nodes, count, q, reach):
    best, least = 0, np.inf
    for i in range(count):
        square = 0.0
        for j in range(q.shape[0]):
            d = reach[j] * (nodes[i, j] - q[j])
            square += d * d
        if square < least:
            best, least = i, square
    return best


@njit(**FAST_INNER)
def _add(nodes, parents, counts, side, parent, q, share):
    """Add a node on the line from a parent to q; return its number."""
    new = counts[side]
    for j in range(q.shape[0]):
        a = nodes[side, parent, j]
        nodes[side, new, j] = q[j] if share == 1.0 else a + (q[j] - a) * share
    parents[side, new] = parent
    counts[side] = new + 1
    return new


@njit(**FAST_OUTER)
def set_reach(tree, around, configurations, work):
    """Set ``work.reach`` by the farthest that a sphere is from each axis in some configurations (K, n)."""
    parent, _, turns, column, multiplier, _ = tree
    node, centers, radii, first = around.node, around.centers, around.radii, around.resting[0]
    frames, positions, reach = work.frames, work.positions, work.reach
    reach[:] = 0.0
    for k in range(configurations.shape[0]):
        set_frames(tree, configurations[k], frames)
        place_spheres(node, centers, frames, positions, first, node.shape[0])
        for s in range(first, node.shape[0]):
            m = node[s]
            while m > 0:
                if turns[m]:
                    x = positions[s, 0] - frames[m, 9]
                    y = positions[s, 1] - frames[m, 10]
                    z = positions[s, 2] - frames[m, 11]
                    along = x * frames[m, 2] + y * frames[m, 5] + z * frames[m, 8]
                    far = np.sqrt(max(x * x + y * y + z * z - along * along, 0.0)) + radii[s]
                    reach[column[m]] = max(reach[column[m]], abs(multiplier[m]) * far)
                m = parent[m]
    largest = 0.0
    for i in range(reach.shape[0]):
        largest = max(largest, reach[i])
    for i in range(reach.shape[0]):
        reach[i] = reach[i] / largest if largest > 0.0 else 1.0
    for m in range(1, parent.shape[0]):
        if not turns[m]:
            reach[column[m]] = max(reach[column[m]], abs(multiplier[m]))


@njit(**FAST_OUTER)
def grow(tree, around, anchors, wanted, draws, nodes, parents, counts, work, state, looks):
    """Grow the trees by about so many checks, or until they meet, are full, or no draws are left.

    Args:
        tree, around, anchors, wanted: as ``kernel.improve`` takes them; of what is wanted, a distance (m).
        draws: random configurations (K, n).
        nodes, parents, counts: (2, N, n), (2, N), (2,); roots have themselves as parents.
        work: of ``work_of``, for these surroundings alone, after ``set_reach``.
        state: next draw, whose turn it is, looks so far; where they meet: nodes of side 0 and 1, or -1.
        looks: see above.
    """
    _prepare(around, work)
    limit = state[LOOKS] + looks
    N = nodes.shape[1]
    while state[DRAWN] < draws.shape[0] and state[LOOKS] < limit and counts[0] < N and counts[1] < N:
        side = state[SIDE]
        other = 1 - side
        q = draws[state[DRAWN]]
        state[DRAWN] += 1
        state[SIDE] = other
        near = _nearest(nodes[side], counts[side], q, work.reach)
        share = _walk(tree, around, anchors, nodes[side, near], q, wanted, work, state, STRIDE)
        if share == 0.0:
            continue
        new = _add(nodes, parents, counts, side, near, q, share)
        goal = nodes[side, new]
        near = _nearest(nodes[other], counts[other], goal, work.reach)
        while counts[other] < N:
            share = _walk(tree, around, anchors, nodes[other, near], goal, wanted, work, state, STRIDE)
            if share == 0.0:
                break
            near = _add(nodes, parents, counts, other, near, goal, share)
            if share == 1.0:
                state[MEETING + side], state[MEETING + other] = new, near
                return


@njit(**FAST_OUTER)
def shorten(tree, around, anchors, wanted, corners, count, draws, new, work, state):
    """Replace stretches of a path by clear straight lines; return how many corners it then has.

    Args:
        corners: (N, n), of which the first ``count``; changed.
        draws: pairs (K, 2) of places in [0, 1] along the path.
        new: like ``corners``, to work in.
        Others as for ``grow``.
    """
    n = corners.shape[1]
    a, b = np.empty(n), np.empty(n)
    _prepare(around, work)
    for k in range(draws.shape[0]):
        if count < 3:
            break
        near, far = min(draws[k, 0], draws[k, 1]) * (count - 1), max(draws[k, 0], draws[k, 1]) * (count - 1)
        i, j = int(near), min(int(far), count - 2)
        if i >= j:  # on one line
            continue
        u, v = near - i, far - j
        for c in range(n):
            a[c] = corners[i, c] + u * (corners[i + 1, c] - corners[i, c])
            b[c] = corners[j, c] + v * (corners[j + 1, c] - corners[j, c])
        if _walk(tree, around, anchors, a, b, wanted, work, state, LONGEST) < 1.0:
            continue
        # Corners 0 to i, a, b, j + 1 to the end; a and b only where they are none of these.
        first, second = u > 0.0, v < 1.0
        total = i + 1 + int(first) + int(second) + (count - 1 - j)
        if total > corners.shape[0]:
            continue
        place = i + 1
        if first:
            copy_to(new[place], a)
            place += 1
        if second:
            copy_to(new[place], b)
            place += 1
        for m in range(j + 1, count):
            copy_to(new[place + m - j - 1], corners[m])
        for m in range(i + 1, total):
            copy_to(corners[m], new[m])
        count = total
    return count
