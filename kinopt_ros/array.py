"""Array types: dtype checked by mypy, shape written beside it.

``Annotated[Float64, "B n"]`` is a float64 array of shape (B, n). Letters used throughout: B independent
requests, K solutions per request, S seeds per request, n solved variables, nq variables of the robot,
L links, m elementary motions of a chain.
"""

from dataclasses import fields
from typing import Any, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinopt_ros.errors import InvalidRequestError, KinoptError, shown

Float64: TypeAlias = NDArray[np.float64]
Int64: TypeAlias = NDArray[np.int64]
Bool: TypeAlias = NDArray[np.bool_]
_FLOAT64 = np.dtype(np.float64)


def frozen(array: Float64 | Int64 | Bool) -> None:
    """Make an array read-only in place, so that frozen dataclasses are frozen to the last number."""
    array.setflags(write=False)


def all_set(flags: Bool) -> bool:
    """Return whether all flags are true: ``flags.all()``, but that takes a microsecond for a single one."""
    return bool(flags.item() if flags.size == 1 else flags.all())


def filled(shape: tuple[int, ...], value: float) -> Float64:
    """Return an array of one number: ``np.full``, which takes three times as long for few."""
    array = np.empty(shape)
    array.fill(value)
    return array


def taken_over(instance: object, *names: str) -> None:
    """Make arrays of a frozen dataclass read-only; None is left. Of a view, as a row of many poses or columns of a
    sensor's buffer, a copy is kept: what it looks at can be written to by others, after it was checked.

    Raises:
        InvalidRequestError: one is no array.
    """
    for name in names:
        array = getattr(instance, name)
        if array is None:
            continue
        if not isinstance(array, np.ndarray):
            raise InvalidRequestError(
                f"{name} of {type(instance).__name__} is {shown(array)}; allowed is an array of numpy"
            )
        if array.base is not None and (not isinstance(array.base, np.ndarray) or array.base.flags.writeable):
            array = array.copy()
            object.__setattr__(instance, name, array)
        array.setflags(write=False)


def as_numbers(given: ArrayLike, what: str, error: type[KinoptError]) -> Float64:
    """Return a float64 copy; raise the error given if it is no array of real numbers."""
    try:
        array = np.array(given)
        if array.dtype is _FLOAT64:  # mostly
            return array
        if array.dtype.kind in "fiu":
            return array.astype(np.float64, copy=False)
        shown = f"an array of {array.dtype}"
    except (TypeError, ValueError, OverflowError):  # ragged, or whole numbers beyond any float
        shown = "no regular array"
    raise error(f"{what} must be an array of real numbers; it is {shown}")


def with_arrays(instance: object, error: type[KinoptError], *names: str) -> None:
    """Make arrays of what a frozen dataclass was given as lists, and read-only ones of all (``taken_over``); raise the
    error given if one is no array of real numbers."""
    for name in names:
        given = getattr(instance, name)
        if given is not None and not isinstance(given, np.ndarray):
            object.__setattr__(instance, name, as_numbers(given, name, error))
    taken_over(instance, *names)


class Immutable:
    """Base of frozen dataclasses with arrays. A copy of what never changes is the object itself, and what comes out of
    a pickle was made by the constructor, which makes arrays read-only."""

    @classmethod
    def filled(cls, values: dict[str, Any]) -> Self:
        """Make one of all its fields at once, for places that every request goes through: the constructor writes them
        one by one, which takes 0.1 us each. The dictionary is taken over."""
        made = object.__new__(cls)
        object.__setattr__(made, "__dict__", values)
        made.__post_init__()
        return made

    def __post_init__(self) -> None:
        """Check what was given, and make arrays read-only."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        known = {field.name: getattr(self, field.name) for field in fields(cast(Any, self)) if field.init}
        return _made, (type(self), known)


def _made(kind: type[Immutable], values: dict[str, Any]) -> Immutable:
    return kind(**values)
