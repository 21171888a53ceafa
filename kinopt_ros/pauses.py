"""Pauses in long work, in which whoever waits for it can look at the clock and end it.

A pause is a function without arguments. It returns for the work to go on; what it raises ends the work, which must
leave nothing half done.
"""

from collections.abc import Callable
from typing import TypeAlias

Pause: TypeAlias = Callable[[], None]
"""Function that long work calls at least every 50 ms."""


class OutOfTime(Exception):
    """The deadline came. This is a reason to unwind, not an error."""


def go_on() -> None:
    """Return at once: the pause of those who wait as long as it takes."""
