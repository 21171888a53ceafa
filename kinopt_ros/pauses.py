"""Pauses in long work, in which whoever waits for it can look at the clock and end it.

A pause is a function without arguments. It returns for the work to go on; what it raises ends the work, which must
leave nothing half done. In some of them it gives way to what is urgent, as the stop of a robot.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Pause: TypeAlias = Callable[[], None]
"""Function that long work calls at least every 50 ms."""


class OutOfTime(Exception):
    """The deadline came. This is a reason to unwind, not an error."""


def go_on() -> None:
    """Return at once: the pause of those who wait as long as it takes."""


GIVES_WAY = 0.1
"""Longest time that work waits at one of its pauses for what is urgent, s: whoever is urgent may wait for it."""
_urgent: set[int] = set()
"""Threads that do what is urgent."""
_changed = threading.Condition()


@contextmanager
def urgent() -> Iterator[None]:
    """Have the work of other threads wait at its next pause until this is over.

    All threads share Python's lock and the processor's cores in turns: a stop of 5 ms took 100 beside four plans.
    """
    me = threading.get_ident()
    with _changed:
        within = me in _urgent
        _urgent.add(me)
    try:
        yield
    finally:
        if not within:
            with _changed:
                _urgent.discard(me)
                _changed.notify_all()


def give_way() -> None:
    """Wait while other threads do what is urgent. Who holds a lock that they may want must not call this."""
    if not _urgent or threading.get_ident() in _urgent:
        return
    with _changed:
        _changed.wait_for(lambda: not _urgent, GIVES_WAY)


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
