"""Preferences for an index: a number of a configuration that shall be great, alone or beside a posture.

A kind is one subclass, which says what its index is. All else follows: what solutions are sorted by, cutting and
merging of batches, records, the names of requests; and the cpu solver climbs along the self-motion to where any index
is greater, by its differences. A kind with values for each request overrides ``rows``, ``key`` and ``joined``, too.
"""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np

from kinopt_ros.array import Bool, Float64, Immutable, Int64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.se3 import LARGEST
from kinopt_ros.problems.preferences.base import Preference
from kinopt_ros.problems.preferences.posture import Posture
from kinopt_ros.problems.task import Task
from kinopt_ros.robot.chain import KinematicChain
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.variables import joint_named

if TYPE_CHECKING:
    from kinopt_ros.problems.ik import IkProblem


@dataclass(frozen=True, eq=False)
class IndexPreference(Immutable, Preference):
    """Prefers the solution with the least squared distance from a posture, if there is one, less weight * index."""

    name: ClassVar[str]
    """Name in requests and records."""
    weight: float = 1.0
    """Weight of the index beside the posture, above 0; rad^2 or m^2 per unit of the index."""
    beside: Posture | None = None
    """The posture; None if the index alone counts."""

    @classmethod
    def of(
        cls, robot: RobotModel, variables: Annotated[Int64, "n"], weight: float, beside: Posture | None
    ) -> Self:
        """Make the preference of a problem for these variables. Kinds that need more than a weight override it."""
        return cls(weight, beside)

    @abstractmethod
    def value(
        self, task: Task, q: Annotated[Float64, "N n"], request: Annotated[Int64, "N"]
    ) -> Annotated[Float64, "N"]:
        """Compute the index of configurations of the solved variables; ``request`` says whose each one is."""

    def checked_value(
        self, task: Task, q: Annotated[Float64, "N n"], request: Annotated[Int64, "N"]
    ) -> Annotated[Float64, "N"]:
        """Compute the index; raise InvalidRequestError unless it is a number that solutions can be sorted by."""
        index: object = self.value(task, q, request)
        if not isinstance(index, np.ndarray) or index.dtype.kind not in "fiu" or index.shape != (len(q),):
            form = f"{index.dtype} {index.shape}" if isinstance(index, np.ndarray) else type(index).__name__
            raise InvalidRequestError(
                f"index {type(self).__name__} has values as {form}; allowed is an array of float64 ({len(q)},)"
            )
        if not np.isfinite(index).all():
            raise InvalidRequestError(
                f"index {type(self).__name__} has a value that is not finite; nothing can be sorted by it"
            )
        return index

    @property
    def posture(self) -> Posture | None:
        """The posture that solutions shall be near to, too."""
        return self.beside

    @property
    def index(self) -> "IndexPreference":
        """The preference itself."""
        return self

    def check(self, problem: "IkProblem", robot: RobotModel) -> None:
        """Raise KinoptError unless the weight is usable, the posture fits and the joints have an index."""
        if self.beside is not None:
            self.beside.check(problem, robot)
        if not 0.0 < self.weight <= LARGEST:
            raise InvalidRequestError(
                f"the weight of {self.name} is {self.weight}; allowed is 0 to {LARGEST:g}"
            )
        for name in problem.joints:
            if joint_named(robot, name).type is JointType.FLOATING:
                raise InvalidRequestError(
                    f"{self.name} is asked for with the floating joint {name!r} to solve for; it is defined for the "
                    "other types of joints"
                )

    def score(
        self,
        q: Annotated[Float64, "N n"],
        request: Annotated[Int64, "N"],
        index: Annotated[Float64, "N"],
    ) -> Annotated[Float64, "N"]:
        """Compute the squared distance from the posture, if there is one, less the weighted index: the least is
        preferred."""
        score = -self.weight * index
        posture = self.beside
        if posture is not None:
            score += (posture.weight * (q - posture.reference[request]) ** 2).sum(axis=1)
        return np.asarray(score)

    def cost(
        self, problem: "IkProblem", chains: Sequence[KinematicChain], q: Annotated[Float64, "B K n"]
    ) -> Annotated[Float64, "B K"]:
        """Compute scores; NaN where there is no solution."""
        given: Bool = np.asarray(np.isfinite(q).all(axis=2))
        cost = np.full(q.shape[:2], np.nan)
        request = given.nonzero()[0]
        index = self.checked_value(Task(problem, chains), q[given], request)
        cost[given] = self.score(q[given], request, index)
        return cost

    def rows(self, rows: Annotated[Int64, "R"]) -> Self:
        """Return the preference of the given requests, in their order."""
        return self if self.beside is None else replace(self, beside=self.beside.rows(rows))

    def key(self) -> Hashable:
        """Return a key that preferences of this kind share where all that they know is equal."""
        own = tuple(
            (name, _comparable(value))
            for name, value in sorted(vars(self).items())
            if name not in ("weight", "beside")
        )
        return type(self), self.weight, None if self.beside is None else self.beside.key(), own

    def joined(self, several: Sequence[Self]) -> Self:
        """Return the preference of the requests of several, one after the other."""
        postures = [preference.beside for preference in several if preference.beside is not None]
        return self if self.beside is None else replace(self, beside=self.beside.joined(postures))


def _comparable(value: object) -> Hashable:
    """Return a key that only equal values share; what cannot be compared is equal to itself alone."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, str | int | float | type(None)):
        return type(value), value
    return id(value)
