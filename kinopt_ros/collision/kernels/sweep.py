"""Compiled search of the pairs of shapes that may touch in parts of whole motions; all others are cleared by bounds.

A motion is a sequence of Bezier curves in the space of the variables. A part of it is free for a pair if, in its
middle, a lower bound of the pair's distance is larger than an upper bound of how much nearer it comes within the
part; else it is halved: first between curves, then the curves themselves.

How far a shape moves against a link that carries it: move the joints between one after the other, the one next to the
shape first. Each moves every point by no more than its angle times the point's distance from its axis, as it is in the
middle of the part plus what the joints before have moved the point by. So the bound is never too small, and nearly the
first order for small parts.

For two convex shapes, and for the hulls of others, there is a sharper bound: their gap along the direction that parts
them in the middle. (It is looked for from the one of the part before, which is near.) To first order it changes
linearly with the variables, less what their turning brings corners of their boxes nearer, which is concave: its least
value on two chords, from the middle to both ends, is at their ends; what the motion differs from the chords by is taken
off, and what is left is of second order.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision.kernels.copying import copy_to
from kinopt_ros.collision.kernels.hull_gap import hull_gap
from kinopt_ros.collision.kernels.movement import (
    Places,
    change_of_gap,
    least_change,
    movement,
    pieces_movement,
)
from kinopt_ros.collision.kernels.near import HULLS, between_centres, pair_gap, place_shape, sphere_gap
from kinopt_ros.collision.kernels.tree import place_links
from kinopt_ros.compiler_options import INNER, OUTER
from kinopt_ros.numba_cache import njit

DEPTH = 80
"""Most parts that wait. Every halving adds one, and after so many a part is too short for float64."""
SHARE = 0.2
"""Share of the least distance to which that distance need not be known better."""
# Entries of ``Waiting.marks``.
SIZE, COUNT, UNTIL, WANTED = range(4)


class Waiting(NamedTuple):
    """Work that is left to do between two calls of ``sweep``."""

    stack: Annotated[Float64, "DEPTH d+1 n"]
    """Control points of each waiting part: curves ``curves[i, 0]`` to ``curves[i, 1]``, or, if that is one, a part of
    it."""
    spells: Annotated[Float64, "DEPTH 2"]
    """Begin and end of each waiting part, in time."""
    curves: Annotated[Int64, "DEPTH 2"]
    lists: Annotated[Int64, "DEPTH 2"]
    """Pairs of each waiting part: ``unsure[lists[i, 0] : lists[i, 1]]``; both halves of a part have the same ones."""
    unsure: Annotated[Int64, "U"]
    marks: Annotated[Int64, "4"]
    """Numbers: how many parts wait; parts found so far; curves that are looked at; how long ``unsure`` has to be."""
    parted: Annotated[Bool, "P"]
    """Which pairs of all have a row in ``toward``."""
    toward: Annotated[Float64, "P 3"]
    """Directions that part them, as they were in the part before."""
    nearest: Annotated[Float64, "1"]
    """Least distance so far, of the pairs that are measured."""


class Motion(NamedTuple):
    """Motion of n variables along K Bezier curves, while all others rest."""

    control: Annotated[Float64, "K d+1 n"]
    """Control points of the curves."""
    times: Annotated[Float64, "K+1"]
    """Times of their ends, s."""
    variables: Annotated[Int64, "n"]
    """Numbers of the variables, each of a joint with one variable."""
    state: Annotated[Float64, "nq"]
    """Values of all variables."""


class Found(NamedTuple):
    """Room for C parts in which it is not clear that a pair stays apart."""

    pairs: Annotated[Int64, "C"]
    spans: Annotated[Float64, "C 2"]
    """Begin and end of each part, in time."""
    reaches: Annotated[Float64, "C"]
    """Bound of how much the pair's distance changes from the middle of the part to anywhere in it, both ways."""
    parts: Annotated[Float64, "C d+1 n"]
    """Control points of each part."""


def room_for(count: int, motion: Motion) -> Found:
    """Return room for parts of a motion."""
    return Found(
        np.empty(count, dtype=np.int64),
        np.empty((count, 2)),
        np.empty(count),
        np.empty((count, *motion.control.shape[1:])),
    )


