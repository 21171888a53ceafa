"""What a problem prefers among many solutions: one object, with its cost, and how it is cut, merged and checked.

There are two kinds: a ``Posture`` to be near to, which compiled searches are led by, and an ``IndexPreference``, a
number to be made great, also beside a posture. ``every.py`` lists them by the names that requests give.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.robot.chain import KinematicChain
from kinopt_ros.robot.model import RobotModel

if TYPE_CHECKING:
    from kinopt_ros.problems.ik import IkProblem
    from kinopt_ros.problems.preferences.index import IndexPreference
    from kinopt_ros.problems.preferences.posture import Posture


class Preference(ABC):
    """Preference among many solutions of each of B requests."""

    @property
    @abstractmethod
    def posture(self) -> "Posture | None":
        """The posture that solutions shall be near to; None if there is none."""

    @property
    @abstractmethod
    def index(self) -> "IndexPreference | None":
        """The preference itself if it asks for more than to be near to the posture; else None."""

    @abstractmethod
    def check(self, problem: "IkProblem", robot: RobotModel) -> None:
        """Raise KinoptError unless the preference fits its problem."""

    @abstractmethod
    def cost(
        self, problem: "IkProblem", chains: Sequence[KinematicChain], q: Annotated[Float64, "B K n"]
    ) -> Annotated[Float64, "B K"]:
        """Compute what solutions are sorted by, the least first; NaN where there is none.

        ``chains`` lead from the base link to the target's links, nothing held.
        """

    @abstractmethod
    def rows(self, rows: Annotated[Int64, "R"]) -> Self:
        """Return the preference of the given requests, in their order."""

    @abstractmethod
    def key(self) -> Hashable:
        """Return a key: preferences of problems of the same robot and joints with equal keys can be joined."""

    @abstractmethod
    def joined(self, several: Sequence[Self]) -> Self:
        """Return the preference of the requests of several with this one's key, one after the other."""


def sorting_cost(
    problem: "IkProblem", chains: Sequence[KinematicChain], q: Annotated[Float64, "B K n"]
) -> Annotated[Float64, "B K"]:
    """Compute what solutions are sorted by, the least first; NaN where there is none.

    It is the cost of the problem's preference, else the distance from the state.
    """
    if problem.preference is not None:
        return problem.preference.cost(problem, chains, q)
    difference = q - problem.state.take(problem.variables, axis=1)[:, None]
    difference *= difference
    return np.asarray(np.sqrt(np.add.reduce(difference, -1)))
