"""Sampling planner (OMPL's RRT-Connect) for problems that no local optimization gets through.

The library is optional (extra ``sampling``). Kuffner and LaValle, "RRT-Connect: an efficient approach to single-query
path planning" (2000); the path is then shortened (Geraerts and Overmars, "Creating high-quality paths for motion
planning", 2007).
"""

import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, MissingPackageError
from kinopt_ros.kinematics.sampling import AROUND, range_around
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel

Free: TypeAlias = Callable[[Float64, Float64], bool]
"""Function that checks whether the straight line between two values of the problem's variables (n) is free, ends
included."""

SHORTENING = 0.3
"""Default time for shortening the path found, s."""
STRIDE = 0.1
"""Longest step of the planner's trees, as a share of the diagonal of what it searches in."""
_WAIT = 0.05
"""Time between two looks at the clock while another search is under way, s."""
_one_at_a_time = threading.Lock()
"""Lock around searches. OMPL's seed belongs to the process: equal seeds give equal paths only if searches do not
mix."""


def missing_sampler() -> str:
    """Return why there is no sampling planner here, and the remedy; empty if there is one."""
    if find_spec("ompl") is None:
        return "paths by sampling need the package ompl (pip install ompl)"
    return ""


def sampled_path(
    robot: RobotModel,
    problem: TrajectoryProblem,
    goals: Annotated[Float64, "G n"],
    free: Free,
    deadline: float,
    seed: int,
    stop: Callable[[], bool] = lambda: False,
    shortening: float = SHORTENING,
    around: float = AROUND,
) -> Annotated[Float64, "K n"] | None:
    """Search a free path from the problem's start to one of some goals; return its corners, or None if time runs out.

    Args:
        robot: the robot; its limits bound the search, and wide ones what lies around start and goals.
        problem: whose variables move, from its start.
        goals: values of these variables (rad or m), one row per goal; those that are not free are left out.
        free: whether the straight line between two of them is free. What it raises ends the search and is raised.
        deadline: value of time.monotonic() at which the search ends.
        seed: same arguments, same seed, enough time: same path. At least 1.
        stop: asked between looks at lines; when it says True the search ends with None.
        shortening: s to spend on shortening what was found, at most, deadline included.
        around: how far around start and goals translations of wide ranges are searched, m.

    Returns:
        Rows from the start to the goal that was reached, at least two, or None.

    Raises:
        MissingPackageError: OMPL is not installed.
        InvalidRequestError: goals of another shape or not finite, a seed below 1.
    """
    reason = missing_sampler()
    if reason:
        raise MissingPackageError(reason)
    count = len(problem.variables)
    if goals.ndim != 2 or goals.shape[1] != count or not np.isfinite(goals).all():
        raise InvalidRequestError(f"goals have shape {goals.shape}; {count} finite numbers each are needed")
    if seed < 1:
        raise InvalidRequestError(f"seed is {seed}; allowed is 1 or more")
    while not _one_at_a_time.acquire(timeout=_WAIT):
        if time.monotonic() >= deadline or stop():
            return None
    try:
        return _Search(robot, problem, free, deadline, stop, around).run(goals, seed, shortening)
    finally:
        _one_at_a_time.release()


class _Search:
    """One search. Nothing is raised through OMPL's own stack: an exception ends the search and is kept."""

    def __init__(
        self,
        robot: RobotModel,
        problem: TrajectoryProblem,
        free: Free,
        deadline: float,
        stop: Callable[[], bool],
        around: float,
    ) -> None:
        self._robot, self._problem, self._around = robot, problem, around
        self._start = problem.start[problem.variables]
        self._free, self._deadline, self._stop = free, deadline, stop
        self._stopped = False
        self._error: BaseException | None = None

    def run(self, goals: Float64, seed: int, shortening: float) -> Float64 | None:
        from ompl import base, geometric, util

        util.setLogLevel(util.LOG_NONE)
        util.RNG.setSeed(seed)
        goals = goals[[self._is_free(goal, goal) for goal in goals]]
        if not len(goals) or self._over():
            return self._none()
        space = self._space(base, goals)
        info = base.SpaceInformation(space)
        info.setStateValidityChecker(lambda state: self._state_free(state))
        # The validator gets an information of its own: one that held itself would never be freed.
        info.setMotionValidator(_validator(base, base.SpaceInformation(space), self._way_free))
        info.setup()
        definition = base.ProblemDefinition(info)
        definition.addStartState(self._state(space, self._start))
        ends = base.GoalStates(info)
        for goal in goals:
            ends.addState(self._state(space, goal))
        definition.setGoal(ends)
        planner = geometric.RRTConnect(info)
        planner.setRange(STRIDE * space.getMaximumExtent())
        planner.setProblemDefinition(definition)
        planner.setup()
        over = base.PlannerTerminationCondition(self._over)
        status = planner.solve(over)
        if self._error is not None or str(status) != "Exact solution":
            return self._none()
        path = definition.getSolutionPath()
        found = self._corners(path)
        self._deadline = min(self._deadline, time.monotonic() + shortening)
        geometric.PathSimplifier(info).simplify(path, over, False)
        if self._error is not None or self._stop():
            return self._none()
        shorter = self._corners(path)
        # Cut short, OMPL may leave lines that nobody has looked at.
        kept = all(self._free(a, b) for a, b in pairwise(shorter))
        return shorter if kept else found

    def _space(self, base: Any, goals: Float64) -> Any:
        problem = self._problem
        ends = range_around(self._robot, problem.whole(np.vstack([self._start, goals])), self._around)
        lower, upper = (end[problem.variables] for end in ends)
        space = base.RealVectorStateSpace(len(lower))
        bounds = base.RealVectorBounds(len(lower))
        for i in range(len(lower)):
            bounds.setLow(i, float(lower[i]))
            bounds.setHigh(i, float(upper[i]))
        space.setBounds(bounds)
        return space

    def _state(self, space: Any, values: Float64) -> Any:
        state = space.allocState()
        for i, value in enumerate(values.tolist()):
            state[i] = value
        return state

    def _values(self, state: Any) -> Float64:
        return np.array([state[i] for i in range(len(self._start))])

    def _corners(self, path: Any) -> Float64:
        return np.array([self._values(path.getState(k)) for k in range(path.getStateCount())])

    def _state_free(self, state: Any) -> bool:
        q = self._values(state)
        return self._is_free(q, q)

    def _way_free(self, first: Any, second: Any) -> bool:
        return self._is_free(self._values(first), self._values(second))

    def _is_free(self, a: Float64, b: Float64) -> bool:
        if self._over():  # whoever called then finds nothing more, and ends
            return False
        try:
            return bool(self._free(a, b))  # numpy's own is none for OMPL
        except BaseException as error:
            self._error = error
            return False

    def _over(self) -> bool:
        self._stopped = self._stopped or self._stop()
        return self._stopped or self._error is not None or time.monotonic() >= self._deadline

    def _none(self) -> Float64 | None:
        # Kept here, it would never be freed: it refers to the frames that it passed, these to OMPL's objects, and they
        # to this search: a ring that the collector cannot see.
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            del error
        return None


def _validator(base: Any, info: Any, free: Callable[[Any, Any], bool]) -> Any:
    class Lines(base.MotionValidator):  # type: ignore[misc]
        def checkMotion(self, first: Any, second: Any, *last: Any) -> bool:
            return free(first, second)

    return Lines(info)
