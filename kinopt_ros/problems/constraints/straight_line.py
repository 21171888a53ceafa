"""A straight line that a point of a link keeps to."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from kinopt_ros.array import Bool, Float64, Immutable, taken_over
from kinopt_ros.errors import InvalidGoalError
from kinopt_ros.kinematics.forward import chain_pose, forward_kinematics
from kinopt_ros.kinematics.se3 import LARGEST, inverse
from kinopt_ros.problems.constraints.base import Breach, FromFile, PathConstraint
from kinopt_ros.problems.constraints.rows import ConstraintRow, LineRow
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene import yaml_text as read

_POINT = 1e-9
"""Length (m) up to which a line counts as no more than a point."""


@dataclass(frozen=True, eq=False)
class StraightLine(Immutable, PathConstraint):
    """A point of a link moves along the straight line between where it is at the start and at the goal."""

    key: ClassVar[str] = "straight"
    rows_used: ClassVar[frozenset[type[ConstraintRow]]] = frozenset({LineRow})
    link: str
    tolerance: float
    """Largest distance from the line, m."""
    p_link: Annotated[Float64, "3"] = field(default_factory=lambda: np.zeros(3))
    """The point, in the link's frame, m."""

    def __post_init__(self) -> None:
        taken_over(self, "p_link")

    def check(self, robot: RobotModel) -> None:
        """Raise KinoptError unless link, tolerance and point are usable."""
        robot.link(self.link)
        if not 0.0 < self.tolerance < math.inf:
            raise InvalidGoalError(
                f"tolerance of the line of {self.link!r} is {self.tolerance}; allowed is a number above 0"
            )
        if self.p_link.shape != (3,) or not (np.abs(self.p_link) <= LARGEST).all():
            raise InvalidGoalError(f"p_link is {self.p_link}; allowed are three finite numbers")

    def kept(
        self, robot: RobotModel, base_link: str, full: Annotated[Float64, "M nq"]
    ) -> Annotated[Bool, "M"]:
        """Return all of them: where the line is follows from both ends of a motion."""
        return np.ones(len(full), dtype=np.bool_)

    def breach(
        self,
        robot: RobotModel,
        base_link: str,
        full: Annotated[Float64, "M nq"],
        times: Annotated[Float64, "M"],
    ) -> Breach | None:
        """Return where a motion is the farthest from the line, if that is too far."""
        off = self._distance(robot, base_link, full)
        k = int(np.argmax(off))
        if off[k] <= self.tolerance:
            return None
        return Breach(
            f"{self.link!r} is {off[k]:.3g} m from the straight line; allowed is {self.tolerance:g} m",
            time=float(times[k]),
            value=float(off[k]),
            limit=self.tolerance,
        )

    def rows(
        self, robot: RobotModel, base_link: str, ends: Annotated[Float64, "2 nq"]
    ) -> tuple[ConstraintRow, ...]:
        """Return the line between both places of the point."""
        T = forward_kinematics(robot, ends, (base_link, self.link))
        p = (inverse(T[:, 0]) @ T[:, 1] @ np.array([*self.p_link, 1.0]))[:, :3]
        way = p[1] - p[0]
        length = float(np.linalg.norm(way))
        # Without length, the distance from the point counts.
        direction = way / length if length > _POINT else np.zeros(3)
        return (LineRow(self.link, self.p_link, p[0], direction, self.tolerance),)

    @classmethod
    def from_file(cls, said: Mapping[str, Any], place: FromFile) -> Self:
        """Read ``{straight: link, tolerance: m}``."""
        said = read.mapping(said, "it", (cls.key, "tolerance"), (cls.key, "tolerance"))
        tolerance = read.number(said["tolerance"], "tolerance")
        return cls(read.text(said[cls.key], cls.key), tolerance)

    def _distance(
        self, robot: RobotModel, base_link: str, full: Annotated[Float64, "M nq"]
    ) -> Annotated[Float64, "M"]:
        """Return how far (m) the point is from the segment between its first and its last place."""
        chain = chain_between(robot, base_link, self.link)
        T = chain_pose(chain, full[:, chain.variables])
        p = T[:, :3, :3] @ self.p_link + T[:, :3, 3]
        way = p[-1] - p[0]
        square = float(way @ way)
        share = np.clip((p - p[0]) @ way / square, 0.0, 1.0) if square > 0.0 else np.zeros(len(p))
        return np.asarray(np.linalg.norm(p - p[0] - share[:, None] * way, axis=1))
