"""Collision and pose checks of configurations and straight lines, with the judge's own checks."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.pauses import Pause
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.collision_gate import least_contacts
from kinopt_ros.verification.collision import is_free
from kinopt_ros.verification.motion import keeps_constraints
from kinopt_ros.verification.sweep import free_segment

GLANCES = (0.5, 0.25, 0.75, 0.9375, 0.875, 0.125, 0.0625, 0.8125, 0.375, 0.625)
"""Shares of a straight line at which it is checked first, those near to its ends among them: there is what is to be
picked or has been put down."""
STEP_GLANCES = (1.0, 0.5)
"""Shares of a planner's step at which it is checked first; the step begins where it is free."""


class ValidityChecker:
    """Checks configurations and lines of one problem for collisions; without a scene everything is free.

    Every q holds the problem's variables, rad or m. ``pause`` is called between pieces of a check; what it raises ends
    the check.
    """

    def __init__(self, robot: RobotModel, problem: TrajectoryProblem, pause: Pause) -> None:
        self._robot, self._problem, self._pause = robot, problem, pause

    def is_free(self, q: Annotated[Float64, "n"]) -> bool:
        """Check whether a configuration is free of collisions."""
        problem = self._problem
        if problem.scene is None:
            return True
        whole = problem.whole(q)
        return is_free(self._robot, problem.scene, whole, problem.clearance, self._pause)

    def line_may_be_free(self, a: Annotated[Float64, "n"], b: Annotated[Float64, "n"]) -> bool:
        """Check some places on a line: most lines that collide are found in a tenth of the time."""
        return all(self.is_free(a + share * (b - a)) for share in GLANCES)

    def line_is_free(self, a: Annotated[Float64, "n"], b: Annotated[Float64, "n"]) -> bool:
        """Check whether all of a line is free."""
        problem = self._problem
        if problem.scene is None:
            return True
        ends = problem.whole(a), problem.whole(b)
        return free_segment(self._robot, problem.scene, *ends, problem.clearance, pause=self._pause)

    def step_is_free(self, a: Annotated[Float64, "n"], b: Annotated[Float64, "n"]) -> bool:
        """Whether all of a line from a free configuration is, for a search that asks about thousands.

        Most of its steps end in collision where there is little room: a glance is many times as quick as a look at
        all of the line, which has to clear every part of it before.
        """
        if np.array_equal(a, b):
            return self.is_free(b)
        return all(self.is_free(a + share * (b - a)) for share in STEP_GLANCES) and self.line_is_free(a, b)

    def keeps_constraints(self, q: Annotated[Float64, "n"]) -> bool:
        """Check whether a configuration keeps what is to hold all the way."""
        problem = self._problem
        return bool(keeps_constraints(self._robot, problem, problem.whole(q)[None])[0])

    def breaches(self, q: Annotated[Float64, "n"]) -> str:
        """Return the end of a sentence that says by what a configuration breaks what is to hold all the way."""
        problem, full, now = self._problem, self._problem.whole(q)[None], np.zeros(1)
        broken = [
            along.breach(self._robot, problem.base_link, full, now)
            for along in problem.along
            if not along.kept(self._robot, problem.base_link, full).all()
        ]
        said = [breach.message for breach in broken if breach is not None]
        return f": {'; '.join(said)}" if said else ""

    def collisions(self, q: Annotated[Float64, "n"]) -> str:
        """Return the end of a sentence that says what is in collision, for problems with a scene."""
        problem = self._problem
        if problem.scene is None:
            return ""
        wanted = f" (a clearance of {problem.clearance:g} m is wanted)" if problem.clearance > 0.0 else ""
        q = problem.whole(q)[None]
        said = least_contacts(self._robot, problem.scene, q, problem.clearance, problem.hurry)
        return f"{wanted}: {said}"
