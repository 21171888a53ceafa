"""Checks of arguments; messages name the joint, what was given and what is allowed."""

from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, InvalidStateError, StartStateError


def state_vector(names: tuple[str, ...], values: ArrayLike, what: str) -> Annotated[Float64, "n"]:
    """Return a copy of finite joint values in the order of ``names``.

    Raises InvalidGoalError if ``what`` is "goal", else InvalidStateError.
    """
    if not names or len(set(names)) != len(names):
        raise InvalidRequestError(
            f"joint names must be given and differ from one another; given: {list(names)}"
        )
    error = InvalidGoalError if what == "goal" else InvalidStateError
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise error(f"{what} is not an array of numbers: {cause}") from None
    if array.shape != (len(names),):
        raise error(f"{what} has shape {array.shape}; {len(names)} joints need ({len(names)},)")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise error(f"{what} of joint {names[bad[0]]!r} is {array[bad[0]]}; it must be finite")
    return array


def limit_vector(
    names: tuple[str, ...], values: ArrayLike, what: str, may_be_infinite: bool = False
) -> Annotated[Float64, "n"]:
    """Return positive limits in the order of ``names``; InvalidRequestError otherwise."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise InvalidRequestError(f"{what} limits are not an array of numbers: {cause}") from None
    if array.shape != (len(names),):
        raise InvalidRequestError(
            f"{what} limits have shape {array.shape}; {len(names)} joints need ({len(names)},)"
        )
    usable = array > 0.0 if may_be_infinite else (array > 0.0) & np.isfinite(array)
    bad = np.flatnonzero(~usable)
    if bad.size:
        allowed = "positive" if may_be_infinite else "positive and finite"
        raise InvalidRequestError(
            f"{what} limit of joint {names[bad[0]]!r} is {array[bad[0]]}; it must be {allowed}"
        )
    return array


def start_velocity_vector(
    names: tuple[str, ...], values: ArrayLike | None, limit: Annotated[Float64, "n"]
) -> Annotated[Float64, "n"]:
    """Return finite velocities within the limits; zeros for None. StartStateError if one is over its limit."""
    if values is None:
        return np.zeros(len(names))
    array = state_vector(names, values, "start velocity")
    bad = np.flatnonzero(np.abs(array) > limit)
    if bad.size:
        raise StartStateError(
            f"start velocity of joint {names[bad[0]]!r} is {array[bad[0]]}; its limit is {limit[bad[0]]}"
        )
    return array


def check_scaling(name: str, value: float) -> None:
    """Raise InvalidRequestError unless 0 < value <= 1."""
    if not 0.0 < value <= 1.0:
        raise InvalidRequestError(f"{name} is {value}; allowed: above 0, up to 1")
