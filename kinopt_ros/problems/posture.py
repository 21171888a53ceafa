"""Preferred solutions of requests that have many."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, UnknownNameError, quoted
from kinopt_ros.problems.ik import Posture
from kinopt_ros.robot.model import RobotModel

ANY, CLOSEST, REST, MID_RANGE = "any", "closest", "rest", "mid_range"
MANIPULABILITY = "manipulability"
PREFERENCES = (ANY, CLOSEST, REST, MID_RANGE, MANIPULABILITY)


class UnknownPreferenceError(UnknownNameError):
    """A preference that does not exist."""

    kind = "preference"
    status = InvalidRequestError.status


def posture_of(
    robot: RobotModel,
    variables: Annotated[Int64, "n"],
    prefer: str,
    seed: Annotated[Float64, "B n"],
    rest: Annotated[Float64, "nq"] | None,
) -> Posture | None:
    """Return the posture that a preference means; None for any, and for manipulability.

    Args:
        robot: the robot.
        variables: indices in q of the solved variables.
        prefer: one of PREFERENCES.
        seed: what ``closest`` is measured from.
        rest: configuration of the whole robot for ``rest``.

    Raises:
        KinoptError: an unknown preference, or a rest posture missing, not asked for or of the wrong size.
    """
    if prefer not in PREFERENCES:
        raise UnknownPreferenceError(str(prefer), PREFERENCES)
    if rest is None and prefer == REST:
        raise InvalidRequestError(f"prefer is {REST!r}, but rest, the posture itself, is not given")
    if rest is not None and prefer != REST:
        raise InvalidRequestError(
            f"a rest posture goes with the preference {REST!r}, and only with it, not {quoted(prefer)}"
        )
    if prefer in (ANY, MANIPULABILITY):
        return None
    ones = np.ones(len(variables))
    if prefer == CLOSEST:
        return Posture(seed.copy(), ones)
    if rest is not None:
        if rest.shape != (robot.nq,):
            raise InvalidStateError(
                f"rest has shape {rest.shape}; robot {robot.name!r} has {robot.nq} variables"
            )
        return Posture(np.repeat(rest[None, variables], len(seed), axis=0), ones)
    lower, upper = robot.limits.lower[variables], robot.limits.upper[variables]
    limited = np.isfinite(upper - lower) & (upper > lower)
    with np.errstate(invalid="ignore"):
        middle = np.where(limited, 0.5 * (lower + upper), 0.0)
    weight = np.where(limited, 1.0 / np.where(limited, upper - lower, 1.0) ** 2, 0.0)
    return Posture(np.repeat(middle[None], len(seed), axis=0), weight)


def manipulability_of(prefer: str, weight: float | None) -> float:
    """Return the weight of the manipulability index: the one given, beside a posture; 1 where the index alone is
    preferred.

    Args:
        prefer: one of PREFERENCES.
        weight: rad^2 or m^2 per unit of the index, as postures have it; None: not given.

    Raises:
        InvalidRequestError: a weight where there is nothing to weigh it against, or none.
    """
    if weight is not None and prefer in (ANY, MANIPULABILITY):
        others = ", ".join(name for name in PREFERENCES if name not in (ANY, MANIPULABILITY))
        raise InvalidRequestError(
            f"manipulability_weight is {weight:g}, but prefer is {quoted(prefer)}; a weight goes with {others}, and "
            f"{MANIPULABILITY!r} needs none"
        )
    return 1.0 if prefer == MANIPULABILITY else 0.0 if weight is None else weight
