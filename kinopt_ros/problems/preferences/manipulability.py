"""Manipulability: how freely the targets' frames can move from a configuration.

The index is Yoshikawa's, sqrt(det(J Jᵀ)), of the task's Jacobian: velocities of the tools along and about the axes of
their targets that are not free, by the velocities of the solved variables, in m, rad and s. For one target without free
axes it does not depend on where the tool sits on its link. It is 0 at singularities.

Source: T. Yoshikawa, "Manipulability of robotic mechanisms", Int. J. of Robotics Research 4(2), 1985.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.problems.preferences.index import IndexPreference
from kinopt_ros.problems.task import Task, counting
from kinopt_ros.robot.model import RobotModel

if TYPE_CHECKING:
    from kinopt_ros.problems.ik import IkProblem


@dataclass(frozen=True, eq=False)
class Manipulability(IndexPreference):
    """Prefers solutions with a great manipulability index."""

    name: ClassVar[str] = "manipulability"

    def value(
        self, task: Task, q: Annotated[Float64, "N n"], request: Annotated[Int64, "N"]
    ) -> Annotated[Float64, "N"]:
        """Compute the manipulability index."""
        J = task.jacobian(q, request)
        # The product of singular values: exact to rounding near singularities, where det(J Jᵀ) may be negative.
        return np.asarray(np.prod(np.linalg.svd(J, compute_uv=False), axis=-1))

    def check(self, problem: "IkProblem", robot: RobotModel) -> None:
        """Raise KinoptError also where the index is 0 everywhere."""
        super().check(problem, robot)
        rows = sum(len(counting(target)) for target in problem.targets)
        if len(problem.variables) < rows:
            raise InvalidRequestError(
                f"manipulability is asked for, but {len(problem.variables)} variables cannot move {rows} axes "
                "independently: the index is 0 everywhere; free some axes of the targets or prefer something else"
            )
