"""Remembers what follows from a robot for as long as the robot lives."""

import functools
import threading
from collections.abc import Callable, Hashable
from typing import Concatenate, ParamSpec, TypeVar
from weakref import finalize, ref

from kinopt_ros.errors import InvalidRequestError, shown
from kinopt_ros.robot.model import RobotModel

P = ParamSpec("P")
T = TypeVar("T")

_MOST = 256
"""Results kept per function and robot: names come from requests, and nobody may fill the memory with them."""


def remembered(
    function: Callable[Concatenate[RobotModel, P], T],
) -> Callable[Concatenate[RobotModel, P], T]:
    """A function of a robot and hashable arguments that computes each result once. Errors are not remembered.

    Results are shared: they must be immutable. Thread-safe.
    """
    # By identity, which is free to be used again only after ``finalize`` has emptied the place; a dictionary of weak
    # references would take a microsecond for each of the lookups of a request.
    caches: dict[int, Callable[..., T]] = {}
    lock = threading.Lock()

    def wrapper(robot: RobotModel, /, *args: P.args, **kwargs: P.kwargs) -> T:
        cached = caches.get(id(robot))
        if cached is None:
            with lock:
                cached = caches.get(id(robot))
                if cached is None:
                    cached = caches[id(robot)] = _cached_for(robot, function)
                    finalize(robot, caches.pop, id(robot)).atexit = False
        try:
            return cached(*args, **kwargs)
        except TypeError:
            _require_hashable((*args, *kwargs.values()))
            raise

    functools.update_wrapper(wrapper, function)
    return wrapper


def _require_hashable(arguments: tuple[object, ...]) -> None:
    """Raise InvalidRequestError for what can be no name, instead of what Python says about it."""
    for argument in arguments:
        try:
            hash(argument)
        except TypeError:
            raise InvalidRequestError(
                f"{shown(argument)} is given where a name is needed; allowed is text, or a tuple of texts for several"
            ) from None


def _cached_for(robot: RobotModel, function: Callable[..., T]) -> Callable[..., T]:
    weak = ref(robot)  # a strong one would keep the robot, and with it this cache, for ever

    @functools.lru_cache(maxsize=_MOST)
    def compute(*args: Hashable, **kwargs: Hashable) -> T:
        return function(weak(), *args, **kwargs)

    return compute
