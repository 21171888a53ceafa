"""Limits on the sizes of messages: too long ones are refused before anybody works on them, and freed in pieces."""

import threading
from array import array
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.planning.scheduler import QueueFullError

MOST_LISTED = 10_000
"""Entries that a list of a request may have at least, however few targets max_batch allows."""
MOST_IN_ALL = 20
"""Factor on that number for all lists of a request together, those in entries of lists included."""
MOST_WAITING = 100_000
"""Most entries that the lists of all requests of a scheduler have together; a single request may have more.

Python looks through all of them now and then, while no other thread runs."""
_PIECE = 200
_VARIABLE = (list, str, array)
_SLOTS: dict[type, tuple[tuple[str, bool], ...]] = {}
_FLAT: dict[type, tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]] = {}
_BYTES: dict[type, int] = {}


class Room:
    """Limits how many entries of lists all waiting requests have together. Thread-safe."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        """``most``: entries of all waiting requests together."""
        self._most = most
        self._lock = threading.Lock()
        self._taken = 0

    def take(self, entries: int) -> None:
        """Take room, to be left by ``leave``.

        Raises:
            QueueFullError: others have taken too much.
        """
        with self._lock:
            if entries and self._taken and self._taken + entries > self._most:
                raise QueueFullError(
                    f"the lists of requests that wait have {self._taken} entries, and those of this one {entries}; "
                    f"allowed are {self._most} together: send fewer or smaller ones at a time"
                )
            self._taken += entries

    def leave(self, entries: int) -> None:
        """Leave room that was taken."""
        with self._lock:
            self._taken -= entries


def check_lengths(message: Any, max_batch: int, listed: int = MOST_LISTED) -> int:
    """Check all lists of a request, those of nested messages included. Arrays of numbers may have any length.

    Args:
        message: the request.
        max_batch: the parameter.
        listed: entries that a list may have at least.

    Returns:
        Entries of all lists together.

    Raises:
        InvalidRequestError: a list of messages or texts has too many entries, or all of them have.
    """
    most = max(listed, max_batch)
    why = " (parameter max_batch)" if most == max_batch else ""
    total = 0
    for name, values in _lists(message):
        if len(values) > most:
            raise InvalidRequestError(f"{len(values)} {name} were given; allowed are at most {most}{why}")
        total += len(values)
        if total > MOST_IN_ALL * most:
            raise InvalidRequestError(
                f"the lists of the request have more than {MOST_IN_ALL * most} entries together, which is not "
                f"allowed{why}"
            )
    return total


def entries_of(message: Any) -> int:
    """Count entries of all lists together, whatever is allowed; counting ends at MOST_WAITING."""
    total = 0
    for _, values in _lists(message):
        total += len(values)
        if total > MOST_WAITING:
            break
    return total


def weight(message: Any, most: int) -> int:
    """Estimate how many bytes a message takes; counting ends at ``most``.

    Counts arrays, texts, and what rclpy makes of messages in lists.
    """
    total = 0
    for value in _held(message):
        if isinstance(value, array):
            total += len(value) * value.itemsize
        elif isinstance(value, str):
            total += len(value)
        elif value:
            total += _bytes(type(value[0])) * len(value)
            total += sum(map(len, value)) if isinstance(value[0], str) else 0
        if total >= most:
            break
    return total


def let_go(message: Any) -> None:
    """Empty a message that nobody needs any more, piece by piece.

    Python would free 100,000 poses in one step of 40 ms, in which no other thread runs. Arrays are replaced, so those
    who still hold them see them unchanged.
    """
    for slot, is_nested in _slots(type(message)):
        value = getattr(message, slot)
        if is_nested:
            let_go(value)
        elif isinstance(value, list):
            while value:
                for each in value[-_PIECE:]:
                    if hasattr(each, "__slots__"):
                        let_go(each)
                del value[-_PIECE:]
        elif value:
            setattr(message, slot, value[:0])


def _lists(message: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield all lists, each before what its entries hold."""
    for name, value in _named(message):
        if isinstance(value, list):
            yield name, value


def _held(message: Any) -> Iterator[Any]:
    for _, value in _named(message):
        yield value


def _named(message: Any) -> Iterator[tuple[str, Any]]:
    """Yield all values of a message that may be of any size and are not empty, at any depth, with their fields."""
    for name, value in _flat(message):
        if not value:
            continue
        yield name, value
        if isinstance(value, list) and hasattr(value[0], "__slots__") and _slots(type(value[0])):
            for each in value:
                yield from _named(each)


def _flat(message: Any) -> Iterator[tuple[str, Any]]:
    """Return the same, but for those of messages in lists: all of them are got at once."""
    known = _FLAT.get(type(message))
    if known is None:
        paths = tuple(_paths(type(message)))
        names = tuple(path.rpartition(".")[2].lstrip("_") for path in paths)
        # The first one twice: of one path alone it would return no tuple.
        known = _FLAT[type(message)] = names, attrgetter(*paths, paths[0]) if paths else _nothing
    names, get = known
    return zip(names, get(message), strict=False)


def _nothing(message: Any) -> tuple[Any, ...]:
    del message
    return ()


def _paths(kind: type) -> Iterator[str]:
    empty = kind() if _slots(kind) else None
    for slot, is_nested in _slots(kind):
        if is_nested:
            yield from (f"{slot}.{path}" for path in _paths(type(getattr(empty, slot))))
        else:
            yield slot


def _slots(kind: type) -> tuple[tuple[str, bool], ...]:
    """Return slots of a type of messages whose values may be of any size, and whether these are messages that hold
    such."""
    known = _SLOTS.get(kind)
    if known is None:
        known = _SLOTS[kind] = tuple(_found(kind)) if _is_message(kind) else ()
    return known


def _found(kind: type) -> Iterator[tuple[str, bool]]:
    for slot, value in _fields(kind):
        if isinstance(value, _VARIABLE):
            yield slot, False
        elif _slots(type(value)):
            yield slot, True


def _bytes(kind: type) -> int:
    """Estimate how many bytes an entry of a list takes, but for what it holds."""
    known = _BYTES.get(kind)
    if known is None:
        parts = (30 + _bytes(type(value)) for _, value in _fields(kind)) if _is_message(kind) else ()
        known = _BYTES[kind] = 50 + sum(parts)
    return known


def _fields(kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield slots of an empty message of a type, and their values."""
    empty = kind()
    for slot in kind.__slots__:
        yield slot, getattr(empty, slot)


def _is_message(kind: type) -> bool:
    return hasattr(kind, "get_fields_and_field_types")
