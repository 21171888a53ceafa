"""Arguments of public functions: what fits is returned in one form, anything else is refused by name."""

import operator
from collections.abc import Collection
from typing import SupportsIndex

import numpy as np

from kinopt_ros.errors import InvalidRequestError, shown
from kinopt_ros.scene.scene import Scene

_FLAGS = bool, np.bool_  # made anew, their union takes longer than the question


def as_whole(given: SupportsIndex, what: str) -> int:
    """Return a whole number as int, also one of numpy's."""
    if type(given) is int:
        return given
    try:
        if not isinstance(given, bool):
            return operator.index(given)
    except (TypeError, ValueError):
        pass
    raise InvalidRequestError(f"{what} is {shown(given)}; allowed is a whole number")


def as_flag(given: bool, what: str) -> bool:
    """Return a truth value as bool, also one of numpy's."""
    if isinstance(given, _FLAGS):
        return bool(given)
    raise InvalidRequestError(f"{what} is {shown(given)}; allowed are True and False")


def as_word(given: str, what: str) -> str:
    """Return a text."""
    if isinstance(given, str):
        return given
    raise InvalidRequestError(f"{what} is {shown(given)}; allowed is a name")


def as_number(given: float, what: str) -> float:
    """Return a number as float, also one of numpy's."""
    if type(given) is float:
        return given
    if isinstance(given, float | int | np.floating | np.integer) and not isinstance(given, bool):
        try:
            return float(given)
        except OverflowError:  # Python's own are of any size
            pass
    raise InvalidRequestError(f"{what} is {shown(given)}; allowed is a number")


def as_names(given: Collection[str], what: str) -> tuple[str, ...]:
    """Return names as a tuple."""
    if type(given) is tuple and not given:  # most requests
        return given
    if isinstance(given, str | np.ndarray) or not isinstance(given, Collection):
        raise InvalidRequestError(f"{what} is {shown(given)}; allowed is a list of names")
    for name in given:
        if not isinstance(name, str):
            raise InvalidRequestError(f"{what} has {shown(name)}; allowed are names")
    return tuple(given)


def as_scene(given: Scene | None) -> Scene | None:
    """Return a scene, or None."""
    if given is not None:
        check_is_scene(given)
    return given


def check_is_scene(given: Scene) -> None:
    """Raise unless a scene is one."""
    if not isinstance(given, Scene):
        raise InvalidRequestError(
            f"scene is {shown(given)}; allowed is a Scene (EMPTY_SCENE: the robot alone)"
        )
