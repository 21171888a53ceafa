"""What holds all along a motion: one class per kind, in a file of its own, listed in ``every.py``.

A constraint checks itself against a robot, says where a motion breaks it, and tells optimizers what leads there, as
rows. Every part is abstract: a kind that lacks one cannot be made.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from kinopt_ros.array import Bool, Float64
from kinopt_ros.problems.constraints.rows import ConstraintRow
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True)
class Breach:
    """Where a motion breaks a constraint the most."""

    message: str
    """What is broken, and by how much; the time is said by who asks."""
    time: float
    """Time from the start, s."""
    value: float | None = None
    """Value that was found, if one number says it."""
    limit: float | None = None


@dataclass(frozen=True, eq=False)
class FromFile:
    """What a constraint in a problem file is about."""

    robot: RobotModel
    start: Annotated[Float64, "nq"]
    base_link: str


class PathConstraint(ABC):
    """Holds all along a motion.

    ``base_link`` is that of the problem, in whose frame poses are given; ``full`` are configurations of the whole
    robot. Arithmetic is float64, without any solver: ``breach`` is what answers are verified by.
    """

    key: ClassVar[str]
    """Key in problem files that says that a constraint is of this kind."""
    rows_used: ClassVar[frozenset[type[ConstraintRow]]]
    """Kinds of rows that ``rows`` may return; solvers that lack one refuse the problem by name."""

    @abstractmethod
    def check(self, robot: RobotModel) -> None:
        """Raise KinoptError unless the constraint fits the robot."""

    @abstractmethod
    def kept(
        self, robot: RobotModel, base_link: str, full: Annotated[Float64, "M nq"]
    ) -> Annotated[Bool, "M"]:
        """Return which configurations can be part of a motion that keeps it, judged one by one.

        All of them, if nothing less than a motion tells.
        """

    @abstractmethod
    def breach(
        self,
        robot: RobotModel,
        base_link: str,
        full: Annotated[Float64, "M nq"],
        times: Annotated[Float64, "M"],
    ) -> Breach | None:
        """Return where a motion, sampled at these times (s), breaks it the most; None if it keeps it."""

    @abstractmethod
    def rows(
        self, robot: RobotModel, base_link: str, ends: Annotated[Float64, "2 nq"]
    ) -> tuple[ConstraintRow, ...]:
        """Return what an optimizer has to meet at every point but the first of a path between these ends."""

    def bounds(self, robot: RobotModel) -> tuple[Annotated[Float64, "nq"], Annotated[Float64, "nq"]] | None:
        """Return what it says about single variables, as a lower and an upper bound of each; None: nothing."""
        return None

    @classmethod
    @abstractmethod
    def from_file(cls, said: Mapping[str, Any], place: FromFile) -> Self:
        """Read a constraint from a mapping that has ``key``.

        Raises:
            KinoptError: it describes none.
        """
