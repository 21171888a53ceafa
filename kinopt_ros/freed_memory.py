"""Memory that the C library keeps after it was freed, given back to the system."""

import ctypes
import sys


def give_back() -> None:
    """Give back what is free, where the C library can do that (glibc's).

    To prepare a robot takes much for a short time, on several threads, and glibc keeps for each thread what it has
    freed: a node that gets new descriptions would seem to grow.
    """
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
