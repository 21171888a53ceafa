"""Memory for results of functions of an object: they are kept in the object and end with it.

A dictionary of weak references beside the object would not do: a result that refers to its own key keeps it for ever.
"""

import functools
from collections.abc import Callable, Hashable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary, ref

from kinopt_ros.errors import InvalidRequestError, shown


class Keeper(Protocol):
    """Base of objects that keep results: they never change and are compared by identity."""

    @property
    def kept(self) -> dict[object, Any]:
        """Results by function. Only this file looks at them."""


Owner = TypeVar("Owner", bound=Keeper)
Other = TypeVar("Other")
P = ParamSpec("P")
T = TypeVar("T")

_MOST = 256
"""Most results kept per function and object: names come from requests, and nobody may fill the memory with them."""


def remembered(function: Callable[Concatenate[Owner, P], T]) -> Callable[Concatenate[Owner, P], T]:
    """Compute each result of a function of a robot (or the like) and hashable arguments once. Errors are not
    remembered.

    Results are shared: they must be immutable. Thread-safe.
    """

    def wrapper(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        cached: Callable[P, T] | None = owner.kept.get(function)
        if cached is None:
            cached = owner.kept.setdefault(function, _cached_for(owner, function))
        try:
            return cached(*args, **kwargs)
        except TypeError:
            _require_hashable((*args, *kwargs.values()))
            raise

    functools.update_wrapper(wrapper, function)
    return wrapper


def remembered_with(function: Callable[[Owner, Other], T]) -> Callable[[Owner, Other], T]:
    """Remember results of a function of a robot and one other object, such as a scene, as long as both live.

    Results may refer to the robot but not to the other object, which they would keep as long as the robot lives.
    """

    def wrapper(owner: Owner, other: Other, /) -> T:
        known: WeakKeyDictionary[Other, T] | None = owner.kept.get(function)
        if known is None:
            known = owner.kept.setdefault(function, WeakKeyDictionary())
        result = known.get(other)
        if result is None:
            result = known.setdefault(other, function(owner, other))
        return result

    functools.update_wrapper(wrapper, function)
    return wrapper


def _require_hashable(arguments: tuple[object, ...]) -> None:
    """Raise InvalidRequestError for arguments that cannot be names, instead of Python's own error."""
    for argument in arguments:
        try:
            hash(argument)
        except TypeError:
            raise InvalidRequestError(
                f"{shown(argument)} is given where a name is needed; allowed is text, or a tuple of texts for several"
            ) from None


def _cached_for(owner: Owner, function: Callable[Concatenate[Owner, P], T]) -> Callable[P, T]:
    weak = ref(owner)  # a strong one would leave every robot to the collector of cycles

    @functools.lru_cache(maxsize=_MOST)
    def compute(*args: Hashable, **kwargs: Hashable) -> T:
        return function(weak(), *args, **kwargs)  # type: ignore[arg-type]

    return compute  # type: ignore[return-value]
