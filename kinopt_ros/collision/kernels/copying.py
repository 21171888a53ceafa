"""Copies of arrays between compiled functions."""

from kinopt_ros.compiler_options import INLINE
from kinopt_ros.numba_cache import njit


@njit(**INLINE)
def copy_to(target, source):
    """Write all of an array into one of the same shape; both are contiguous.

    An assignment would do so too, but compiles, for every function that has one, a comparison of shapes and a sentence
    for an error: seconds.
    """
    for i in range(target.size):
        target.flat[i] = source.flat[i]
