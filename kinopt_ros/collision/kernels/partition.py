"""The order of points in a balanced tree, compiled by numba."""

import numpy as np

from kinopt_ros.numba_cache import njit


@njit(cache=True, nogil=True)
def median_order(points, levels):
    """Order points (N x 3) so that node j of level l holds places j N / 2^l to (j + 1) N / 2^l; return their numbers.

    Every node is cut at the median of its longest side.
    """
    order = np.arange(len(points))
    keys = np.empty(len(points))
    for level in range(levels):
        for node in range(1 << level):
            first = (node * len(points)) >> level
            last = ((node + 1) * len(points)) >> level
            middle = ((2 * node + 1) * len(points)) >> (level + 1)
            if last - first < 2:
                continue
            low = points[order[first]].copy()
            high = low.copy()
            for place in range(first + 1, last):
                for axis in range(3):
                    value = points[order[place], axis]
                    low[axis] = min(low[axis], value)
                    high[axis] = max(high[axis], value)
            longest = np.argmax(high - low)
            for place in range(first, last):
                keys[place] = points[order[place], longest]
            _select(keys, order, first, last - 1, middle)
    return order


@njit(cache=True, nogil=True)
def _select(keys, order, first, last, middle):
    """Exchange keys (with their numbers) until none before ``middle`` is greater, and none after it less, than its own.

    C. A. R. Hoare, "Algorithm 65: Find", 1961.
    """
    while first < last:
        pivot = keys[(first + last) // 2]
        i, j = first, last
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            last = j
        elif middle >= i:
            first = i
        else:
            return
