"""A range that a joint keeps all along a motion, inside its limits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import InvalidGoalError, UnknownJointError
from kinopt_ros.problems.constraints.base import Breach, FromFile, PathConstraint
from kinopt_ros.problems.constraints.rows import ConstraintRow
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene import yaml_text as read

_ROUNDING = 1e-6
"""Excess that is granted, rad or m: the curve between the points of a path is not the path."""


@dataclass(frozen=True)
class JointRange(PathConstraint):
    """A variable of the robot stays between two values, r = (lower - q, q - upper) <= 0."""

    key: ClassVar[str] = "joint_range"
    rows_used: ClassVar[frozenset[type[ConstraintRow]]] = frozenset()
    variable: str
    """Name of the joint, or of a variable of a planar or floating one."""
    lower: float = -math.inf
    """rad or m."""
    upper: float = math.inf
    """rad or m."""

    def check(self, robot: RobotModel) -> None:
        """Raise KinoptError unless the robot has the variable, and there is something between the values."""
        if self.variable not in robot.variable_index:
            raise UnknownJointError(self.variable, robot.variable_names)
        if not self.lower <= self.upper or not (math.isfinite(self.lower) or math.isfinite(self.upper)):
            raise InvalidGoalError(
                f"the range of {self.variable!r} is {self.lower:g} to {self.upper:g}; allowed is one with an end, "
                "the lower value first"
            )

    def kept(
        self, robot: RobotModel, base_link: str, full: Annotated[Float64, "M nq"]
    ) -> Annotated[Bool, "M"]:
        """Return which configurations have the variable in its range."""
        return np.asarray(self._excess(robot, full) <= _ROUNDING)

    def breach(
        self,
        robot: RobotModel,
        base_link: str,
        full: Annotated[Float64, "M nq"],
        times: Annotated[Float64, "M"],
    ) -> Breach | None:
        """Return where a motion is the farthest out of the range, if it leaves it."""
        excess = self._excess(robot, full)
        k = int(np.argmax(excess))
        if excess[k] <= _ROUNDING:
            return None
        value = float(full[k, robot.variable_index[self.variable]])
        return Breach(
            f"{self.variable!r} is at {value:.6g}; it shall keep to {self.lower:g} to {self.upper:g}",
            time=float(times[k]),
            value=value,
            limit=self.lower if value < self.lower else self.upper,
        )

    def rows(
        self, robot: RobotModel, base_link: str, ends: Annotated[Float64, "2 nq"]
    ) -> tuple[ConstraintRow, ...]:
        """Return none: ``bounds`` says it."""
        return ()

    def bounds(self, robot: RobotModel) -> tuple[Annotated[Float64, "nq"], Annotated[Float64, "nq"]]:
        """Return the range as bounds of all variables."""
        lower, upper = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
        lower[robot.variable_index[self.variable]] = self.lower
        upper[robot.variable_index[self.variable]] = self.upper
        return lower, upper

    def _excess(self, robot: RobotModel, full: Annotated[Float64, "M nq"]) -> Annotated[Float64, "M"]:
        q = full[:, robot.variable_index[self.variable]]
        return np.maximum(self.lower - q, q - self.upper)

    @classmethod
    def from_file(cls, said: Mapping[str, Any], place: FromFile) -> Self:
        """Read ``{joint_range: name, lower: rad, upper: rad}``; one end will do."""
        said = read.mapping(said, "it", (cls.key, "lower", "upper"))
        ends = {end: read.number(said[end], end) for end in ("lower", "upper") if end in said}
        return cls(read.text(said[cls.key], cls.key), **ends)
