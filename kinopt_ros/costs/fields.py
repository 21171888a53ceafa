"""What fields of costs may hold, as their types declare it: for costs made in Python and for those read from files."""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np

_WORDS = {
    bool: "true or false",
    str: "a text",
    int: "a whole number",
    float: "a number",
    np.ndarray: "an array of numbers",
}


def alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the types that a declared type stands for, one by one, without annotations."""
    return tuple(_alternatives(hint))


def _alternatives(hint: Any) -> Iterator[Any]:
    origin = get_origin(hint)
    if origin is Annotated:
        yield from _alternatives(get_args(hint)[0])
    elif origin in (Union, UnionType):
        for one in get_args(hint):
            yield from _alternatives(one)
    elif (named := getattr(origin or hint, "__value__", None)) is not None:  # NDArray[...] since numpy 2.5
        yield from _alternatives(named)
    else:
        yield hint


def fits(hint: Any, value: object) -> bool:
    """Return whether a value is of a declared type; types that are unknown here allow anything."""
    return any(fits_one(one, value) for one in alternatives(hint))


def fits_one(hint: Any, value: object) -> bool:
    """Return whether a value is of one of the types that a declared type stands for."""
    if hint in (None, NoneType):
        return value is None
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (bool, str):
        return isinstance(value, hint)
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and _items_fit(get_args(hint), value)
    if get_origin(hint) is np.ndarray or hint is np.ndarray:
        return isinstance(value, np.ndarray)
    return True


def _items_fit(hints: tuple[Any, ...], items: tuple[object, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return all(fits(hints[0], item) for item in items)
    return len(hints) == len(items) and all(map(fits, hints, items))


def takes_arrays(hint: Any) -> bool:
    """Return whether a field may hold an array."""
    return any(one is np.ndarray or get_origin(one) is np.ndarray for one in alternatives(hint))


def takes_floats(hint: Any) -> bool:
    """Return whether a field may hold a float, or a tuple of them."""
    return any(one is float or float in get_args(one) for one in alternatives(hint))


def length_of_floats(hint: Any) -> int | None:
    """Return the length of tuples of floats that a field may hold, 0 for any; None if it may hold none."""
    for one in alternatives(hint):
        items = get_args(one) if get_origin(one) is tuple else ()
        if len(items) == 2 and items[1] is Ellipsis and items[0] is float:
            return 0
        if items and all(item is float for item in items):
            return len(items)
    return None


def allowed(hint: Any) -> str:
    """Return in words what a field may hold."""
    return " or ".join(dict.fromkeys(map(_words, alternatives(hint))))


def _words(hint: Any) -> str:
    if hint in (None, NoneType):
        return "nothing"
    if get_origin(hint) is not tuple:
        return _WORDS.get(get_origin(hint) or hint, "what the documentation of the cost says")
    items = get_args(hint)
    if len(items) == 2 and items[1] is Ellipsis:
        return f"a list, each item {_words(items[0])}"
    return f"a list of {len(items)}: {', '.join(map(_words, items))}"
