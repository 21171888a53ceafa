"""Messages of any size: what is too long is refused before anybody works on it, and let go of in pieces."""

from collections.abc import Iterator
from typing import Any

from kinopt_ros.errors import InvalidRequestError

MOST_LISTED = 10_000
"""Entries that a list of a request may have at least, however few targets max_batch allows."""
_PIECE = 1000


def check_lengths(message: Any, max_batch: int) -> None:
    """Look at all lists of a request, those of nested messages included. Arrays of numbers may have any length.

    Raises:
        InvalidRequestError: a list of messages or texts has too many entries.
    """
    most = max(MOST_LISTED, max_batch)
    for name, values in _lists(message):
        if len(values) > most:
            why = " (parameter max_batch)" if most == max_batch else ""
            raise InvalidRequestError(f"{len(values)} {name} were given; allowed are at most {most}{why}")


def let_go(message: Any) -> None:
    """Empty a message that nobody needs any more, piece by piece: Python would forget 100,000 poses in one step of 40
    ms, in which no other thread runs."""
    for _, values in _lists(message):
        while values:
            del values[-_PIECE:]


def _lists(message: Any) -> Iterator[tuple[str, list[Any]]]:
    for slot in message.__slots__:
        value = getattr(message, slot)
        if isinstance(value, list):
            yield slot.lstrip("_"), value
        elif hasattr(value, "get_fields_and_field_types"):
            yield from _lists(value)
