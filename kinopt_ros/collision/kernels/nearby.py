"""Which of many spheres are near to a place, compiled: by a tree of them (``nearby.py``), those far off many at once.

What is marked is a superset: a caller that looks at each of the marked ones again, in their order, gets what it would
get if it looked at all.
"""

from kinopt_ros.collision.kernels.boxes import box_distance2
from kinopt_ros.collision.kernels.layout import BOX_NODE, COUNT, EXTRA, LEVELS, SPHERE_ITEM, TREE_HEADER
from kinopt_ros.collision.kernels.memory import get, lowest_bit, put
from kinopt_ros.compiler_options import INNER
from kinopt_ros.numba_cache import njit

_CAREFUL = 1.0 + 1e-9
"""Factor of distances that covers rounding."""


@njit(**INNER)
def mark_nearby(tree, x, y, z, limit, bits):
    """Mark, in a set of bits, the numbers of all spheres nearer to a point than ``limit`` (m), some others, and those
    without end."""
    count, levels, endless = int(get(tree, COUNT)), int(get(tree, LEVELS)), int(get(tree, EXTRA))
    items = TREE_HEADER + BOX_NODE * ((2 << levels) - 1)
    after = items + SPHERE_ITEM * count
    for word in range(words_for(count + endless)):
        put(bits, word, 0)
    for k in range(endless):
        _mark(bits, int(get(tree, after + k)))
    limit = max(limit, 0.0) * _CAREFUL
    leaves = (1 << levels) - 1
    node = 0
    while True:
        if box_distance2(tree, TREE_HEADER + BOX_NODE * node, x, y, z) <= limit * limit:
            if node < leaves:
                node = 2 * node + 1
                continue
            leaf = node - leaves
            for item in range((leaf * count) >> levels, ((leaf + 1) * count) >> levels):
                place = items + SPHERE_ITEM * item
                dx, dy, dz = x - get(tree, place), y - get(tree, place + 1), z - get(tree, place + 2)
                reach = limit + get(tree, place + 3)
                if dx * dx + dy * dy + dz * dz <= reach * reach:
                    _mark(bits, int(get(tree, place + 4)))
        # On to the next node to the right; right children have even numbers.
        while node > 0 and node & 1 == 0:
            node = (node - 1) >> 1
        if node == 0:
            return
        node += 1


@njit(**INNER)
def words_for(count):
    """Return how many words a set of so many bits takes."""
    return (count + 63) >> 6


@njit(**INNER)
def next_marked(bits, number, count):
    """Return the first number that is marked, from ``number`` on; ``count`` if there is none below."""
    word = number >> 6
    if number >= count:
        return count
    left = (get(bits, word) >> (number & 63)) << (number & 63)
    last = words_for(count) - 1
    while left == 0:
        if word == last:
            return count
        word += 1
        left = get(bits, word)
    return (word << 6) + lowest_bit(left)


@njit(**INNER)
def _mark(bits, number):
    put(bits, number >> 6, get(bits, number >> 6) | (1 << (number & 63)))
