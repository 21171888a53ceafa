"""Brakes count for the moment at which they are sent: one that took long is made once more, for where the robot is by
then. Else a busy machine would have the robot go back to where it was."""

from collections.abc import Callable
from typing import TypeVar

from kinopt_ros.pauses import urgent

_STALE = 25_000_000
"""Difference to the time that making a brake was to take, ns, from which on it is made once more."""
_TIMES = 4
"""Most times that one is made: a robot that brakes late is better than one that does not."""
_SLEPT = 100_000_000
"""Time to make the first one, ns, from which on the process has slept rather than that it is slow."""

T = TypeVar("T")


def made_soon(make: Callable[[int], T], clock: Callable[[], int]) -> T:
    """Return what ``make`` makes.

    Args:
        make: gets for how many ns from its call on it has to count. It looks where the robot is each time.
        clock: the node's, ns.
    """
    ahead = 0
    for number in range(_TIMES):
        begin = clock()
        with urgent():
            made = make(ahead)
        took = clock() - begin
        if abs(took - ahead) <= _STALE:
            break
        # A process that slept is quick again; one that is slow each time is reckoned with.
        ahead = took if number or took < _SLEPT else 0
    return made
