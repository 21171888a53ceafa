"""Objective: any number of costs, to be minimized or kept."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import is_
from typing import Any

import numpy as np

from kinopt_ros.array import Float64, Immutable
from kinopt_ros.costs.base import Cost, structure_of
from kinopt_ros.errors import InvalidRequestError, shown
from kinopt_ros.objectives.cost_error import blamed
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene

MOST_COSTS = 64
"""Most costs of one objective."""


class Structure:
    """Structure of some costs, to be compared and hashed, which is done once."""

    __slots__ = ("_hash", "_parts", "costs")

    def __init__(self, costs: tuple[Cost, ...]) -> None:
        """Raises InvalidRequestError for a cost with fields that can change."""
        self.costs = costs
        self._parts = tuple([structure_of(cost) for cost in costs])
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._hash == other._hash and self._parts == other._parts


@dataclass(frozen=True, eq=False, init=False)
class Objective(Immutable):
    """Costs that count together.

    Iterating yields the costs; answers list them in this order, by ``titles``.
    """

    costs: tuple[Cost, ...]
    titles: tuple[str, ...] = field(init=False, repr=False)
    """Names of the costs in answers: labels or kinds, numbered from the second on where they repeat."""
    structure: Structure = field(init=False, repr=False)
    """What a compiled program of the objective depends on: that of its costs (``costs.base.structure_of``)."""

    def __init__(self, costs: Iterable[Cost]) -> None:
        """``costs``: at least one. Labels tell two of a kind apart in answers; without them they are numbered.

        Raises:
            InvalidRequestError: none, too many, something that is no cost, or one with fields that can change.
        """
        given = tuple(costs)
        for cost in given:
            if not isinstance(cost, Cost):
                raise InvalidRequestError(
                    f"{shown(cost)} is no cost; allowed are the classes of kinopt_ros.costs"
                )
        if not 1 <= len(given) <= MOST_COSTS:
            raise InvalidRequestError(f"an objective has {len(given)} costs; allowed are 1 to {MOST_COSTS}")
        object.__setattr__(self, "costs", given)
        object.__setattr__(self, "titles", _titles(given))
        object.__setattr__(self, "structure", Structure(given))

    def __iter__(self) -> Iterator[Cost]:
        return iter(self.costs)

    def __len__(self) -> int:
        return len(self.costs)

    def replace(self, title: str, **values: Any) -> "Objective":
        """Return the objective with other values of one cost, as for the next target: less work than making all anew.

        Args:
            title: the cost's, one of ``titles``.
            values: of its fields, by name.

        Raises:
            InvalidRequestError: no cost has that title, or a value does not fit.
        """
        if title not in self.titles:
            raise InvalidRequestError(
                f"no cost has the title {shown(title)}; there are {', '.join(self.titles)}"
            )
        number = self.titles.index(title)
        before = self.costs[number]
        after = before.replace(**values)
        costs = (*self.costs[:number], after, *self.costs[number + 1 :])
        if after.title != before.title or structure_of(after) is not structure_of(before):
            return Objective(costs)
        copy = object.__new__(Objective)
        copy.__dict__.update(self.__dict__)
        object.__setattr__(copy, "costs", costs)
        return copy

    def in_scene(self, scene: Scene) -> "Objective":
        """Return the objective with what its costs need of a problem's scene."""
        costs = tuple([cost.in_scene(scene) for cost in self.costs])
        return self if all(map(is_, costs, self.costs)) else Objective(costs)

    @property
    def has_to_hold(self) -> bool:
        """Whether any cost has a tolerance, so that there is something to succeed at."""
        return any(cost.tolerance is not None for cost in self.costs)

    def check(self, robot: RobotModel, num_points: int, checked: "Objective | None" = None) -> None:
        """Raise a KinoptError if a cost does not fit the robot, or needs a longer trajectory.

        Costs that stand in ``checked``, of the same structure and checked for both, too, are not looked at again.
        """
        before = self.costs if checked is None else checked.costs
        for cost, known, title in zip(self.costs, before, self.titles, strict=True):
            if cost is known and checked is not None:
                continue
            with blamed(cost, title, refusals=True):
                cost.check(robot)
            if cost.tolerance is not None and not _counts(cost.weight):
                raise InvalidRequestError(
                    f"cost {title!r} has a tolerance, but no component with a weight: nothing would have to hold"
                )
            if (
                cost.points is None and cost.span == 1 and not cost.order
            ):  # most: at every point, of this alone
                continue
            if cost.width > num_points:
                raise InvalidRequestError(
                    f"cost {title!r} looks at {cost.width} neighbouring points; "
                    f"{num_points} {'is' if num_points == 1 else 'are'} asked for"
                )
            if cost.span > 1 and cost.order:
                raise InvalidRequestError(f"cost {title!r} has a span and an order; allowed is one of them")
            if cost.points is None and cost.span == 1:
                continue
            for number in cost.points or ():
                if not -num_points <= number < num_points:
                    raise InvalidRequestError(
                        f"cost {title!r}: points has {shown(number)}; allowed is {-num_points} to {num_points - 1}"
                    )
            if not self.points_of(cost, num_points):
                raise InvalidRequestError(
                    f"cost {title!r} looks at {cost.span - 1} points after its own, and there are fewer after each of "
                    f"its points {shown(cost.points)}"
                )

    def points_of(self, cost: Cost, num_points: int) -> tuple[int, ...]:
        """Return the points at which a cost is evaluated, ascending: the first ones of their windows."""
        last = num_points - cost.span + 1
        if cost.points is None:
            return tuple(range(last))
        return tuple(sorted({number % num_points for number in cost.points if number % num_points < last}))


def _titles(costs: tuple[Cost, ...]) -> tuple[str, ...]:
    given = tuple([cost.title for cost in costs])
    taken = set(given)
    if len(taken) == len(given):
        return given
    seen: dict[str, int] = {}
    titles = []
    for own in given:
        title, number = own, seen.get(own, 0) + 1
        while number > 1 and title in taken:
            title, number = f"{own} {number}", number + 1
        seen[own] = max(number - 1, 1)
        taken.add(title)
        titles.append(title)
    return tuple(titles)


def _counts(weight: float | tuple[float, ...] | Float64) -> bool:
    return weight != 0.0 if isinstance(weight, float) else bool(np.any(weight))
