"""Meaning of Warp's errors for a device."""

import re

STICKY = frozenset({214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911})
"""Numbers of CUDA's errors after which it refuses all further work of the process (cuda.h: "the process must be
terminated and relaunched"), or which tell of broken hardware or of a context that is gone."""


def is_sticky(error: Exception) -> bool:
    """Check whether an error names one of them: nothing that this process does brings the device back."""
    return any(int(number) in STICKY for number in re.findall(r"CUDA error (\d+)", str(error)))


def about_memory(error: Exception) -> bool:
    """Check whether the device was full: another process would find it as full, and need more."""
    return re.search(r"failed to allocate|out of memory", str(error), re.IGNORECASE) is not None
