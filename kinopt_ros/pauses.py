"""Pauses in long work, in which whoever waits for it can look at the clock and end it.

A pause is a function without arguments. It returns for the work to go on; what it raises ends the work, which must
leave nothing half done.
"""

import time
from collections.abc import Callable
from typing import TypeAlias

Pause: TypeAlias = Callable[[], None]
"""Function that long work calls at least every 50 ms."""


class OutOfTime(Exception):
    """The deadline came. This is a reason to unwind, not an error."""


def go_on() -> None:
    """Return at once: the pause of those who wait as long as it takes."""


_moving: list[Callable[[], bool]] = []
"""Functions that say whether a robot moves, which somebody may want to stop at once."""


def begin_to_look(moves: Callable[[], bool]) -> None:
    """Have ``wait_until_nothing_moves`` ask a function, too, from now on; it must return at once."""
    _moving.append(moves)


def end_to_look(moves: Callable[[], bool]) -> None:
    """Have a function asked no more."""
    if moves in _moving:
        _moving.remove(moves)


def wait_until_nothing_moves(seconds: float, look: float = 0.02) -> bool:
    """Wait until no robot of this process moves; return whether that was so within some seconds.

    For steps of C libraries that hold Python's lock for more than 50 ms: an emergency stop is not heard meanwhile.
    """
    end = time.monotonic() + seconds
    while any(moves() for moves in list(_moving)):
        if time.monotonic() >= end:
            return False
        time.sleep(look)
    return True