def waiting_for(motion: Motion, chosen: Annotated[Int64, "C"], pairs: int, enough: float) -> Waiting:
    """Return the state in which all of a motion waits; ``pairs``: how many there are; else arguments of ``sweep``."""
    control, times = motion.control, motion.times
    K, rows, n = control.shape
    C = len(chosen)
    waiting = Waiting(
        np.empty((DEPTH, rows, n)),
        np.empty((DEPTH, 2)),
        np.empty((DEPTH, 2), dtype=np.int64),
        np.empty((DEPTH, 2), dtype=np.int64),
        np.empty(4 * C + 64, dtype=np.int64),
        np.array([1, 0, K, 0]),
        np.zeros(pairs, dtype=np.bool_),
        np.empty((pairs, 3)),
        np.array([enough]),
    )
    waiting.unsure[:C] = chosen
    waiting.stack[0] = control[0]
    waiting.spells[0] = times[0], times[K]
    waiting.curves[0] = 0, K
    waiting.lists[0] = 0, C
    return waiting


@njit(**OUTER)
def sweep(motion, packed, enough, resolution, ahead, measured, found, waiting, effort):
    """Parts of a motion in which bounds cannot tell that pairs stay ``enough`` (m) apart, paddings added, as far as
    ``ahead`` curves after the first one that has some.

    Args: ``Motion``; ``packed_bodies.PackedArrays``; distance (m); pairs that can come nearer by less than
    ``resolution`` (m) are not divided any more. Changed: ``Found``.

    With ``measured`` the least distance itself is looked for instead, up to a difference of ``resolution`` or SHARE,
    among those below ``enough``; it is the lower bound that ``measured[0]`` gets, which need not be right if it is not
    above 0.

    The work is done in pieces of about ``effort`` comparisons of convex pieces: as long as ``waiting.marks[SIZE]`` is
    above 0 call it again with the same arguments, and with a longer ``waiting.unsure`` if ``marks[WANTED]`` is longer.

    Returns how many parts there are, of which C may not be all, and how many curves were looked at.
    """
    control, times, variables, state = motion
    tree, shapes = packed.tree, packed.shapes
    numbers, half, reach, pieces = shapes.numbers, shapes.half, shapes.reach, shapes.pieces
    pair_numbers, margins = packed.pairs.numbers, packed.pairs.margin
    K, d, n = control.shape[0], control.shape[1] - 1, control.shape[2]
    L = tree.parent.shape[0]
    S = numbers.shape[0]
    origins, axes = np.empty(tree.axis.shape), np.empty(tree.axis.shape)
    poses, placed = np.empty((L, 4, 4)), np.empty((S, 4, 4))
    places = Places(placed, origins, axes)
    moved, pieces_moved = np.zeros((S, L + 1)), np.zeros((pieces.shape[0], L + 1))
    bent = np.zeros((S, L + 1))
    linear, chords = np.zeros((state.shape[0], 7)), np.zeros((3, state.shape[0]))
    ready, pieces_ready = np.zeros(S, dtype=np.int64), np.zeros(S, dtype=np.int64)
    for s in range(S):
        if numbers[s, 0] < 0:
            place_shape(s, shapes, poses, placed)
    change = np.zeros(state.shape[0])
    q = state.copy()
    W = np.empty((5, 3))
    parted, toward = waiting.parted, waiting.toward
    whole, left, right = np.empty((d + 1, n)), np.empty((d + 1, n)), np.empty((d + 1, n))
    stack, spells, curves, lists, unsure = (
        waiting.stack,
        waiting.spells,
        waiting.curves,
        waiting.lists,
        waiting.unsure,
    )
    marks = waiting.marks
    size, count, until, nearest = marks[SIZE], marks[COUNT], marks[UNTIL], waiting.nearest[0]
    measuring = measured.shape[0] > 0
    turn = spent = 0
    while size > 0:
        # All of the pairs that wait may have to be listed again.
        marks[WANTED] = 2 * lists[size - 1, 1] - lists[size - 1, 0]
        if spent >= effort or marks[WANTED] > unsure.shape[0]:
            marks[SIZE], marks[COUNT], marks[UNTIL], waiting.nearest[0] = size, count, until, nearest
            return count, until
        size -= 1
        turn += 1
        spent += 1
        first_curve, last_curve = curves[size, 0], curves[size, 1]
        if first_curve >= until:
            break
        start, stop = spells[size, 0], spells[size, 1]
        first, last = lists[size, 0], lists[size, 1]
        several = last_curve - first_curve > 1
        middle = (first_curve + last_curve) // 2
        if not several:
            copy_to(whole, stack[size])
            _halve(whole, left, right)
        for k in range(n):
            q[variables[k]] = control[middle, 0, k] if several else right[0, k]
            change[variables[k]] = chords[2, variables[k]] = 0.0
        if several:
            _follow(control[first_curve:middle], variables, q, 0, change, chords)
            _follow(control[middle:last_curve], variables, q, 1, change, chords)
        else:
            _follow(left.reshape((1, d + 1, n)), variables, q, 0, change, chords)
            _follow(right.reshape((1, d + 1, n)), variables, q, 1, change, chords)
        place_links(q, tree, poses, origins, axes)
        top = last
        for k in range(first, last):
            p = unsure[k]
            a, b, meeting = pair_numbers[p, 0], pair_numbers[p, 1], pair_numbers[p, 3]
            if ready[a] != turn and numbers[a, 0] >= 0:
                place_shape(a, shapes, poses, placed)
                movement(a, packed, places, change, moved, bent)
                ready[a] = turn
            if ready[b] != turn and numbers[b, 0] >= 0:
                place_shape(b, shapes, poses, placed)
                movement(b, packed, places, change, moved, bent)
                ready[b] = turn
            nearer = moved[a, meeting] + moved[b, meeting]
            slack = max(resolution, SHARE * nearest)
            wanted = (nearest - slack if measuring else enough) + margins[p]
            bound = sphere_gap(p, pair_numbers, reach, placed)
            if bound >= wanted + nearer:
                continue
            # How much is needed at least for one of the two ways to clear it.
            by_hulls = pair_numbers[p, 2] == HULLS
            convex = by_hulls and numbers[a, 2] - numbers[a, 1] == 1 and numbers[b, 2] - numbers[b, 1] == 1
            needed = wanted + min(nearer, bent[a, meeting] + bent[b, meeting])
            if several and bound + reach[a] + reach[b] < needed:
                # Not even the centres are so far apart.
                unsure[top] = p
                top += 1
                continue
            least = -np.inf if measuring else (needed if several else wanted)
            if by_hulls:
                # By the hulls of all pieces: what parts them mostly parts the shapes.
                asked = (
                    least if convex else needed,
                    wanted + nearer,
                    0.25 * slack if convex and measuring else 0.1 * nearer,
                )
                gap = _gap_of_hulls(a, b, shapes, placed, asked, parted[p], toward[p], W)
                parted[p] = True
                spent += 4
                if gap >= wanted + nearer:
                    continue
                left_over = gap - bent[a, meeting] - bent[b, meeting]
                if left_over >= wanted:
                    for k in range(n):
                        linear[variables[k]] = 0.0
                    change_of_gap(a, -1.0, meeting, 1, packed, places, W, change, linear)
                    change_of_gap(b, 1.0, meeting, 4, packed, places, W, change, linear)
                    if left_over + least_change(chords, variables, half, a, b, linear) >= wanted:
                        if measuring and convex:
                            nearest = min(nearest, gap - margins[p])
                        continue
                bound = max(bound, gap)
            if by_hulls and not convex and several:
                # Their pieces seldom tell more of so long a part, and are hundreds of pairs.
                unsure[top] = p
                top += 1
                continue
            if not convex:
                for s in (a, b):
                    if pieces_ready[s] != turn and numbers[s, 0] >= 0 and numbers[s, 2] - numbers[s, 1] > 1:
                        pieces_movement(s, packed, places, change, pieces_moved)
                        pieces_ready[s] = turn
                if numbers[a, 2] - numbers[a, 1] == 1:
                    pieces_moved[numbers[a, 1], meeting] = moved[a, meeting]
                if numbers[b, 2] - numbers[b, 1] == 1:
                    pieces_moved[numbers[b, 1], meeting] = moved[b, meeting]
                spent += max(_parts(a, numbers), 1) * max(_parts(b, numbers), 1)
                loose = 0.25 * slack if measuring else np.inf
                coming = moved[a, meeting], moved[b, meeting], pieces_moved, meeting
                bound, far = pair_gap(p, packed, placed, bound, (least, wanted, loose), coming, W)
                if far:
                    continue
            if measuring:
                nearest = min(nearest, bound - margins[p])
                if nearest <= resolution:  # nothing above 0 can come of it
                    measured[0] = nearest - resolution
                    marks[SIZE] = 0
                    return 0, K
                slack = max(resolution, SHARE * nearest)
                # Bounds this close to the least distance need not be refined.
                if nearer <= slack or bound >= nearest - slack + margins[p] + nearer:
                    continue
            # Where numbers are too large for small distances, parts end to get shorter.
            room = size + 2 <= DEPTH and start < 0.5 * (start + stop) < stop
            if measuring and not several and not room:
                measured[0] = -resolution
                marks[SIZE] = 0
                return 0, K
            if measuring or several or (bound >= wanted and nearer >= resolution and room):
                unsure[top] = p
                top += 1
                continue
            found.pairs[count], found.reaches[count] = p, nearer
            copy_to(found.parts[count], whole)
            found.spans[count, 0], found.spans[count, 1] = start, stop
            count += 1
            if count == 1:
                until = min(last_curve + ahead, K)
            if count == found.pairs.shape[0]:
                marks[SIZE] = 0
                return count, until
        if top == last:
            continue
        half_way = times[middle] if several else 0.5 * (start + stop)
        for side in range(2):  # the first half on top
            lists[size, 0], lists[size, 1] = last, top
            if side == 0:
                spells[size, 0], spells[size, 1] = half_way, stop
                curves[size, 0], curves[size, 1] = (middle if several else first_curve), last_curve
                copy_to(stack[size], control[middle] if several else right)
            else:
                spells[size, 0], spells[size, 1] = start, half_way
                curves[size, 0], curves[size, 1] = first_curve, (middle if several else last_curve)
                copy_to(stack[size], control[first_curve] if several else left)
            size += 1
    marks[SIZE] = 0
    if measuring:
        measured[0] = nearest - max(resolution, SHARE * nearest)
    return count, until


