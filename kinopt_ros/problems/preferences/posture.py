"""Preferred postures: a given one, one to be the closest to, the middle of the limits."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from kinopt_ros.array import Float64, Immutable, Int64, taken_over
from kinopt_ros.errors import InvalidStateError
from kinopt_ros.kinematics.se3 import LARGEST
from kinopt_ros.problems.preferences.base import Preference
from kinopt_ros.robot.chain import KinematicChain
from kinopt_ros.robot.model import RobotModel

if TYPE_CHECKING:
    from kinopt_ros.problems.ik import IkProblem


@dataclass(frozen=True, eq=False)
class Posture(Immutable, Preference):
    """Prefers the solution with the least sum of weight * (q - reference)^2."""

    reference: Annotated[Float64, "B n"]
    """Wanted values of the solved variables, rad or m."""
    weight: Annotated[Float64, "n"]
    """How much each variable counts, at least 0; 1/rad^2, 1/m^2."""

    def __post_init__(self) -> None:
        taken_over(self, "reference", "weight")

    @property
    def posture(self) -> "Posture":
        """The posture itself."""
        return self

    @property
    def index(self) -> None:
        """None: to be near to it is all."""
        return None

    def distance(self, q: Annotated[Float64, "B ... n"]) -> Annotated[Float64, "B ..."]:
        """Return the square root of the weighted sum."""
        reference = self.reference.reshape(len(q), *(1,) * (q.ndim - 2), q.shape[-1])
        return np.asarray(np.sqrt((self.weight * (q - reference) ** 2).sum(axis=-1)))

    def check(self, problem: "IkProblem", robot: RobotModel) -> None:
        """Raise KinoptError unless there is a value for every request and variable, and no weight is negative."""
        B, n = problem.batch_size, len(problem.variables)
        if self.reference.shape != (B, n) or self.weight.shape != (n,):
            raise InvalidStateError(
                f"posture has a reference of shape {self.reference.shape} and a weight of shape "
                f"{self.weight.shape}; allowed are ({B}, {n}) and ({n},)"
            )
        if not ((np.abs(self.reference) <= LARGEST).all() and (np.abs(self.weight) <= LARGEST).all()):
            raise InvalidStateError(f"posture has a number that is not finite or beyond {LARGEST:g}")
        if (self.weight < 0.0).any():
            raise InvalidStateError("posture has a negative weight")

    def cost(
        self, problem: "IkProblem", chains: Sequence[KinematicChain], q: Annotated[Float64, "B K n"]
    ) -> Annotated[Float64, "B K"]:
        """Compute distances from the posture."""
        return self.distance(q)

    def rows(self, rows: Annotated[Int64, "R"]) -> Self:
        """Return the posture of the given requests, in their order."""
        return replace(self, reference=self.reference[rows])

    def key(self) -> Hashable:
        """Return a key that postures with equal weights share."""
        return Posture, self.weight.tobytes()

    def joined(self, several: Sequence[Self]) -> Self:
        """Return the posture of the requests of several, one after the other."""
        return replace(self, reference=np.concatenate([posture.reference for posture in several]))


def at(reference: Annotated[Float64, "B n"]) -> Posture:
    """Return a posture in which all variables count alike."""
    return Posture(reference, np.ones(reference.shape[1]))


def rest_posture(
    robot: RobotModel, variables: Annotated[Int64, "n"], rest: Annotated[Float64, "nq"], batch_size: int
) -> Posture:
    """Return the posture of a configuration of the whole robot.

    Raises:
        InvalidStateError: it is of another size.
    """
    if rest.shape != (robot.nq,):
        raise InvalidStateError(f"rest has shape {rest.shape}; robot {robot.name!r} has {robot.nq} variables")
    return at(np.repeat(rest[None, variables], batch_size, axis=0))


def middle_of_limits(robot: RobotModel, variables: Annotated[Int64, "n"], batch_size: int) -> Posture:
    """Return the middle of the limits, every joint measured by its range; those without limits do not count."""
    lower, upper = robot.limits.lower[variables], robot.limits.upper[variables]
    limited = np.isfinite(upper - lower) & (upper > lower)
    with np.errstate(invalid="ignore"):
        middle = np.where(limited, 0.5 * (lower + upper), 0.0)
    weight = np.where(limited, 1.0 / np.where(limited, upper - lower, 1.0) ** 2, 0.0)
    return Posture(np.repeat(middle[None], batch_size, axis=0), weight)
