"""Long work pauses between its pieces, so that whoever waits for it can look at the clock and end it.

A pause is a function without arguments. It returns for the work to go on; what it raises ends the work, which must
leave nothing half done.
"""

from collections.abc import Callable
from typing import TypeAlias

Pause: TypeAlias = Callable[[], None]
"""To be called at least every 50 ms."""


class OutOfTime(Exception):
    """The deadline came: a reason to unwind, not an error."""


def go_on() -> None:
    """The pause of those who wait as long as it takes."""
