"""Every preference, by the name that requests give it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError, UnknownNameError, quoted
from kinopt_ros.problems.preferences.base import Preference
from kinopt_ros.problems.preferences.index import IndexPreference
from kinopt_ros.problems.preferences.manipulability import Manipulability
from kinopt_ros.problems.preferences.posture import Posture, at, middle_of_limits, rest_posture
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene import yaml_text as read

ANY, CLOSEST, REST, MID_RANGE = "any", "closest", "rest", "mid_range"
INDICES: tuple[type[IndexPreference], ...] = (Manipulability,)
"""Every index that may be preferred, alone or beside a posture."""


class UnknownPreferenceError(UnknownNameError):
    """A preference that does not exist."""

    kind = "preference"
    status = InvalidRequestError.status


@dataclass(frozen=True, eq=False)
class Given:
    """What a preference may be made of."""

    robot: RobotModel
    variables: Annotated[Int64, "n"]
    """Indices in q of the solved variables."""
    seed: Annotated[Float64, "B n"]
    """What ``closest`` is measured from."""
    rest: Annotated[Float64, "nq"] | None
    """Configuration of the whole robot for ``rest``."""


def _rest(given: Given) -> Posture:
    if given.rest is None:
        raise InvalidRequestError(f"prefer is {REST!r}, but rest, the posture itself, is not given")
    return rest_posture(given.robot, given.variables, given.rest, len(given.seed))


_POSTURES: dict[str, Callable[[Given], Posture]] = {
    CLOSEST: lambda given: at(given.seed.copy()),
    REST: _rest,
    MID_RANGE: lambda given: middle_of_limits(given.robot, given.variables, len(given.seed)),
}
"""Every posture that may be preferred."""


def preference_names() -> tuple[str, ...]:
    """Return all names."""
    return (ANY, *_POSTURES, *(kind.name for kind in INDICES))


def preference_of(prefer: str, given: Given, weight: float | None) -> Preference | None:
    """Return the preference of a name; None for any.

    Args:
        prefer: one of ``preference_names``.
        given: what it may be made of.
        weight: of the manipulability index beside a posture, rad^2 or m^2 per unit of the index; None: not given.

    Raises:
        KinoptError: an unknown name, a rest posture missing, not asked for or of the wrong size, or a weight where
            there is nothing to weigh the index against, or none.
    """
    names = preference_names()
    if prefer not in names:
        raise UnknownPreferenceError(str(prefer), names)
    if given.rest is not None and prefer != REST:
        raise InvalidRequestError(
            f"a rest posture goes with the preference {REST!r}, and only with it, not {quoted(prefer)}"
        )
    if prefer in _POSTURES:
        posture = _POSTURES[prefer](given)
        if weight is None or weight == 0.0:
            return posture
        return Manipulability.of(given.robot, given.variables, weight, posture)
    if weight is not None:
        raise InvalidRequestError(
            f"manipulability_weight is {weight:g}, but prefer is {quoted(prefer)}; a weight goes with "
            f"{', '.join(_POSTURES)}, and {Manipulability.name!r} needs none"
        )
    for kind in INDICES:
        if kind.name == prefer:
            return kind.of(given.robot, given.variables, 1.0, None)
    return None


def check_preference(given: object) -> Preference:
    """Return what was given, if it is a preference that searches follow; else raise InvalidRequestError.

    A cost of any other kind would sort what happens to be found, and lead no search.
    """
    if type(given) is not Posture and not isinstance(given, IndexPreference):
        kinds = ", ".join(("Posture", *(kind.__name__ for kind in INDICES)))
        raise InvalidRequestError(
            f"preference is a {type(given).__name__}; allowed are {kinds}, other kinds of IndexPreference, and None"
        )
    return given


def plain_preference(
    preference: Preference | None, robot: RobotModel, variables: Annotated[Int64, "n"]
) -> dict[str, Any]:
    """Return a preference as plain values, as records keep it: a posture, and the weight of every index.

    Raises:
        InvalidRequestError: that would not bring it back.
    """
    posture = None if preference is None else preference.posture
    index = None if preference is None else preference.index
    if index is not None and not (
        type(index) in INDICES
        and type(index).of(robot, variables, index.weight, posture).key() == index.key()
    ):
        raise InvalidRequestError(
            f"no record can keep a preference of kind {type(index).__name__}; allowed are "
            f"{', '.join(kind.__name__ for kind in INDICES)}, as they follow from robot, joints and weight"
        )
    return {
        "posture": posture and {"reference": posture.reference.tolist(), "weight": posture.weight.tolist()},
        **{
            kind.name: float(index.weight) if index is not None and type(index) is kind else 0.0
            for kind in INDICES
        },
    }


def preference_from_plain(
    plain: Mapping[str, Any], robot: RobotModel, variables: Annotated[Int64, "n"], batch_size: int
) -> Preference | None:
    """Return the preference of plain values; records from before an index was known have no weight of it.

    Raises:
        KinoptError, KeyError, TypeError, ValueError: they are not consistent.
    """
    kept = plain["posture"]
    posture = None
    if kept is not None:
        posture = Posture(
            np.array(kept["reference"], dtype=np.float64).reshape(batch_size, len(variables)),
            np.array(kept["weight"], dtype=np.float64),
        )
    weights = {kind: read.number(plain.get(kind.name, 0.0), kind.name) for kind in INDICES}
    asked = [kind for kind, weight in weights.items() if weight != 0.0]
    if len(asked) > 1:
        raise ValueError(f"more than one of {', '.join(kind.name for kind in asked)} is preferred")
    return asked[0].of(robot, variables, weights[asked[0]], posture) if asked else posture