@njit(**INNER)
def _gap_of_hulls(a, b, shapes, placed, asked, known, toward, W):
    """Return a lower bound (m) of the distance of two shapes by the hulls of all their pieces, first along ``toward``,
    if that is known; it gets the direction of the bound."""
    direction = (toward[0], toward[1], toward[2]) if known else between_centres(a, b, placed)
    i, j = shapes.numbers[a, 5], shapes.numbers[b, 5]
    hulls = shapes.pieces, shapes.points, shapes.clusters
    gap = hull_gap(hulls, placed, a, i, b, j, direction, asked, W)
    toward[0], toward[1], toward[2] = W[4, 0], W[4, 1], W[4, 2]
    return gap


@njit(**INNER)
def _parts(s, numbers):
    """Return how many convex pieces, or balls, a shape is compared by, whatever is more."""
    return max(numbers[s, 2] - numbers[s, 1], numbers[s, 4] - numbers[s, 3])


@njit(**INNER)
def _follow(control, variables, q, side, change, chords):
    """How variables change on a half of a part, from or to its middle q: ``change`` becomes the largest change, row
    ``side`` of ``chords`` the change at the other end, and its last row how far off the chord to there the half is."""
    K, d = control.shape[0], control.shape[1] - 1
    for k in range(variables.shape[0]):
        number = variables[k]
        at = q[number]
        end = control[K - 1, d, k] - at if side == 1 else control[0, 0, k] - at
        chords[side, number] = end
        for curve in range(K):
            for i in range(d + 1):
                along = (curve + i / d) / K if d > 0 else 1.0
                by = control[curve, i, k] - at
                change[number] = max(change[number], abs(by))
                off = abs(by - end * (along if side == 1 else 1.0 - along))
                chords[2, number] = max(chords[2, number], off)


@njit(**INNER)
def _halve(whole, left, right):
    """Compute control points of the first and of the second half (de Casteljau)."""
    d = whole.shape[0] - 1
    for k in range(whole.shape[1]):
        for i in range(d + 1):
            right[i, k] = whole[i, k]
        for i in range(d + 1):
            left[i, k] = right[0, k]
            # right[:d + 1 - i] is the row of the scheme
            for j in range(d - i):
                right[j, k] = 0.5 * (right[j, k] + right[j + 1, k])
