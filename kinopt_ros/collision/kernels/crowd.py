"""Compiled list of the pairs of shapes that may be near to each other, where many shapes stand: in a configuration, or
anywhere in a part of a motion."""

import numpy as np

from kinopt_ros.collision.kernels.hull_gap import ROUNDING
from kinopt_ros.collision.kernels.memory import lowest_bit, new_bits, tree_at
from kinopt_ros.collision.kernels.movement import Places, movement
from kinopt_ros.collision.kernels.near import place_shape
from kinopt_ros.collision.kernels.nearby import mark_nearby, next_marked, words_for
from kinopt_ros.collision.kernels.tree import place_links
from kinopt_ros.compiler_options import OUTER
from kinopt_ros.numba_cache import njit


@njit(**OUTER)
def nearby_pairs(q, change, packed, crowd, enough, listed):
    """List the pairs whose spheres may come nearer than ``enough`` (m), paddings added, in their order.

    Args: configuration (nq), finite; by how much variables differ from it at most (nq), or (0) if they do not;
    ``packed_bodies.PackedArrays``; ``packed_bodies.Crowd.table``, not empty; distance; changed: numbers of pairs (P).

    Returns how many there are.
    """
    tree, shapes = packed.tree, packed.shapes
    placed, origins, axes = (
        np.empty(shapes.T_link_box.shape),
        np.empty(tree.axis.shape),
        np.empty(tree.axis.shape),
    )
    poses, world = np.empty((tree.parent.shape[0], 4, 4)), tree.parent.shape[0]
    moved, bent = np.zeros((placed.shape[0], world + 1)), np.zeros((placed.shape[0], world + 1))
    found, bits = np.zeros(words_for(listed.shape[0]), dtype=np.int64), new_bits()
    place_links(q, tree, poses, origins, axes)
    size = crowd.shape[1] - 3
    spheres, total = tree_at(crowd[0, size + 1]), crowd[0, size + 2]
    for p in range(total):
        listed[p] = p
    for k in range(crowd.shape[0]):
        s = crowd[k, size]
        place_shape(s, shapes, poses, placed)
        if change.shape[0] > 0:
            movement(s, packed, Places(placed, origins, axes), change, moved, bent)
        limit = enough + moved[s, world] + shapes.reach[s] + ROUNDING
        mark_nearby(spheres, placed[s, 0, 3], placed[s, 1, 3], placed[s, 2, 3], limit, bits)
        number = next_marked(bits, 0, size)
        while number < size:
            p = crowd[k, number]
            if p >= 0:
                found[p >> 6] |= 1 << (p & 63)
            number = next_marked(bits, number + 1, size)
    for word in range(total >> 6, found.shape[0]):
        left = found[word]
        while left != 0:
            listed[total] = (word << 6) + lowest_bit(left)
            total += 1
            left &= left - 1
    return total
